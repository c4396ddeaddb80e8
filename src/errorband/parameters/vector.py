"""The free hyperparameters of a module as one vector of unconstrained numbers, for the optimiser."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.parameters.constraints import Ordered
from errorband.parameters.module import Entry, ModuleT, broadcasts, entries, rebuild
from errorband.parameters.parameter import format_value


def check(tree: eqx.Module) -> None:
    """Raise ValueError for a hyperparameter outside its constraint, or of which no such part can be fixed."""
    for entry in entries(tree):
        if entry.value is not None and entry.some_fixed:
            _check_part(tree, entry)
        if entry.value is not None and not entry.constraint.valid(entry.value):
            raise ValueError(
                f"{entry.name}={format_value(entry.value)} of {type(tree).__name__} must be {entry.constraint}."
            )


def _check_part(tree: eqx.Module, entry: Entry) -> None:
    shape, part = np.shape(entry.value), np.shape(entry.some_fixed)
    if not broadcasts(part, shape):
        raise ValueError(
            f"{entry.name} of {type(tree).__name__} has shape {shape}; fixed, of shape {part}, does not broadcast to "
            "it. Give True, False, or one of these for each entry."
        )
    if isinstance(entry.constraint, Ordered):
        raise ValueError(f"{entry.name} of {type(tree).__name__} is {entry.constraint}: fix all of it or nothing.")


def pack(tree: eqx.Module) -> np.ndarray:
    """Unconstrained vector of the free hyperparameters of a module, all of whose values are set."""
    raw = [np.asarray(e.constraint.inverse(np.asarray(e.value)))[e.free] for e in entries(tree) if not e.fixed]
    return np.concatenate(raw) if raw else np.zeros(0)


def units(tree: eqx.Module) -> np.ndarray:
    """How far the value moves with each entry of the vector, where that is the same everywhere; else 1."""
    each = [np.full(int(np.sum(e.free)), e.constraint.unit) for e in entries(tree) if not e.fixed]
    return np.concatenate(each) if each else np.zeros(0)


class Packing:
    """Where the free hyperparameters of a template are: in the vector, and in the module of plain values.

    Found once for a template. The vector of an optimiser is a NumPy array, for which nothing is compiled; JAX's may be
    traced.
    """

    def __init__(self, template: Any):
        self._free, start = [], 0
        for e in entries(template):
            if not e.fixed:
                size = int(np.sum(e.free))
                free = None if size == e.free.size else e.free  # None: all of it
                self._free.append((e, free, slice(start, start + size)))
                start += size
        marked = rebuild(template, {e.path: _Place(i) for i, (e, *_) in enumerate(self._free)}, (), keep_wrappers=False)
        self._leaves, self._structure = jax.tree.flatten(marked)

    def unpack(self, vector: Any) -> Any:
        """Module of plain values."""
        values = [_placed(e.value, free, e.constraint.forward(vector[part])) for e, free, part in self._free]
        leaves = [values[leaf.index] if isinstance(leaf, _Place) else leaf for leaf in self._leaves]
        return jax.tree.unflatten(self._structure, leaves)

    def pull_back(self, vector: np.ndarray, bar: Any) -> np.ndarray:
        """From derivatives in the module of plain values to derivatives in the vector, both on the host."""
        found = np.zeros(len(vector))
        for place, leaf in zip(self._leaves, self._structure.flatten_up_to(bar), strict=True):
            if isinstance(place, _Place):
                e, free, part = self._free[place.index]
                leaf = np.asarray(leaf)
                found[part] = e.constraint.pull_back(vector[part], leaf.ravel() if free is None else leaf[free])
        return found


@dataclasses.dataclass(frozen=True)
class _Place:
    """Stands for the value of a free hyperparameter."""

    index: int


def _placed(value: Any, free: np.ndarray | None, part: Any) -> Any:
    """The value with its free entries, or all of them, set to these."""
    if free is None:
        return part.reshape(np.shape(value))
    if not isinstance(part, np.ndarray):
        return jnp.asarray(value).at[free].set(part)
    whole = np.array(value, float)
    whole[free] = part
    return whole


def unpack(template: ModuleT, vector: Any) -> ModuleT:
    """Module of plain values for an unconstrained vector. Traceable: only the template's structure is used."""
    return Packing(template).unpack(vector)


def log_prior(template: eqx.Module, vector: Any) -> Any:
    """Log prior density of the values (not of the unconstrained numbers), summed over hyperparameters with a prior."""
    fitted = {e.path: e.value for e in entries(unpack(template, vector))}
    terms = [jnp.sum(e.prior.log_density(fitted[e.path])) for e in entries(template) if e.prior and not e.fixed]
    return sum(terms, start=jnp.zeros(()))


def vector_names(tree: eqx.Module) -> list[str]:
    """A name for each entry of :func:`pack`'s vector."""
    names = []
    for e in entries(tree):
        if not e.fixed:
            shape = np.shape(e.value)
            names += [e.name + (f"{list(i)}" if i else "") for i in np.ndindex(*shape) if e.free[i]]
    return names
