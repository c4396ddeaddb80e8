"""Three levels of noise and two gates between them."""

from typing import Any, ClassVar

from errorband.likelihoods.base import robust_scale
from errorband.likelihoods.gated import Branch, Gate, Gated
from errorband.likelihoods.twinned import gate_kernel
from errorband.parameters import POSITIVE, REAL, VARIANCE, GreaterThan, hyperparameter


class Triplet(Gated):
    """Φ(u + b) N(y; f, σ²) + Φ(−u − b) [Φ(w + c) N(y; f, rσ²) + Φ(−w − c) N(y; f, rsσ²)]: three levels of noise.

    The latent function "mean" is f. Where "gate", u, is high the noise is smallest; where it is low, "second_gate", w,
    chooses between the larger two: a tree of gates (Naish-Guzman 2007, eq. 4.7, with all branches around f). For noise
    that differs by orders of magnitude from region to region, where the two levels of
    :class:`~errorband.likelihoods.Twinned` are too few.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the smallest noise variance.
    variance_ratio, second_ratio : float, Parameter or None
        r and s, both above 1: the ratios of the middle variance to the smallest, and of the largest to the middle one.
        None starts at 10 and 5.
    bias, second_bias : float, Parameter or None
        Means b and c of the gates. None starts at 0: as many rows on either side.

    Examples
    --------
    >>> import numpy as np
    >>> mean, cov = np.zeros((1, 3)), 1e-6 * np.eye(3)[None]  # half of σ², a quarter each of the larger two
    >>> Triplet(0.1, 10.0, 10.0, 0.0, 0.0).predictive(mean, cov).variance.round(3)
    array([2.8])
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    variance_ratio: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    second_ratio: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    bias: Any = hyperparameter(REAL, ndim=0)
    second_bias: Any = hyperparameter(REAL, ndim=0)
    n_latents: ClassVar[int] = 3
    further_starts: ClassVar[tuple[dict[str, float], ...]] = (
        {"latents.1.kernel.lengthscale": 0.3, "latents.2.kernel.lengthscale": 0.3, "latents.1.kernel.variance": 4.0},
        {"likelihood.noise_variance": 0.1, "latents.1.kernel.variance": 4.0, "latents.2.kernel.variance": 4.0},
    )

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "mean", "gate", "second_gate"

    def latent_in_units(self, l):
        return l == 0

    def latent_kernel(self, l):
        return gate_kernel() if l > 0 else None

    def branches(self):
        middle = self.noise_variance * self.variance_ratio
        noisy = Gate(1, -1.0, self.bias)
        return (
            Branch(0, self.noise_variance, (Gate(1, 1.0, self.bias),)),
            Branch(0, middle, (noisy, Gate(2, 1.0, self.second_bias)), outlier=True),
            Branch(0, middle * self.second_ratio, (noisy, Gate(2, -1.0, self.second_bias)), outlier=True),
        )

    def defaults(self, y):
        return {
            "noise_variance": 0.1 * robust_scale(y) ** 2, "variance_ratio": 10.0, "second_ratio": 5.0,
            "bias": 0.0, "second_bias": 0.0,
        }  # fmt: skip
