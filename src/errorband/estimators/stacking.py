"""Several models in a mixture, with the shares with which it predicts rows left out best."""

import warnings
from typing import Any

import numpy as np
from scipy.special import softmax

from errorband.estimators.mixture import mixed

# Before a row left out is seen all models have so many rows together. Leave-one-out predictions are made at
# hyperparameters that saw the row, which flatters models with many of them; their evidence is not.
PSEUDO_ROWS = 5.0

# So many nats of evidence are a factor e in how these rows are shared: the evidence of no model is to be trusted to a
# nat, and one that is 25 below the best is out.
TEMPERATURE = 5.0

# A model with a smaller share is left out: it costs memory and time in every prediction.
LEAST_SHARE = 0.05

ITERATIONS, CLOSE = 2000, 1e-8


def stacked(models: list[Any], weights: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
    """The mixture of fitted models of the same rows, the first of which is what it shows; and the share of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that leave a model no proper distribution speak against it by themselves
        left_out = np.stack([model.loo().log_density for model in models])
    evidence = [model.log_evidence_ - _cost(model) for model in models]
    shares = stacked_shares(left_out, np.array(evidence), weights)
    shares[1:][shares[1:] < LEAST_SHARE] = 0.0
    shares /= np.sum(shares)
    kept = np.flatnonzero(shares)
    return mixed([models[k] for k in kept], shares[kept]), shares


def _cost(model: Any) -> float:
    """What length-scales that are alike, and not equal, take off the evidence of a model."""
    return sum(m.fit_result_.cost for m in model.members_ if m.fit_result_ is not None)


def stacked_shares(log_density: np.ndarray, log_evidence: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Shares w (K,) that maximise Σₙ log Σ_k w_k p_kn + A Σ_k m_k log w_k, with sum one.

    p_kn is the probability, or density, of row n by model k, given the other rows, and A = 5 rows stand for a Dirichlet
    prior around the shares m_k ∝ exp(log evidence of k / 5). Of the models in such a mixture none needs to be true
    (Yao, Vehtari, Simpson & Gelman 2018, "Using stacking to average Bayesian predictive distributions"). By expectation
    maximisation: the objective is concave.

    Parameters
    ----------
    log_density : array (K, n)
        Log p_kn.
    log_evidence : array (K,)
        Of the same rows.
    weights : array (n,), optional
        How often each row counts.

    Examples
    --------
    >>> p = np.array([[0.9, 0.8, 0.9] * 20, [0.1, 0.9, 0.1] * 20])
    >>> stacked_shares(np.log(p), np.array([-20.0, -20.0])).round(2)
    array([0.93, 0.07])
    >>> stacked_shares(np.log(p), np.array([-20.0, -60.0])).round(2)
    array([1., 0.])
    """
    K, n = log_density.shape
    counts = np.ones(n) if weights is None else weights
    log_density = np.maximum(log_density, np.log(np.finfo(float).tiny))
    p = np.exp(log_density - np.max(log_density, axis=0))
    prior = softmax(log_evidence / TEMPERATURE)
    shares = np.full(K, 1.0 / K)
    for _ in range(ITERATIONS):
        taken = shares[:, None] * p
        rows = (taken / np.sum(taken, axis=0)) @ counts + PSEUDO_ROWS * prior
        before, shares = shares, rows / np.sum(rows)
        if np.max(np.abs(shares - before)) < CLOSE:
            break
    return shares
