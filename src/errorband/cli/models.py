"""The models that the options name: a Gaussian process and its parts, or an estimator of its own."""

import dataclasses
from typing import Any, cast

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from errorband.approximations import APPROXIMATIONS
from errorband.cli.failures import ExitCode, Problem
from errorband.cli.settings import Settings
from errorband.estimators import ESTIMATORS, GPClassifier, GPRegressor, Mixture
from errorband.estimators.candidates import is_auto
from errorband.estimators.spec import KERNEL_NAMES, NOISE_NAMES, TRANSFORM_NAMES, class_likelihood_names
from errorband.features import FEATURES
from errorband.likelihoods import LIKELIHOODS
from errorband.names import Names
from errorband.tables import TableEncoder
from errorband.tables.errors import closest_names, show_cell, show_names

MODEL_NAMES = Names(
    "model",
    (APPROXIMATIONS, FEATURES, ESTIMATORS, {"Mixture": Mixture}),
    accepts=lambda cls: getattr(cls, "weight_space", True),
    nested=(FEATURES,),
    also=("auto", "exact"),
)
ANY_LIKELIHOOD = Names("likelihood", (LIKELIHOODS,), supplied={"n_classes": 3})


def check_names(settings: Settings) -> None:
    """Refuse a name that stands for nothing, before the table is read."""
    model_named(settings.model, settings.inducing)
    if settings.kernel is not None and not is_auto(settings.kernel):
        _spoken(KERNEL_NAMES, settings.kernel)
    if settings.likelihood is not None and not is_auto(settings.likelihood):
        _spoken(ANY_LIKELIHOOD, settings.likelihood)
    if settings.target_transform is not None:
        _spoken(TRANSFORM_NAMES, settings.target_transform)


def model_named(name: str, inducing: str | None = None) -> Any:
    """Return what --model and --inducing stand for: "auto", "exact", an approximation, features or an estimator.

    A mixture has an approximation or features in place of its model, which :func:`unfitted` makes of them.
    """
    if name.lower() in ("auto", "exact"):
        if inducing is not None:
            raise Problem(
                f"--inducing {inducing} needs a model with inducing points, so add --model fitc or --model vfe.",
                ExitCode.USAGE,
            )
        return name.lower()
    if inducing is None:
        made = _spoken(MODEL_NAMES, name)
        return _mixture(made, name) if isinstance(made, Mixture) else made
    if "(" in name:
        raise Problem(f"--model {name} and --inducing {inducing} both speak of numbers, so give one.", ExitCode.USAGE)
    made = _spoken(MODEL_NAMES, name)
    if isinstance(made, BaseEstimator):
        raise Problem(f"--model {name} has no inducing points, so leave out --inducing.", ExitCode.USAGE)
    finds_number = hasattr(made, "inducing_inputs")  # only the number of inducing inputs can be left to the search
    if inducing == "auto" and finds_number:
        return _spoken(MODEL_NAMES, f"{name}(auto)")
    if not (inducing.isdecimal() and int(inducing) > 0):
        choice = " or auto" if finds_number else ""
        raise Problem(f"--inducing {inducing} is not a number above 0{choice}, so give one.", ExitCode.USAGE)
    return _spoken(MODEL_NAMES, f"{name}({inducing})")


def _mixture(mixture: Any, name: str) -> Any:
    """The mixture, if it is one of models that can be mixed: each with basis functions or inducing points."""
    mixed = mixture.model
    mixed = _spoken(MODEL_NAMES, mixed) if isinstance(mixed, str) and mixed not in ("auto", "exact") else mixed
    if isinstance(mixed, str | int | float | list | BaseEstimator | None):
        raise Problem(
            f"--model {name} mixes models that differ in what they draw, so write one like mixture(mcn(50)) or "
            "mixture(bounded(ssgp(25)), n=4).",
            ExitCode.USAGE,
        )
    return mixture.set_params(model=mixed)


def unfitted(settings: Settings, encoder: TableEncoder, model: Any, **options: Any) -> Any:
    """Return the estimator that the options name, not fitted yet.

    Parameters
    ----------
    settings : Settings
        The options.
    encoder : TableEncoder
        Knows the task and the columns.
    model : "auto", "exact", Approximation, Features or estimator
        What :func:`model_named` found, or what a plan put in its place.
    **options
        Arguments that an estimator gets if it has them: optimizer, random_state, verbose.
    """
    if isinstance(model, Mixture):
        each, mixture = unfitted(settings, encoder, model.model, **options), cast(Any, clone(model))
        return mixture.set_params(model=each, random_state=options.get("random_state"))
    classes = encoder.task == "classification"
    if isinstance(model, BaseEstimator):
        model = _for_task(model, settings, classes)
        if not (is_classifier if classes else is_regressor)(model):
            holds, others = ("classes", "numbers") if classes else ("numbers", "classes")
            raise Problem(
                f"--model {settings.model} is for {others} and the target holds {holds}, so choose from "
                f"{_names_of_models(classes).listed()}.",
                ExitCode.USAGE,
            )
        estimator: Any = model
    else:
        estimator = (GPClassifier if classes else GPRegressor)(approximation=model)
    known = estimator.get_params(deep=False)
    asked = {"kernel": _kernel(settings, encoder), "likelihood": _likelihood(settings, encoder)}
    asked |= {"multi_class": settings.multi_class and settings.multi_class.replace("-", "_")}
    asked |= {"target_transform": settings.target_transform, "exposure": _exposure(settings, encoder)}
    asked = {name: value for name, value in asked.items() if value is not None}
    if strange := [name for name in asked if name not in known]:
        option = f"--{strange[0].replace('_', '-')}"
        kind = f"a model of {'classes' if classes else 'numbers'}"
        what = f"--model {settings.model}" if isinstance(model, BaseEstimator) else kind
        raise Problem(f"{option} means nothing to {what}, so leave it out.", ExitCode.USAGE)
    if settings.weight is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise Problem(f"--weight means nothing to --model {settings.model}, so leave it out.", ExitCode.USAGE)
    return estimator.set_params(**asked, **{name: value for name, value in options.items() if name in known})


def _for_task(model: Any, settings: Settings, classes: bool) -> Any:
    """The estimator of the same name for this task, if there are two; members of a committee that suit the task."""
    if (is_classifier if classes else is_regressor)(model):
        return model
    try:
        other = _names_of_models(classes)(settings.model)
    except ValueError:
        return model
    if classes and not is_classifier(other) and "estimator" in other.get_params(deep=False):
        return other.set_params(estimator=GPClassifier())
    return other


def _names_of_models(classes: bool) -> Names:
    """Names of models for this task."""
    other = RegressorMixin if classes else ClassifierMixin
    return dataclasses.replace(MODEL_NAMES, accepts=lambda cls: MODEL_NAMES.accepts(cls) and not issubclass(cls, other))


def _kernel(settings: Settings, encoder: TableEncoder) -> Any:
    """The kernel, with columns of the table in place of those that were made from them."""
    if settings.kernel is None or is_auto(settings.kernel):
        return settings.kernel

    def dims(given: Any) -> list[str]:
        named = given if isinstance(given, list) else [given]
        return [feature for name in named for feature in _inputs(name, encoder)]

    return _spoken(dataclasses.replace(KERNEL_NAMES, converted={"active_dims": dims}), settings.kernel)


def _inputs(name: Any, encoder: TableEncoder) -> list[str]:
    """Inputs made from a column of the table; of a date the days, since its cycles are for kernels on all inputs."""
    for column in encoder.columns:
        if column.name == name:
            return column.feature_names[:1] if column.kind == "date" else column.feature_names
    if name in encoder.feature_names:
        return [name]
    known = [column.name for column in encoder.columns]
    near = closest_names(str(name), known, limit=1)
    hint = f" (closest: {show_cell(near[0])})" if near else ""
    raise Problem(
        f"--kernel asks for the column {show_cell(name)}{hint}, but the inputs are {show_names(known)}, so name one of "
        "these, in quotes if it holds blanks.",
        ExitCode.USAGE,
    )


def _exposure(settings: Settings, encoder: TableEncoder) -> str | None:
    """The column of the exposure, if it is one of numbers."""
    if settings.exposure is not None and settings.exposure not in encoder.feature_names:
        numbers = show_names(column.name for column in encoder.columns if column.kind == "number")
        raise Problem(
            f"--exposure {settings.exposure} is not an input that holds numbers, so choose from {numbers}.",
            ExitCode.USAGE,
        )
    return settings.exposure


def _likelihood(settings: Settings, encoder: TableEncoder) -> str | None:
    """The likelihood's name, if it suits the task."""
    if settings.likelihood is None:
        return None
    classes = encoder.task == "classification"
    if is_auto(settings.likelihood) and not classes:
        return settings.likelihood
    _spoken(class_likelihood_names(max(len(encoder.labels), 2)) if classes else NOISE_NAMES, settings.likelihood)
    return settings.likelihood


def _spoken(names: Names, text: str) -> Any:
    """The object of this name; what is wrong with it is said as of an option."""
    try:
        return names(text)
    except ValueError as error:
        raise Problem(str(error), ExitCode.USAGE) from error
