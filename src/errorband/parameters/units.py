"""Units of hyperparameters, and changes of the units in which data are measured."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Unit:
    """What a hyperparameter is measured in: [inputs]^x · [targets]^y.

    Parameters
    ----------
    x, y : int
        Powers of the units of the inputs and of the targets. If x is not zero, the last axis of a value that is no
        single number belongs to the inputs.
    origin : bool
        Whether it is a place (x = 1) or a level (y = 1), which moves with the origin of the data.
    """

    x: int = 0
    y: int = 0
    origin: bool = False


PURE = Unit()  # a number, whatever the data
LENGTH = Unit(x=1)
PLACE = Unit(x=1, origin=True)
SPREAD = Unit(y=1)
LEVEL = Unit(y=1, origin=True)
VARIANCE = Unit(y=2)


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of units: inputs become x·input + x_origin, targets and functions y·target + y_origin.

    Examples
    --------
    >>> import numpy as np
    >>> to_metres = Change(np.array([1e-3]), np.zeros(1))  # inputs were in millimetres
    >>> to_metres.factor(LENGTH), to_metres.inverse().factor(LENGTH)
    (array(0.001), array(1000.))
    """

    x: np.ndarray
    x_origin: np.ndarray
    y: float = 1.0
    y_origin: float = 0.0

    def inverse(self) -> "Change":
        """The change back."""
        return Change(1.0 / self.x, -self.x_origin / self.x, 1.0 / self.y, -self.y_origin / self.y)

    def of_columns(self, columns: Any) -> "Change":
        """For those who see these inputs only."""
        columns = np.asarray(columns, dtype=int)
        return dataclasses.replace(self, x=self.x[columns], x_origin=self.x_origin[columns])

    def of_inputs(self) -> "Change":
        """For a function that is not in the units of the targets."""
        return Change(self.x, self.x_origin)

    def of_targets(self) -> "Change":
        """For a function of inputs that have no units."""
        return dataclasses.replace(self, x=np.ones_like(self.x), x_origin=np.zeros_like(self.x))

    @property
    def x_alike(self) -> bool:
        """Whether all inputs are multiplied by the same number."""
        return bool(np.all(self.x == self.x[:1]))

    def factor(self, unit: Unit) -> np.ndarray:
        """What a value in this unit is multiplied by: a number, or one for each input."""
        x = self.x[0] if self.x_alike and len(self.x) else self.x
        return np.asarray(self.y**unit.y * (x**unit.x if unit.x else 1.0))

    def origin(self, unit: Unit) -> Any:
        """What is added to it then."""
        return (self.x_origin if unit.x else self.y_origin) if unit.origin else 0.0
