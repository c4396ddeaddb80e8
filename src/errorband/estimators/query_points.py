"""A committee at query points: mean and precision of the function there, to which every part of the rows adds.

With u = f(Z) − m(Z) at the query points Z, K_uu = LLᵀ and w = L⁻¹u ~ N(0, I), a part of the rows says of w what its
posterior has beyond the prior: a precision and a shift. They add up, in any order and number of batches, which is
Kalman's filter for a state that does not move.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from errorband import linalg
from errorband.data import TrainingData
from errorband.features import Points
from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.model import PriorAtData
from errorband.posterior import FeaturePosterior
from errorband.posterior.base import prior_mean
from errorband.precision import in_double_precision
from errorband.structures import Dense
from errorband.structures.low_rank import LowRankPredictor


class Said(NamedTuple):
    """What some rows say of w: exp(shiftᵀw − ½ wᵀ precision w), for one latent function."""

    precision: np.ndarray
    shift: np.ndarray


class State(NamedTuple):
    """Query points, the factor L of their covariance, and precision and shift of w given all rows so far."""

    latent: Any
    Z: np.ndarray
    factor: np.ndarray
    precision: np.ndarray
    shift: np.ndarray


@in_double_precision
def start(first: Any, Z: np.ndarray) -> State:
    """Nothing is known."""
    model = first._model
    if model.likelihood.n_latents > 1 or not model.shared:
        raise ValueError("Query points are for one latent function; leave query=None for several.")
    latent = Latent(model.latent.kernel, model.latent.mean, Points(Z))
    factor = np.tril(linalg.cholesky(linalg.regularised(gram(latent.kernel, Z, Z))).factor)
    return State(latent, Z, factor, np.eye(len(Z)), np.zeros(len(Z)))


def added(state: State, said: Sequence[Said]) -> State:
    """After hearing these."""
    precision, shift = state.precision, state.shift
    for s in said:
        precision, shift = precision + s.precision, shift + s.shift
    return state._replace(precision=precision, shift=shift)


@in_double_precision
def said(state: State, member: Any) -> Said:
    """What a member says: its posterior at the query points, with the prior divided out."""
    mean, cov = member.posterior_.joint(state.Z)
    # u has the noise of its own that regularises K_uu.
    cov = cov + linalg.INDUCING_JITTER * np.mean(diagonal(state.latent.kernel, state.Z)) * np.eye(len(cov))
    V = linalg.solve_lower(state.factor, np.asfortranarray(cov))
    share = linalg.solve_lower(state.factor, np.asfortranarray(V.T))
    size, axes = np.linalg.eigh(0.5 * (share + share.T))
    precision = 1.0 / np.clip(size, 1e-12, 1.0)
    white = linalg.solve_lower(state.factor, mean - prior_mean(state.latent.mean, state.Z))
    return Said((axes * (precision - 1.0)) @ axes.T, axes @ (precision * (axes.T @ white)))


@in_double_precision
def said_again(others: State, member: Any) -> Said:
    """What a member says after hearing the others, whose quadratics are part of its prior.

    Its sites are found under that prior; of w they then say what they say under the prior alone. For Gaussian noise
    sites do not depend on the prior, and this is what the member said before.
    """
    rows: TrainingData = member._training_data
    X, n = rows.padded, len(rows.y)
    kernel = others.latent.kernel
    Phi = linalg.solve_lower(others.factor, np.asfortranarray(gram(kernel, others.Z, X))).T
    rest = gram(kernel, X, X) - Phi @ Phi.T
    chol = linalg.cholesky(others.precision)
    V = linalg.solve_lower(chol.factor, np.asfortranarray(Phi.T))
    heard = Phi @ linalg.solve_cholesky(chol.factor, others.shift)
    structure = Dense((rest + V.T @ V)[None])  # pyright: ignore[reportArgumentType]
    prior = PriorAtData(structure, member.likelihood_, (prior_mean(others.latent.mean, X) + heard)[:, None])
    sites = member.inference_.settle(prior, rows, None)[1].sites
    weight = np.asarray(sites.precision)[:n, 0, 0]
    shift = np.asarray(sites.shift)[:n, 0] + weight * heard[:n]
    Phi, rest = Phi[:n], rest[:n, :n]
    root = np.sqrt(np.maximum(weight, 0.0))
    inner = linalg.cholesky(np.eye(n) + root[:, None] * rest * root)
    half = linalg.solve_lower(inner.factor, np.asfortranarray(root[:, None] * Phi))
    known = linalg.solve_lower(inner.factor, root * (rest @ shift))
    return Said(half.T @ half, Phi.T @ shift - half.T @ known)


@in_double_precision
def posterior(state: State) -> FeaturePosterior:
    """Of the function everywhere, given what is known at the query points."""
    chol = linalg.cholesky(state.precision)
    mean = linalg.solve_cholesky(chol.factor, state.shift)
    inverse = linalg.solve_lower(chol.factor, np.eye(len(mean)))
    predictor = LowRankPredictor(mean[None], inverse)  # pyright: ignore[reportArgumentType]
    return FeaturePosterior((state.latent,), (state.factor,), predictor, opens=True, jitter=chol.jitter)  # pyright: ignore[reportCallIssue]
