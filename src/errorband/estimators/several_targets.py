"""Several targets at once, y (n, K): they share kernel, noise and one factorisation, and each gets a model of its own.

Given the hyperparameters the targets are independent, so the evidence is the sum of theirs,

    log p(Y) = Σ_k log N(y_k; m, K + σ²I),

which needs one Cholesky factor, K right-hand sides and one inverse (:mod:`errorband.conjugate.dense`). Each target is
standardised on its own: kernel and noise variances are shared in units of the variance of each.
"""

import copy
import dataclasses
import warnings
from typing import Any

import numpy as np

from errorband.data import TrainingData
from errorband.estimators.base import too_little
from errorband.estimators.candidates import is_auto
from errorband.estimators.scaling import Scaling
from errorband.estimators.spec import Spec, as_approximation, as_transform
from errorband.posterior.base import prior_mean

# What a model of several targets has only in its estimators_.
OF_ONE_TARGET = ("kernel_", "likelihood_", "mean_", "approximation_", "scaling_", "_model", "_training_data")


def n_columns(y: Any) -> int:
    """Number of targets in a row."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
    return shape[1] if len(shape) == 2 else 1


def columns(Y: Any) -> list[Any]:
    """Each target on its own."""
    Y = Y.to_numpy() if hasattr(Y, "to_numpy") else np.asarray(Y)
    return list(Y.T)


def stacked(found: list[tuple[np.ndarray, ...]]) -> Any:
    """Several arrays of each target, as so many arrays with the target as the last axis."""
    return tuple(np.stack(values, axis=-1) for values in zip(*found, strict=True))


def check_one(estimator: Any) -> None:
    """Refuse what is asked of a model of several targets and belongs to one of them."""
    if (found := getattr(estimator, "estimators_", None)) is not None:
        raise ValueError(
            f"This model has {len(found)} targets; ask the one of a target, estimators_[0] to "
            f"estimators_[{len(found) - 1}]."
        )


def check_shared(estimator: Any, K: int, noise_variance: Any, spec: Spec, n: int) -> None:
    """Refuse what K targets cannot share, in a sentence with a remedy."""
    likelihood, mean = spec.likelihood, spec.latents[0].mean
    why = None
    if is_auto(estimator.kernel) or is_auto(estimator.likelihood):
        why = '"auto" chooses for one target: name kernel and likelihood'
    elif not likelihood.conjugate:
        why = f"they can share Gaussian noise, not {type(likelihood).__name__}"
    elif (transform := as_transform(estimator.target_transform)) is not None and transform.needs_evidence:
        why = f"target_transform={estimator.target_transform!r} is learned for one: give its values"
    elif noise_variance is not None:
        why = "noise_variance is in the units of one"
    elif not mean.marginalize and np.shape(mean.basis(np.zeros((1, estimator.n_features_in_))))[1] > 0:
        why = "the coefficients of their means differ: use mean='zero', or marginalize=True"
    elif as_approximation(estimator.approximation, n, mean, estimator._exact_limit(likelihood))[0].strategies:
        why = "they share one factorisation of the whole covariance only"
    if why is not None:
        raise ValueError(f"y has {K} columns, and {why}. MultiOutputRegressor of sklearn.multioutput fits one each.")


def fit_targets(estimator: Any, X: Any, Y: Any, noise_variance: Any, sample_weight: Any) -> None:
    """Fit all columns of Y together. The estimator keeps the search, and ``estimators_``, one for each target."""
    each = [estimator._training(X, y, None, sample_weight) for y in columns(Y)]
    scaling = dataclasses.replace(each[0][2], y_shift=0.0, y_scale=1.0, transform=None)
    data = dataclasses.replace(each[0][1], y=np.stack([d.y for _, d, _ in each], axis=1))
    spec = estimator._spec(estimator.n_features_in_)
    check_shared(estimator, len(each), noise_variance, spec, len(data.y))
    together, seen = copy.copy(estimator), estimator._seen(spec, scaling)
    if estimator.optimizer is not None and (told := too_little(seen, data, scaling)) is not None:
        warnings.warn(told, UserWarning, stacklevel=3)
    together._fit(seen, data, scaling)
    shares = _log_evidences(together.log_evidence_, together.posterior_, data)
    found = [_one(together, k, d, s, shares[k]) for k, (_, d, s) in enumerate(each)]
    estimator._forget()
    for name in OF_ONE_TARGET:
        vars(estimator).pop(name, None)  # of an earlier fit
    estimator.estimators_ = found
    estimator.log_evidence_ = float(sum(one.log_evidence_ for one in found))
    for name in ("fit_result_", "approximation_reason_", "inference_", "inference_status_", "jitter_"):
        setattr(estimator, name, getattr(together, name))


def _log_evidences(total: float, posterior: Any, data: TrainingData) -> np.ndarray:
    """Log evidence of each target: they differ in rᵀα alone."""
    r = data.y - prior_mean(posterior.latent.mean, posterior.X)[:, None]
    fit = -0.5 * np.sum(r * posterior.weights, axis=0)
    return total / data.n_targets + fit - np.mean(fit)


def _one(together: Any, k: int, data: TrainingData, scaling: Scaling, log_evidence: float) -> Any:
    """The model of target k, in its units. It has the factor of all in common."""
    one, all_of_them = copy.copy(together), together.posterior_
    one._training_data, one.scaling_ = data, scaling
    one.posterior_ = dataclasses.replace(
        all_of_them,
        weights=np.ascontiguousarray(all_of_them.weights[:, k]),
        coefficients=all_of_them.coefficients[:, k] if all_of_them.coefficients.size else np.zeros(0),
    )
    one.log_evidence_ = scaling.log_density(log_evidence, data, len(one.posterior_.coefficients))
    one._keep_model(together._model)
    if hasattr(together, "bands_"):
        one.bands_ = together.bands_[k]
    return one
