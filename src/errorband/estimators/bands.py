"""Error bands as wide as errors are: what rows left out say of the predictive distribution.

The evidence is maximised over hyperparameters, so they suit the rows they were learned from a little too well, and
noise is rarely normal in its tails. Both narrow the bands. Each row is predicted from the others, in closed form, and
also its say in the hyperparameters is taken back, to first order; the errors, in units of the standard deviations, have
a Student distribution with a scale, and predictions get the same shape. Theory: docs/theory/defaults.md.
"""

import dataclasses

import numpy as np
import scipy.optimize
from scipy.special import expit, gammaln, stdtrit

from errorband.predictive import GaussianPredictive, Predictive, StudentPredictive
from errorband.training import Objective

# Fewer rows say too little; with more than so many the hyperparameters hardly depend on one of them.
LEAST_ROWS, MOST_ROWS = 20, 2000

# The model's own bands count as so many rows.
PRIOR_ROWS = 10.0

# 1/df of Student's distribution stays below the first (a variance exists); below the second it is normal.
HEAVIEST, NORMAL = 0.45, 1e-3

# Errors of another order than the model expects are beyond what bands can mend.
LOG_SCALES = -10.0, 10.0

# Of derivatives in the unconstrained vector (logarithms of scales), and how far it may be thought to move.
STEP, REACH = 0.05, 1.0
SPREAD = 2.0  # of a normal prior on each of its numbers, as in FullBayes

# Bands should hold at least this share of rows left out; so many rows are half trusted to know the ends of their range.
LEVEL, HALF_TRUSTED = 0.95, 100


@dataclasses.dataclass(frozen=True)
class Bands:
    """Shape of the predictive distribution of targets: Student's, by errors of rows that were left out.

    Attributes
    ----------
    stretch : float
        Factor on the standard deviations that the model has itself.
    df : float
        Degrees of freedom; infinite for a normal distribution.

    Examples
    --------
    >>> print(Bands(stretch=0.9, df=4.0))
    Student's t with 4 degrees of freedom; 95 % bands 1.27 times as wide as those of the model itself.
    """

    stretch: float
    df: float = np.inf

    def __post_init__(self):
        if not (0 < self.stretch < np.inf and self.df > 2):
            raise ValueError(f"stretch={self.stretch!r} must be positive and df={self.df!r} above 2.")

    def reshaped(self, predictive: GaussianPredictive) -> Predictive:
        """These normal distributions in the new shape."""
        scale = self.stretch * predictive.std
        if np.isinf(self.df):
            return GaussianPredictive(predictive.mean, scale)
        return StudentPredictive(predictive.mean, scale, self.df)

    def covariance(self, cov: np.ndarray) -> np.ndarray:
        """Covariance of targets whose errors, N(0, cov) without bands, are stretched as in :meth:`draws`."""
        half = 0.5 * self.df
        both = 1.0 if np.isinf(self.df) else half * np.exp(2 * (gammaln(half - 0.5) - gammaln(half)))
        alone = 1.0 if np.isinf(self.df) else self.df / (self.df - 2)
        return self.stretch**2 * (both * cov + (alone - both) * np.diag(np.diagonal(cov)))

    def draws(self, errors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Normal errors (S, n), each stretched by a factor of its own: √(df/χ²) makes a normal number Student's."""
        if np.isinf(self.df):
            return self.stretch * errors
        return self.stretch * errors * np.sqrt(self.df / rng.chisquare(self.df, size=errors.shape))

    def __str__(self) -> str:
        shape = "Normal" if np.isinf(self.df) else f"Student's t with {self.df:.3g} degrees of freedom"
        return f"{shape}; 95 % bands {self.width:.3g} times as wide as those of the model itself."

    @property
    def width(self) -> float:
        """How much wider 95 % bands are than those of the model itself."""
        return self.stretch * _quantile(self.df) / _quantile(np.inf)


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
    z = errors_of_rows_left_out(objective, theta, directions if n <= MOST_ROWS else directions[:0])
    z = z[_own_noise_only(objective.data.noise_variance, n)]
    return [bands_of(each) for each in z.T] if np.all(np.isfinite(z)) else None


def _own_noise_only(known: np.ndarray | None, n: int) -> np.ndarray:
    """Rows whose noise is that of the model, if these are some of all and enough; else all.

    Where more noise is known of a row, its error says as much of what is known: too large a variance for cells that
    were filled in would narrow the bands of complete rows.
    """
    own = np.ones(n, bool) if known is None else np.asarray(known) == 0
    return own if np.sum(own) >= LEAST_ROWS else np.ones(n, bool)


def errors_of_rows_left_out(objective: Objective, theta: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Errors (n, K) in units of the standard deviation, of the K targets of each row predicted from the others.

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
        return z
    of_mean, of_log_std = np.moveaxis(np.array(slopes), 1, 0)  # (Q, n, K) each
    of_density = np.sum(z * np.exp(-log_std) * of_mean + (z**2 - 1) * of_log_std, axis=2)
    F = of_density @ of_density.T + np.eye(len(slopes)) / SPREAD**2
    moved = np.clip(-np.linalg.solve(F, of_density), -REACH, REACH)
    shift = np.sum(moved[:, :, None] * of_mean, axis=0)
    widening = np.clip(np.sum(moved[:, :, None] * of_log_std, axis=0), -REACH, REACH)
    return (y - mean - shift) * np.exp(-log_std - widening)


def _left_out(objective: Objective, theta: np.ndarray) -> np.ndarray:
    """Mean and log standard deviation of each target given the other rows, (2, n, K); NaN where there are none."""
    try:
        found = objective.leave_one_out(theta)
    except np.linalg.LinAlgError:
        return np.full((2, len(objective.data.y), objective.data.n_targets), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([found.mean, np.log(found.std)]).reshape(2, len(found.mean), -1)


def bands_of(z: np.ndarray) -> Bands:
    """The Student distribution of errors z, with a say of the standard normal one.

    Its scale and degrees of freedom have the highest likelihood, in which the model's own bands count as ten further
    errors of the expected size. If its 95 % band holds fewer than 95 % of n + 1 errors, a factor would widen it until
    it does: a new row is as good as one that was left out (conformal prediction). Few rows know little of the ends of
    their range, so that the factor has the power n/(n + 100).
    """

    def minus_log_posterior(v: np.ndarray) -> float:
        inverse, log_s = HEAVIEST * expit(v[0]), np.clip(v[1], *LOG_SCALES)
        errors = StudentPredictive(np.zeros_like(z), np.exp(log_s), 1 / max(inverse, NORMAL / 10))
        return -float(np.sum(errors.log_density(z))) + PRIOR_ROWS * (log_s + 0.5 * np.exp(-2 * log_s))

    found = (scipy.optimize.minimize(minus_log_posterior, [t, 0.0], method="Nelder-Mead") for t in (-4.0, 0.0))
    best = min(found, key=lambda r: r.fun).x
    inverse = HEAVIEST * expit(best[0])
    df = np.inf if inverse < NORMAL else float(1 / inverse)
    held = np.quantile(np.abs(z), min(1.0, LEVEL * (1 + 1 / len(z))))
    scale = np.exp(np.clip(best[1], *LOG_SCALES))
    wider = max(1.0, held / (scale * _quantile(df))) ** (len(z) / (len(z) + HALF_TRUSTED))
    return Bands(float(scale * wider), df)


def _quantile(df: float) -> float:
    """Half of the width of the central 95 % band."""
    return float(stdtrit(min(df, 1e10), 0.5 + LEVEL / 2))
