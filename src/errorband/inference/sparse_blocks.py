"""Gaussian likelihood with inducing points and blocks."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg
from errorband.approximations import PIC, PITC
from errorband.inference.base import TrainingData
from errorband.inference.passes import add, factor_covariance, gradient, pull_factor
from errorband.inference.sites import site_posterior
from errorband.inference.sparse import Sparse, predictor
from errorband.kernels import Kernel
from errorband.likelihoods import Gaussian
from errorband.means import Mean
from errorband.model import Model
from errorband.numerics import in_double_precision, pad_rows, padded_size
from errorband.posterior import PICPosterior
from errorband.predictive import GaussianPredictive
from errorband.structures.dense import SignedRoot


class SparseBlocks(Sparse):
    """Exact inference under the prior of PITC and PIC, for Gaussian noise.

    As :class:`Sparse` for FITC, with S block diagonal, S_b = (K − Q)_bb + σ²I, in place of diagonal:

        log Z = −½ [Σ log|S_b| + log|B| + tᵀg + N log 2π],    B = I + VᵀS⁻¹V,  γ = B⁻¹VᵀS⁻¹t,  g = S⁻¹(t − Vγ),
        S̄_b = ½(g_b g_bᵀ − S_b⁻¹ + S_b⁻¹V_b B⁻¹ V_bᵀS_b⁻¹),    V̄ = gγᵀ − S⁻¹VB⁻¹ − 2S̄V.

    (Quiñonero-Candela & Rasmussen 2005, §7.) Memory is O(N(M + block)).

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import PITC
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> exact = GPRegressor(kernel, **settings).fit(X, y)
    >>> one_block = PITC(inducing_inputs=[[1.0]], block_size=3)
    >>> model = GPRegressor(kernel, approximation=one_block, inference=SparseBlocks(), **settings).fit(X, y)
    >>> bool(np.isclose(model.log_evidence_, exact.log_evidence_, rtol=1e-6))  # in one block nothing is left out
    True
    """

    reads_rows: ClassVar[bool] = False
    partners: ClassVar[str] = "PITC or PIC"

    @classmethod
    def applies(cls, model):
        """Gaussian likelihood, inducing points and blocks."""
        return isinstance(model.likelihood, Gaussian) and isinstance(model.approximation, PITC)

    @in_double_precision
    def evaluate(self, prior, data, basis, state=None):
        """Two passes over the blocks."""
        f = _factorise(prior, data)
        M = len(f.gamma)
        inverse = linalg.full_inverse(f.chol)
        L_inverse = linalg.solve_lower(f.factor, np.eye(M))
        functions, Z, bar = (prior.kernel, prior.mean), prior.inducing.inducing_inputs, None
        spread, quadratic, log_det, noise_bar = np.zeros((M, M)), 0.0, f.chol.log_det, 0.0
        for b in f.blocks:
            g = b.weights
            S_bar = 0.5 * (np.outer(g, g) - linalg.full_inverse(b.chol) + b.solved @ inverse @ b.solved.T)
            V_bar = np.outer(g, f.gamma) - b.solved @ inverse - 2.0 * S_bar @ b.V
            spread += b.V.T @ S_bar @ b.V
            quadratic += b.residual @ g
            log_det += b.chol.log_det
            noise_bar += np.trace(S_bar)
            padding = (0, len(b.padded) - len(g))
            bars = np.pad(V_bar @ L_inverse, (padding, (0, 0))), np.pad(S_bar, padding), np.pad(g, padding)
            bar = add(bar, _pull_block(functions, Z, b.padded, *bars))
        gram_bar = np.outer(f.gamma, f.gamma) - np.eye(M) + inverse - 2.0 * spread
        bar = add(bar, pull_factor(functions, Z, -0.5 * L_inverse.T @ gram_bar @ L_inverse))
        value = -0.5 * (log_det + quadratic + len(data.y) * np.log(2 * np.pi))
        return self._evaluation(value, prior, bar, noise_bar)

    @in_double_precision
    def posterior(self, model, prior, data, basis, state=None):
        """Inducing points only, or, for PIC, the blocks with them."""
        f = _factorise(prior, data)
        kept = predictor(f.gamma, f.chol)
        if not isinstance(model.approximation, PIC):
            return site_posterior(model, data, kept, f.jitter)
        return PICPosterior(
            kernel=model.kernel,
            mean=model.mean,
            approximation=model.approximation,
            factor=f.factor,
            gamma=f.gamma[None],
            inverse=np.asarray(kept.inverse),
            labels=tuple(b.label for b in f.blocks),
            X=tuple(b.X for b in f.blocks),
            weights=tuple(b.weights[:, None] for b in f.blocks),
            roots=tuple(_root(b.chol.factor) for b in f.blocks),
            jitter=f.jitter,
        )

    @in_double_precision
    def leave_one_out(self, prior, data, basis, state=None):
        r"""In closed form, inducing inputs and blocks held: what is predicted at each row from the others.

        With w = diag(S + VVᵀ)⁻¹, PIC, which looks at the rest of the block, has mean y − g/w and variance 1/w. PITC
        looks at the inducing points alone: with c = diag(VB⁻¹VᵀS⁻¹), the effect of the row's own target on them,

            mean  m + vγ − cg/w,     variance  k − vvᵀ + σ² + vB⁻¹vᵀ + c²/w      (v the row of V).
        """
        f = _factorise(prior, data)
        inverse = linalg.full_inverse(f.chol)
        means, variances = np.empty(len(data.y)), np.empty(len(data.y))
        for b in f.blocks:
            w = np.diagonal(linalg.full_inverse(b.chol)) - np.einsum("nm,mk,nk->n", b.solved, inverse, b.solved)
            if prior.approximation.local:
                means[b.rows], variances[b.rows] = data.y[b.rows] - b.weights / w, 1.0 / w
                continue
            spread = b.V @ inverse
            c = np.sum(spread * b.solved, axis=1)
            means[b.rows] = data.y[b.rows] - b.residual + b.V @ f.gamma - c * b.weights / w
            variances[b.rows] = b.variance + np.sum(spread * b.V, axis=1) + c**2 / w
        return GaussianPredictive(means, np.sqrt(variances))


def _root(factor: np.ndarray) -> SignedRoot:
    """Of E = S⁻¹, S = LLᵀ."""
    n = len(factor)
    return SignedRoot(factor, np.ones(n), np.arange(n), np.ones((n, 1, 1)))  # pyright: ignore[reportArgumentType]


class _Block(NamedTuple):
    label: int
    rows: np.ndarray
    X: np.ndarray
    padded: np.ndarray
    residual: np.ndarray  # t
    V: np.ndarray
    variance: np.ndarray  # diagonal of S_b
    chol: linalg.Cholesky  # of S_b
    solved: np.ndarray  # S_b⁻¹V_b
    weights: np.ndarray  # g


class _Factors(NamedTuple):
    blocks: list[_Block]
    factor: np.ndarray  # L
    chol: linalg.Cholesky  # of B
    gamma: np.ndarray
    jitter: float  # the most that was added to a diagonal


def _factorise(model: Model, data: TrainingData) -> _Factors:
    kernel, approximation = model.kernel, model.approximation
    assert isinstance(approximation, PITC)
    Z, noise = approximation.inducing_inputs, data.noise(model.likelihood)
    uu = linalg.cholesky(np.array(factor_covariance(kernel, Z)), overwrite=True)
    labels = approximation.labels(data.X)
    B, right, blocks = np.eye(len(Z)), np.zeros(len(Z)), []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        n, X = len(rows), data.X[rows]
        padded = pad_rows(X, padded_size(n))
        K_fu, K, m = (np.asarray(a) for a in _block(kernel, model.mean, Z, padded))
        V = linalg.solve_lower_rows(uu.factor, K_fu[:n])
        S = K[:n, :n] - V @ V.T + np.diag(noise[rows])
        chol = linalg.cholesky(S)
        solved, residual = linalg.solve_cholesky(chol.factor, V), data.y[rows] - m[:n]
        B += V.T @ solved
        right += solved.T @ residual
        blocks.append(_Block(int(label), rows, X, padded, residual, V, np.diagonal(S), chol, solved, residual))
    chol = linalg.cholesky(B)
    gamma = linalg.solve_cholesky(chol.factor, right)
    blocks = [b._replace(weights=linalg.solve_cholesky(b.chol.factor, b.residual) - b.solved @ gamma) for b in blocks]
    jitter = max(c.jitter for c in (uu, chol, *(b.chol for b in blocks)))
    return _Factors(blocks, uu.factor, chol, gamma, jitter)


@jax.jit
def _block(kernel: Kernel, mean: Mean, Z: Any, X: Any) -> tuple[Any, Any, Any]:
    return kernel.gram(X, Z), kernel.gram(X, X), mean.evaluate(X)


@jax.jit
def _pull_block(functions: tuple[Kernel, Mean], Z: Any, X: Any, K_fu_bar: Any, K_bar: Any, mean_bar: Any) -> Any:
    """Derivatives in kernel, mean and Z, from those in K_fu, K_bb and m(X)."""

    def inner(functions, Z):
        kernel, mean = functions
        of_kernel = jnp.vdot(K_fu_bar, kernel.gram(X, Z)) + jnp.vdot(K_bar, kernel.gram(X, X))
        return of_kernel + jnp.vdot(mean_bar, mean.evaluate(X))

    return gradient(inner, functions, Z)
