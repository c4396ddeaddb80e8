"""The passes over the data of sparse inference: a chunk of rows at a time, and derivatives pulled back from it.

Letters and equations are those of :class:`~errorband.inference.sparse.Sparse`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg
from errorband.inference.base import TrainingData
from errorband.kernels import Kernel
from errorband.means import Mean
from errorband.model import Model
from errorband.numerics import MEMORY_BUDGET, in_double_precision, pad_rows, padded_size, slices

CHUNK = 2**20  # entries of K_fu that are worked on at once


class FirstPass(NamedTuple):
    """Everything of size M² or N that (1) is made of."""

    parts: list[slice]  # chunks of rows
    V: Callable[[slice], np.ndarray]  # of a chunk; the next one of this thread may take its place
    chunk: int
    buffers: linalg.Buffers  # chunk × M
    share: float  # α
    bound: float  # b
    residual: np.ndarray  # t
    noise: np.ndarray  # σ², of each row
    q: np.ndarray  # Σ_m V²
    r: np.ndarray
    S: np.ndarray
    E: np.ndarray
    factor: np.ndarray  # L
    precision: np.ndarray  # VᵀEV = B − I
    chol: linalg.Cholesky  # of B
    log_det: float  # log|B|
    gamma: np.ndarray


def first_pass(model: Model, data: TrainingData) -> FirstPass:
    """Make B, a chunk of rows at a time."""
    kernel, mean, approximation = model.kernel, model.mean, model.inducing
    n, M, alpha = len(data.y), len(approximation.inducing_inputs), approximation.share
    noise = data.noise(model.likelihood)
    K_uu = np.array(factor_covariance(kernel, approximation.inducing_inputs))
    uu = linalg.cholesky(K_uu, overwrite=True)
    if uu.jitter > 0:
        raise linalg.NotPositiveDefinite(
            "The covariance of the inducing variables is not positive definite; move inducing inputs apart or "
            "rescale the inputs."
        )
    chunk = chunk_rows(n, M)
    residual, diagonal, q, S = (np.empty(n) for _ in range(4))
    buffers = linalg.Buffers(chunk, M)
    kept = np.empty((n, M)) if 8 * n * M <= MEMORY_BUDGET else None  # then the second pass need not make V again
    there: set[int] = set()

    @in_double_precision
    def make_V(part: slice) -> np.ndarray:
        V = buffers["V"][: part.stop - part.start] if kept is None else kept[part]
        if part.start not in there:
            made = _blocks(kernel, mean, approximation.inducing_inputs, pad_rows(data.X[part], chunk))
            V[:], diagonal[part], m = (np.asarray(a)[: len(V)] for a in made)
            residual[part] = data.y[part] - m
            linalg.solve_lower_rows(uu.factor, V, overwrite=True)
            if kept is not None:
                there.add(part.start)
        return V

    def products(part: slice) -> tuple[np.ndarray, np.ndarray]:
        """VᵀEV and VᵀEt of these rows."""
        V = make_V(part)
        q[part] = np.einsum("nm,nm->n", V, V)
        S[part] = alpha * np.maximum(diagonal[part] - q[part], 0.0) + noise[part]
        scaled = np.divide(V, np.sqrt(S[part])[:, None], out=buffers["scratch"][: len(V)])
        return scaled.T @ scaled, V.T @ (residual[part] / S[part])

    parts = slices(n, chunk)
    precision, right = np.zeros((M, M)), np.zeros(M)
    for gram, vector in linalg.in_parallel(products, parts):
        precision += gram
        right += vector
    chol = linalg.cholesky(precision + np.eye(M), overwrite=True)
    return FirstPass(
        parts=parts,
        V=make_V,
        chunk=chunk,
        buffers=buffers,
        share=alpha,
        bound=float(approximation.bound),
        residual=residual,
        noise=noise,
        q=q,
        r=np.maximum(diagonal - q, 0.0),
        S=S,
        E=1.0 / S,
        factor=uu.factor,
        precision=precision,
        chol=chol,
        log_det=chol.log_det,
        gamma=linalg.solve_cholesky(chol.factor, right),
    )


def chunk_rows(n: int, M: int) -> int:
    """Rows of a chunk: all chunks alike, so that they share compiled code, and little padding in the last.

    Their number is even, if there are several: with two threads neither waits for the last.
    """
    chunks = -(-n // max(256, CHUNK // M))
    chunks += chunks % 2 if chunks > 1 else 0
    return padded_size(-(-n // chunks))


def add(a: Any, b: Any) -> Any:
    """Sum of two pytrees, as NumPy; the first may be None."""
    b = jax.tree.map(np.asarray, b)
    return b if a is None else jax.tree.map(np.add, a, b)


@jax.jit
def factor_covariance(kernel: Kernel, Z: Any) -> Any:
    """K_uu."""
    return linalg.regularised(kernel.gram(Z, Z))


@jax.jit
def _blocks(kernel: Kernel, mean: Mean, Z: Any, X: Any) -> tuple[Any, Any, Any]:
    return kernel.gram(X, Z), kernel.gram_diag(X), mean.evaluate(X)


@jax.jit
def pull_blocks(functions: tuple[Kernel, Mean], Z: Any, X: Any, K_bar: Any, diagonal_bar: Any, mean_bar: Any) -> Any:
    """Derivatives in kernel, mean and Z, from those in K_fu, diag K_ff and m(X)."""

    def inner(functions, Z):
        kernel, mean = functions
        of_kernel = jnp.vdot(K_bar, kernel.gram(X, Z)) + jnp.vdot(diagonal_bar, kernel.gram_diag(X))
        return of_kernel + jnp.vdot(mean_bar, mean.evaluate(X))

    return gradient(inner, functions, Z)


@jax.jit
def pull_product(
    functions: tuple[Kernel, Mean], Z: Any, X: Any, Y: Any, E: Any, beta: Any, diagonal_bar: Any, g: Any
) -> tuple[Any, Any]:
    """The same where K̄_fu = EY + gβᵀ, g being also the derivative in m(X); and the sum of each row of K_fu ∘ Y.

    As K_fu = VLᵀ, the latter is diag V(·)Vᵀ for Y = V(·)L⁻¹: no further product for it.
    """
    h = jnp.sum(functions[0].gram(X, Z) * Y, axis=1)
    return h, pull_blocks(functions, Z, X, E[:, None] * Y + g[:, None] * beta, diagonal_bar, g)


@jax.jit
def pull_factor(functions: tuple[Kernel, Mean], Z: Any, bar: Any) -> Any:
    """Derivatives in kernel, mean and Z, from those in K_uu."""
    return gradient(lambda f, z: jnp.vdot(bar, linalg.regularised(f[0].gram(z, z))), functions, Z)


def gradient(function: Any, functions: Any, Z: Any) -> tuple[Any, Any]:
    """∂ function(functions, Z); zero for numbers that cannot be differentiated, such as a kernel's table of edges."""
    moving, still = eqx.partition(functions, eqx.is_inexact_array)
    bar, Z_bar = jax.grad(lambda m, z: function(eqx.combine(m, still), z), argnums=(0, 1))(moving, Z)
    return eqx.combine(bar, jax.tree.map(jnp.zeros_like, still)), Z_bar
