"""Hyperparameters: where they live, what values they may take, and what is believed of them.

A kernel, likelihood or mean is a frozen module whose hyperparameters are fields declared with :func:`hyperparameter`,
which names the *constraint*. A value may be given plainly (``lengthscale=0.3``), left out (``None``: chosen from the
data at ``fit``) or wrapped in a :class:`Parameter` to fix it, bound it or give it a prior.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import numpy as np
from jax.core import Tracer

from errorband.parameters.constraints import REAL, GreaterThan, Interval, Real
from errorband.priors import Prior

ModuleT = TypeVar("ModuleT", bound=eqx.Module)


# ---------------------------------------------------------------------------------------------------- parameters
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


def hyperparameter(constraint: Real, ndim: int | None = None) -> Any:
    """Declare a field of a module as a hyperparameter with this constraint; left out, its value is None.

    ``ndim`` is the most axes its value may have: 0 for a number only, 1 for a vector too, 2 for a matrix, None for
    anything.
    """
    return eqx.field(default=None, converter=as_value, metadata={"constraint": constraint, "ndim": ndim})


@dataclasses.dataclass(frozen=True)
class Entry:
    """One hyperparameter of a module tree, as :func:`entries` finds it; ``some_fixed``: which of its numbers are."""

    path: tuple[str, ...]
    value: Any
    constraint: Real
    fixed: bool
    prior: Prior | None
    some_fixed: Any = False

    @property
    def free(self) -> np.ndarray:
        """Which entries of the value are free."""
        return np.broadcast_to(~np.asarray(self.some_fixed or self.fixed), np.shape(self.value))

    @property
    def name(self) -> str:
        """Dotted name, e.g. ``left.lengthscale``."""
        return ".".join(self.path)


def entries(tree: Any, path: tuple[str, ...] = ()) -> Iterator[Entry]:
    """All hyperparameters of a module, depth first in the order of the fields."""
    if isinstance(tree, (tuple, list)):
        for i, child in enumerate(tree):
            yield from entries(child, (*path, str(i)))
        return
    if not isinstance(tree, eqx.Module):
        return
    for field in dataclasses.fields(tree):
        held = getattr(tree, field.name, None)
        constraint = getattr(tree, "constraints", {}).get(field.name, field.metadata.get("constraint"))
        if constraint is None:
            yield from entries(held, (*path, field.name))
        elif isinstance(held, Parameter):
            whole = held.fixed is True
            some = False if whole else held.fixed
            yield Entry((*path, field.name), held.value, held.constraint(constraint), whole, held.prior, some)
        else:
            yield Entry((*path, field.name), held, constraint, False, None)


def replace_values(tree: ModuleT, values: dict[tuple[str, ...], Any]) -> ModuleT:
    """Copy of a module with the hyperparameters at these paths set; a :class:`Parameter` keeps what it says else.

    A value that is a Parameter itself takes the place of what was there.
    """
    return rebuild(tree, values, (), keep_wrappers=True)


def all_fixed(tree: ModuleT) -> ModuleT:
    """Copy of a module of which nothing is free: every hyperparameter is fixed at its value."""
    return replace_values(tree, {e.path: Parameter(e.value, fixed=True) for e in entries(tree)})


def fill(tree: ModuleT, defaults: dict[str, Any]) -> ModuleT:
    """Copy of a module whose own hyperparameters left at None take these values, moved inside their constraints."""
    missing = [e for e in entries(tree) if len(e.path) == 1 and e.value is None]
    values = {e.path: e.constraint.inside(np.asarray(defaults[e.name], dtype=np.float64)) for e in missing}
    return replace_values(tree, values)


def plain(tree: ModuleT) -> ModuleT:
    """Copy of a module in which every :class:`Parameter` is replaced by its value: what the maths works with."""
    return rebuild(tree, {}, (), keep_wrappers=False)


def rebuild(tree: Any, values: dict[tuple[str, ...], Any], path: tuple[str, ...], keep_wrappers: bool) -> Any:
    if isinstance(tree, (tuple, list)):
        return type(tree)(rebuild(c, values, (*path, str(i)), keep_wrappers) for i, c in enumerate(tree))
    if not isinstance(tree, eqx.Module):
        return tree
    copy = object.__new__(type(tree))  # a frozen module is rebuilt field by field: __init__ may compute things
    for field in dataclasses.fields(tree):
        if not hasattr(tree, field.name):
            continue
        held, here = getattr(tree, field.name), (*path, field.name)
        if field.metadata.get("constraint") is None:
            new = rebuild(held, values, here, keep_wrappers)
        else:
            new = values.get(here, value_of(held))
            if keep_wrappers and isinstance(held, Parameter) and not isinstance(new, Parameter):
                new = Parameter(new, held.fixed, held.prior, held.bounds)
        object.__setattr__(copy, field.name, new)
    return copy


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the target."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


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


class Module(eqx.Module):
    """A module that prints as the call that makes it; its hyperparameters have no more axes than they were declared."""

    short_names: ClassVar[Mapping[str, Mapping[str, Any]] | None] = None
    """What people may type, and the arguments it stands for; None: the name of the class (:mod:`errorband.names`)."""

    def __check_init__(self):
        for field in dataclasses.fields(self):
            held, ndim = getattr(self, field.name), field.metadata.get("ndim")
            value = value_of(held)
            if ndim is not None and value is not None and np.ndim(value) > ndim:
                kind = ("a number", "a number or a vector", "a matrix")[ndim]
                raise ValueError(f"{field.name} of {type(self).__name__} must be {kind}; got shape {np.shape(value)}.")

    def __repr__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            held = getattr(self, field.name, None)
            if not field.repr or held is None or (held is field.default and not isinstance(held, np.ndarray)):
                continue
            is_value = isinstance(held, np.ndarray) or hasattr(held, "aval")
            parts.append(f"{field.name}={format_value(held) if is_value else repr(held)}")
        return f"{type(self).__name__}({', '.join(parts)})"
