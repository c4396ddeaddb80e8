"""Transformed targets: the model describes z = g(y), and what it predicts is brought back to y.

A transform g is increasing: quantiles of y are g⁻¹ of those of z, exactly, and the density of y has the factor g′(y).
A new transform is a class with ``forward``, ``inverse`` and ``log_slope``, and a line in :data:`TRANSFORMS`.
"""

import abc
import dataclasses
import functools
from typing import Any, Self

import equinox as eqx
import numpy as np
from scipy import special, stats
from scipy.optimize import minimize_scalar

from errorband.parameters import Module
from errorband.parameters.checks import check_number, check_whole
from errorband.predictive import GaussianPredictive, Predictive

POWERS = (-5.0, 5.0)  # among which that of a Box-Cox or Yeo-Johnson transform is looked for

MOST_STEP = 10.0, 5.0, 4.0  # height, steepness and place of a step of a warp, in standard deviations of the targets

TAIL = 1e-6  # probability on each side that integrals leave out: y may be infinite there


class Transform(Module):
    """An increasing function g of targets, z = g(y). All methods take and return arrays."""

    @property
    @abc.abstractmethod
    def domain(self) -> str:
        """What targets must be, in words."""

    @abc.abstractmethod
    def forward(self, y: np.ndarray) -> np.ndarray:
        """g(y)."""

    @abc.abstractmethod
    def inverse(self, z: np.ndarray) -> np.ndarray:
        """g⁻¹(z); an end of the domain where z is beyond the values of g."""

    @abc.abstractmethod
    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Log g′(y)."""

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether each y is in the domain."""
        return np.isfinite(y)

    def moments(self, base: Predictive) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of y, given the distribution of z, by a rule over its quantiles."""
        nodes, weights = _rule()
        y = self.inverse(base.quantile(nodes))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = y @ weights
            return mean, np.sqrt(((y - mean[:, None]) ** 2) @ weights)

    @property
    def left_open(self) -> bool:
        """Whether something of it is to be learned."""
        return False

    @property
    def needs_evidence(self) -> bool:
        """Whether the targets alone say nothing of what is to be learned."""
        return False

    @property
    def vector(self) -> np.ndarray:
        """What can be learned of it, as numbers without bounds."""
        return np.zeros(0)

    def at(self, vector: np.ndarray) -> Self:
        """Copy with these numbers."""
        return self

    def fitted(self, y: np.ndarray) -> Self:
        """Copy with a first guess, from the targets alone, of what was left open."""
        return self

    def check(self, y: np.ndarray) -> None:
        """Refuse targets outside the domain."""
        bad = np.flatnonzero(~self.contains(y))
        if len(bad):
            raise ValueError(
                f"{type(self).__name__} needs targets that are {self.domain}; {len(bad)} of {len(y)} are not, the "
                f"first {y[bad[0]]:g} in row {bad[0]}. Choose another target_transform."
            )


@functools.cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and weights of Gauss's rule, in the scale where a normal distribution is smooth."""
    end = special.ndtri(1.0 - TAIL)
    x, weights = np.polynomial.legendre.leggauss(80)
    weights = weights * np.exp(-0.5 * (end * x) ** 2)
    return special.ndtr(end * x), weights / np.sum(weights)


class Log(Transform):
    """g(y) = log(y + offset), for positive targets whose spread grows with their size.

    Parameters
    ----------
    offset : float
        Added first: 1 where targets may be zero.

    Examples
    --------
    >>> Log().inverse(Log().forward(np.array([0.5, 20.0])))
    array([ 0.5, 20. ])
    """

    offset: float = eqx.field(default=0.0, static=True)

    @property
    def domain(self):
        return f"above {0.0 - self.offset:g}"

    def forward(self, y):
        return np.log(y + self.offset)

    def inverse(self, z):
        with np.errstate(over="ignore"):
            return np.exp(z) - self.offset

    def log_slope(self, y):
        return -np.log(y + self.offset)

    def contains(self, y):
        return np.isfinite(y) & (y > -self.offset)

    def moments(self, base):
        """Of the log-normal distribution, in closed form."""
        if not isinstance(base, GaussianPredictive):
            return super().moments(base)
        with np.errstate(over="ignore"):
            mean = np.exp(base.mean + 0.5 * base.variance)
            return mean - self.offset, mean * np.sqrt(np.expm1(base.variance))


class Logit(Transform):
    """g(y) = log((y − lower)/(upper − y)), for targets between two bounds, such as shares.

    Parameters
    ----------
    lower, upper : float
        The bounds, which no target may touch.

    Examples
    --------
    >>> Logit(0, 100).inverse(np.array([-50.0, 0.0, 50.0])).round(3)
    array([  0.,  50., 100.])
    """

    lower: float = eqx.field(default=0.0, static=True)
    upper: float = eqx.field(default=1.0, static=True)

    def __check_init__(self):
        if not self.lower < self.upper:
            raise ValueError(f"Logit({self.lower:g}, {self.upper:g}): the lower bound must be below the upper.")

    @property
    def domain(self):
        return f"between {self.lower:g} and {self.upper:g}"

    def forward(self, y):
        return special.logit((y - self.lower) / (self.upper - self.lower))

    def inverse(self, z):
        return self.lower + (self.upper - self.lower) * special.expit(z)

    def log_slope(self, y):
        return np.log(self.upper - self.lower) - np.log(y - self.lower) - np.log(self.upper - y)

    def contains(self, y):
        return (y > self.lower) & (y < self.upper)


class _Power(Transform):
    """Base of the transforms with a power that makes the targets most like a normal distribution."""

    power: Any = eqx.field(default=None, static=True)

    def __check_init__(self):
        if self.power is not None and not (isinstance(self.power, int | float) and np.isfinite(self.power)):
            raise ValueError(f"{type(self).__name__}(power={self.power!r}): give a number, or None to find it.")

    @property
    def left_open(self):
        return self.power is None

    @property
    def vector(self):
        return np.array([self.power])

    def at(self, vector):
        return dataclasses.replace(self, power=float(vector[0]))

    def fitted(self, y):
        """With the power of largest likelihood, if none was given: targets as draws of one normal distribution."""
        if self.power is not None or np.ptp(y) == 0:
            return self if self.power is not None else dataclasses.replace(self, power=1.0)

        def lack(power: float) -> float:
            g = dataclasses.replace(self, power=float(power))
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                value = 0.5 * len(y) * np.log(np.var(g.forward(y))) - np.sum(g.log_slope(y))
            return float(value) if np.isfinite(value) else np.inf

        found = minimize_scalar(lack, bounds=POWERS, method="bounded")
        return dataclasses.replace(self, power=round(float(found.x), 3))


class BoxCox(_Power):
    """g(y) = (y^λ − 1)/λ, the logarithm for λ = 0, for positive targets.

    Parameters
    ----------
    power : float or None
        λ. None: the one for which the transformed targets look most like draws of a normal distribution.

    Examples
    --------
    >>> y = np.exp(np.random.default_rng(0).normal(size=1000))  # log-normal: λ = 0
    >>> abs(BoxCox().fitted(y).power) < 0.1
    True
    """

    @property
    def domain(self):
        return "above 0"

    def forward(self, y):
        return special.boxcox(y, self.power)

    def inverse(self, z):
        if self.power:  # beyond the values of g: an end of the domain
            z = np.maximum(z, -1 / self.power) if self.power > 0 else np.minimum(z, -1 / self.power)
        with np.errstate(divide="ignore", over="ignore"):
            return special.inv_boxcox(z, self.power)

    def log_slope(self, y):
        return (self.power - 1.0) * np.log(y)

    def contains(self, y):
        return np.isfinite(y) & (y > 0)


class YeoJohnson(_Power):
    """Box-Cox's transform of 1 + y with power λ for y ≥ 0, and of 1 − y with power 2 − λ, mirrored, below.

    Parameters
    ----------
    power : float or None
        λ; 1 changes nothing. None: the one for which the transformed targets look most like draws of a normal
        distribution.

    Examples
    --------
    >>> g = YeoJohnson(0.5)
    >>> g.inverse(g.forward(np.array([-3.0, 0.0, 3.0]))).round(6)
    array([-3.,  0.,  3.])
    """

    @property
    def domain(self):
        return "numbers"

    def forward(self, y):
        return stats.yeojohnson(np.asarray(y, dtype=np.float64), self.power)

    def inverse(self, z):
        above = BoxCox(self.power).inverse(np.maximum(z, 0.0)) - 1.0
        below = 1.0 - BoxCox(2.0 - self.power).inverse(np.maximum(-z, 0.0))
        return np.where(z >= 0, above, below)

    def log_slope(self, y):
        return (self.power - 1.0) * np.sign(y) * np.log1p(np.abs(y))


class Warp(Transform):
    r"""g(y) = t + Σ aᵢ tanh(bᵢ(t − cᵢ)) with t = (y − centre)/scale: a straight line that has some steps.

    Learned together with the hyperparameters, by the evidence of the targets: the warped Gaussian process
    (Snelson, Rasmussen & Ghahramani 2004). No step is narrower than a fifth of the scale: targets that repeat would
    otherwise be worth any density there.

    Parameters
    ----------
    n_steps : int
        Number of terms.
    steps : sequence of (a, b, c), optional
        The terms, with 0 < a < 10, 0 < b < 5 and \|c\| < 4. Default: learned.
    centre, scale : float
        Those of the targets where ``steps`` are learned.

    Examples
    --------
    >>> g = Warp(steps=[(2.0, 1.0, 0.0)])
    >>> g.inverse(g.forward(np.array([-3.0, 0.1, 3.0]))).round(6)
    array([-3. ,  0.1,  3. ])
    """

    n_steps: int = eqx.field(default=3, static=True)
    steps: Any = eqx.field(default=None, static=True, converter=lambda s: None if s is None else tuple(map(tuple, s)))
    centre: float = eqx.field(default=0.0, static=True)
    scale: float = eqx.field(default=1.0, static=True)

    def __check_init__(self):
        check_whole("Warp", "n_steps", self.n_steps)
        check_number("Warp", "scale", self.scale, "a number above zero")
        try:
            inside = self.steps is None or np.all(np.abs(self._raw()) < 1.0)
        except (TypeError, ValueError):
            inside = False
        if not inside:
            raise ValueError(
                f"Warp(steps={self.steps!r}): give (a, b, c) of each step, 0 < a < {MOST_STEP[0]:g}, 0 < b < "
                f"{MOST_STEP[1]:g}, -{MOST_STEP[2]:g} < c < {MOST_STEP[2]:g}, or None to learn them."
            )

    def _raw(self) -> np.ndarray:
        """Each number of the steps between −1 and 1."""
        a, b, c = np.array(self.steps, float).reshape(len(self.steps), 3).T
        return np.array([2 * a / MOST_STEP[0] - 1, 2 * b / MOST_STEP[1] - 1, c / MOST_STEP[2]])

    @property
    def domain(self):
        return "numbers"

    @property
    def left_open(self):
        return self.steps is None

    @property
    def needs_evidence(self):
        return self.left_open

    @property
    def vector(self):
        return np.arctanh(self._raw()).ravel()

    def at(self, vector):
        a, b, c = np.tanh(np.clip(np.reshape(vector, (3, -1)), -9.0, 9.0))  # beyond, it is ±1 to rounding
        steps = np.array([MOST_STEP[0] * (a + 1) / 2, MOST_STEP[1] * (b + 1) / 2, MOST_STEP[2] * c]).T
        return dataclasses.replace(self, n_steps=len(steps), steps=steps.tolist())

    def fitted(self, y):
        """With small steps, from which a search can make any."""
        if not self.left_open:
            return self
        places = np.linspace(-1.5, 1.5, self.n_steps + 2)[1:-1]
        steps = [(0.5, 1.0, float(c)) for c in places]
        return dataclasses.replace(self, steps=steps, centre=float(np.mean(y)), scale=float(np.std(y)) or 1.0)

    def _terms(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values g, and the derivative in t."""
        a, b, c = np.array(self.steps).T
        step = np.tanh(b * (t[..., None] - c))
        return t + step @ a, 1.0 + (1.0 - step**2) @ (a * b)

    def _t(self, y: Any) -> np.ndarray:
        return (np.asarray(y, dtype=np.float64) - self.centre) / self.scale

    def forward(self, y):
        return self._terms(self._t(y))[0]

    def log_slope(self, y):
        return np.log(self._terms(self._t(y))[1]) - np.log(self.scale)

    def inverse(self, z):
        """By Newton's steps, halving the interval in which t must be where they leave it."""
        z = np.asarray(z, dtype=np.float64)
        most = sum(a for a, _, _ in self.steps)
        low, high, t = z - most, z + most, z.copy()
        known = np.isfinite(z)
        for _ in range(60):
            value, slope = self._terms(np.where(known, t, 0.0))
            gap = np.where(known, value - z, 0.0)
            if np.all(np.abs(gap) <= 1e-14 * (1.0 + np.abs(np.where(known, z, 0.0)))):
                break
            low, high = np.where(gap < 0, t, low), np.where(gap > 0, t, high)
            newton = t - gap / slope
            t = np.where(known, np.where((newton > low) & (newton < high), newton, 0.5 * (low + high)), z)
        return self.centre + self.scale * t


class TransformedPredictive(Predictive):
    """Distribution of y where that of z = g(y) is given.

    Quantiles, cdf and density are exact. Mean and standard deviation are integrals over the quantiles of z, of which
    those beyond one in a million on each side are left out: there y may be infinite, as with a negative power.

    Examples
    --------
    >>> sales = TransformedPredictive(GaussianPredictive([0.0], [1.0]), Log())  # log-normal
    >>> sales.mean.round(4), sales.quantile(0.5), sales.log_density(1.0).round(4)
    (array([1.6487]), array([1.]), array([-0.9189]))
    """

    def __init__(self, base: Predictive, transform: Transform):
        self.base, self.transform = base, transform
        self.mean, self.std = transform.moments(base)

    def _cdf(self, y, rows):
        inside = self.transform.contains(y)
        below = ~inside & (y <= self.transform.inverse(np.zeros(1))[0])  # else above the domain
        return np.where(inside, self.base._cdf(self._z(y, inside), rows), np.where(below, 0.0, 1.0))

    def log_density(self, y):
        y = self._targets(y)
        inside = self.transform.contains(y)
        slope = self.transform.log_slope(np.where(inside, y, self._inner()))
        return np.where(inside, self.base.log_density(self._z(y, inside)) + slope, -np.inf)

    def _quantiles(self, q, rows):
        return self.transform.inverse(self.base._quantiles(q, rows))

    def sample(self, n_samples=1, random_state=None):
        return self.transform.inverse(self.base.sample(n_samples, random_state))

    def _inner(self) -> float:
        """A value in the domain."""
        return float(self.transform.inverse(np.zeros(1))[0])

    def _z(self, y: np.ndarray, inside: Any) -> np.ndarray:
        return self.transform.forward(np.where(inside, y, self._inner()))


TRANSFORMS: dict[str, type[Transform]] = {cls.__name__: cls for cls in (Log, Logit, BoxCox, YeoJohnson, Warp)}
