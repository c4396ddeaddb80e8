"""What a fitted model has learned of each input, by asking it for predictions: so it works for every model.

:func:`relevance` says how much each input matters, :func:`partial_dependence` and :func:`class_dependence` what the
average prediction does along one input, with the posterior uncertainty of that average. All change one input at a time
and leave the others as they are, so with strongly related inputs they also ask about rows that never occur.
"""

from errorband.effects.dependence import ClassDependence, PartialDependence, class_dependence, partial_dependence
from errorband.effects.known import (
    additive,
    feature_position,
    inputs,
    label_columns,
    main_latent,
    plain_inputs,
    posterior_draws,
    process,
    quiet,
    search_log_evidence,
    searched,
)
from errorband.effects.total import relevance, significance
from errorband.estimators.hyperparameters import input_names

__all__ = [
    "ClassDependence",
    "PartialDependence",
    "additive",
    "class_dependence",
    "feature_position",
    "input_names",
    "inputs",
    "label_columns",
    "main_latent",
    "partial_dependence",
    "plain_inputs",
    "posterior_draws",
    "process",
    "quiet",
    "relevance",
    "search_log_evidence",
    "searched",
    "significance",
]
