"""Three levels of noise from a tree of two gates."""

from typing import Any, ClassVar

from errorband.likelihoods.base import robust_scale
from errorband.likelihoods.gated import Branch, Gate, Gated
from errorband.likelihoods.twinned import gate_kernel
from errorband.parameters import POSITIVE, REAL, GreaterThan, hyperparameter


class Triplet(Gated):
    """Three levels of noise around one function, from two gates, the first with precedence.

        Φ(u₁ + b₁) N(y; f, σ²) + Φ(−u₁ − b₁) [Φ(u₂ + b₂) N(y; f, rσ²) + Φ(−u₂ − b₂) N(y; f, qrσ²)]

    For noise whose size changes by orders of magnitude over the inputs, where the two levels of :class:`Twinned` do
    not suffice (Naish-Guzman 2007, §4.5). The integrals are bivariate normal ones.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the least of the three.
    middle_ratio, upper_ratio : float, Parameter or None
        r and q, both greater than 1. None starts at 10.
    bias, second_bias : float, Parameter or None
        Means b₁ and b₂ of the gates. None starts at 0.

    Examples
    --------
    >>> import numpy as np
    >>> mean, cov = np.zeros((1, 3)), 1e-9 * np.eye(3)[None]
    >>> Triplet(1.0, 2.0, 2.0, 0.0, 0.0).conditional_variance(mean)  # ½ · 1 + ¼ · 2 + ¼ · 4
    array([2.])
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0)
    middle_ratio: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    upper_ratio: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    bias: Any = hyperparameter(REAL, ndim=0)
    second_bias: Any = hyperparameter(REAL, ndim=0)
    n_latents: ClassVar[int] = 3
    further_starts: ClassVar[tuple[dict[str, float], ...]] = (
        {"latents.1.kernel.lengthscale": 0.3, "latents.2.kernel.lengthscale": 0.3, "likelihood.noise_variance": 0.1},
    )

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "mean", "gate", "second_gate"

    def latent_in_units(self, l):
        return l == 0

    def latent_kernel(self, l):
        return gate_kernel() if l > 0 else None

    def branches(self):
        middle = self.noise_variance * self.middle_ratio
        shut = Gate(1, -1.0, self.bias)
        return (
            Branch(0, self.noise_variance, (Gate(1, 1.0, self.bias),)),
            Branch(0, middle, (shut, Gate(2, 1.0, self.second_bias))),
            Branch(0, middle * self.upper_ratio, (shut, Gate(2, -1.0, self.second_bias)), outlier=True),
        )

    def defaults(self, y):
        return {
            "noise_variance": 0.1 * robust_scale(y) ** 2, "middle_ratio": 10.0, "upper_ratio": 10.0,
            "bias": 0.0, "second_bias": 0.0,
        }  # fmt: skip
