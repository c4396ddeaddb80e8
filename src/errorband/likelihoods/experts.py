"""Two functions and a gate between them."""

from typing import Any, ClassVar

from errorband.likelihoods.base import robust_scale
from errorband.likelihoods.gated import Branch, Gate, Gated
from errorband.likelihoods.twinned import gate_kernel
from errorband.parameters import POSITIVE, REAL, VARIANCE, hyperparameter


class TwoExperts(Gated):
    """p(y | f, g, u) = Φ(u + bias) N(y; f, σ²) + Φ(−u − bias) N(y; g, rσ²): two functions and a gate.

    With a smooth kernel for the gate, a mixture of two experts: one function here and the other there, as for steps
    and regimes. With ``kernel={"gate": White(1.0)}`` each row may belong to either: two overlaid functions. EP on three
    latent functions (Naish-Guzman 2007, eq. 4.5). The two functions are alike, so the search may end with either as
    the first: it begins with a smoother first one on purpose.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the noise variance around the first function.
    variance_ratio : float, Parameter or None
        r, the ratio of the noise variance of the second to σ². None starts at 1.
    bias : float, Parameter or None
        Mean of the gate. None starts at 0: as many rows of either kind.

    Examples
    --------
    >>> import numpy as np
    >>> mean, cov = np.array([[0.0, 5.0, 0.0]]), 1e-6 * np.eye(3)[None]  # f = 0, g = 5, and an open gate
    >>> two = TwoExperts(0.01, 1.0, 0.0).predictive(mean, cov)
    >>> two.mean.round(3), two.cdf(2.5).round(3)
    (array([2.5]), array([0.5]))
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    variance_ratio: Any = hyperparameter(POSITIVE, ndim=0)
    bias: Any = hyperparameter(REAL, ndim=0)
    n_latents: ClassVar[int] = 3
    further_starts: ClassVar[tuple[dict[str, float], ...]] = (
        {"latents.1.kernel.lengthscale": 0.3, "latents.2.kernel.lengthscale": 0.3, "likelihood.noise_variance": 0.2},
        {"latents.0.kernel.lengthscale": 0.3, "latents.2.kernel.variance": 4.0},
    )

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "mean", "other", "gate"

    def latent_in_units(self, l):
        return l < 2

    def latent_kernel(self, l):
        return gate_kernel() if l == 2 else None

    def branches(self):
        return (
            Branch(0, self.noise_variance, (Gate(2, 1.0, self.bias),)),
            Branch(1, self.noise_variance * self.variance_ratio, (Gate(2, -1.0, self.bias),), outlier=True),
        )

    def defaults(self, y):
        return {"noise_variance": robust_scale(y) ** 2, "variance_ratio": 1.0, "bias": 0.0}
