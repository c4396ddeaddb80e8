"""Priors of coefficients that are normal given a scale of their own: sparse ones, and what lies behind them.

p(w) = ∫ N(w; 0, 1/τ) p(τ) dτ. All that fitting needs is τ given w: its mean −(log p)'(w)/w, with which the mode of the
posterior is found by least squares again and again (expectation maximisation), and draws of it (Gibbs sampling).
"""

import abc
import dataclasses
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln, k0e, k1e

from errorband.parameters.checks import check_number, generator

SMALL = 1e-8  # |w| below which a prior with a peak counts as this far from it


@dataclasses.dataclass(frozen=True)
class ScaleMixture(abc.ABC):
    """A prior of one coefficient; coefficients are independent."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            check_number(type(self).__name__, field.name, getattr(self, field.name))

    @abc.abstractmethod
    def log_density(self, w: Any) -> np.ndarray:
        """Log p(w)."""

    @abc.abstractmethod
    def mean_precision(self, w: Any) -> np.ndarray:
        """E(τ | w) = −(log p)'(w)/w."""

    @abc.abstractmethod
    def mode_precision(self, w: Any) -> np.ndarray:
        """The log τ of largest density given w, as τ: of p(w | τ) p(τ) τ."""

    @abc.abstractmethod
    def sample_precision(self, w: Any, rng: np.random.Generator) -> np.ndarray:
        """Draws of τ given w."""

    @abc.abstractmethod
    def log_hyperprior(self, tau: Any) -> np.ndarray:
        """Log p(τ): the inverse Laplace transform of p(w) at w²/2, in closed form."""

    def log_joint(self, w: Any) -> np.ndarray:
        """Log density of w and log τ where τ is at its mode."""
        tau = self.mode_precision(w)
        return stats.norm.logpdf(w, scale=1.0 / np.sqrt(tau)) + self.log_hyperprior(tau) + np.log(tau)


@dataclasses.dataclass(frozen=True)
class NormalPrior(ScaleMixture):
    """N(0, scale²): all coefficients have one scale, and the model is a Gaussian process.

    Parameters
    ----------
    scale : float
        Standard deviation.
    """

    scale: float = 1.0

    def log_density(self, w):
        return stats.norm.logpdf(w, scale=self.scale)

    def mean_precision(self, w):
        return np.full(np.shape(w), self.scale**-2.0)

    def mode_precision(self, w):
        return self.mean_precision(w)

    def sample_precision(self, w, rng):
        return self.mean_precision(w)

    def log_hyperprior(self, tau):
        return np.where(np.asarray(tau) == self.scale**-2.0, np.inf, -np.inf)

    def log_joint(self, w):
        return self.log_density(w)  # τ is known


@dataclasses.dataclass(frozen=True)
class LaplacePrior(ScaleMixture):
    """exp(−|w|/scale)/(2 scale): the lasso. The variance 1/τ is exponential.

    Parameters
    ----------
    scale : float
        Mean of |w|.
    """

    scale: float = 1.0

    def log_density(self, w):
        return stats.laplace.logpdf(w, scale=self.scale)

    def mean_precision(self, w):
        return 1.0 / (self.scale * np.maximum(np.abs(w), SMALL * self.scale))

    def mode_precision(self, w):
        return 2.0 / (self.scale**2 * (1.0 + np.sqrt(1.0 + 4.0 * (np.asarray(w, float) / self.scale) ** 2)))

    def sample_precision(self, w, rng):
        return rng.wald(self.mean_precision(w), self.scale**-2.0)

    def log_hyperprior(self, tau):
        rate, tau = 0.5 / self.scale**2, np.asarray(tau, float)
        return np.log(rate) - rate / tau - 2 * np.log(tau)


@dataclasses.dataclass(frozen=True)
class StudentTPrior(ScaleMixture):
    """∝ (rate + w²/2)^−(shape + ½): τ ~ Gamma(shape, rate), the prior of relevance vectors.

    Small values of both, such as 10⁻⁴, come near the power law 1/|w|. The joint mode of w and τ has
    τ = (shape − ½)/(rate + w²/2), which is negative there; that of w and log τ has (shape + ½)/(rate + w²/2), which is
    E(τ | w): the mode in log τ is the mode of w.

    Parameters
    ----------
    shape, rate : float
        a and b.
    """

    shape: float = 1e-4
    rate: float = 1e-4

    def log_density(self, w):
        a, b = self.shape, self.rate
        constant = a * np.log(b) + gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(2 * np.pi)
        return constant - (a + 0.5) * np.log(b + 0.5 * np.asarray(w, float) ** 2)

    def mean_precision(self, w):
        return (self.shape + 0.5) / (self.rate + 0.5 * np.asarray(w, float) ** 2)

    def mode_precision(self, w):
        return self.mean_precision(w)

    def sample_precision(self, w, rng):
        return rng.gamma(self.shape + 0.5, 1.0 / (self.rate + 0.5 * np.asarray(w, float) ** 2))

    def log_hyperprior(self, tau):
        return stats.gamma.logpdf(tau, self.shape, scale=1.0 / self.rate)


@dataclasses.dataclass(frozen=True)
class PowerLawPrior(ScaleMixture):
    """∝ |w|^−2a, which has no finite integral: τ has the density ∝ τ^(a − 3/2), a = ½ being flat in log τ.

    As no number makes it sum to one, ``log_density`` and ``log_hyperprior`` go without one, chosen such that the second
    mixes normals to the first. The posterior has no largest density, as it grows without bound where w is zero: a mode
    is one of those that the search begins near.

    Parameters
    ----------
    shape : float
        a, above zero.
    """

    shape: float = 0.5

    def log_density(self, w):
        return -2 * self.shape * np.log(np.maximum(np.abs(w), SMALL))

    def mean_precision(self, w):
        return 2 * self.shape / np.maximum(np.abs(w), SMALL) ** 2

    def mode_precision(self, w):
        return self.mean_precision(w)

    def sample_precision(self, w, rng):
        return rng.gamma(self.shape, 2.0 / np.maximum(np.abs(w), SMALL) ** 2)

    def log_hyperprior(self, tau):
        a = self.shape
        constant = 0.5 * np.log(2 * np.pi) - a * np.log(2) - gammaln(a)
        return constant + (a - 1.5) * np.log(np.asarray(tau, float))


@dataclasses.dataclass(frozen=True)
class BesselPrior(ScaleMixture):
    """K₀(|w|/scale)/(π scale): the scale of each coefficient is itself normal.

    Parameters
    ----------
    scale : float
        Standard deviation of the scale 1/√τ.
    """

    scale: float = 1.0

    def log_density(self, w):
        x = np.maximum(np.abs(w) / self.scale, SMALL)
        return np.log(k0e(x)) - x - np.log(np.pi * self.scale)

    def mean_precision(self, w):
        x = np.maximum(np.abs(w) / self.scale, SMALL)
        return k1e(x) / (k0e(x) * x * self.scale**2)

    def mode_precision(self, w):
        return 1.0 / (self.scale * np.maximum(np.abs(w), SMALL * self.scale))

    def sample_precision(self, w, rng):
        x = np.maximum(np.abs(w) / self.scale, SMALL)
        variance = stats.geninvgauss.rvs(0.0, x, scale=x * self.scale**2, size=np.shape(x), random_state=rng)
        return 1.0 / np.reshape(variance, np.shape(x))

    def log_hyperprior(self, tau):
        variance = 1.0 / np.asarray(tau, float)
        return stats.gamma.logpdf(variance, 0.5, scale=2 * self.scale**2) + 2 * np.log(variance)


SCALE_MIXTURES: dict[str, type[ScaleMixture]] = {
    cls.__name__: cls for cls in (NormalPrior, LaplacePrior, StudentTPrior, PowerLawPrior, BesselPrior)
}


def posterior_mode(
    basis: np.ndarray,
    y: np.ndarray,
    noise: float,
    prior: ScaleMixture,
    joint: bool = False,
    max_iter: int = 500,
    tolerance: float = 1e-8,
) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of largest posterior density, y = Φw + N(0, noise), and log p(y, w) after each step.

    With ``joint`` those of largest density together with the logs of their precisions, log p(y, w, log τ) ("MAP2").

    Each step is a least-squares fit with the precisions that the last coefficients make likely; the density never
    falls. Where the prior has a peak at zero coefficients go there, and there are several modes if it is not convex.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> basis = rng.normal(size=(50, 10))
    >>> y = basis @ np.array([3.0, -2.0, *np.zeros(8)]) + 0.1 * rng.normal(size=50)
    >>> w, _ = posterior_mode(basis, y, 0.01, LaplacePrior(0.01))
    >>> (np.abs(w) > 0.1).sum().item()
    2
    """
    log_density, precision = (
        (prior.log_joint, prior.mode_precision) if joint else (prior.log_density, prior.mean_precision)
    )
    gram, right = basis.T @ basis / noise, basis.T @ y / noise
    w = np.linalg.lstsq(basis, y, rcond=None)[0]
    trace: list[float] = []
    for _ in range(max_iter):
        residual = y - basis @ w
        trace.append(-0.5 * float(residual @ residual) / noise + float(np.sum(log_density(w))))
        if len(trace) > 1 and trace[-1] - trace[-2] < tolerance * (1 + abs(trace[-1])):
            break
        root = 1.0 / np.sqrt(precision(w))  # 1/√τ, small for coefficients that go to zero
        w = root * np.linalg.solve(np.eye(len(w)) + root[:, None] * gram * root, root * right)
    return w, np.array(trace)


def posterior_draws(
    basis: np.ndarray, y: np.ndarray, noise: float, prior: ScaleMixture, n_draws: int, random_state: Any = None
) -> np.ndarray:
    """Draws (n_draws, M) of the coefficients from their posterior, by turns with their precisions (Gibbs sampling).

    As many draws go before and are thrown away.
    """
    rng = generator(random_state)
    gram, right = basis.T @ basis / noise, basis.T @ y / noise
    w, draws = np.linalg.lstsq(basis, y, rcond=None)[0], []
    for _ in range(2 * n_draws):
        chol = np.linalg.cholesky(gram + np.diag(prior.sample_precision(w, rng)))
        mean = np.linalg.solve(chol.T, np.linalg.solve(chol, right))
        w = mean + np.linalg.solve(chol.T, rng.standard_normal(len(w)))
        draws.append(w)
    return np.array(draws[n_draws:])
