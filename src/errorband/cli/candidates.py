"""What ``errorband compare`` compares: Gaussian processes by the options that fit them, and simple baselines."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from errorband.cli.models import check_names, model_named, unfitted
from errorband.cli.planning import JOINT, n_searches
from errorband.cli.settings import Settings
from errorband.effects import searched
from errorband.estimators import Mixture
from errorband.reporting.classification.baselines import CLASS_BASELINES, ClassBaseline, probabilities
from errorband.reporting.regression.baselines import BASELINES, Baseline
from errorband.tables import TableEncoder
from errorband.training import LBFGS

KERNELS, CLASS_KERNELS = ("se", "matern32", "matern52", "se+linear"), ("se", "matern52", "se+linear")
NOISES, COUNT_NOISES = ("student-t", "outlier-mixture", "twinned"), ("poisson", "negative-binomial")
SMALL = 30  # on average: counts beyond look normal


@dataclasses.dataclass(frozen=True)
class Method:
    """A way to predict.

    Attributes
    ----------
    name : str
        For people.
    predict : callable
        A function of training inputs, targets, new inputs and weights of training rows (or None) that returns the
        predictive distribution of the new targets, or the probabilities of the classes. It raises ValueError where it
        is not for these rows.
    options : str
        What makes ``errorband fit`` fit it; None if it cannot.
    searches : int
        How many searches of hyperparameters it takes.
    """

    name: str
    predict: Callable[[Any, np.ndarray, Any, Any], Any]
    options: str | None = None
    searches: int = 0


@dataclasses.dataclass(frozen=True)
class Choices:
    """What to compare, as typed: names separated by commas; None is a choice of ours."""

    kernels: str | None = None
    likelihoods: str | None = None
    models: str | None = None


def listed(text: str) -> list[str]:
    """Names separated by commas; those in brackets belong to a name.

    Examples
    --------
    >>> listed("se, matern52 + periodic(period=7, column=day)")
    ['se', 'matern52 + periodic(period=7, column=day)']
    >>> listed("mixture(bounded(mcn(50)), n=4), vfe(8, features=multi-scale())")
    ['mixture(bounded(mcn(50)), n=4)', 'vfe(8, features=multi-scale())']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in map(str.strip, parts) if part]


def settings_of(choices: Choices, encoder: TableEncoder, y: np.ndarray, base: Settings) -> list[Settings]:
    """The options of each Gaussian process: all kernels, and other noise and models with the first of them.

    A rate is asked for with an exposure, so that all are of counts then, and a target that is transformed is no count.
    """
    classes = encoder.task == "classification"
    kernels = listed(choices.kernels) if choices.kernels else list(CLASS_KERNELS if classes else KERNELS)
    if choices.likelihoods is not None:
        noises = listed(choices.likelihoods)
    elif classes:
        noises = []
    else:
        noises = list(COUNT_NOISES if _are_counts(y) and base.target_transform is None else NOISES)
    if base.exposure is not None:
        noises = noises if choices.likelihoods is not None else list(COUNT_NOISES)
        base = dataclasses.replace(base, likelihood=noises[0])
    found = [dataclasses.replace(base, kernel=kernel) for kernel in kernels]
    found += [dataclasses.replace(found[0], likelihood=noise) for noise in noises if noise != "gaussian"]
    found += [_with_model(found[0], model) for model in listed(choices.models or "")]
    if classes and len(encoder.labels) > 2:
        found.append(dataclasses.replace(found[0], multi_class=JOINT))
    return list(dict.fromkeys(found))


def _with_model(settings: Settings, name: str) -> Settings:
    """The options with this model, and without the kernel if it is an estimator that has none."""
    made = model_named(name)
    without = _is_estimator(made) and "kernel" not in made.get_params(deep=False)
    return dataclasses.replace(settings, model=name, kernel=None if without else settings.kernel)


def _is_estimator(model: Any) -> bool:
    """Whether it is an estimator of its own, and not a Gaussian process or a mixture of some."""
    return isinstance(model, BaseEstimator) and not isinstance(model, Mixture)


def _are_counts(y: np.ndarray) -> bool:
    """Whether targets are whole numbers, so small that a normal distribution is a poor description of them."""
    return bool(np.all((y >= 0) & (y == np.round(y))) and len(np.unique(y)) > 2 and np.mean(y) <= SMALL)


def check_choices(choices: Choices) -> None:
    """Refuse a name that stands for nothing, before the table is read."""
    for kernel in listed(choices.kernels or ""):
        check_names(Settings(kernel=kernel))
    for likelihood in listed(choices.likelihoods or ""):
        check_names(Settings(likelihood=likelihood))
    for model in listed(choices.models or ""):
        check_names(Settings(model=model))


def processes(settings: Sequence[Settings], encoder: TableEncoder, max_seconds: float | None = None) -> list[Method]:
    """Gaussian processes, or other estimators, with these options."""
    return [_process(s, encoder, max_seconds) for s in settings]


def baselines(n_classes: int = 0) -> list[Method]:
    """The baselines of reports, for numbers or for so many classes."""
    if n_classes:
        return [Method(name.lower(), _class_baseline(fit, n_classes)) for name, (_, fit) in CLASS_BASELINES.items()]
    return [Method(name.lower(), _baseline(fit)) for name, (_, fit) in BASELINES.items()]


def _process(settings: Settings, encoder: TableEncoder, max_seconds: float | None) -> Method:
    optimizer = LBFGS(max_seconds=max_seconds)
    options = {"optimizer": optimizer, "random_state": settings.seed, "verbose": 0}
    model = model_named(settings.model)
    estimator = unfitted(settings, encoder, model, **options)
    n_classes = len(encoder.labels)

    def predict(X: Any, y: np.ndarray, X_new: Any, weights: Any = None) -> Any:
        fitted: Any = clone(estimator)
        fitted.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
        for member in searched(fitted):
            if getattr(getattr(member, "fit_result_", None), "interrupted", False):
                raise KeyboardInterrupt  # the search kept what it had, but it is the comparison that should end
        return probabilities(fitted, X_new, n_classes) if n_classes else fitted.predictive(X_new)

    own = _is_estimator(model)
    kind = settings.model if own else "joint GP" if settings.multi_class == JOINT else "GP"
    parts = [settings.kernel, settings.likelihood, None if own or settings.model == "auto" else settings.model]
    name = ", ".join([kind, *(part for part in parts if part)])
    return Method(name, predict, _options(settings), 1 if own else n_searches(encoder, settings))


def _options(settings: Settings) -> str:
    """As typed in a shell."""
    given = {"kernel": settings.kernel, "likelihood": settings.likelihood, "multi-class": settings.multi_class}
    given["model"] = None if settings.model == "auto" else settings.model
    given |= {"target-transform": settings.target_transform, "exposure": settings.exposure, "weight": settings.weight}
    quoted = {k: v if re.fullmatch(r"[\w+.-]+", v) else f'"{v}"' for k, v in given.items() if v is not None}
    return " ".join(f"--{option} {value}" for option, value in quoted.items())


def _baseline(fit: Baseline) -> Callable[..., Any]:
    def predict(X: Any, y: np.ndarray, X_new: Any, weights: Any = None) -> Any:
        found = fit(np.asarray(X, dtype=np.float64), y, np.asarray(X_new, dtype=np.float64))
        if found is None:
            raise ValueError("It is not for so few or so many rows, or the targets do not vary.")
        return found

    return predict


def _class_baseline(fit: ClassBaseline, n_classes: int) -> Callable[..., Any]:
    def predict(X: Any, y: np.ndarray, X_new: Any, weights: Any = None) -> np.ndarray:
        found = fit(np.asarray(X, dtype=np.float64), y, np.asarray(X_new, dtype=np.float64), n_classes)
        if found is None:
            raise ValueError("It is not for so few or so many rows, or there is one class only.")
        return found

    return predict
