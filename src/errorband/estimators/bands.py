"""Error bands as wide as errors are: what rows left out say of the predictive distribution.

The evidence is maximised over hyperparameters, so they suit the rows they were learned from a little too well, noise is
rarely normal in its tails or the same everywhere, and errors upwards may be larger than those downwards. Each row is
predicted from the others, in closed form, and also its say in the hyperparameters is taken back, to first order; the
errors, in units of the standard deviations, have a scale that depends on the inputs (:mod:`.spread`) and Student's
distribution made skew, and predictions get the same shape. Theory: docs/theory/defaults.md.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy.special import expit, gammaincinv, ndtri

from errorband.estimators.spread import HEAVIEST, Spread, informative, learned_spread
from errorband.predictive import GaussianPredictive, Predictive, StudentPredictive
from errorband.quadrature import gauss_hermite
from errorband.skew_student import SkewStudent
from errorband.training import Objective

# Fewer rows say too little; with more than so many the hyperparameters hardly depend on one of them.
LEAST_ROWS, MOST_ROWS = 3, 2000

# Of n errors so many degrees of freedom are left by k learned numbers, n − k, but a variance at least; with more than
# the second Student's distribution is as good as normal.
LEAST_DF, MANY_DF = 2.5, 100

# Rows whose noise is known in full are judged by the others if these are so many.
OWN_ROWS = 20

# The model's own bands count as so many rows.
PRIOR_ROWS = 10.0

# 1/df of Student's distribution below this is zero: it is normal. A skew one has so many degrees of freedom at most.
NORMAL, MOST_DF = 1e-3, 1e6

# Standard deviation of a normal prior on the log of the skew.
SKEWNESS = 0.5

HERMITE = 12  # terms of a covariance of skew errors

# Errors of another order than the model expects are beyond what bands can mend.
LOG_SCALES = -10.0, 10.0

# Of derivatives in the unconstrained vector (logarithms of scales), and how far it may be thought to move.
STEP, REACH = 0.05, 1.0
SPREAD = 2.0  # of a normal prior on each of its numbers, as in FullBayes

# Bands should hold at least this share of rows left out; so many rows are half trusted to know the ends of their range.
LEVEL, HALF_TRUSTED = 0.95, 20


@dataclasses.dataclass(frozen=True)
class Bands:
    """Shape of the predictive distribution of targets, by errors of rows that were left out.

    Attributes
    ----------
    stretch : float
        Factor on the standard deviations that the model has itself.
    df : float
        Degrees of freedom of Student's distribution; infinite for a normal one.
    skew : float
        Its right half is skew² times as wide as its left half. The mean stays that of the model.
    spread : Spread or None
        A further factor, by the inputs and the prediction, where errors are not equally large everywhere.

    Examples
    --------
    >>> print(Bands(stretch=0.9, df=4.0))
    Student's t with 4 degrees of freedom; 95 % bands 1.27 times as wide as those of the model itself.
    """

    stretch: float
    df: float = np.inf
    skew: float = 1.0
    spread: Spread | None = None

    def __post_init__(self):
        if not (0 < self.stretch < np.inf and self.df > 2 and 0 < self.skew < np.inf):
            raise ValueError(
                f"stretch={self.stretch!r} and skew={self.skew!r} must be positive and df={self.df!r} above 2."
            )

    @property
    def shape(self) -> SkewStudent:
        """The distribution of errors in units of their scale."""
        return SkewStudent(min(self.df, MOST_DF), self.skew)

    def factors(self, X: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """What standard deviations (n,) are multiplied by, at inputs (n, D) as the model sees them and predictions."""
        return np.full(len(mean), self.stretch) * (1.0 if self.spread is None else self.spread(X, mean))

    def reshaped(self, predictive: GaussianPredictive, X: np.ndarray) -> Predictive:
        """The normal distributions at inputs X in the new shape."""
        scale = self.factors(X, predictive.mean) * predictive.std
        if np.isinf(self.df) and self.skew == 1:
            return GaussianPredictive(predictive.mean, scale)
        return StudentPredictive(predictive.mean, scale, self.shape.df, self.skew)

    def covariance(self, cov: np.ndarray, X: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Covariance of targets at inputs X whose errors, N(0, cov) without bands, are those of :meth:`draws`.

        With τ(ε) what a normal number becomes on average, its covariance with another of correlation ρ is Σ_k c_k² ρᵏ,
        c_k the mean of τ times the k-th Hermite polynomial (Mehler's formula).
        """
        std = np.sqrt(np.diagonal(cov))
        correlation = cov / np.outer(std, std)
        nodes, log_weights = gauss_hermite(64)
        nodes, weights = nodes[:, 0], np.exp(log_weights)
        level = (np.arange(400) + 0.5) / 400
        longer = np.ones(1) if np.isinf(self.df) else np.sqrt(0.5 * self.df / gammaincinv(0.5 * self.df, level))
        tau = np.mean(self.shape.of_symmetric(nodes[:, None] * longer), axis=1)
        joint, power, last, this = np.zeros_like(cov), np.ones_like(cov), np.zeros(len(tau)), np.ones(len(tau))
        for k in range(1, 1 + HERMITE):
            last, this = this, (nodes * this - np.sqrt(k - 1) * last) / np.sqrt(k)  # of unit variance
            power = power * correlation
            joint += (weights @ (tau * this)) ** 2 * power
        scale = self.factors(X, mean) * std
        joint = joint * np.outer(scale, scale)
        np.fill_diagonal(joint, self.reshaped(GaussianPredictive(mean, std), X).variance)
        return joint

    def draws(
        self, errors: np.ndarray, std: np.ndarray, X: np.ndarray, mean: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Errors in the new shape from normal ones (S, n) with standard deviations (n,).

        Each is stretched by a factor of its own, as √(df/χ²) makes a normal number Student's.
        """
        errors = errors / std
        if np.isfinite(self.df):
            errors = errors * np.sqrt(self.df / rng.chisquare(self.df, size=errors.shape))
        return self.factors(X, mean) * std * self.shape.of_symmetric(errors)

    def __str__(self) -> str:
        shape = "Normal" if np.isinf(self.df) else f"Student's t with {self.df:.3g} degrees of freedom"
        shape += "" if self.skew == 1 else f", {'upper' if self.skew > 1 else 'lower'} half {self._lopsided:.2g} times "
        shape += "" if self.skew == 1 else f"as wide as the {'lower' if self.skew > 1 else 'upper'}"
        width = f"95 % bands {self.width:.3g} times as wide as those of the model itself"
        if self.spread is None:
            return f"{shape}; {width}."
        low, high = self.spread.usual
        return f"{shape}; {width}, times {low:.2g} to {high:.2g} by the inputs and the prediction."

    @property
    def _lopsided(self) -> float:
        return max(self.skew, 1 / self.skew) ** 2

    @property
    def width(self) -> float:
        """How much wider 95 % bands are than those of the model itself, where the spread is what it is on average."""
        return self.stretch * float(np.ptp(_ends(self.shape)) / (2 * ndtri(0.5 + LEVEL / 2)))


def learned_bands(objective: Objective, theta: np.ndarray, groups: np.ndarray | None) -> list[Bands] | None:
    """The bands of each target that rows left out ask for; None if rows are too few, or no numbers came out.

    Parameters
    ----------
    objective : Objective
        Of Gaussian noise, without approximation.
    theta : array (P,)
        The hyperparameters found.
    groups : array of int (P,), optional
        Numbers of the groups that entries of theta moved in; each on its own without.
    """
    n = len(objective.data.y)
    if n < LEAST_ROWS or len(theta) == 0 or np.ptp(objective.data.y) == 0:
        return None
    directions = np.eye(len(theta)) if groups is None else np.eye(np.max(groups) + 1)[:, groups]
    z, mean = errors_of_rows_left_out(objective, theta, directions if n <= MOST_ROWS else directions[:0])
    if not np.all(np.isfinite(z)):
        return None
    own = _own_noise_only(objective.data.noise_variance, n)
    X, y = np.asarray(objective.data.X)[own], objective.data.y.reshape(n, -1)[own]
    means = [informative(m, target) for m, target in zip(mean[own].T, y.T, strict=True)]
    freedom = len(X) - len(directions)
    return [shaped(each, X, m, freedom).bands for each, m in zip(z[own].T, means, strict=True)]


def _own_noise_only(known: np.ndarray | None, n: int) -> np.ndarray:
    """Rows whose noise is that of the model, if these are some of all and enough; else all.

    Where more noise is known of a row, its error says as much of what is known: too large a variance for cells that
    were filled in would narrow the bands of complete rows.
    """
    own = np.ones(n, bool) if known is None else np.asarray(known) == 0
    return own if np.sum(own) >= OWN_ROWS else np.ones(n, bool)


def errors_of_rows_left_out(
    objective: Objective, theta: np.ndarray, directions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Errors (n, K) of the K targets of each row predicted from the others, in units of their std; and predictions.

    With ℓᵢ(θ) the log density of row i given the others, the hyperparameters found without it are about

        θ − F⁻¹ ∇ℓᵢ(θ),       F = Σⱼ ∇ℓⱼ ∇ℓⱼᵀ + prior precision,

    since F is about the curvature of Σ ℓⱼ. Mean and log standard deviation follow to first order. Each derivative is a
    difference of two leave-one-out predictions, which are in closed form: one factorisation for each hyperparameter.

    Parameters
    ----------
    objective : Objective
    theta : array (P,)
    directions : array (Q, P)
        What the search moved along; none leaves the hyperparameters alone.
    """
    y = objective.data.y.reshape(len(objective.data.y), -1)
    mean, log_std = _left_out(objective, theta)
    slopes = [(_left_out(objective, theta + STEP * d) - (mean, log_std)) / STEP for d in directions]
    slopes = [s for s in slopes if np.all(np.isfinite(s))]  # nothing is known of a direction that leads nowhere
    z = (y - mean) * np.exp(-log_std)
    if not slopes:
        return z, mean
    of_mean, of_log_std = np.moveaxis(np.array(slopes), 1, 0)  # (Q, n, K) each
    of_density = np.sum(z * np.exp(-log_std) * of_mean + (z**2 - 1) * of_log_std, axis=2)
    F = of_density @ of_density.T + np.eye(len(slopes)) / SPREAD**2
    moved = np.clip(-np.linalg.solve(F, of_density), -REACH, REACH)
    shift = np.sum(moved[:, :, None] * of_mean, axis=0)
    widening = np.clip(np.sum(moved[:, :, None] * of_log_std, axis=0), -REACH, REACH)
    return (y - mean - shift) * np.exp(-log_std - widening), mean + shift


def _left_out(objective: Objective, theta: np.ndarray) -> np.ndarray:
    """Mean and log standard deviation of each target given the other rows, (2, n, K); NaN where there are none."""
    try:
        found = objective.leave_one_out(theta)
    except np.linalg.LinAlgError:
        return np.full((2, len(objective.data.y), objective.data.n_targets), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([found.mean, np.log(found.std)]).reshape(2, len(found.mean), -1)


class Shaped(NamedTuple):
    """Bands, and the log density (n,) of each error they were learned from, as the other rows would have its spread."""

    bands: Bands
    log_density: np.ndarray
    n_numbers: int  # learned, beside those of the spread


def shaped(
    z: np.ndarray, X: np.ndarray | None = None, mean: np.ndarray | None = None, freedom: float = np.inf
) -> Shaped:
    """The shape of errors z (n,), with a say of the standard normal distribution.

    Given inputs and predictions, the spread of the errors comes first, if there is one. What is left has Student's
    distribution: its scale and degrees of freedom have the highest likelihood, in which the model's own bands count as
    ten further errors of the expected size. It is skew if that gains more than ½ log n. Few errors do not tell their
    degrees of freedom: there are no more than ``freedom``, rows less learned numbers, as for a mean of normal numbers
    whose variance is learned too. If the 95 % band holds fewer than 95 % of n + 1 errors, a factor would widen it until
    it does: a new row is as good as one that was left out (conformal prediction). Few rows know little of the ends of
    their range, so that the factor has the power n/(n + 20).
    """
    n = len(z)
    found = None if X is None or mean is None else learned_spread(z, X, mean)
    log_factor = np.zeros(n) if found is None else found.left_out
    e = z * np.exp(-log_factor)

    def errors(v: np.ndarray) -> StudentPredictive:
        df = 1 / max(HEAVIEST * expit(v[0]), NORMAL / 10)
        skew = np.exp(np.clip(v[2], -1, 1)) if len(v) > 2 else 1.0
        return StudentPredictive(np.zeros(n), np.exp(np.clip(v[1], *LOG_SCALES)), df, skew)

    def minus_log_posterior(v: np.ndarray) -> float:
        log_s, lopsided = np.clip(v[1], *LOG_SCALES), float(np.sum(v[2:] ** 2))
        prior = PRIOR_ROWS * (log_s + 0.5 * np.exp(-2 * log_s)) + 0.5 * lopsided / SKEWNESS**2
        return prior - float(np.sum(errors(v).log_density(e)))

    def search(start: list[float]) -> scipy.optimize.OptimizeResult:
        return scipy.optimize.minimize(minus_log_posterior, start, method="Nelder-Mead")

    even = min((search([t, 0.0]) for t in (-4.0, 0.0)), key=lambda r: r.fun)
    skew = search([*even.x, 0.0])
    best = skew if even.fun - skew.fun > 0.5 * np.log(n) else even
    shape = errors(best.x).shape
    if freedom <= MANY_DF:
        shape = SkewStudent(min(shape.df, max(freedom, LEAST_DF)), shape.skew)
    scale = float(np.exp(np.clip(best.x[1], *LOG_SCALES)))
    lower, upper = scale * _ends(shape)
    held = np.quantile(np.where(e < 0, e / lower, e / upper), min(1.0, LEVEL * (1 + 1 / n)))
    wider = max(1.0, float(held)) ** (n / (n + HALF_TRUSTED))
    df = np.inf if shape.df > 1 / NORMAL else shape.df
    bands = Bands(scale * wider, df, shape.skew, None if found is None else found.spread)
    final = StudentPredictive(np.zeros(n), bands.stretch, shape.df, shape.skew)
    return Shaped(bands, final.log_density(e) - log_factor, len(best.x))


def _ends(shape: SkewStudent) -> np.ndarray:
    """Of the central 95 % band."""
    return shape.quantile(np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]))
