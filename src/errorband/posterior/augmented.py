"""Relevance vectors with one more basis function, at the input that is asked about."""

from typing import Any

import numpy as np

from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.posterior.base import Posterior
from errorband.posterior.predictor import FeaturePosterior
from errorband.precision import in_double_precision
from errorband.rows import padded_size, rows_within_budget, slices


class AugmentedPosterior(Posterior):
    r"""Bands that open far from the data, for a sparse linear model (Rasmussen & Quiñonero-Candela 2005).

    Before an input x* is asked about, the basis function k(·, x*) joins the model with a weight of precision α*. With
    φ = k(X, x*), sites of precision W, g the weights of the residuals, Φ the basis in the model and Σ the posterior
    covariance of its coefficients,

        s = φᵀWφ − φᵀWΦΣΦᵀWφ,    q = φᵀg,    e = k(x*, x*) − φ*ΣΦᵀWφ,

    mean and variance grow by eq/(α* + s) and e²/(α* + s). Far away e = k(x*, x*) and s = q = 0: the variance becomes
    k(x*, x*)²/α*, which is set to the average prior variance at the data. Each input has a model of its own, so the
    covariance between two inputs is that without the added basis functions. O(N·M) for each input.

    Attributes
    ----------
    base : FeaturePosterior
        Without the added basis function.
    X, basis, precision, weights : arrays (N, D), (N, M), (N,), (N,)
        Training inputs, Φ, W and g.
    added_precision : float
        α*.
    """

    base: FeaturePosterior
    X: np.ndarray
    basis: np.ndarray
    precision: np.ndarray
    weights: np.ndarray
    added_precision: float

    @classmethod
    def of(
        cls, base: FeaturePosterior, X: np.ndarray, basis: np.ndarray, precision: np.ndarray, weights: np.ndarray
    ) -> "AugmentedPosterior":
        """With the precision that gives far inputs the average prior variance at the data."""
        prior = float(np.mean(np.sum(basis**2, axis=1)))
        peak = float(np.mean(diagonal(base.latents[0].kernel, X) ** 2))
        added = peak / max(prior, np.finfo(float).tiny)
        return cls(base, X, basis, precision, weights, added)  # pyright: ignore[reportCallIssue]

    @property
    def jitter(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the model without the added basis function."""
        return self.base.jitter

    @property
    def latents(self) -> tuple[Latent, ...]:
        """Prior of the function."""
        return self.base.latents

    @in_double_precision
    def marginals(self, X, variance=True):
        mean, cov = self.base.marginals(X, variance)
        more, spread = self._added(X)
        return mean + more[:, None], None if cov is None else cov + spread[:, None, None]

    @in_double_precision
    def joint(self, X, latent=0):
        mean, cov = self.base.joint(X, latent)
        more, spread = self._added(X)
        return mean + more, cov + np.diag(spread)

    def _added(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the added basis function does to mean and variance at each input."""
        kernel, more, spread = self.base.latents[0].kernel, np.empty(len(X)), np.empty(len(X))
        predictor: Any = self.base.predictor
        root = np.asarray(predictor.inverse)  # Σ = rootᵀ root
        half = (self.precision[:, None] * self.basis) @ root.T  # WΦ rootᵀ
        chunk = min(padded_size(len(X)), rows_within_budget(24 * padded_size(len(self.X))))
        for part in slices(len(X), chunk):
            columns = gram(kernel, X[part], self.X, chunk)  # φ of each input, (n, N)
            seen = columns @ half
            own = np.asarray(self.base._cross(0, X[part])) @ root.T
            s = columns**2 @ self.precision - np.sum(seen**2, axis=1)
            e = diagonal(kernel, X[part], chunk) - np.sum(own * seen, axis=1)
            left = self.added_precision + np.maximum(s, 0.0)
            more[part], spread[part] = e * (columns @ self.weights) / left, e**2 / left
        return more, spread
