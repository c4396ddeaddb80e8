"""Bayesian model comparison: posterior probabilities of models from their evidences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted


def compare_evidence(models: Any, X: Any = None, y: Any = None, prior: Any = None) -> pd.DataFrame:
    """Evidences of models of the same data, and the probability of each.

    P(model | data) ∝ p(data | model) P(model). The evidence at fitted hyperparameters stands in for the average over
    them: fair between models with as many of them, and kind to those with more.

    Parameters
    ----------
    models : list or dict
        Estimators with ``log_evidence_``, by name if a dict; fitted to the same rows, or with X and y unfitted.
    X, y : arrays, optional
        Copies of the models are fitted to these.
    prior : sequence, optional
        Prior probability of each model, up to a factor. Default: all the same.

    Returns
    -------
    table : DataFrame
        Indexed by model, the most probable first: ``log_evidence``, ``probability``, ``behind`` (nats behind the best),
        and the fitted ``model``.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import Linear, Constant, SquaredExponential
    >>> x = np.linspace(-2, 2, 30)[:, None]
    >>> y = x[:, 0] + 0.3 * np.random.default_rng(0).normal(size=30)
    >>> models = {"line": GPRegressor(Linear()), "constant": GPRegressor(Constant())}
    >>> table = compare_evidence(models, x, y)
    >>> table.index[0], bool(table.probability.iloc[0] > 0.99)
    ('line', True)
    """
    if isinstance(models, Mapping):
        names, candidates = list(models), list(models.values())
    else:
        candidates = list(models)
        names = [f"{type(m).__name__} {i}" for i, m in enumerate(candidates)]
    if not candidates:
        raise ValueError("compare_evidence needs one model or more.")
    if X is not None:
        copies: list[Any] = [clone(m) for m in candidates]
        candidates = [copy.fit(X, y) for copy in copies]
    for name, model in zip(names, candidates, strict=True):
        check_is_fitted(model)
        if not hasattr(model, "log_evidence_"):
            raise TypeError(f"{name} has no evidence; give models of errorband that maximise one.")
    known = [getattr(m, "n_training_rows_", None) for m in candidates]
    counts = {n for n in known if n is not None}
    if len(counts) > 1:
        raise ValueError(f"The models were fitted to {sorted(counts)} rows; fit them to the same.")
    weights = _prior(prior, len(candidates))
    evidence = np.array([m.log_evidence_ for m in candidates])
    log_p = evidence + np.log(weights)
    p = np.exp(log_p - np.max(log_p))
    table = pd.DataFrame(
        {
            "log_evidence": evidence,
            "probability": p / p.sum(),
            "behind": np.max(evidence) - evidence,
            "model": candidates,
        },
        index=pd.Index(names, name="model"),
    )
    return table.sort_values("probability", ascending=False, kind="stable")


def _prior(prior: Sequence[float] | None, n: int) -> np.ndarray:
    if prior is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(prior, float)
    if weights.shape != (n,) or np.any(weights <= 0) or not np.all(np.isfinite(weights)):
        raise ValueError(f"prior needs a positive number for each of the {n} models; got {prior!r}.")
    return weights / weights.sum()
