"""Fitted hyperparameters in the units of the data, as rows of a table."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from errorband.kernels import Kernel
from errorband.parameters import Unit, entries

LATENT = "latent function"  # of counts and the like: linked to the target, but not in its units
_POWERS = {1: "", 2: "²", 3: "³"}


@dataclasses.dataclass(frozen=True)
class Hyperparameter:
    """One fitted number.

    Attributes
    ----------
    part : str
        The kernel, likelihood or mean it belongs to.
    name : str
        What it is, in words. Variances in the unit of the target are shown as standard deviations.
    kind : str
        Name of the field it comes from, e.g. ``lengthscale``.
    value : float
        In the unit below.
    unit : str
        Unit of the value; empty for a plain number.
    column : int or None
        The input it belongs to, if to one.
    """

    part: str
    name: str
    kind: str
    value: float
    unit: str
    column: int | None = None

    def __post_init__(self):
        object.__setattr__(self, "value", float(self.value))


class Hyperparameters(tuple):
    """Rows of :class:`Hyperparameter` that print as a table."""

    def __repr__(self) -> str:
        cells = [("hyperparameter", "value", "unit", "of")]
        cells += [(h.name, f"{h.value:.4g}", h.unit, h.part) for h in self]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [f"{n:<{widths[0]}}  {v:>{widths[1]}}  {u:<{widths[2]}}  {p}" for n, v, u, p in cells]
        return "\n".join(line.rstrip() for line in lines)


def hyperparameters(
    model: Any, target: str = "target", names: Sequence[str] | None = None, classes: Sequence[Any] | None = None
) -> Hyperparameters:
    """All hyperparameters of a fitted model that are single numbers or one per input.

    ``names`` are those of the inputs, if the model does not know them, ``classes`` what people call the classes.
    """
    names = input_names(model) if names is None else names
    if len(model.members_) > 1:  # one model for each class, or for each target
        targets = [f"{target} {k}" for k in range(len(model.members_))]
        labels = getattr(model, "classes_", targets) if classes is None else classes
        return Hyperparameters(
            dataclasses.replace(h, part=f"{h.part}, {label}")
            for label, own in zip(labels, model.members_, strict=True)
            for h in hyperparameters(own, target, names)
        )
    transform = model.scaling_.transform
    target = target if transform is None else f"{type(transform).__name__} of {target}"
    likelihood, latents = model.likelihood_, model.latents_
    seen: dict[str, int] = {}
    kernels, means = [], []
    for l, (name, latent) in enumerate(latents.items()):
        in_units = likelihood.location_scale and likelihood.latent_in_units(l)
        rows = _Rows(list(names), target if in_units else LATENT, "" if len(latents) == 1 else f" of {name}", seen)
        kernels += rows.of_kernel(latent.kernel, list(range(len(names))))
        means += rows.of_mean(latent.mean)
    return Hyperparameters([*kernels, *_Rows(list(names), target, "", seen).of(likelihood), *means])


def input_names(model: Any) -> list[str]:
    """Column names seen in ``fit``, or x0, x1, … if there were none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


@dataclasses.dataclass(frozen=True)
class _Rows:
    names: list[str]
    target: str
    suffix: str
    seen: dict[str, int]

    def of_kernel(
        self, kernel: Kernel, columns: Any, carries: bool = True, as_they_are: bool = True
    ) -> Iterator[Hyperparameter]:
        """Rows of a kernel and its children.

        ``columns`` are the inputs it sees, None after a projection; ``carries`` says whether its variance has the unit
        of the target, ``as_they_are`` whether the inputs have theirs.
        """
        if columns is not None and kernel.active_dims is not None:
            columns = [columns[int(d)] for d in kernel.active_dims]
        yield from self.of(kernel, columns, carries, as_they_are)
        below, _ = kernel.child_columns(columns, len(columns or ()))
        passed = as_they_are and kernel.passes_units
        for name, child in kernel.children().items():
            yield from self.of_kernel(child, below, carries and kernel.carries_unit(name), passed)

    def of(
        self, module: Any, columns: Any = None, carries: bool = True, as_they_are: bool = True
    ) -> Iterator[Hyperparameter]:
        """Rows of the hyperparameters of a module itself."""
        part = self._part(module)
        declared = {field.name: field.metadata for field in dataclasses.fields(module)}
        for entry in entries(module):
            if len(entry.path) > 1:
                continue
            value, unit, kind = np.asarray(entry.value, dtype=float), entry.unit, entry.name
            if value.ndim > 1 or (value.ndim == 1 and (columns is None or len(value) != len(columns))):
                continue
            label = declared[kind].get("label") or kind.replace("_", " ").replace("lengthscale", "length-scale")
            if not carries:  # in a product variances are known only together: one of them has the unit
                unit = Unit(x=unit.x)
            if not as_they_are:
                unit = Unit(y=unit.y)
            if unit.y == 2:
                value, unit, label = np.sqrt(value), Unit(x=unit.x // 2, y=1), _of_a_spread(label)
            per_input = columns is not None and declared[kind].get("ndim") != 0
            for j, v in self._each(value, columns, per_input):
                whose = f" of {self.names[j]}" if j is not None else ", all inputs" if per_input else ""
                yield Hyperparameter(part, label + whose, kind, v, self._text(unit, j, columns), j)

    def of_mean(self, mean: Any) -> Iterator[Hyperparameter]:
        beta = np.asarray([] if mean.coefficients is None else mean.coefficients, dtype=float)
        part = f"{type(mean).__name__} mean{self.suffix}"
        for j, b in enumerate(beta, start=-1):
            name, unit = ("level", Unit(y=1)) if j < 0 else (f"slope of {self.names[j]}", Unit(x=-1, y=1))
            yield Hyperparameter(part, name, "coefficients", b, self._text(unit, j, None), None if j < 0 else j)

    def _each(self, value: np.ndarray, columns: Any, per_input: bool) -> list[tuple[int | None, Any]]:
        """Entries of a value with the input each belongs to; one number for several inputs belongs to none."""
        if value.ndim == 1:
            return list(zip(columns, value, strict=True))
        return [(columns[0] if per_input and len(columns) == 1 else None, value)]

    def _part(self, module: Any) -> str:
        name = type(module).__name__
        self.seen[name] = self.seen.get(name, 0) + 1
        return (name if self.seen[name] == 1 else f"{name} {self.seen[name]}") + self.suffix

    def _text(self, unit: Unit, j: int | None, columns: Any) -> str:
        """A unit in words, e.g. "target per age"."""
        if j is None and columns is not None and len(columns) == 1:
            j = columns[0]
        of_input = "" if unit.x == 0 else ("inputs" if j is None else self.names[j])
        of_input += _POWERS.get(abs(unit.x), f"^{abs(unit.x)}") if unit.x else ""
        of_target = self.target if unit.y else ""
        if unit.x < 0:
            return f"{of_target} per {of_input}".strip()
        return " · ".join(text for text in (of_target, of_input) if text)


def _of_a_spread(label: str) -> str:
    """What the root of a variance is called."""
    named = "prior variance" if label == "variance" else label
    return named.removesuffix("variance") + "standard deviation" if named.endswith("variance") else named
