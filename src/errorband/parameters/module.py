"""Hyperparameters: where they live, what values they may take, and what is believed of them.

A kernel, likelihood or mean is a frozen module whose hyperparameters are fields declared with :func:`hyperparameter`,
which names the *constraint*. A value may be given plainly (``lengthscale=0.3``), left out (``None``: chosen from the
data at ``fit``) or wrapped in a :class:`Parameter` to fix it, bound it or give it a prior.
"""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

import equinox as eqx
import numpy as np

from errorband.parameters.constraints import Real
from errorband.parameters.parameter import Parameter, format_value, in_units, value_of
from errorband.parameters.units import PURE, Change, Unit
from errorband.priors import Prior

ModuleT = TypeVar("ModuleT", bound=eqx.Module)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One hyperparameter of a module tree, as :func:`entries` finds it; ``some_fixed``: which of its numbers are."""

    path: tuple[str, ...]
    value: Any
    constraint: Real
    fixed: bool
    prior: Prior | None
    some_fixed: Any = False
    unit: Unit = PURE

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
            own = held.constraint(constraint)
            yield Entry((*path, field.name), held.value, own, whole, held.prior, some, unit_of(tree, field) or PURE)
        else:
            yield Entry((*path, field.name), held, constraint, False, None, unit=unit_of(tree, field) or PURE)


def unit_of(module: Any, field: Any) -> Any:
    """Unit of a field: the module's own word in ``units``, or as declared; None if it holds no number with a unit."""
    return getattr(module, "units", {}).get(field.name, field.metadata.get("unit"))


def replace_values(tree: ModuleT, values: dict[tuple[str, ...], Any]) -> ModuleT:
    """Copy of a module with the hyperparameters at these paths set; a :class:`Parameter` keeps what it says else.

    A value that is a Parameter itself takes the place of what was there.
    """
    return rebuild(tree, values, (), keep_wrappers=True)


def all_fixed(tree: ModuleT) -> ModuleT:
    """Copy of a module of which nothing is free: every hyperparameter is fixed at its value."""
    return replace_values(tree, {e.path: Parameter(e.value, fixed=True) for e in entries(tree)})


def fill(tree: ModuleT, defaults: dict[str, Any]) -> ModuleT:
    """Copy of a module whose own hyperparameters left at None take these values, moved inside their constraints.

    A default that is a :class:`Parameter` says more than a value, unless the user did.
    """
    values = {}
    for e in entries(tree):
        if len(e.path) == 1 and e.value is None:
            default = defaults[e.name]
            value = e.constraint.inside(np.asarray(value_of(default), dtype=np.float64))
            said = isinstance(getattr(tree, e.name), Parameter) or not isinstance(default, Parameter)
            values[e.path] = value if said else dataclasses.replace(default, value=value)
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


def with_fields(module: ModuleT, **new: Any) -> ModuleT:
    """Copy of a frozen module with some fields replaced. ``__init__`` is not run: it may compute things."""
    copy = object.__new__(type(module))
    for field in dataclasses.fields(module):
        if hasattr(module, field.name):
            object.__setattr__(copy, field.name, new.get(field.name, getattr(module, field.name)))
    return copy


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the target."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


class Module(eqx.Module):
    """A module that prints as the call that makes it; its hyperparameters have no more axes than they were declared."""

    short_names: ClassVar[Mapping[str, Mapping[str, Any]] | None] = None
    """What people may type, and the arguments it stands for; None: the name of the class (:mod:`errorband.names`)."""

    # Equinox's own turns bound methods into pytrees, which nothing here needs, in Python and at every look at a field:
    # a fifth of the time of a small evaluation.
    __getattribute__ = object.__getattribute__

    def __check_init__(self):
        for field in dataclasses.fields(self):
            held, ndim = getattr(self, field.name), field.metadata.get("ndim")
            value = value_of(held)
            if ndim is not None and value is not None and np.ndim(value) > ndim:
                kind = ("a number", "a number or a vector", "a matrix")[ndim]
                raise ValueError(f"{field.name} of {type(self).__name__} must be {kind}; got shape {np.shape(value)}.")

    # ------------------------------------------------------------------ as scikit-learn knows it
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments this was made with; with ``deep`` also those of its parts, as ``left__lengthscale``.

        Parameters
        ----------
        deep : bool
            Whether to add those of modules among the arguments.
        """
        own = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        nested = {name: part.get_params() for name, part in own.items() if deep and isinstance(part, Module)}
        return own | {f"{name}__{key}": value for name, params in nested.items() for key, value in params.items()}

    def set_params(self, **params: Any) -> Self:
        """Return a copy with other arguments; this one is frozen and stays as it is.

        Parameters
        ----------
        **params
            By the names of :meth:`get_params`.
        """
        own, parts = self.get_params(deep=False), {}
        for name, value in params.items():
            first, _, rest = name.partition("__")
            if first not in own:
                raise ValueError(
                    f"{type(self).__name__} has no argument {first!r}; it has {', '.join(map(repr, own))}."
                )
            if rest:
                parts.setdefault(first, {})[rest] = value
            else:
                own[first] = value
        return type(self)(**own | {name: set_params(own[name], name, new) for name, new in parts.items()})

    def __sklearn_clone__(self) -> Self:
        return self  # frozen: nobody can change it

    # ------------------------------------------------------------------ units
    def in_units(self, change: Change) -> Self:
        """Copy that says of data in other units what this one says of the data as they are."""
        new = {}
        for field in dataclasses.fields(self):
            held, unit = getattr(self, field.name, None), unit_of(self, field)
            if unit is not None:
                new[field.name] = in_units(held, unit, change)
            elif isinstance(held, Module):
                new[field.name] = held.in_units(change)
            elif isinstance(held, tuple) and any(isinstance(part, Module) for part in held):
                new[field.name] = tuple(part.in_units(change) for part in held)
        return with_fields(self, **new)

    def __repr__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            held = getattr(self, field.name, None)
            if not field.repr or held is None or (held is field.default and not isinstance(held, np.ndarray)):
                continue
            is_value = isinstance(held, np.ndarray | np.floating) or hasattr(held, "aval")
            parts.append(f"{field.name}={format_value(held) if is_value else repr(held)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def set_params(part: Any, name: str, params: dict[str, Any]) -> Any:
    """An argument with some of its own arguments replaced: a module, or a dictionary of modules by name."""
    if isinstance(part, dict):
        new = {first: {} for first in part}
        for key, value in params.items():
            first, _, rest = key.partition("__")
            if first not in part:
                raise ValueError(f"{name} has no entry {first!r}; it has {', '.join(map(repr, part))}.")
            new[first][rest] = value
        return {first: p[""] if "" in (p := new[first]) else set_params(m, first, p) for first, m in part.items()}
    if not isinstance(part, Module):
        raise ValueError(f"{name}={part!r} has no argument {next(iter(params))!r}: give {name} as an object first.")
    return part.set_params(**params) if params else part
