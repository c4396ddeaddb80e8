"""What a report says about basis functions, as numbers."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from errorband.networks.export import layer_of
from errorband.networks.fourier import fourier_transform
from errorband.networks.reduction import directions
from errorband.reporting.parts.coverage import TOO_NARROW, CoverageAt
from errorband.reporting.parts.findings import Finding
from errorband.reporting.text import number, percent

MOST = 200  # frequencies that are drawn


@dataclasses.dataclass(frozen=True)
class BasisContent:
    """Basis functions of a fitted model.

    Attributes
    ----------
    kind : str
        Name of the features.
    number : int
        How many there are; of one member, in a mixture.
    learned : bool
        Whether the search moved them.
    bounded : bool
        Whether the noise was bounded by that of held ones.
    spectrum : tuple of arrays or None
        Frequency, amplitude and the ends of its 95 % interval, for a sparse spectrum of one input.
    retained : array or None
        Share of the information that 1, 2, … directions of the inputs keep, if there are several inputs.
    members : int
        Members of a mixture; 1 if it is none.
    noises : tuple of float
        Standard deviation of the noise that each member found, in the units of the targets, if the noise is Gaussian.
    disagreement : float or None
        Share of the predictive variance at held-out rows that is disagreement between members; not for classes.
    """

    kind: str
    number: int
    learned: bool
    bounded: bool
    spectrum: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None
    retained: np.ndarray | None
    members: int
    noises: tuple[float, ...]
    disagreement: float | None


def has_basis(model: Any) -> bool:
    """Whether a fitted model has basis functions in place of a kernel."""
    latents = getattr(getattr(model, "_model", None), "latents", ())
    return len(latents) == 1 and hasattr(latents[0].features, "layer")


def basis(model: Any, X_test: np.ndarray) -> BasisContent | None:
    """Return the content for a fitted model; None if it has no basis functions, or a model for each class."""
    if not has_basis(model):
        return None
    features, layer = model._model.latent.features, layer_of(model)
    members = getattr(model, "mixture_members_", [model])
    single, noise = len(members) == 1, [getattr(m._model.likelihood, "noise_variance", None) for m in members]
    spectrum = None
    if single and model.n_features_in_ == 1 and hasattr(features, "frequencies"):
        found = fourier_transform(model)
        which = np.sort(found.order()[:MOST])
        low, high = found.amplitude_interval(0.95)
        spectrum = np.abs(found.frequency[which, 0]), found.amplitude[which], low[which], high[which]
    retained = None
    if model.n_features_in_ > 1 and layer.precision is None:
        total = np.cumsum(directions(model)[0] ** 2)
        retained = np.sqrt(total / total[-1])
    return BasisContent(
        kind=type(features).__name__,
        number=features.size,
        learned=bool(features.learn),
        bounded=hasattr(model, "noise_bound_"),
        spectrum=spectrum,
        retained=retained,
        members=len(members),
        noises=tuple(float(np.sqrt(v)) * model.scaling_.y_scale for v in noise if v is not None),
        disagreement=None if single or is_classifier(model) else _disagreement(members, X_test),
    )


def _disagreement(members: Sequence[Any], X: np.ndarray) -> float:
    predictives = [m.predictive(X) for m in members]
    between = np.var([p.mean for p in predictives], axis=0)
    within = np.mean([p.variance for p in predictives], axis=0)
    return float(np.sum(between) / np.sum(between + within))


def basis_findings(model: Any, coverages: Sequence[CoverageAt], y: np.ndarray, predictive: Any) -> list[Finding]:
    """Warn of over-confidence: bands are too narrow on held-out rows, with targets y and predictions ``predictive``."""
    narrow = [c for c in coverages if c.verdict == TOO_NARROW]
    if not has_basis(model) or not narrow:
        return []
    told = [f"The {percent(narrow[-1].level)} band holds {percent(narrow[-1].observed)} of the held-out targets."]
    noise = getattr(model.likelihood_, "noise_variance", None)
    if noise is not None and model.scaling_.transform is None:
        error, of_function = np.mean((y - predictive.mean) ** 2), np.mean(np.maximum(predictive.variance - noise, 0.0))
        error, spread, claimed = (number(float(np.sqrt(v))) for v in (error, of_function, noise))
        told.append(
            f"Errors there are {error} (root mean square), where the model expects noise of {claimed} and claims to "
            f"know the function to {spread}."
        )
    sure = "too sure of the function, since what the data say about its weights holds everywhere"
    mix = 'mix several (Mixture(model, n=4), in the shell --model "mixture(mcn(50))")'
    if hasattr(model, "mixture_members_"):
        told.append("Its members agree where they should not. Take more of them")
    elif hasattr(model, "noise_bound_") or not model._model.latent.features.learn:
        told.append(f"Held basis functions cannot follow noise, which bounds it here: the model is {sure}. So {mix}")
    else:
        told.append(
            f"Basis functions that are learned may follow noise, and the model can be {sure}, its noise being right. "
            f'Bound the noise (WeightSpace(..., bound_noise=True), in the shell --model "bounded(mcn(50))") or {mix}'
        )
    text = " ".join(told) + ", or use inducing points (vfe), whose bands open."
    return [Finding("warning", "Over-confident basis functions", text)]
