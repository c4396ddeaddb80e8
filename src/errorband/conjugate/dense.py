"""Gaussian noise and the whole covariance matrix."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg
from errorband.conjugate.base import Closed, Engine, gradient, values_and_pull
from errorband.data import TrainingData, over_targets
from errorband.latents import Latent
from errorband.posterior import DensePosterior, SitePosterior
from errorband.predictive import GaussianPredictive
from errorband.programs import program
from errorband.rows import pad_zeros
from errorband.structures.dense import BLOCK, gram_inner


class DenseEngine(Engine):
    r"""Exact inference (Rasmussen & Williams 2006, §2.2).

    With A = K + Σ, Σ the noise, and r = y − m(X) (eq. 2.30 there):

        log p(y) = −½ rᵀA⁻¹r − ½ log|A| − (n/2) log 2π,    ∂ log p/∂A = ½(ααᵀ − A⁻¹),  α = A⁻¹r.

    One Cholesky factorisation and one inverse from it; derivatives in all hyperparameters follow from the last matrix.
    Coefficients β of the mean integrated out under a flat prior replace A⁻¹ by P = A⁻¹ − A⁻¹H(HᵀA⁻¹H)⁻¹HᵀA⁻¹ in both,
    and subtract ½ log|HᵀA⁻¹H| (the restricted likelihood; eq. 2.45). K columns of targets with this prior and noise
    have the sum of their log evidences, from the same factorisation: ½(ααᵀ − K A⁻¹) with α (n, K).

    To Σ is always added δ times the mean of the diagonal of K, δ = n ε the size of the factorisation's own rounding
    errors. Without it a search on targets without noise finds "evidence" where A is singular but for rounding (kernel
    variance over noise 10¹⁵), and its bands are then far too narrow.
    """

    def supports(self, latent, data):
        return None

    def evaluate(self, approximation, latent, noise, data):
        n = len(data.y)
        key = ("dense", len(data.padded))
        memory = data.spare.take(key) or _Memory.of(len(data.padded))
        K, m, pull = _prior(latent, data, memory)
        with linalg.blas_threads(n):
            f = _factorise(K, m, noise, data, memory.buffer)
            inverse = linalg.inverse_from_cholesky(f.factor, overwrite=True).T  # in the buffer; its upper triangle
            if f.whitened_back.shape[1]:
                inverse -= f.whitened_back @ f.whitened_back.T  # A⁻¹ becomes P
        noise_bar = 0.5 * (over_targets(f.weights**2) - data.n_targets * np.diagonal(inverse))
        # Σ contains δ mean_i K_ii, so that K_ii has, beside its own derivative ½(α_i² − (A⁻¹)_ii), δ mean_j of these.
        inverse.flat[:: n + 1] -= 2 * _rounding(n) * np.mean(noise_bar) / data.n_targets
        linalg.spread_rows(memory.buffer, n)
        weights = pad_zeros(f.weights, len(memory.buffer))
        if pull is None:
            bar = _pull_back(latent, data.on_device, weights, memory.buffer)
        else:
            bar = _pull_small(pull, weights, memory.buffer)
        latent_bar = jax.tree.map(np.asarray, bar)  # waits, for the buffer is used again
        data.spare.give(key, _Memory(K if pull is None else None, memory.buffer))
        return Closed(f.log_evidence, latent_bar, noise_bar, -f.weights)

    def posterior(self, approximation, latent, noise, data):
        f = _at_data(latent, noise, data)
        return f.log_evidence, DensePosterior(
            latent=latent,
            X=np.asarray(data.X),
            weights=f.weights,
            factor=f.factor,
            coefficients=f.coefficients,
            basis_factor=f.basis_factor,
            whitened_basis=f.whitened_basis,
            jitter=f.jitter,
        )

    def leave_one_out(self, approximation, latent, noise, data):
        """In closed form: mean y − α/P_ii, variance 1/P_ii."""
        f = _at_data(latent, noise, data)
        precision = np.diagonal(linalg.inverse_from_cholesky(f.factor, overwrite=True)).copy()
        precision -= np.sum(f.whitened_back**2, axis=1)
        precision = precision if data.y.ndim == 1 else np.tile(precision[:, None], data.n_targets)
        return GaussianPredictive(data.y - f.weights / precision, np.sqrt(1.0 / precision))

    def inner(self, approximation, latent, X, layout, bar, residual_bar):
        """A block of rows of K at a time."""
        return gram_inner(latent.kernel.gram, X, lambda start, size: bar.rows(start, size)[0])

    def site_posterior(self, approximation, latents, data, conditioned):
        return SitePosterior(latents=latents, X=data.padded, predictor=conditioned.predictor(), jitter=0.0)


class _Memory(NamedTuple):
    """Arrays of the size of the padded K that one evaluation leaves to the next: fresh memory costs time."""

    K: Any  # on the side of JAX
    buffer: np.ndarray  # for the factorisation

    @classmethod
    def of(cls, size: int) -> "_Memory":
        K = jax.device_put(np.empty((size, size))) if size**2 > BLOCK else None  # a small one is new each time
        return cls(K, linalg.aligned_empty(size))


def _prior(latent: Latent, data: TrainingData, memory: _Memory) -> tuple[Any, Any, Any]:
    """K and m(X), and the way back from them; None for that if K is large: then it is made again, a piece at a time."""
    if len(data.padded) ** 2 <= BLOCK:
        return _small_covariance(latent, data.on_device)
    return *_covariance(latent, data.on_device, memory.K), None


class _Factors(NamedTuple):
    """A = LLᵀ and what follows from it."""

    log_evidence: float
    weights: np.ndarray  # α = A⁻¹(r − Hβ) = P r; a column for each of several targets
    factor: np.ndarray  # L
    jitter: float
    coefficients: np.ndarray  # β
    basis_factor: np.ndarray  # C, HᵀA⁻¹H = CCᵀ
    whitened_basis: np.ndarray  # B = L⁻¹H
    whitened_back: np.ndarray  # A⁻¹H C⁻ᵀ, so that P = A⁻¹ − (this)(this)ᵀ


def _at_data(latent: Latent, noise: np.ndarray, data: TrainingData) -> _Factors:
    memory = _Memory.of(len(data.padded))
    K, m, _ = _prior(latent, data, memory)
    return _factorise(K, m, noise, data, memory.buffer)


def _factorise(K: Any, m: Any, noise: np.ndarray, data: TrainingData, buffer: np.ndarray) -> _Factors:
    """Factorise K + Σ in the memory of ``buffer``, which has the size of the padded K."""
    n = len(data.y)
    A = buffer.reshape(-1)[: n * n].reshape(n, n)
    A[:] = np.asarray(K)[:n, :n]
    A.flat[:: n + 1] += noise + _rounding(n) * np.mean(A.diagonal())
    chol = linalg.cholesky(A, overwrite=True)
    m, K = np.asarray(m)[:n], data.n_targets
    r = data.y - (m if data.y.ndim == 1 else m[:, None])
    H = np.zeros((n, 0)) if data.basis is None else data.basis
    p = H.shape[1]
    # Flat prior on p coefficients: n − p degrees of freedom are left (eq. 2.45).
    constant = K * (n - p) * np.log(2 * np.pi)
    if p == 0:
        alpha = linalg.solve_cholesky(chol.factor, r)
        value = -0.5 * (np.vdot(r, alpha) + K * chol.log_det + constant)
        return _Factors(float(value), alpha, chol.factor, chol.jitter, np.zeros(0), np.zeros((0, 0)), H, H)
    if n <= p:
        raise ValueError(f"Integrating out {p} coefficients of the mean needs more than {p} rows; there are {n}.")
    B = linalg.solve_lower(chol.factor, np.asfortranarray(H))
    inner = linalg.cholesky(B.T @ B)
    if inner.jitter:
        raise linalg.NotPositiveDefinite(
            "The terms of the marginalised mean repeat one another; remove constant or duplicate columns."
        )
    beta = linalg.solve_cholesky(inner.factor, B.T @ linalg.solve_lower(chol.factor, r))
    alpha = linalg.solve_cholesky(chol.factor, r - H @ beta)
    back = linalg.solve_lower(inner.factor, linalg.solve_lower(chol.factor, B, transposed=True).T).T
    value = -0.5 * (np.vdot(r, alpha) + K * (chol.log_det + inner.log_det) + constant)
    return _Factors(float(value), alpha, chol.factor, chol.jitter, beta, inner.factor, B, back)


def _rounding(n: int) -> float:
    """Size of the rounding errors of an n × n Cholesky factorisation beside the matrix: n times the machine epsilon."""
    return n * np.finfo(float).eps


def _work(latent: Latent, X: Any, *others: Any) -> int:
    """Numbers that a program makes on the way: K, its derivative and more. Searches call it a hundred times."""
    return 4 * len(X) ** 2


@program(numbers=_work, donate_argnums=2, keep_unused=True)
def _covariance(latent: Latent, X: Any, memory: Any) -> tuple[Any, Any]:
    """K and m(X); K may take the memory given."""
    return latent.kernel.gram(X, X), latent.mean.evaluate(X)


@program(numbers=_work)
def _small_covariance(latent: Latent, X: Any) -> tuple[Any, Any, Any]:
    """K, m(X), and the way back from these to the latent prior."""
    (K, m), pull = values_and_pull(lambda l: (l.kernel.gram(X, X), l.mean.evaluate(X)), latent)
    return K, m, pull


@program(numbers=_work)
def _pull_back(latent: Latent, X: Any, weights: Any, inverse: Any) -> Latent:
    """Derivatives in the latent prior, from α and the upper triangle of A⁻¹."""

    def inner(latent):
        products = gram_inner(latent.kernel.gram, X, lambda start, size: _adjoint_rows(weights, inverse, start, size))
        return products + jnp.vdot(over_targets(weights), latent.mean.evaluate(X))

    return gradient(inner, latent)


@program(numbers=lambda pull, weights, inverse: 4 * inverse.size)
def _pull_small(pull: Any, weights: Any, inverse: Any) -> Latent:
    """The same by the way back from a small K."""
    return pull((_adjoint_rows(weights, inverse, 0, len(inverse)), over_targets(weights)))


def _adjoint_rows(weights: Any, inverse: Any, start: Any, size: int) -> Any:
    """Rows of 2·triu(G) − diag(G), G = ½(ααᵀ − A⁻¹), A⁻¹ for each target: ⟨G, ∂K⟩ = ⟨this, ∂K⟩, ∂K symmetric."""
    targets = 1 if weights.ndim == 1 else weights.shape[1]
    row, column = start + jnp.arange(size)[:, None], jnp.arange(len(weights))[None, :]
    share = jnp.where(row < column, 1.0, jnp.where(row == column, 0.5, 0.0))
    own, part = (jax.lax.dynamic_slice_in_dim(a, start, size) for a in (weights, inverse))
    product = own[:, None] * weights[None, :] if weights.ndim == 1 else own @ weights.T
    return share * (product - targets * part)
