"""Exact inference: Gaussian likelihood, dense covariance."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg
from errorband.approximations import Exact as NoApproximation
from errorband.inference.base import Evaluation, Inference, Status
from errorband.likelihoods import Gaussian
from errorband.model import PriorAtData
from errorband.parameters import replace_values
from errorband.posterior import DensePosterior
from errorband.predictive import GaussianPredictive


class Exact(Inference):
    """The Gaussian likelihood is its own site: Π = 1/σ², b = y/σ² (Rasmussen & Williams 2006, §2.2).

    With A = K + Σ, Σ the noise, and r = y − m(X) (eq. 2.30 there):

        log p(y) = −½ rᵀA⁻¹r − ½ log|A| − (n/2) log 2π,    ∂ log p/∂A = ½(ααᵀ − A⁻¹),  α = A⁻¹r.

    One Cholesky factorisation and one inverse from it; derivatives in all hyperparameters follow from the last matrix.
    Coefficients β of the mean integrated out under a flat prior replace A⁻¹ by P = A⁻¹ − A⁻¹H(HᵀA⁻¹H)⁻¹HᵀA⁻¹ in both,
    and subtract ½ log|HᵀA⁻¹H| (the restricted likelihood; eq. 2.45).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import multivariate_normal
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> model = GPRegressor(kernel, inference=Exact(), **settings).fit(X, y)
    >>> bool(np.isclose(model.log_evidence_, multivariate_normal(cov=kernel(X) + 0.1 * np.eye(3)).logpdf(y)))
    True
    """

    @classmethod
    def applies(cls, model):
        """Gaussian likelihood, whole covariance."""
        return isinstance(model.likelihood, Gaussian) and isinstance(model.approximation, NoApproximation)

    def supports(self, model, data):
        """Gaussian likelihood, whole covariance."""
        if data.weights is not None:
            return "Exact inference has no weights per row; give each row's noise_variance instead."
        if self.applies(model):
            return None
        likelihood, approximation = type(model.likelihood).__name__, type(model.approximation).__name__
        return (
            f"Exact inference needs a Gaussian likelihood and approximation='exact', not {likelihood} with "
            f"{approximation}; leave inference='auto', or choose 'laplace', 'ep' or 'kl'."
        )

    def evaluate(self, prior, data, basis, state=None):
        n, p = basis.shape
        with linalg.blas_threads(n):
            f = _factorise(prior, data, basis)
            inverse = linalg.inverse_from_cholesky(f.factor, overwrite=True).T  # in f.buffer; its upper triangle
        # Flat prior on p coefficients: n − p degrees of freedom are left (eq. 2.45).
        value = -0.5 * (f.residual @ f.weights + f.log_det + (n - p) * np.log(2 * np.pi))
        if p:
            inverse -= f.whitened_back @ f.whitened_back.T  # A⁻¹ becomes P
        noise_bar = 0.5 * float(np.sum(f.weights**2 - np.diagonal(inverse)))
        linalg.spread_rows(f.buffer, n)
        weights = np.concatenate([f.weights, np.zeros(len(f.buffer) - n)])
        adjoint = ExactAdjoint(weights, f.buffer, noise_bar, prior.likelihood)
        return Evaluation(float(value), adjoint, None, Status(True, 0, "Exact."))

    def posterior(self, model, prior, data, basis, state=None):
        f = _factorise(prior, data, basis)
        return DensePosterior(
            kernel=model.kernel,
            mean=model.mean,
            X=data.X,
            weights=f.weights,
            factor=f.factor,
            scale=np.ones(len(data.y)),
            coefficients=f.coefficients,
            basis_factor=f.basis_factor,
            whitened_basis=f.whitened_basis,
            jitter=f.jitter,
        )

    def leave_one_out(self, prior, data, basis, state=None):
        """Distribution of each target given all others, in closed form: mean y − α/P_ii, variance 1/P_ii."""
        f = _factorise(prior, data, basis)
        precision = np.diagonal(linalg.inverse_from_cholesky(f.factor, overwrite=True)).copy()
        precision -= np.sum(f.whitened_back**2, axis=1)
        return GaussianPredictive(data.y - f.weights / precision, np.sqrt(1.0 / precision))


class ExactAdjoint(NamedTuple):
    """α and the upper triangle of A⁻¹, from which ∂ log p/∂K is made where it is used."""

    weights: Any
    inverse: Any
    noise: Any
    likelihood: Any

    def expand(self) -> PriorAtData:
        """As a prior whose covariance is made a block of rows at a time."""
        likelihood = replace_values(self.likelihood, {("noise_variance",): self.noise})
        return PriorAtData(_CovarianceBar(self.weights, self.inverse), likelihood, self.weights[:, None])  # pyright: ignore[reportArgumentType]


class _CovarianceBar(eqx.Module):
    """∂ log p/∂K = ½(ααᵀ − A⁻¹) = G, as far as needed: ⟨G, ∂K⟩ = ⟨2·triu(G) − diag(G), ∂K⟩ for symmetric ∂K."""

    weights: Any
    inverse: Any

    def rows(self, start: Any, size: int) -> Any:
        """Rows of 2·triu(G) − diag(G), in place of :meth:`Dense.rows`."""
        row, column = start + jnp.arange(size)[:, None], jnp.arange(len(self.weights))[None, :]
        share = jnp.where(row < column, 1.0, jnp.where(row == column, 0.5, 0.0))
        weights = jax.lax.dynamic_slice_in_dim(self.weights, start, size)
        inverse = jax.lax.dynamic_slice_in_dim(self.inverse, start, size)
        return (share * (weights[:, None] * self.weights[None, :] - inverse))[None]


class _Factors(NamedTuple):
    """A = LLᵀ and what follows from it."""

    residual: np.ndarray  # r
    weights: np.ndarray  # α = A⁻¹(r − Hβ) = P r
    factor: np.ndarray  # L
    log_det: float  # log|A| + log|HᵀA⁻¹H|
    jitter: float
    coefficients: np.ndarray  # β
    basis_factor: np.ndarray  # C, HᵀA⁻¹H = CCᵀ
    whitened_basis: np.ndarray  # B = L⁻¹H
    whitened_back: np.ndarray  # A⁻¹H C⁻ᵀ, so that P = A⁻¹ − (this)(this)ᵀ
    buffer: np.ndarray  # of the size of the padded K; L is at its start


def _factorise(prior: PriorAtData, data: Any, basis: np.ndarray) -> _Factors:
    n, p = basis.shape
    K = np.asarray(prior.structure.K)[0]  # pyright: ignore[reportAttributeAccessIssue]
    buffer = linalg.aligned_empty(len(K))
    A = buffer.reshape(-1)[: n * n].reshape(n, n)
    A[:] = K[:n, :n]
    A.flat[:: n + 1] += data.noise(prior.likelihood)
    chol = linalg.cholesky(A, overwrite=True)
    r = data.y - np.asarray(prior.mean)[:n, 0]
    if p == 0:
        alpha = linalg.solve_cholesky(chol.factor, r)
        empty = np.zeros((n, 0))
        none = np.zeros(0), np.zeros((0, 0)), empty, empty
        return _Factors(r, alpha, chol.factor, chol.log_det, chol.jitter, *none, buffer)
    if n <= p:
        raise ValueError(f"Integrating out {p} coefficients of the mean needs more than {p} rows; there are {n}.")
    B = linalg.solve_lower(chol.factor, np.asfortranarray(basis))
    inner = linalg.cholesky(B.T @ B)
    if inner.jitter:
        raise linalg.NotPositiveDefinite(
            "The terms of the marginalised mean repeat one another; remove constant or duplicate columns."
        )
    beta = linalg.solve_cholesky(inner.factor, B.T @ linalg.solve_lower(chol.factor, r))
    alpha = linalg.solve_cholesky(chol.factor, r - basis @ beta)
    back = linalg.solve_lower(inner.factor, linalg.solve_lower(chol.factor, B, transposed=True).T).T
    log_det = chol.log_det + inner.log_det
    return _Factors(r, alpha, chol.factor, log_det, chol.jitter, beta, inner.factor, B, back, buffer)
