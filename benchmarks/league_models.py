"""The models of the league, each as a function from a split to scores of every test row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from league_sets import Split

Scores = dict[str, Any]
LEVEL = 0.95
LEAST_PROBABILITY = 1e-6  # of a class: a model that says zero and is wrong would lose the whole league by one row
SEARCHED_ROWS = 500  # that scikit-learn's GP learns its hyperparameters from
QUANTILES = (np.arange(100) + 0.5) / 100


# ------------------------------------------------------------------------------------------------------------ scores
def regression_scores(y: np.ndarray, mean: Any, log_density: Any, quantiles: Any, lower: Any, upper: Any) -> Scores:
    """Scores of each row: squared error, negative log density, CRPS from 100 quantiles (100, n), and coverage."""
    error = y - quantiles
    crps = np.mean(2 * np.maximum(QUANTILES[:, None] * error, (QUANTILES[:, None] - 1) * error), axis=0)
    inside = (lower <= y) & (y <= upper)
    return {"error": (y - mean) ** 2, "nlpd": -np.asarray(log_density), "crps": crps, "inside": inside.astype(float)}


def class_scores(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray) -> Scores:
    """Scores of each row: error, negative log probability, and the Brier score in the place of the CRPS."""
    p = np.clip(probabilities, LEAST_PROBABILITY, 1.0)
    p = p / p.sum(axis=1, keepdims=True)
    truth = (y[:, None] == classes[None, :]).astype(float)
    wrong = classes[np.argmax(p, axis=1)] != y
    brier = np.sum((p - truth) ** 2, axis=1)
    return {"error": wrong.astype(float), "nlpd": -np.log(np.sum(p * truth, axis=1)), "crps": brier}


# ------------------------------------------------------------------------------------------------------- regression
def ours(**arguments: Any) -> Callable[[Split], Scores]:
    """GPRegressor or GPClassifier with these arguments."""

    def run(split: Split) -> Scores:
        from errorband import GPClassifier, GPRegressor

        if is_classes(split):
            allowed = {k: v for k, v in arguments.items() if k != "likelihood"}
            model = GPClassifier(random_state=0, **allowed).fit(split.X, split.y)
            return class_scores(split.y_test, model.predict_proba(split.X_test), model.classes_) | notes(model)
        model = GPRegressor(random_state=0, **arguments).fit(split.X, split.y)
        p = model.predictive(split.X_test)
        quantiles = np.moveaxis(np.asarray(p.quantile(QUANTILES)), -1, 0)
        return regression_scores(
            split.y_test, p.mean, p.log_density(split.y_test), quantiles, *p.interval(LEVEL)
        ) | notes(model)

    return run


def notes(model: Any) -> Scores:
    """What was chosen, for the eye."""
    return {"chosen": f"{model.kernel_!r}"[:200], "evidence": float(model.log_evidence_)}


def gaussian(split: Split, mean: np.ndarray, std: np.ndarray) -> Scores:
    """Scores of normal predictions."""
    quantiles = mean + std * norm.ppf(QUANTILES)[:, None]
    half = norm.ppf((1 + LEVEL) / 2) * std
    log_density = norm.logpdf(split.y_test, mean, std)
    return regression_scores(split.y_test, mean, log_density, quantiles, mean - half, mean + half)


def with_errors(split: Split, mean: np.ndarray, errors: np.ndarray) -> Scores:
    """A model that predicts a number only: its band is that of its errors on training rows it had not seen.

    The interval is the conformal one, the density a normal kernel of Silverman's width around each error.
    """
    errors = np.sort(errors)
    spread = min(np.std(errors), (np.quantile(errors, 0.75) - np.quantile(errors, 0.25)) / 1.34) or np.std(errors)
    width = max(0.9 * spread * len(errors) ** -0.2, 1e-3 * np.std(split.y))
    z = (split.y_test[:, None] - mean[:, None] - errors[None, :]) / width
    log_density = logsumexp(norm.logpdf(z), axis=1) - np.log(width * len(errors))
    tail = (1 - LEVEL) / 2 * (1 + 1 / len(errors))
    lower, upper = (mean + np.quantile(errors, q) for q in (tail, 1 - tail))
    quantiles = mean + np.quantile(errors, QUANTILES)[:, None]
    return regression_scores(split.y_test, mean, log_density, quantiles, lower, upper)


def in_folds(model: Any, split: Split) -> Scores:
    """With the errors of five-fold cross-validation."""
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(5, shuffle=True, random_state=0)
    errors = split.y - cross_val_predict(model, split.X, split.y, cv=folds)
    return with_errors(split, model.fit(split.X, split.y).predict(split.X_test), errors)


def bayesian_ridge(split: Split) -> Scores:
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(split.X, split.y)
    return gaussian(split, *model.predict(split.X_test, return_std=True))


def sklearn_gp(split: Split) -> Scores:
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(split.X)
    X, X_test = scaler.transform(split.X), scaler.transform(split.X_test)
    if is_classes(split):
        model = GaussianProcessClassifier(ConstantKernel() * RBF(np.sqrt(X.shape[1])), random_state=0)
        classes = np.unique(split.y)
        asked = classes[1:] if len(classes) == 2 else classes  # one against the rest, as it does itself
        p = np.stack([searched(model, X, split.y == c).predict_proba(X_test)[:, 1] for c in asked], axis=1)
        p = np.hstack([1 - p, p]) if len(classes) == 2 else p / p.sum(axis=1, keepdims=True)
        return class_scores(split.y_test, p, classes)
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel(0.25)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return gaussian(split, *searched(model, X, split.y).predict(X_test, return_std=True))


def searched(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Hyperparameters from at most 500 rows, the posterior from all: with more its search outlasts the whole league."""
    from sklearn.base import clone

    found = clone(model).fit(X[:SEARCHED_ROWS], y[:SEARCHED_ROWS])
    return found if len(y) <= SEARCHED_ROWS else found.set_params(kernel=found.kernel_, optimizer=None).fit(X, y)


def ngboost(split: Split) -> Scores:
    """Needs the package ngboost; results of another environment count too, as they are kept in one place."""
    import ngboost as ng

    if is_classes(split):
        classes, codes = np.unique(split.y, return_inverse=True)
        model = ng.NGBClassifier(ng.distns.k_categorical(len(classes)), verbose=False, random_state=0)
        return class_scores(split.y_test, model.fit(split.X, codes).predict_proba(split.X_test), classes)
    found = ng.NGBRegressor(verbose=False, random_state=0).fit(split.X, split.y).pred_dist(split.X_test)
    return gaussian(split, found.params["loc"], found.params["scale"])


# --------------------------------------------------------------------------------------------------- classification
def from_classifier(model: Any, split: Split) -> Scores:
    model.fit(split.X, split.y)
    return class_scores(split.y_test, model.predict_proba(split.X_test), model.classes_)


def linear(split: Split) -> Scores:
    if not is_classes(split):
        return bayesian_ridge(split)
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return from_classifier(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), split)


def forest(split: Split) -> Scores:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if is_classes(split):
        return from_classifier(RandomForestClassifier(200, random_state=0), split)
    model = RandomForestRegressor(200, oob_score=True, random_state=0).fit(split.X, split.y)
    return with_errors(split, model.predict(split.X_test), split.y - model.oob_prediction_)  # rows out of the bag


def boosting(split: Split) -> Scores:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if is_classes(split):
        return from_classifier(HistGradientBoostingClassifier(random_state=0), split)
    return in_folds(HistGradientBoostingRegressor(random_state=0), split)


def support_vectors(split: Split) -> Scores:
    """Support vectors: labels with probabilities after Platt, from five folds; numbers with the band of errors."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    if not is_classes(split):
        return in_folds(make_pipeline(StandardScaler(), _Scaled(SVR(C=3.0))), split)
    machine = make_pipeline(StandardScaler(), SVC(C=3.0, random_state=0))
    return from_classifier(CalibratedClassifierCV(machine, ensemble=False, cv=5), split)


def _Scaled(model: Any) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(model, transformer=StandardScaler())


def is_classes(split: Split) -> bool:
    """Whether targets are labels."""
    return split.y.dtype.kind in "iu"


MODELS: dict[str, Callable[[Split], Scores]] = {
    "default": ours(),
    "auto": ours(kernel="auto", likelihood="auto"),
    "linear": linear,
    "forest": forest,
    "boosting": boosting,
    "svm": support_vectors,
    "sklearn_gp": sklearn_gp,
    "ngboost": ngboost,
}
LABELS = {
    "default": "errorband, default",
    "auto": 'errorband, "auto"',
    "linear": "linear / logistic",
    "forest": "random forest",
    "boosting": "HistGradientBoosting",
    "svm": "SVR / SVC + Platt",
    "sklearn_gp": "scikit-learn's GP",
    "ngboost": "NGBoost",
}


def scored(model: Callable[[Split], Scores], split: Split) -> Scores:
    """Scores without the warnings on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(split)
