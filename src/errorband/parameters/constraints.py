"""What values a hyperparameter may take: maps between those and the unconstrained numbers that the optimiser sees."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

# A search that is told to start on a bound starts beside it, at this logarithm of the distance.
BESIDE = -40.0


@dataclasses.dataclass(frozen=True)
class Real:
    """Any real number. Searches see it in units: value = unit · raw."""

    unit: float = dataclasses.field(default=1.0, kw_only=True)

    def forward(self, raw):
        """Constrained value of an unconstrained number; NumPy's of NumPy's, so that nothing is compiled for it."""
        return self.unit * raw

    def pull_back(self, raw, bar):
        """From derivatives in the value to derivatives in the unconstrained number."""
        return self.unit * bar

    def inverse(self, value):
        """Unconstrained number of a constrained value."""
        return value / self.unit

    def valid(self, value) -> bool:
        """Whether a value given by the user can be used."""
        return bool(np.all(np.isfinite(value)))

    def inside(self, value):
        """The value itself where an optimisation can start from it, else one near by that it can start from."""
        return value

    def __str__(self) -> str:
        return "finite"


@dataclasses.dataclass(frozen=True)
class GreaterThan(Real):
    """Above ``lower``, or equal to it if not ``strict``: value = lower + e^raw."""

    lower: float = 0.0
    strict: bool = True

    def forward(self, raw):
        return self.lower + _exp(raw)

    def pull_back(self, raw, bar):
        return _exp(raw) * bar

    def inverse(self, value):
        return _log(value - self.lower)

    def valid(self, value) -> bool:
        above = np.greater if self.strict else np.greater_equal
        return super().valid(value) and bool(np.all(above(value, self.lower)))

    def inside(self, value):
        return np.where(np.greater(value, self.lower), value, self.lower + (0.1 * abs(self.lower) or 1.0))

    def __str__(self) -> str:
        return f"{'greater than' if self.strict else 'at least'} {self.lower:g}"


@dataclasses.dataclass(frozen=True)
class Interval(Real):
    """Between two numbers, or equal to one if not ``strict``: value = lower + (upper − lower) / (1 + e^−raw)."""

    lower: float
    upper: float
    strict: bool = True

    def forward(self, raw):
        return self.lower + (self.upper - self.lower) * (expit if _on_host(raw) else jax.nn.sigmoid)(raw)

    def pull_back(self, raw, bar):
        return (self.upper - self.lower) * expit(raw) * expit(-raw) * bar

    def inverse(self, value):
        return _log(value - self.lower) - _log(self.upper - value)

    def valid(self, value) -> bool:
        above = np.greater if self.strict else np.greater_equal
        return super().valid(value) and bool(np.all(above(value, self.lower) & above(self.upper, value)))

    def inside(self, value):
        width = self.upper - self.lower
        step = 0.1 * min(width, abs(self.lower) or width) or 0.1 * width  # a tenth of a tiny number can be zero
        low, high = self.lower + step, self.upper - 0.1 * width
        return np.where(np.less_equal(value, self.lower), low, np.where(np.less(value, self.upper), value, high))

    def __str__(self) -> str:
        return f"between {self.lower:g} and {self.upper:g}"


@dataclasses.dataclass(frozen=True)
class Ordered(Real):
    """A strictly increasing vector: the first entry free, each step e^raw."""

    def forward(self, raw):
        xp = np if _on_host(raw) else jnp
        return xp.cumsum(xp.concatenate([raw[:1], _exp(raw[1:])]))

    def pull_back(self, raw, bar):
        steps = np.cumsum(bar[::-1])[::-1]  # each step moves all entries after it
        return np.concatenate([steps[:1], _exp(raw[1:]) * steps[1:]])

    def inverse(self, value):
        return np.concatenate([value[:1], _log(np.diff(value))])

    def valid(self, value) -> bool:
        return super().valid(value) and np.ndim(value) == 1 and bool(np.all(np.diff(value) > 0))

    def __str__(self) -> str:
        return "strictly increasing"


def _on_host(raw) -> bool:
    return isinstance(raw, (float, np.ndarray, np.generic))


def _exp(raw):
    if not _on_host(raw):
        return jnp.exp(raw)
    with np.errstate(over="ignore"):  # infinite, as a search that went too far will be told
        return np.exp(raw)


def _log(value):
    """Logarithm, of zero too: a value may be on its bound. Values that are not are kept, however small or large."""
    with np.errstate(divide="ignore"):
        return np.where(np.equal(value, 0.0), BESIDE, np.log(value))


REAL = Real()
POSITIVE = GreaterThan(0.0)
