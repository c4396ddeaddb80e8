"""One hyperparameter: how it is declared, and what may be said of its value."""

from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer

from errorband.parameters.constraints import REAL, GreaterThan, Interval, Real
from errorband.parameters.units import PURE, Change, Unit
from errorband.priors import Prior


class Parameter(eqx.Module):
    """A hyperparameter about which more is known than a starting value.

    Parameters
    ----------
    value : float, array or None
        Starting value; None chooses it from the data at ``fit``.
    fixed : bool or array of bool
        Keep the value as it is; or only those of its entries where this is True (it need only broadcast to the value).
    prior : Prior or None
        Belief about the value. The fit then maximises evidence times prior (MAP).
    bounds : (float or None, float or None)
        Limits that replace the hyperparameter's own constraint; None is no limit.

    Examples
    --------
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.priors import LogNormal
    >>> k = SquaredExponential(lengthscale=Parameter(2.0, fixed=True), variance=Parameter(1.0, prior=LogNormal(0, 1)))
    >>> k
    SquaredExponential(lengthscale=2 (fixed), variance=1 ~ LogNormal(location=0, scale=1))
    """

    value: np.ndarray | None = eqx.field(default=None, converter=lambda v: as_value(v))
    fixed: Any = eqx.field(default=False, static=True, converter=lambda f: as_flags(f))
    prior: Prior | None = eqx.field(default=None, static=True)
    bounds: tuple[float | None, float | None] | None = eqx.field(default=None, static=True)

    def constraint(self, default: Real) -> Real:
        """The constraint that holds for this parameter."""
        if self.bounds is None:
            return default
        lower, upper = self.bounds
        lower, upper = -np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)
        if not lower < upper:
            raise ValueError(f"bounds={self.bounds}: the lower bound must be below the upper.")
        if upper < np.inf:
            if lower == -np.inf:
                raise ValueError(f"bounds={self.bounds}: give a lower bound too, e.g. bounds=(0, {upper:g}).")
            return Interval(lower, upper, strict=False)
        return REAL if lower == -np.inf else GreaterThan(lower, strict=False)

    def in_units(self, unit: Unit, change: Change) -> "Parameter":
        """What is said of the value, said of it in other units."""
        prior, bounds = self.prior, self.bounds
        if prior is not None or bounds is not None:
            factor, origin = (np.unique(a) for a in (change.factor(unit), change.origin(unit)))
            if len(factor) > 1 or len(origin) > 1:
                raise ValueError(
                    f"Bounds or a prior for all entries of {self!r} cannot be kept where inputs are scaled each by its "
                    "own number; use normalize=False."
                )
            scale, shift = float(factor[0]), float(origin[0])
            prior = None if prior is None else prior.rescaled(scale, shift)
            bounds = None if bounds is None else tuple(None if b is None else scale * b + shift for b in bounds)
        return Parameter(in_units(self.value, unit, change), self.fixed, prior, bounds)  # pyright: ignore[reportArgumentType]

    def __repr__(self) -> str:
        text = "None" if self.value is None else format_value(self.value)
        text += f" in {self.bounds}" if self.bounds else ""
        kept = "" if self.fixed is False else " (fixed)" if self.fixed is True else " (fixed in part)"
        return text + (f" ~ {self.prior}" if self.prior else "") + kept


def as_flags(flags: Any) -> Any:
    """True or False if all are; else nested tuples, which can be compared and hashed."""
    array = np.asarray(flags)
    if array.dtype != bool or array.size == 0:
        raise ValueError(f"Expected True, False or an array of these; got {flags!r}.")
    if array.all() or not array.any():
        return bool(array.flat[0])
    nested = lambda a: tuple(map(nested, a)) if isinstance(a, list) else a  # noqa: E731
    return nested(array.tolist())


def as_value(value: Any) -> Any:
    """Numbers and lists become float64 arrays of their own; None, Parameter and what JAX traces stay."""
    if value is None or isinstance(value, (Parameter, Tracer)):
        return value
    try:
        if not isinstance(value, (str, bool)):
            return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"A hyperparameter must be a number, a list of numbers or a Parameter; got {value!r}.")


def value_of(held: Any) -> Any:
    """What a field of a module holds: the value inside a :class:`Parameter`, or itself."""
    return held.value if isinstance(held, Parameter) else held


def in_units(held: Any, unit: Unit, change: Change) -> Any:
    """What a field of a module holds, in other units: a value, a :class:`Parameter` or nothing."""
    if held is None:
        return None
    if isinstance(held, Parameter):
        return held.in_units(unit, change)
    fits = (len(change.x),) if unit.origin else (1, len(change.x))  # a place has every coordinate
    if unit.x and np.ndim(held) and np.shape(held)[-1] not in fits:
        return held  # of a shape that will be refused
    new = change.factor(unit) * held + change.origin(unit)
    return new if isinstance(held, np.ndarray) or np.ndim(new) else float(new)


def hyperparameter(constraint: Real, ndim: int | None = None, unit: Unit = PURE, label: str | None = None) -> Any:
    """Declare a field of a module as a hyperparameter with this constraint; left out, its value is None.

    Parameters
    ----------
    constraint : Real
        The values it may take.
    ndim : int or None
        The most axes its value may have: 0 for a number only, 1 for a vector too, 2 for a matrix, None for anything.
    unit : Unit
        What it is measured in. Values that users give and see are in the units of the data, whatever units the model
        works in.
    label : str or None
        What it is called in reports, if not by its name.
    """
    told = {"constraint": constraint, "ndim": ndim, "unit": unit, "label": label}
    return eqx.field(default=None, converter=as_value, metadata=told)


def format_value(value: Any) -> str:
    """Short text of a value: six digits, long vectors cut, of a large matrix the shape only."""
    if isinstance(value, Tracer):
        return str(value.aval)
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    if array.ndim > 1 and array.size > 12:
        return f"<{'×'.join(map(str, array.shape))} array>"
    return " ".join(np.array2string(array, precision=4, separator=", ", threshold=12, max_line_width=200).split())
