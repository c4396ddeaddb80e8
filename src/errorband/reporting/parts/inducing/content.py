"""What a report says about inducing inputs, as numbers and words."""

import dataclasses
from typing import Any

import numpy as np

from errorband.parameters import Parameter
from errorband.training.certificate import InducingSweep

MAX_ROWS = 500  # of the training rows that are drawn beside the inducing inputs
LEARNED, LEFT = "learned with the hyperparameters", "left where they were put"


@dataclasses.dataclass(frozen=True)
class InducingContent:
    """Inducing inputs of a fitted model.

    Attributes
    ----------
    method : str
        Name of the approximation.
    places : array (M, D)
        The inducing inputs, in the units of the data.
    rows : array (n, D)
        Some of the training inputs, to be drawn beside them.
    moved : int
        How many had no part in the model and were moved during the search.
    reason : str
        Why this approximation with so many inducing inputs.
    fate : str
        Whether the search moved them, in words.
    sweep : InducingSweep or None
        How their number was chosen, if it was.
    """

    method: str
    places: np.ndarray
    rows: np.ndarray
    moved: int
    reason: str
    fate: str
    sweep: InducingSweep | None


def inducing(model: Any, X: np.ndarray, reason: str = "") -> InducingContent | None:
    """Return the content for a Gaussian process; None without one, without inducing inputs, or if it is several.

    ``X`` are the training inputs, ``reason`` replaces the estimator's own words on why this approximation was taken.
    """
    if model is None or len(model.members_) > 1 or not has_inducing_inputs(model):
        return None
    return _content(model, X, reason)


def inducing_of_each(model: Any, X: np.ndarray) -> tuple[InducingContent, ...]:
    """Return one entry for each two-class model of a one-vs-rest classifier; empty if they have no inducing inputs."""
    if model is None or len(model.members_) == 1 or not has_inducing_inputs(model.members_[0]):
        return ()
    return tuple(_content(member, X, "") for member in model.members_)


def has_inducing_inputs(model: Any) -> bool:
    """Whether the approximation of a fitted model has inducing inputs."""
    return getattr(model.approximation_, "inducing_inputs", None) is not None


def _content(model: Any, X: np.ndarray, reason: str) -> InducingContent:
    approximation = model.approximation_
    asked = approximation if isinstance(model.approximation, str) else model.approximation
    return InducingContent(
        method=type(approximation).__name__,
        places=np.asarray(approximation.inducing_inputs),
        rows=X[np.linspace(0, len(X) - 1, min(len(X), MAX_ROWS)).astype(int)],
        moved=int(getattr(model, "moved_inducing_", 0)),
        reason=_reason(model, reason),
        fate=_fate(asked) if model.fit_result_ is not None else LEFT,
        sweep=getattr(model, "inducing_sweep_", None),
    )


def _reason(model: Any, reason: str) -> str:
    """Why the approximation was taken and, if the number of inducing inputs was left to the fit, why so many."""
    sweep = getattr(model, "inducing_sweep_", None)
    why = reason or model.approximation_reason_ or "As asked for."
    return why if sweep is None or sweep.certificate in why else f"{why} {sweep.certificate}"


def _fate(asked: Any) -> str:
    """What the search did with the inducing inputs, from the approximation given to the estimator.

    The search learns them unless ``optimize_inputs`` or a fixed :class:`Parameter` says otherwise; of an
    approximation given by its name the fitted one says so.
    """
    given = getattr(asked, "inducing_inputs", None)
    held = given.fixed if isinstance(given, Parameter) else False
    learned = np.asarray(getattr(asked, "optimize_inputs", True)) & ~np.asarray(held)
    return LEARNED if learned.all() else f"in part {LEARNED}" if learned.any() else LEFT
