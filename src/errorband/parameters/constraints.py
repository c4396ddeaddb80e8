"""What values a hyperparameter may take: maps between those and the unconstrained numbers that the optimiser sees."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

# A search that is told to start on a bound starts beside it, at this logarithm of the distance.
BESIDE = -40.0


@dataclasses.dataclass(frozen=True)
class Real:
    """Any real number. Searches see it in units: value = unit · raw."""

    unit: float = dataclasses.field(default=1.0, kw_only=True)

    def forward(self, raw):
        """Constrained value of an unconstrained number."""
        return self.unit * raw

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
        return self.lower + jnp.exp(raw)

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
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(raw)

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
        return jnp.cumsum(jnp.concatenate([raw[:1], jnp.exp(raw[1:])]))

    def inverse(self, value):
        return np.concatenate([value[:1], _log(np.diff(value))])

    def valid(self, value) -> bool:
        return super().valid(value) and np.ndim(value) == 1 and bool(np.all(np.diff(value) > 0))

    def __str__(self) -> str:
        return "strictly increasing"


def _log(value):
    """Logarithm, of zero too: a value may be on its bound. Values that are not are kept, however small or large."""
    with np.errstate(divide="ignore"):
        return np.where(np.equal(value, 0.0), BESIDE, np.log(value))


REAL = Real()
POSITIVE = GreaterThan(0.0)
