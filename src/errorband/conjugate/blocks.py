"""Gaussian noise and a covariance of low rank plus blocks: exact sites on the structure."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg
from errorband.conjugate.base import Closed, Engine, gradient
from errorband.conjugate.low_rank import whitened_in_pieces
from errorband.data import TrainingData
from errorband.latents import Latent
from errorband.posterior import FeaturePosterior, PICPosterior
from errorband.precision import in_double_precision
from errorband.predictive import GaussianPredictive
from errorband.programs import program
from errorband.rows import pad_rows
from errorband.structures import Sites


class BlocksEngine(Engine):
    r"""A Gaussian likelihood is its own site, Π = 1/σ² and b = t/σ², t = y − m(X), on any structure.

    With g and W = (K + Σ)⁻¹ of :class:`~errorband.structures.base.Conditioned`,

        log Z = −½ [tᵀg + log|I + KΠ| + Σ log 2πσ²],    ∂ log Z/∂K = ∂ log Z/∂Σ = ½(ggᵀ − W).

    The diagonal of the last comes with the blocks of the adjoint. (Quiñonero-Candela & Rasmussen 2005, §7.)
    """

    @in_double_precision
    def evaluate(self, approximation, latent, noise, data):
        (value, *bars, _), _ = _proper(_evaluate, approximation, latent, noise, data)
        latent_bar, noise_bar, weights = jax.tree.map(np.asarray, bars)
        n = len(data.y)
        return Closed(float(value), latent_bar, noise_bar[:n], -weights[:n])

    @in_double_precision
    def posterior(self, approximation, latent, noise, data):
        (value, conditioned, _), jitter = _proper(_condition, approximation, latent, noise, data)
        found = self.site_posterior(approximation, (latent,), data, jax.tree.map(np.asarray, conditioned))
        return float(value), dataclasses.replace(found, jitter=jitter)

    @in_double_precision
    def leave_one_out(self, approximation, latent, noise, data):
        """Features and blocks held: what is predicted at each row from the others.

        PIC, which looks at the rest of the block, has mean y − g/w and variance 1/w, w = diag W; PITC predicts as for a
        new input, from the inducing points alone.
        """
        (mean, variance, _), _ = _proper(_leave_one_out, approximation, latent, noise, data)
        n = len(data.y)
        return GaussianPredictive(np.asarray(mean)[:n], np.sqrt(np.asarray(variance)[:n]))

    def inner(self, approximation, latent, X, layout, bar, residual_bar):
        """A block at a time."""
        basis = block_basis(latent, X, layout)

        @jax.checkpoint
        def one_block(total, block):
            *block, rest_bar = block
            return total + jnp.vdot(rest_bar, left_out(latent, *block)), None

        start = jnp.vdot(bar.basis[0], basis)
        return jax.lax.scan(one_block, start, (X[layout.rows], layout.there, basis, bar.rest[0]))[0]

    @in_double_precision
    def site_posterior(self, approximation, latents, data, conditioned):
        factors = tuple(np.asarray(_factor(latent)) for latent in latents)
        predictor = jax.tree.map(np.asarray, conditioned.predictor())
        if not approximation.local:
            return FeaturePosterior(latents=latents, factors=factors, predictor=predictor, opens=True, jitter=0.0)
        layout = data.layout
        return PICPosterior(
            latents=latents,
            centres=np.asarray(approximation.centres),
            block_of=layout.block_of,
            X=data.padded[layout.rows],
            there=layout.there,
            weights=np.asarray(conditioned.structure.to_places(conditioned.weights)),
            roots=conditioned.own.root,
            factors=factors,
            predictor=predictor,
            jitter=0.0,
        )


class Layout(NamedTuple):
    """Which rows are in which block. Blocks are filled up to one size B with places that no row has.

    Attributes
    ----------
    rows, there : arrays (blocks, B)
        Position of the row at each place, and whether there is one.
    place : array (N,)
        Number of the block of each row times B, plus its place in it; floating-point, as in the structure.
    block_of : array (C,)
        Number of the block around each centre; −1 if it has no rows.
    """

    rows: Any
    there: Any
    place: Any
    block_of: Any


def block_basis(latent: Latent, X: Any, layout: Layout) -> Any:
    """Φ at every place, zero where there is no row: (blocks, B, M). Traced."""
    return jnp.where(layout.there[..., None], whitened_in_pieces(latent, X)[layout.rows], 0.0)


def left_out(latent: Latent, X: Any, there: Any, basis: Any) -> Any:
    """K − Q among the rows of a block, zero where there is no row. Traced."""
    return jnp.where(there[:, None] & there, latent.kernel.gram(X, X) - basis @ basis.T, 0.0)


def _arrays(noise: np.ndarray, data: TrainingData) -> tuple[Any, ...]:
    """X, layout, targets and noise of the padded rows, and which rows are data."""
    size = len(data.padded)
    y, variance = pad_rows(data.y, size), pad_rows(noise, size)
    return data.padded, data.layout, y, variance, np.arange(size) < len(data.y)


def _proper(
    function: Any, approximation: Any, latent: Latent, noise: np.ndarray, data: TrainingData
) -> tuple[Any, float]:
    """Result of a function whose last value says whether the posterior is proper, and the jitter that made it so.

    Without noise, rows that repeat make a block singular; as elsewhere, as little is added as makes it regular.
    """
    order = max(data.layout.rows.shape[1], latent.features.size)  # rows of a block, or inducing inputs
    for rung in linalg.JITTER_LADDER:
        jitter = rung * float(np.mean(_variance(latent, data.padded))) if rung else 0.0
        with linalg.blas_threads(order):
            found = function(approximation, latent, *_arrays(noise + jitter, data))
            proper = bool(found[-1])
        if proper:
            return found, jitter
    raise linalg.NotPositiveDefinite(
        "The covariance of the targets is not positive definite; raise the noise or move inducing inputs apart."
    )


@program
def _variance(latent: Latent, X: Any) -> Any:
    return latent.variance(X)


@program
def _factor(latent: Latent) -> Any:
    return latent.features.factor(latent.kernel)


def _conditioned(approximation: Any, latent: Latent, X: Any, layout: Any, y: Any, noise: Any, mask: Any) -> Any:
    structure, _ = approximation.structure(latent, X, layout)
    t = jnp.where(mask, y - latent.mean.evaluate(X), 0.0)
    precision = jnp.where(mask, 1.0 / noise, 0.0)
    conditioned = structure.condition(Sites((precision * t)[:, None], precision[:, None, None]))
    constant = jnp.sum(jnp.where(mask, jnp.log(2 * jnp.pi * noise), 0.0))
    return -0.5 * (jnp.vdot(t, conditioned.weights[:, 0]) + conditioned.log_det + constant), conditioned


@program
def _condition(approximation: Any, latent: Latent, *arrays: Any) -> tuple[Any, Any, Any]:
    value, conditioned = _conditioned(approximation, latent, *arrays)
    return value, conditioned, conditioned.proper


# A search calls this a hundred times, on blocks of many rows: compiled for few numbers it takes half as long again.
@program(numbers=lambda approximation, latent, X, layout, *arrays: len(X) * latent.features.size)
def _evaluate(approximation: Any, latent: Latent, X: Any, layout: Any, *arrays: Any) -> tuple[Any, ...]:
    value, conditioned = _conditioned(approximation, latent, X, layout, *arrays)
    bar, weights = conditioned.adjoint(), conditioned.weights[:, 0]

    def inner(latent):
        return approximation.engine.inner(approximation, latent, X, layout, bar, None) + jnp.vdot(
            weights, latent.mean.evaluate(X)
        )

    return value, gradient(inner, latent), _own(conditioned, bar), weights, conditioned.proper


def _own(conditioned: Any, bar: Any) -> Any:
    """The diagonal of the adjoint, at each row: ½(g² − w)."""
    return conditioned.structure.to_rows(jnp.moveaxis(jnp.diagonal(bar.rest, axis1=2, axis2=3), 0, -1))[:, 0]


@program
def _leave_one_out(
    approximation: Any, latent: Latent, X: Any, layout: Any, y: Any, noise: Any, mask: Any
) -> tuple[Any, Any, Any]:
    _, conditioned = _conditioned(approximation, latent, X, layout, y, noise, mask)
    predicted = conditioned.predicted_without_own_site()
    if predicted is not None:
        mean, cov = predicted
        return latent.mean.evaluate(X) + mean[:, 0], cov[:, 0, 0] + noise, conditioned.proper
    g, bar = conditioned.weights[:, 0], conditioned.adjoint()
    w = g**2 - 2.0 * _own(conditioned, bar)  # ½(g² − w) is on the diagonal of the adjoint
    return y - g / w, 1.0 / w, conditioned.proper
