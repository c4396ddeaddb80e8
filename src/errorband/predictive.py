"""Predictive distributions: what ``predictive(X)`` returns. Plain NumPy.

One class for each representation of a distribution: normal, Student's, mixture of normals, probabilities of a few
values, mixture of other distributions. Those computed from the conditional distributions or the density of a likelihood
are in :mod:`errorband.likelihoods.numerical`.
"""

import abc
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from errorband.parameters.checks import generator
from errorband.rows import slices
from errorband.skew_student import SkewStudent


class Predictive(abc.ABC):
    """Distributions of the targets at n inputs, one for each (the joint distribution is not represented)."""

    mean: np.ndarray
    std: np.ndarray

    @abc.abstractmethod
    def log_density(self, y: Any) -> np.ndarray:
        """Log density (or log probability), (n,), of one y per input or a scalar."""

    @abc.abstractmethod
    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Independent draws, (n_samples, n)."""

    @abc.abstractmethod
    def _cdf(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """P(target ≤ y), (m,), for m numbers y and the inputs they belong to."""

    @abc.abstractmethod
    def _quantiles(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Quantiles (m,) for m levels and the inputs they belong to."""

    def cdf(self, y: Any) -> np.ndarray:
        """P(target ≤ y), (n,), for one y per input or a scalar."""
        return self._cdf(self._targets(y), np.arange(len(self)))

    def quantile(self, q: float | Sequence[float] | np.ndarray) -> np.ndarray:
        """Quantile q of each input: (n,) for a scalar q, (n, len(q)) for a sequence."""
        levels, n = check_probabilities(q), len(self)
        found = self._quantiles(np.tile(levels.ravel(), n), np.repeat(np.arange(n), levels.size))
        return found.reshape(n, *levels.shape)

    def rescaled(self, scale: float, shift: float) -> "Predictive":
        """Distribution of ``scale * target + shift``, scale > 0."""
        return self if (scale, shift) == (1.0, 0.0) else RescaledPredictive(self, scale, shift)

    @property
    def variance(self) -> np.ndarray:
        """Variance of each target, (n,)."""
        return self.std**2

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the central interval that contains the target with probability ``level``."""
        if not (isinstance(level, (int, float, np.floating)) and 0 < level < 1):
            raise ValueError(f"level={level!r} must be a probability between 0 and 1, e.g. 0.95.")
        bounds = self.quantile([0.5 - level / 2, 0.5 + level / 2])
        return bounds[:, 0], bounds[:, 1]

    def __len__(self) -> int:
        return len(self.mean)

    def _targets(self, y: Any) -> np.ndarray:
        """Array y with one entry per input; a scalar is broadcast."""
        y = np.asarray(y, dtype=np.float64)
        if y.shape not in ((), self.mean.shape):
            raise ValueError(f"One y per input is needed: expected shape {self.mean.shape}, got {y.shape}.")
        return np.broadcast_to(y, self.mean.shape)


class GaussianPredictive(Predictive):
    """A normal distribution at each input.

    Examples
    --------
    >>> p = GaussianPredictive([0.0, 1.0], [1.0, 2.0])
    >>> p.quantile(0.975).round(2)
    array([1.96, 4.92])
    >>> p.log_density([0.0, 1.0]).round(4)
    array([-0.9189, -1.6121])
    """

    def __init__(self, mean: Any, std: Any):
        self.mean = np.asarray(mean, dtype=np.float64)
        self.std = np.asarray(std, dtype=np.float64)

    def _cdf(self, y, rows):
        return ndtr((y - self.mean[rows]) / self.std[rows])

    def log_density(self, y):
        z = (self._targets(y) - self.mean) / self.std
        return -0.5 * z**2 - np.log(self.std) - 0.5 * np.log(2 * np.pi)

    def _quantiles(self, q, rows):
        return self.mean[rows] + self.std[rows] * ndtri(q)

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        return self.mean + self.std * rng.standard_normal((n_samples, len(self.mean)))

    def rescaled(self, scale, shift):
        return GaussianPredictive(scale * self.mean + shift, scale * self.std)


class StudentPredictive(Predictive):
    """Student's distribution with df > 2 degrees of freedom at each input, with given means and scales (n,).

    Its right half is ``skew``² times as wide as its left half (:class:`~errorband.skew_student.SkewStudent`).

    Examples
    --------
    >>> p = StudentPredictive([0.0], [1.0], 4.0)
    >>> p.quantile([0.5, 0.975]).round(3), p.std.round(3)
    (array([[0.   , 2.776]]), array([1.414]))
    """

    def __init__(self, mean: Any, scale: Any, df: float, skew: float = 1.0):
        self.mean, self.scale = np.asarray(mean, dtype=np.float64), np.asarray(scale, dtype=np.float64)
        self.shape = SkewStudent(float(df), float(skew))
        self.std = self.scale * self.shape.std

    def _cdf(self, y, rows):
        return self.shape.cdf((y - self.mean[rows]) / self.scale[rows])

    def log_density(self, y):
        return self.shape.log_density((self._targets(y) - self.mean) / self.scale) - np.log(self.scale)

    def _quantiles(self, q, rows):
        return self.mean[rows] + self.scale[rows] * self.shape.quantile(q)

    def sample(self, n_samples=1, random_state=None):
        return self.mean + self.scale * self.shape.sample(generator(random_state), (n_samples, len(self.mean)))

    def rescaled(self, scale, shift):
        return StudentPredictive(scale * self.mean + shift, scale * self.scale, self.shape.df, self.shape.skew)


class RescaledPredictive(Predictive):
    """``scale * target + shift`` of another distribution: undoes the standardisation of targets."""

    def __init__(self, base: Predictive, scale: float, shift: float):
        self.base, self.scale, self.shift = base, float(scale), float(shift)
        self.mean, self.std = self.scale * base.mean + self.shift, self.scale * base.std

    def _cdf(self, y, rows):
        return self.base._cdf((y - self.shift) / self.scale, rows)

    def log_density(self, y):
        return self.base.log_density((self._targets(y) - self.shift) / self.scale) - np.log(self.scale)

    def _quantiles(self, q, rows):
        most = FURTHEST / max(self.scale, 1.0)
        return self.scale * np.clip(self.base._quantiles(q, rows), -most, most) + self.shift

    def sample(self, n_samples=1, random_state=None):
        return self.scale * self.base.sample(n_samples, random_state) + self.shift

    def rescaled(self, scale, shift):
        return RescaledPredictive(self.base, scale * self.scale, scale * self.shift + shift)


class QuantilesFromCdf(Predictive):
    """Quantiles by root finding on the cdf, for targets of any support."""

    support: str = "real"

    def quantile(self, q):
        found = super().quantile(q)
        if found.ndim == 2:  # where a distribution is narrower than numbers are apart, roots are in no order
            found[:, np.argsort(q)] = np.sort(found, axis=1)
        return found

    def _quantiles(self, q, rows):
        solve = self._count_roots if self.support == "count" else self._real_roots
        found = [solve(q[part], rows[part]) for part in slices(len(q), AT_ONCE)]
        return np.concatenate(found) if found else np.empty(0)

    def _start(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centre and size of some of the distributions: where the search for a quantile begins."""
        return self.mean[rows], self.std[rows]

    def _transform(self, rows: np.ndarray) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """The map from unbounded coordinates to targets of these inputs, and its inverse."""
        return _around(*self._start(rows)) if self.support == "real" else TRANSFORMS[self.support]

    def _excess(self, y: np.ndarray, goal: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Φ⁻¹(cdf) at y less the goal: nearly linear where a distribution is nearly normal."""
        return ndtri(np.clip(self._cdf(y, rows), 1e-300, 1 - 1e-16)) - goal

    def _bracket(self, goal: np.ndarray, rows: np.ndarray) -> "tuple[_End, _End]":
        """Points below and above the quantiles, in unbounded coordinates: growing steps from where a normal one is."""
        forward, inverse = self._transform(rows)
        centre, size = self._start(rows)
        t = np.clip(inverse(centre), -BOUND, BOUND)  # a centre at an end of its range is infinitely far
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            slope = (forward(t + 1e-3) - forward(t - 1e-3)) / 2e-3
            unit = np.nan_to_num(size / slope, nan=1.0, posinf=1.0)
        t = t + (np.arcsinh(goal) if self.support == "real" else goal * np.clip(unit, 1e-3, 3.0))
        f = self._excess(forward(t), goal, rows)
        return self._step_out(t, f, goal, rows, -0.1), self._step_out(t, f, goal, rows, 0.1)

    def _step_out(self, t: np.ndarray, f: np.ndarray, goal: np.ndarray, rows: np.ndarray, step: float) -> "_End":
        """Go from t in the direction of the step, doubling it, until the excess has the sign of the step."""
        t, f, going = t.copy(), f.copy(), np.flatnonzero(np.sign(step) * f < 0)
        for _ in range(16):
            if len(going) == 0:
                break
            t[going] += step
            forward, _ = self._transform(rows[going])
            f[going] = self._excess(forward(t[going]), goal[going], rows[going])
            going, step = going[np.sign(step) * f[going] < 0], 2 * step
        return t, f

    def _real_roots(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Where Φ⁻¹(cdf) is Φ⁻¹(q), in unbounded coordinates; those found are left in peace."""
        goal = ndtri(q)
        (low, f_low), (high, f_high) = self._bracket(goal, rows)
        found, last, going = low.copy(), np.zeros(len(q)), np.arange(len(q))
        for i in range(200):
            if len(going) == 0:
                break
            a, f_a, b, f_b = low[going], f_low[going], high[going], f_high[going]
            with np.errstate(invalid="ignore", divide="ignore"):
                secant = a - f_a * (b - a) / (f_b - f_a)
            t = np.where((secant > a) & (secant < b) & (i % 4 < 3), secant, 0.5 * (a + b))
            f = self._excess(self._transform(rows[going])[0](t), goal[going], rows[going])
            side = np.where(f < 0, -1.0, 1.0)
            again = np.where(side == last[going], 0.5, 1.0)  # Illinois rule: halve the value at an end kept twice
            low[going], f_low[going] = np.where(side < 0, t, a), np.where(side < 0, f, again * f_a)
            high[going], f_high[going] = np.where(side > 0, t, b), np.where(side > 0, f, again * f_b)
            found[going], last[going] = t, side
            going = going[(np.abs(f) >= 1e-10) & (high[going] - low[going] > 1e-13 * (1 + np.abs(t)))]
        return self._transform(rows)[0](found)

    def _count_roots(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Smallest whole numbers whose cdf reaches q (beyond 10¹², to twelve digits), found like real ones."""
        forward, inverse = TRANSFORMS["count"]
        goal = ndtri(q)
        (t_low, f_low), (t_high, f_high) = self._bracket(goal, rows)
        low, high = forward(t_low), forward(t_high)
        low = np.where(f_low < 0, low, low - 1)  # there at last the cdf is below
        for steps in itertools.count():
            going = np.flatnonzero(high - low > np.maximum(1.0, 1e-12 * high))
            if len(going) == 0:
                break
            a, f_a, b, f_b = low[going], f_low[going], high[going], f_high[going]
            t_a, t_b = inverse(a), inverse(b)
            with np.errstate(invalid="ignore", divide="ignore"):
                y = forward(t_a - f_a * (t_b - t_a) / (f_b - f_a))
            halfway = np.where(b > 4 * (a + 2), forward(0.5 * (t_a + t_b)), np.floor(0.5 * (a + b)))
            y = np.where((y > a) & (y < b) & (steps % 3 < 2), y, halfway)
            f = self._excess(y, goal[going], rows[going])
            low[going], f_low[going] = np.where(f < 0, y, a), np.where(f < 0, f, f_a)
            high[going], f_high[going] = np.where(f < 0, b, y), np.where(f < 0, f_b, f)
        return high


class GaussianMixturePredictive(QuantilesFromCdf):
    """A mixture of K normals at each input, with weights, means and standard deviations of shape (n, K).

    Examples
    --------
    >>> p = GaussianMixturePredictive([[0.9, 0.1]], [[0.0, 0.0]], [[1.0, 10.0]])
    >>> p.quantile([0.5, 0.975]).round(3)
    array([[0.   , 6.745]])
    """

    def __init__(self, weights: Any, means: Any, stds: Any):
        self.weights, self.means, self.stds = np.broadcast_arrays(
            *(np.asarray(a, float) for a in (weights, means, stds))
        )
        self.mean = np.sum(self.weights * self.means, axis=1)
        with np.errstate(over="ignore"):  # an infinite variance is what it comes to
            spread = self.stds**2 + (self.means - self.mean[:, None]) ** 2
        self.std = np.sqrt(np.sum(self.weights * spread, axis=1))

    def _cdf(self, y, rows):
        z = (y[:, None] - self.means[rows]) / self.stds[rows]
        return np.sum(self.weights[rows] * ndtr(z), axis=1)

    def log_density(self, y):
        z = (self._targets(y)[:, None] - self.means) / self.stds
        terms = -0.5 * z**2 - np.log(self.stds) - 0.5 * np.log(2 * np.pi)
        return logsumexp(terms, b=self.weights, axis=1)

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        shape = (n_samples, len(self))
        u, which, rows = rng.random(shape), np.zeros(shape, int), np.arange(len(self))
        for edge in np.cumsum(self.weights, axis=1).T[:-1]:
            which += u > edge
        return self.means[rows, which] + self.stds[rows, which] * rng.standard_normal(shape)

    def _start(self, rows):
        """The size of the narrowest member, so that it is resolved; the search grows to the widest in few steps."""
        return self.mean[rows], np.min(np.where(self.weights[rows] > 0, self.stds[rows], np.inf), axis=1)


class CategoricalPredictive(Predictive):
    """Probabilities (n, C) of the C values of a discrete target, in increasing order.

    Examples
    --------
    >>> p = CategoricalPredictive([[0.2, 0.5, 0.3]], [0, 1, 2])
    >>> p.mean.round(2), p.quantile(0.9)
    (array([1.1]), array([2.]))
    """

    def __init__(self, probabilities: Any, values: Any):
        self.probabilities, self.values = np.asarray(probabilities, float), np.asarray(values, float)
        self.mean = self.probabilities @ self.values
        self.std = np.sqrt(np.sum(self.probabilities * (self.values - self.mean[:, None]) ** 2, axis=1))

    def _cdf(self, y, rows):
        return np.sum(self.probabilities[rows] * (self.values <= y[:, None]), axis=1)

    def log_density(self, y):
        with np.errstate(divide="ignore"):
            return np.log(np.sum(self.probabilities * (self.values == self._targets(y)[:, None]), axis=1))

    def _quantiles(self, q, rows):
        below = np.cumsum(self.probabilities, axis=1)[rows, :-1] < q[:, None]
        return self.values[below.sum(axis=1)]

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        below = np.cumsum(self.probabilities, axis=1)[:, :-1] < rng.random((n_samples, len(self), 1))
        return self.values[below.sum(axis=2)]


class MixturePredictive(QuantilesFromCdf):
    """Mixture Σ_k w_k p_k of predictive distributions at the same inputs, such as those of several models or samples.

    Parameters
    ----------
    weights : array (K,)
        Positive or zero; normalised to sum to one. Members of weight zero are left out.
    members : sequence of K Predictive
        All with the same number of inputs.

    Notes
    -----
    Mean and variance follow from the laws of total expectation and variance; cdf and density are weighted sums of those
    of the members. If all members are discrete with the same values (:class:`CategoricalPredictive`), the mixture has
    ``probabilities`` and ``values`` too.

    Examples
    --------
    >>> p = MixturePredictive([0.5, 0.5], [GaussianPredictive([-1.0], [0.1]), GaussianPredictive([1.0], [0.1])])
    >>> p.mean, p.std.round(3), p.quantile([0.25, 0.75]).round(3)
    (array([0.]), array([1.005]), array([[-1.,  1.]]))
    """

    def __init__(self, weights: Any, members: Sequence[Predictive]):
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != (len(members),) or np.any(w < 0) or not 0 < w.sum() < np.inf:
            raise ValueError(
                f"A mixture of {len(members)} distributions needs as many weights, none negative and not all zero; "
                f"got {weights!r}."
            )
        if len({len(member) for member in members}) > 1:
            raise ValueError(f"Members predict at {[len(m) for m in members]} inputs; give all the same inputs.")
        self.weights = w[w > 0] / w.sum()
        self.members = tuple(member for member, weight in zip(members, w, strict=True) if weight > 0)
        means, stds = (np.stack([getattr(m, name) for m in self.members]) for name in ("mean", "std"))
        self.mean = self.weights @ means
        self.std = np.sqrt(self.weights @ (stds**2 + (means - self.mean) ** 2))
        supports = {_support(member) for member in self.members}
        self.support = supports.pop() if len(supports) == 1 else "real"

    @property
    def values(self) -> np.ndarray:
        """Values that a discrete target can take, (C,), if all members are categorical."""
        values = self._categorical[0].values
        if not all(np.array_equal(member.values, values) for member in self._categorical[1:]):
            raise AttributeError("The members of this mixture are probabilities of different values.")
        return values

    @property
    def probabilities(self) -> np.ndarray:
        """Weighted average of the members' probabilities, (n, C), if all members are categorical."""
        return np.tensordot(self.weights, np.stack([member.probabilities for member in self._categorical]), axes=1)

    @property
    def _categorical(self) -> "tuple[CategoricalPredictive, ...]":
        found = tuple(member for member in self.members if isinstance(member, CategoricalPredictive))
        if len(found) < len(self.members):
            raise AttributeError("Only a mixture of categorical distributions has probabilities and values.")
        return found

    def _cdf(self, y, rows):
        return self.weights @ np.stack([member._cdf(y, rows) for member in self.members])

    def log_density(self, y):
        terms = np.stack([member.log_density(y) for member in self.members])
        return logsumexp(terms, b=self.weights[:, None], axis=0)

    def _quantiles(self, q, rows):
        if self.support == "categorical":
            return CategoricalPredictive(self.probabilities, self.values)._quantiles(q, rows)
        return super()._quantiles(q, rows)

    def _start(self, rows):
        return self.mean[rows], np.min([member.std[rows] for member in self.members], axis=0)

    def _bracket(self, goal, rows):
        """A quantile of a mixture lies between the least and the greatest of its members' quantiles."""
        _, inverse = self._transform(rows)
        found = np.stack([member._quantiles(ndtr(goal), rows) for member in self.members])
        ends = found.min(axis=0), found.max(axis=0)
        low, high = ((inverse(y), self._excess(y, goal, rows)) for y in ends)
        return low, high

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        which = rng.choice(len(self.members), p=self.weights, size=(n_samples, len(self)))
        draws = np.empty(which.shape)
        for k, member in enumerate(self.members):
            if np.any(chosen := which == k):
                draws[chosen] = member.sample(n_samples, rng)[chosen]
        return draws

    def rescaled(self, scale, shift):
        if (scale, shift) == (1.0, 0.0):
            return self
        return MixturePredictive(self.weights, [member.rescaled(scale, shift) for member in self.members])


# ------------------------------------------------------------------------------------------------------------ helpers
_End = tuple[np.ndarray, np.ndarray]  # places, and by how much the cdf is above its goal there


def _support(predictive: Predictive) -> str:
    if isinstance(predictive, CategoricalPredictive):
        return "categorical"
    return getattr(predictive, "support", "real")


def _expit(t: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-np.asarray(t, float)))


def _exp(t: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.exp(t)


def _log(y: Any) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(y) > 0, np.log(y), -np.inf)


def _logit(y: Any) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(y) < 1, _log(y) - np.log1p(-np.minimum(y, 1.0)), np.inf)


def _whole(t: Any) -> np.ndarray:
    return np.ceil(np.exp(np.minimum(t, np.log(FURTHEST))) - 1.5) + 0.0  # without the sign of −0


def _log_whole(y: Any) -> np.ndarray:
    return np.log(np.clip(y, -1.0, FURTHEST) + 1.5)


def _identity(t: Any) -> Any:
    return t


AT_ONCE = 20_000  # quantiles searched for together: for each a search may hold some kilobytes
BOUND = 700.0  # of a start in unbounded coordinates: the logarithm of the largest numbers
FURTHEST = 1e300  # a quantile beyond is given as this
# For each support: the map from unbounded coordinates to targets, and its inverse.
TRANSFORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "real": (_identity, _identity),
    "positive": (_exp, _log),
    "unit": (_expit, _logit),
    "count": (_whole, _log_whole),
}


def _around(centre: np.ndarray, size: np.ndarray) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Targets y = centre + size·sinh(t): linear near the centre, so many powers of ten per step far out."""
    size = np.clip(size, 1 / FURTHEST, FURTHEST)

    def forward(t: Any) -> np.ndarray:
        exponent = np.minimum(np.abs(t) + np.log(0.5 * size), np.log(FURTHEST))
        far = np.sign(t) * np.exp(exponent)
        return np.clip(centre + np.where(np.abs(t) < 10, size * np.sinh(np.clip(t, -10, 10)), far), -FURTHEST, FURTHEST)

    def inverse(y: Any) -> np.ndarray:
        away = np.clip(y, -FURTHEST, FURTHEST) - centre
        with np.errstate(over="ignore"):
            near = np.arcsinh(away / size)
        far = np.sign(away) * (np.log(np.maximum(2 * np.abs(away), size)) - np.log(size))
        return np.where(np.abs(near) < 10, near, far)

    return forward, inverse


def check_probabilities(q: Any) -> np.ndarray:
    """Quantile levels as an array, each strictly between 0 and 1."""
    try:
        levels = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"Quantile levels must be numbers, such as 0.5 or [0.025, 0.975]; got {q!r}.") from None
    if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"Quantile levels must lie strictly between 0 and 1; got {levels}.")
    return levels
