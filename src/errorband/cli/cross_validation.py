"""Cross-validation of a small catalogue: Gaussian processes with several kernels against simple baselines."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from errorband import metrics
from errorband.estimators import GPClassifier, GPRegressor
from errorband.predictive import Predictive
from errorband.reporting.classification.baselines import CLASS_BASELINES, ClassBaseline, probabilities
from errorband.reporting.classification.scores import class_score
from errorband.reporting.regression.baselines import BASELINES, Baseline
from errorband.training import LBFGS

COMPARED_KERNELS = ("se", "matern32", "matern52", "se+linear")

CLASS_KERNELS = ("se", "matern52", "se+linear")
ONE_FOR_EACH = f"GP for each class, {CLASS_KERNELS[0]}"

Method = Callable[[Any, np.ndarray, Any], Predictive]
ClassMethod = Callable[[Any, np.ndarray, Any], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Result:
    """Cross-validated figures of one method; NaN where it failed, and then ``failure`` says why."""

    method: str
    nlpd: float
    rmse: float
    coverage: float
    seconds: float
    failure: str = ""


def catalogue(seed: int = 0, max_seconds: float | None = None) -> dict[str, Method]:
    """The methods compared, by name: functions of training inputs, targets and new inputs."""
    methods: dict[str, Method] = {
        f"GP, {name}": _gaussian_process(name, seed, max_seconds) for name in COMPARED_KERNELS
    }
    return methods | {name.lower(): _baseline(fit) for name, (_, fit) in BASELINES.items()}


def cross_validate(
    X: Any,
    y: np.ndarray,
    *,
    folds: int = 5,
    seed: int = 0,
    max_seconds: float | None = None,
    report: Callable[[str, int], None] = lambda method, fold: None,
) -> list[Result]:
    """Cross-validate the catalogue on the same folds; the smallest NLPD comes first.

    Parameters
    ----------
    X, y
        A DataFrame or an array, and targets.
    folds, seed : int
        Number of folds, and the seed that draws them.
    max_seconds : float, optional
        Time for each search of hyperparameters.
    report : callable
        Told the method and the fold before each fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (60, 1))
    >>> results = cross_validate(X, np.sin(X[:, 0]) + 0.05 * rng.normal(size=60), folds=2)
    >>> results[0].method.startswith("GP"), len(results)
    (True, 7)
    """
    splits = list(KFold(folds, shuffle=True, random_state=seed).split(y))
    results = [
        _result(method, y, found, seconds) if not failure else _failed(method, seconds, failure)
        for method, found, seconds, failure in _over_folds(catalogue(seed, max_seconds), X, y, splits, report)
    ]
    return sorted(results, key=lambda r: (bool(r.failure), r.nlpd))


@dataclasses.dataclass(frozen=True)
class ClassResult:
    """Cross-validated figures of one method for classes; NaN where it failed, and then ``failure`` says why."""

    method: str
    log_loss: float
    error_rate: float
    information: float
    calibration_error: float
    seconds: float
    failure: str = ""


def class_catalogue(n_classes: int, seed: int = 0, max_seconds: float | None = None) -> dict[str, ClassMethod]:
    """The methods compared for classes 0 … C − 1: functions from training rows and new inputs to probabilities."""
    optimizer: Any = LBFGS(max_seconds=max_seconds)
    methods: dict[str, Any] = {
        f"GP, {name}": GPClassifier(name, optimizer=optimizer, random_state=seed) for name in CLASS_KERNELS
    }
    if n_classes > 2:
        methods[ONE_FOR_EACH] = GPClassifier(
            CLASS_KERNELS[0], multi_class="one_vs_rest", optimizer=optimizer, random_state=seed
        )
    found = {name: _class_process(estimator, n_classes) for name, estimator in methods.items()}
    return found | {name.lower(): _class_baseline(fit, n_classes) for name, (_, fit) in CLASS_BASELINES.items()}


def cross_validate_classes(
    X: Any,
    y: np.ndarray,
    *,
    folds: int = 5,
    seed: int = 0,
    max_seconds: float | None = None,
    report: Callable[[str, int], None] = lambda method, fold: None,
) -> list[ClassResult]:
    """Cross-validate the catalogue for classes, given as whole numbers from 0; the smallest log loss comes first.

    Parameters are those of :func:`cross_validate`. Folds hold the classes in the same shares, as far as that is
    possible.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (60, 1))
    >>> results = cross_validate_classes(X, (np.sin(X[:, 0]) > 0).astype(int), folds=2)
    >>> results[0].method.startswith("GP"), len(results)
    (True, 6)
    """
    n_classes = int(y.max()) + 1
    rare = np.min(np.bincount(y)[np.unique(y)]) < folds
    kind = KFold if rare else StratifiedKFold
    splits = list(kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
    methods = class_catalogue(n_classes, seed, max_seconds)
    results = [
        _class_result(method, y, splits, found, seconds) if not failure else _class_failed(method, seconds, failure)
        for method, found, seconds, failure in _over_folds(methods, X, y, splits, report)
    ]
    return sorted(results, key=lambda r: (bool(r.failure), r.log_loss))


def _over_folds(
    methods: dict[str, Any], X: Any, y: np.ndarray, splits: list[Any], report: Callable[[str, int], None]
) -> Iterator[tuple[str, list[Any], float, str]]:
    """Yield for each method its name, its predictions of each fold, its seconds, and the reason if it failed."""
    values = X.iloc if hasattr(X, "iloc") else X
    for method, predict in methods.items():
        began, found, failure = time.perf_counter(), [], ""
        for k, (train, test) in enumerate(splits):
            report(method, k)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append((test, predict(values[train], y[train], values[test])))
            except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
                failure = " ".join(str(error).split())
                break
        yield method, found, time.perf_counter() - began, failure


def _result(method: str, y: np.ndarray, found: list[tuple[np.ndarray, Predictive]], seconds: float) -> Result:
    density, errors, inside = [], [], []
    for test, predictive in found:
        lower, upper = predictive.interval(0.95)
        density.append(predictive.log_density(y[test]))
        errors.append(y[test] - predictive.mean)
        inside.append((lower <= y[test]) & (y[test] <= upper))
    error = np.concatenate(errors)
    rmse, covered = float(np.sqrt(np.mean(error**2))), float(np.mean(np.concatenate(inside)))
    return Result(method, metrics.nlpd(np.concatenate(density)), rmse, covered, seconds)


def _failed(method: str, seconds: float, failure: str) -> Result:
    return Result(method, np.nan, np.nan, np.nan, seconds, failure)


def _gaussian_process(kernel: str, seed: int, max_seconds: float | None) -> Method:
    def predict(X: Any, y: np.ndarray, X_new: Any) -> Predictive:
        optimizer: Any = LBFGS(max_seconds=max_seconds)
        return GPRegressor(kernel, optimizer=optimizer, random_state=seed).fit(X, y).predictive(X_new)

    return predict


def _baseline(fit: Baseline) -> Method:
    def predict(X: Any, y: np.ndarray, X_new: Any) -> Predictive:
        found = fit(np.asarray(X, dtype=np.float64), y, np.asarray(X_new, dtype=np.float64))
        if found is None:
            raise ValueError("It is not for so few or so many rows, or the targets do not vary.")
        return found

    return predict


def _class_process(estimator: Any, n_classes: int) -> ClassMethod:
    def predict(X: Any, y: np.ndarray, X_new: Any) -> np.ndarray:
        fitted: Any = clone(estimator)
        return probabilities(fitted.fit(X, y), X_new, n_classes)

    return predict


def _class_baseline(fit: ClassBaseline, n_classes: int) -> ClassMethod:
    def predict(X: Any, y: np.ndarray, X_new: Any) -> np.ndarray:
        found = fit(np.asarray(X, dtype=np.float64), y, np.asarray(X_new, dtype=np.float64), n_classes)
        if found is None:
            raise ValueError("It is not for so few or so many rows, or there is one class only.")
        return found

    return predict


def _class_result(method: str, y: np.ndarray, splits: list[Any], found: list[Any], seconds: float) -> ClassResult:
    share = np.concatenate([held_out for _, held_out in found])
    codes = np.concatenate([y[test] for test, _ in found])
    n_classes = share.shape[1]
    # Each fold is measured against the class frequencies of its own training rows.
    frequency = np.concatenate([
        np.tile(np.bincount(y[train], minlength=n_classes) / len(train), (len(test), 1)) for train, test in splits
    ])  # fmt: skip
    values: dict[str, Any] = class_score(method, "", codes, share, frequency).values
    return ClassResult(method=method, seconds=seconds, **values)


def _class_failed(method: str, seconds: float, failure: str) -> ClassResult:
    return ClassResult(method, np.nan, np.nan, np.nan, np.nan, seconds, failure)
