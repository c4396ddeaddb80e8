"""Relevance vectors: kernel functions at a few of the training inputs, each with a prior variance of its own."""

import dataclasses
from dataclasses import KW_ONLY

import equinox as eqx
import numpy as np
from sklearn.utils import check_random_state

from errorband.approximations.base import with_features
from errorband.approximations.inducing import LowRankApproximation
from errorband.conjugate import LowRankEngine
from errorband.conjugate.low_rank import whitened_in_pieces
from errorband.features import KernelColumns
from errorband.features.kernel_columns import DEAD
from errorband.parameters.checks import check_number, check_whole
from errorband.posterior import AugmentedPosterior
from errorband.precision import in_double_precision
from errorband.rows import MEMORY_BUDGET

ALGORITHMS = "sequential", "batch"
HEALINGS = None, "augmented", "whitened"


class RelevanceVectors(LowRankApproximation):
    """The prior of a relevance vector machine: f = Σ w_m k(·, x_m), w_m ~ N(0, 1/α_m), most α infinite at the end.

    What :class:`~errorband.RVMRegressor` and :class:`~errorband.RVMClassifier` are made of, where the arguments are
    explained; the way to the precisions is :class:`errorband.training.relevance.Relevance`.

    Parameters
    ----------
    n_candidates : int
        Rows that may become relevance vectors, drawn at random if there are more.
    algorithm : {"sequential", "batch"}
        How precisions are found.
    healing : None, "augmented" or "whitened"
        What is done about bands that close far from the data.
    hyperprior : (float, float)
        Shape a and rate b of a Gamma density of each precision, with respect to its logarithm; zeros for a flat one.
    rounds : int
        How often basis functions and hyperparameters take turns, at most.
    features : KernelColumns or None
        The basis functions; set by ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> X = np.linspace(-10, 10, 100)[:, None]
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.05 * np.random.default_rng(0).normal(size=100)
    >>> model = GPRegressor(approximation=RelevanceVectors()).fit(X, y)
    >>> bool(np.sum(model.approximation_.features.alive) < 15)
    True
    """

    n_candidates: int = eqx.field(default=1000, static=True)
    _: KW_ONLY
    algorithm: str = eqx.field(default="sequential", static=True)
    healing: str | None = eqx.field(default=None, static=True)
    hyperprior: tuple[float, float] = eqx.field(
        default=(0.0, 0.0), static=True, converter=lambda h: tuple(h) if np.ndim(h) else h
    )
    rounds: int = eqx.field(default=20, static=True)
    features: KernelColumns | None = None

    def __check_init__(self):
        for name in ("n_candidates", "rounds"):
            check_whole("RelevanceVectors", name, getattr(self, name))
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm={self.algorithm!r}: choose 'sequential' or 'batch'.")
        if self.healing not in HEALINGS:
            raise ValueError(f"healing={self.healing!r}: choose None, 'augmented' or 'whitened'.")
        try:
            a, b = self.hyperprior
        except (TypeError, ValueError):
            raise ValueError(f"hyperprior={self.hyperprior!r}: give two numbers, the shape and the rate.") from None
        for name, value in (("hyperprior shape", a), ("hyperprior rate", b)):
            check_number("RelevanceVectors", name, value, "a number, zero or more", zero=True)
        if (a, b) != (0, 0) and self.algorithm == "sequential":
            raise ValueError(
                f"hyperprior={self.hyperprior!r} is for algorithm='batch': with it no precision is infinite, and the "
                "sequential algorithm adds and deletes basis functions."
            )

    @property
    def share(self) -> float:
        """A whitened prior has independent noise in it, which stays on the diagonal."""
        return 1.0 if self.healing == "whitened" else 0.0

    @property
    def opens(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the prior variance is that of the features at new inputs, with the noise of a whitened prior."""
        return self.healing == "whitened"

    @property
    def strategies(self):
        return ("relevance",)

    @property
    def engine(self):
        return RelevanceEngine()

    def initialised(self, latents, X, classes=None, random_state=None):
        if len(latents) > 1:
            raise ValueError("Relevance vectors are for likelihoods whose latent functions share one prior.")
        n = len(X)
        most = max(100, min(self.n_candidates, 4 * MEMORY_BUDGET // (8 * n)))
        rows = np.sort(check_random_state(random_state).permutation(n)[:most])
        centres = np.asarray(X[rows])
        _, first = np.unique(centres, axis=0, return_index=True)  # equal rows have one kernel function
        ready = KernelColumns(centres[np.sort(first)]).initialised(next(iter(latents)).kernel, X)
        features = KernelColumns(ready.centres, np.full(ready.size, DEAD))
        return dataclasses.replace(self, features=None), with_features(latents, [features])

    def fitted(self, latents):
        return dataclasses.replace(self, features=latents[0].features)


class RelevanceEngine(LowRankEngine):
    """The closed form of all weight-space models; predictions that are augmented if asked for."""

    @in_double_precision
    def posterior(self, approximation, latent, noise, data):
        value, found = super().posterior(approximation, latent, noise, data)
        if approximation.healing != "augmented":
            return value, found
        X = np.asarray(data.X)
        basis = np.asarray(whitened_in_pieces(latent, X))
        residual = data.y - np.asarray(latent.mean.evaluate(X)) - basis @ np.asarray(found.predictor.mean_weights)[0]
        return value, AugmentedPosterior.of(found, X, basis, 1.0 / noise, residual / noise)

    @in_double_precision
    def site_posterior(self, approximation, latents, data, conditioned):
        found = super().site_posterior(approximation, latents, data, conditioned)
        if approximation.healing != "augmented":
            return found
        if conditioned.weights.shape[1] > 1:
            raise ValueError("healing='augmented' is for one latent function; use multi_class='one_vs_rest'.")
        n, X = len(data.y), np.asarray(data.X)
        basis = np.asarray(conditioned.structure.basis)[0, :n]
        precision, weights = np.asarray(conditioned.sites.precision)[:n, 0, 0], np.asarray(conditioned.weights)[:n, 0]
        return AugmentedPosterior.of(found, X, basis, precision, weights)
