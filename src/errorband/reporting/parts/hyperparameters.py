"""Fitted hyperparameters in the units of the data, as rows of a table."""

import copy
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from errorband.effects import additive, input_names
from errorband.kernels import Kernel, Linear, Periodic, Polynomial, Product, Projection
from errorband.parameters import entries

# Numbers without a unit, whatever the data: they are shown as they are.
_DIMENSIONLESS = {
    "alpha", "power", "bias_lengthscale", "time", "offset", "df", "threshold", "variance_ratio", "outlier_fraction",
    "shape", "dispersion", "precision", "error", "bias",
}  # fmt: skip
STANDARDISED = "standardised units"
LATENT = "latent function"  # of counts and the like: linked to the target, but not in its units


@dataclasses.dataclass(frozen=True)
class Hyperparameter:
    """One fitted number.

    Attributes
    ----------
    part : str
        The kernel, likelihood or mean it belongs to.
    name : str
        What it is, in words.
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


def hyperparameters(model: Any, target: str = "target", names: list[str] | None = None) -> list[Hyperparameter]:
    """All hyperparameters of a fitted model that are single numbers or one per input.

    ``names`` are those of the inputs, if the model does not know them.
    """
    names = input_names(model) if names is None else names
    if len(model.members_) > 1:  # one model for each class
        return [
            dataclasses.replace(h, part=f"{h.part}, {label}")
            for label, own in zip(model.classes_, model.members_, strict=True)
            for h in hyperparameters(own, target, names)
        ]
    reader = _Reader(model, target if additive(model) else LATENT, names)
    columns = np.arange(model.n_features_in_)
    kernels, means = [], []
    for l, (name, latent) in enumerate(model.latents_.items()):
        own = reader if model.likelihood_.latent_in_units(l) or not additive(model) else reader.without_units()
        of = "" if len(model.latents_) == 1 else f" of {name}"
        kernels += _of(of, own.kernel(latent.kernel, columns, carries_target=True))
        means += _of(of, own.mean(latent.mean))
    return [*kernels, *reader.likelihood(model.likelihood_), *means]


def _of(suffix: str, rows: Iterable[Hyperparameter]) -> list[Hyperparameter]:
    """Rows whose part has the name of a latent function added."""
    return [dataclasses.replace(row, part=row.part + suffix) for row in rows]


class _Reader:
    def __init__(self, model: Any, target: str, names: list[str]):
        scaling = model.scaling_
        transform = scaling.transform
        self.names, self.target = names, target if transform is None else f"{type(transform).__name__} of {target}"
        self.x_scale, self.x_shift = np.asarray(scaling.x_scale), np.asarray(scaling.x_shift)
        self.y_scale, self.y_shift = float(scaling.y_scale), float(scaling.y_shift)
        self.standardised = bool(np.any(self.x_scale != 1) or self.y_scale != 1)
        self.seen: dict[str, int] = {}

    def without_units(self) -> "_Reader":
        """A reader for a latent function that is not in the units of the target, such as a log noise."""
        other = copy.copy(self)
        other.target, other.y_scale, other.y_shift = LATENT, 1.0, 0.0
        return other

    # ------------------------------------------------------------------ kernels
    def kernel(self, kernel: Kernel, columns: np.ndarray | None, carries_target: bool) -> Iterator[Hyperparameter]:
        """Rows of a kernel and its children. ``columns`` are those of the data it sees; None after a projection."""
        if columns is not None and kernel.active_dims is not None:
            columns = columns[np.asarray(kernel.active_dims, dtype=int)]
        part = self._part(kernel)
        for entry in entries(kernel):
            if len(entry.path) == 1:
                yield from self._kernel_entry(kernel, part, entry.name, entry.value, columns, carries_target)
        # In a product the variances are known only together, so that none of them has the target's unit alone.
        together = carries_target and not isinstance(kernel, Product)
        for child in kernel.children().values():
            yield from self.kernel(child, None if isinstance(kernel, Projection) else columns, together)

    def _kernel_entry(
        self, kernel: Kernel, part: str, kind: str, value: Any, columns: np.ndarray | None, carries_target: bool
    ) -> Iterator[Hyperparameter]:
        value = np.asarray(value, dtype=float)
        if kind == "variance" and isinstance(kernel, Linear) and columns is not None:
            for j, v in self._per_input(value, columns):
                slope = np.sqrt(v) * (self.y_scale if carries_target else 1.0) / self.x_scale[j]
                yield Hyperparameter(
                    part, f"prior spread of the slope of {self.names[j]}", kind, slope, self._slope_unit(j), j
                )
        elif kind == "variance" and value.ndim == 0:
            plain = not carries_target or isinstance(kernel, Polynomial)
            if plain:
                yield self._as_is(part, kind, float(value))
            else:
                spread = float(np.sqrt(value)) * self.y_scale
                yield Hyperparameter(part, "prior standard deviation", kind, spread, self.target)
        elif kind in ("lengthscale", "period", "radius") and columns is not None:
            yield from self._lengths(kernel, part, kind, value, columns)
        elif value.ndim == 0:
            yield self._as_is(part, kind, float(value))

    def _lengths(
        self, kernel: Kernel, part: str, kind: str, value: np.ndarray, columns: np.ndarray
    ) -> Iterator[Hyperparameter]:
        label = {"lengthscale": "length-scale"}.get(kind, kind)
        if kind == "lengthscale" and isinstance(kernel, Periodic):  # an angle: roughness within the period
            for j, v in self._per_input(value, columns):
                yield Hyperparameter(part, f"roughness of {self.names[j]}", "roughness", v, "", j)
        elif value.ndim == 0 and len(columns) > 1 and self.standardised:
            yield Hyperparameter(part, f"{label}, all inputs", kind, float(value), "standard deviations of each input")
        elif value.ndim == 0 and len(columns) > 1:
            yield Hyperparameter(part, f"{label}, all inputs", kind, float(value), "")
        else:
            for j, v in self._per_input(value, columns):
                yield Hyperparameter(part, f"{label} of {self.names[j]}", kind, v * self.x_scale[j], self.names[j], j)

    # ------------------------------------------------------------------ likelihood and mean
    def likelihood(self, likelihood: Any) -> Iterator[Hyperparameter]:
        part = self._part(likelihood)
        for entry in entries(likelihood):
            value = np.asarray(entry.value, dtype=float)
            if value.ndim > 0:
                continue
            kind, label = entry.path[-1], entry.path[-1].replace("_", " ")
            if kind.endswith("variance"):
                name = label.removesuffix("variance") + "standard deviation"
                yield Hyperparameter(part, name, kind, float(np.sqrt(value)) * self.y_scale, self.target)
            elif kind.endswith(("scale", "width")):
                yield Hyperparameter(part, label, kind, float(value) * self.y_scale, self.target)
            else:
                yield self._as_is(part, kind, float(value))

    def mean(self, mean: Any) -> Iterator[Hyperparameter]:
        beta = np.asarray(mean.coefficients if mean.coefficients is not None else [], dtype=float)
        if beta.size == 0:
            return
        part = f"{type(mean).__name__} mean"
        slopes = beta[1:]
        level = beta[0] - float(slopes @ (self.x_shift / self.x_scale)[: len(slopes)]) if len(slopes) else beta[0]
        yield Hyperparameter(part, "level", "coefficients", self.y_scale * level + self.y_shift, self.target)
        for j, b in enumerate(slopes):
            slope = b * self.y_scale / self.x_scale[j]
            yield Hyperparameter(part, f"slope of {self.names[j]}", "coefficients", slope, self._slope_unit(j), j)

    # ------------------------------------------------------------------ helpers
    def _part(self, module: Any) -> str:
        name = type(module).__name__
        self.seen[name] = self.seen.get(name, 0) + 1
        return name if self.seen[name] == 1 else f"{name} {self.seen[name]}"

    def _per_input(self, value: np.ndarray, columns: np.ndarray) -> Iterator[tuple[int, float]]:
        return zip(columns.tolist(), np.broadcast_to(value, (len(columns),)).tolist(), strict=True)

    def _slope_unit(self, j: int) -> str:
        return f"{self.target} per {self.names[j]}"

    def _as_is(self, part: str, kind: str, value: float) -> Hyperparameter:
        unit = STANDARDISED if self.standardised and kind not in _DIMENSIONLESS else ""
        return Hyperparameter(part, kind.replace("_", " "), kind, value, unit)
