"""The twinned Gaussian process: a second latent function says where targets can be trusted."""

from typing import Any, ClassVar

from errorband.kernels import SquaredExponential
from errorband.likelihoods.base import SMOOTHER, robust_scale
from errorband.likelihoods.gated import Branch, Gate, Gated
from errorband.parameters import POSITIVE, REAL, VARIANCE, GreaterThan, Parameter, hyperparameter
from errorband.priors import HalfNormal

AMPLITUDE = HalfNormal(4.0)  # prior of a gate's variance: beyond 3 standard deviations Φ(u) is a step
REGULAR = 1.645  # where the bias starts: 5% of the targets are outliers

# The first start has a function too smooth to follow a burst, little noise and a smooth gate. Others have short bursts:
# one such a function without a word from Gaussian noise, one more outliers.
SMOOTH = SMOOTHER | {"likelihood.noise_variance": 0.2}
BURSTS = SMOOTH | {"latents.1.kernel.lengthscale": 0.2, "latents.1.kernel.variance": 4.0}
MANY = {
    "latents.1.kernel.lengthscale": 0.3,
    "latents.1.kernel.variance": 2.0,
    "likelihood.noise_variance": 0.4,
    "likelihood.bias": 0.6,
}


def gate_kernel() -> SquaredExponential:
    """A kernel for gates: smooth, one length-scale, and a prior that keeps Φ(u) from becoming a step."""
    return SquaredExponential(variance=Parameter(prior=AMPLITUDE), ard=False)


class WithGate(Gated):
    """A function "mean" in the units of the targets and a "gate": what twinned models have in common."""

    n_latents: ClassVar[int] = 2
    further_starts: ClassVar[tuple[dict[str, float], ...]] = BURSTS, MANY
    from_gaussian: ClassVar[dict[str, float] | None] = SMOOTH

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "mean", "gate"

    def latent_in_units(self, l):
        return l == 0

    def latent_kernel(self, l):
        return gate_kernel() if l == 1 else None


class Twinned(WithGate):
    """p(y | f, u) = Φ(u + bias) N(y; f, σ²) + Φ(−u − bias) N(y; f, rσ²), r > 1 (Naish-Guzman & Holden 2008).

    The latent function "mean" is f, the one to be learned; "gate" is u: where it is low, targets are outliers. With
    a smooth kernel for u outliers may come in bursts, in regions of the inputs; with a small variance of u, or with
    :class:`~errorband.kernels.White`, they are scattered, and the model is that of
    :class:`~errorband.likelihoods.OutlierMixture`. Noise that changes with the input is described too, as long as two
    levels of it suffice.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the noise variance of regular targets.
    variance_ratio : float, Parameter or None
        r > 1, the ratio of the variance of outliers to σ². None starts the search at 100.
    bias : float, Parameter or None
        Mean of the gate. None starts the search at 1.645, 5% of outliers.

    Notes
    -----
    The evidence tends to make u large, and Φ(u) a step. The gate's own kernel, a squared exponential with one
    length-scale, has a prior on its variance against that; ``kernel={"gate": ...}`` takes its place, and
    ``kernel=...`` is the kernel of f alone.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.05 * rng.normal(size=60)
    >>> y[20:26] = -2.0  # a burst of wrong targets
    >>> model = GPRegressor(likelihood=Twinned()).fit(X, y)
    >>> bool(np.all(model.outlier_probability_[20:26] > 0.9))
    True
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    variance_ratio: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    bias: Any = hyperparameter(REAL, ndim=0)
    short_names: ClassVar[dict[str, dict[str, float]]] = {"twinned": {}, "robust": {}}

    @property
    def indicators(self) -> tuple[float, float, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return float(self.noise_variance), float(self.noise_variance * self.variance_ratio), float(self.bias)

    def branches(self):
        outliers = self.noise_variance * self.variance_ratio
        return (
            Branch(0, self.noise_variance, (Gate(1, 1.0, self.bias),)),
            Branch(0, outliers, (Gate(1, -1.0, self.bias),), outlier=True),
        )

    def defaults(self, y):
        return {"noise_variance": robust_scale(y) ** 2, "variance_ratio": 100.0, "bias": REGULAR}
