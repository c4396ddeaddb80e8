"""Dense factorisations on the host: LAPACK in place, threads by size, and the one place where jitter is added.

JAX computes covariances and derivatives; the cubic work on them is done here, by the LAPACK that SciPy ships, which
has what JAX lacks (``potri``) and can overwrite its input. Matrices are symmetric, so the C-ordered array of NumPy is
handed to Fortran as it is; factors come back in Fortran order with the other triangle unspecified.
"""

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cython_blas, get_lapack_funcs  # pyright: ignore[reportAttributeAccessIssue]
from threadpoolctl import LibController, ThreadpoolController

_NAMES = "potrf", "potri", "potrs", "trtrs", "trtri"
_potrf, _potri, _potrs, _trtrs, _trtri = get_lapack_funcs(_NAMES, dtype=np.float64)

# Tried in turn, times the mean of the diagonal, when a matrix is not positive definite as it stands.
JITTER_LADDER = (0.0, 1e-10, 1e-8, 1e-6)

# Always added, times the mean of the diagonal, to the covariance of inducing variables; see `regularised`.
INDUCING_JITTER = 1e-8

# Rows moved at once by spread_rows.
SPREAD = 64

# Below this order BLAS threads cost more than they bring.
SMALL = 384


class NotPositiveDefinite(np.linalg.LinAlgError):
    """A covariance that stays indefinite with the largest jitter."""


class Cholesky(NamedTuple):
    """Lower factor of A + jitter·I."""

    factor: np.ndarray
    jitter: float

    @property
    def log_det(self) -> float:
        """Log |A|."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self.factor))))


@functools.cache
def _blas_libraries() -> list[LibController]:
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextlib.contextmanager
def blas_threads(order: int, small: int = SMALL) -> Iterator[None]:
    """One BLAS thread for matrices of an order below ``small``, all of them for larger ones."""
    if order >= small:
        yield
        return
    with single_blas_thread():
        yield


def number_of_blas_threads() -> int:
    """Threads that BLAS uses, or would but for :func:`single_blas_thread`."""
    with _limit_lock:
        held_back = [threads for _, threads in _limited] if _limits else []
    return max([library.get_num_threads() or 1 for library in _blas_libraries()] + held_back, default=1)


_limit_lock = threading.Lock()
_limits = 0  # how many blocks are open, in all threads
_limited: list[tuple[LibController, int]] = []  # libraries with the threads they had, while one is


@contextlib.contextmanager
def single_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread within the block.

    The setting belongs to the whole process: the first block to open makes it, the last to close puts it back.
    """
    # What ThreadpoolController.limit does, without its bookkeeping of a tenth of a millisecond per call.
    global _limits, _limited
    with _limit_lock:
        if _limits == 0:
            before = [(library, library.get_num_threads() or 1) for library in _blas_libraries()]
            _limited = [(library, threads) for library, threads in before if threads != 1]
            for library, _ in _limited:
                library.set_num_threads(1)
        _limits += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limits -= 1
            if _limits == 0:
                for library, threads in _limited:
                    library.set_num_threads(threads)


def aligned_empty(n: int, m: int | None = None) -> np.ndarray:
    """An array, n×n or n×m, that starts at a multiple of 64 bytes: JAX uses it where it is, others it copies."""
    m = n if m is None else m
    raw = np.empty(8 * n * m + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + 8 * n * m].view(np.float64).reshape(n, m)


def spread_rows(buffer: np.ndarray, n: int) -> None:
    """Make the n×n matrix stored contiguously at the start of a larger square ``buffer`` its corner, zero elsewhere."""
    size = len(buffer)
    if n == size:
        return
    packed = buffer.reshape(-1)[: n * n].reshape(n, n)
    for start in reversed(range(0, n, SPREAD)):  # from the end: rows move to higher addresses only
        stop = min(start + SPREAD, n)
        buffer[start:stop, :n] = packed[start:stop].copy()
    buffer[:n, n:] = 0.0
    buffer[n:] = 0.0


def cholesky(A: np.ndarray, overwrite: bool = False) -> Cholesky:
    """Cholesky factor of a symmetric matrix, with as little jitter as makes it positive definite.

    Parameters
    ----------
    A : array (n, n)
        Symmetric; only one triangle is read.
    overwrite : bool
        Use A (C-ordered) as workspace. The other triangle and a copy of the diagonal allow a second try.

    Raises
    ------
    NotPositiveDefinite
        If the largest jitter of :data:`JITTER_LADDER` is not enough, or the matrix is not finite.
    """
    n = len(A)
    work = A if overwrite else np.array(A, order="C")
    diagonal = work.diagonal().copy()
    scale = float(diagonal.mean())
    if not np.isfinite(scale):
        raise NotPositiveDefinite(
            f"The covariance has entries that are not finite (its mean diagonal is {scale}); rescale the data, or give "
            "the kernel smaller values."
        )
    with blas_threads(n):
        for rung in JITTER_LADDER:
            jitter = rung * scale
            work.flat[:: n + 1] = diagonal + jitter
            factor, info = _potrf(work.T, lower=1, clean=0, overwrite_a=1)
            if info == 0:
                return Cholesky(factor, jitter)
            # potrf wrote the triangle it was given (the upper one of `work`); the lower one still holds A.
            _mirror_lower(work)
    raise NotPositiveDefinite(
        f"A {n}×{n} covariance is not positive definite, even with {JITTER_LADDER[-1]:g} of its mean diagonal added."
    )


def regularised(K_uu: Any) -> Any:
    """The covariance of inducing variables, with a little noise of their own. NumPy, or traced by JAX.

    Unlike the covariance of data, which gets jitter only on failure, this one always does. Inducing variables are a
    device, and u = f(Z) + ε with tiny noise ε serves as well as f(Z): the diagonal stays positive and the variational
    bound a bound. What it buys is a factor that always exists, an objective without steps where a jitter would set in,
    and derivatives in Z that keep their digits however close two inducing inputs come.
    """
    return K_uu + INDUCING_JITTER * K_uu.diagonal().mean() * np.eye(K_uu.shape[0])


def _mirror_lower(A: np.ndarray) -> None:
    """Copy the lower triangle onto the upper one, in place, a block that fits the cache at a time."""
    block = 512
    for i in range(0, len(A), block):
        rows = A[i : i + block, : i + block]
        corner = rows[:, i:]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        A[:i, i : i + block] = rows[:, :i].T


def inverse_from_cholesky(factor: np.ndarray, overwrite: bool = False) -> np.ndarray:
    """A⁻¹ from the lower factor of A; the lower triangle of the result (in Fortran order) is valid."""
    with blas_threads(len(factor)):
        inverse, info = _potri(factor, lower=1, overwrite_c=int(overwrite))
    if info != 0:
        raise _singular(info, len(factor))
    return inverse


def full_inverse(chol: Cholesky) -> np.ndarray:
    """A⁻¹ with both of its triangles."""
    return symmetric(inverse_from_cholesky(chol.factor))


def solve_lower(factor: np.ndarray, rhs: np.ndarray, transposed: bool = False) -> np.ndarray:
    """L⁻¹ rhs, or L⁻ᵀ rhs."""
    with blas_threads(len(factor)):
        result, info = _trtrs(factor, rhs, lower=1, trans=int(transposed))
    if info != 0:
        raise _singular(info, len(factor))
    return result


def _singular(row: int, n: int) -> NotPositiveDefinite:
    """LAPACK's word that the diagonal of a factor is zero in this row, counted from one."""
    return NotPositiveDefinite(
        f"A {n}×{n} covariance is singular: row {row - 1} follows from those before it. Remove duplicate rows, or add "
        "noise."
    )


def inverse_lower(factor: np.ndarray) -> np.ndarray:
    """L⁻¹ with zeros above its diagonal, in Fortran order."""
    with blas_threads(len(factor)):
        inverse, info = _trtri(np.triu(factor.T).T, lower=1, overwrite_c=1)
    if info != 0:
        raise _singular(info, len(factor))
    return inverse


def solve_lower_rows(
    factor: np.ndarray, rows: np.ndarray, transposed: bool = False, overwrite: bool = False
) -> np.ndarray:
    """L⁻¹, or L⁻ᵀ, applied to each of the rows of an array (C-ordered, to be overwritten): rows times L⁻ᵀ, or L⁻¹."""
    return _triangle_at_rows("dtrsm", factor, rows, transposed, overwrite)


def multiply_lower_rows(
    lower: np.ndarray, rows: np.ndarray, transposed: bool = False, overwrite: bool = False
) -> np.ndarray:
    """L, or Lᵀ, applied to each of the rows of an array (C-ordered, to be overwritten): rows times Lᵀ, or L.

    With L⁻¹ in the place of L it does what :func:`solve_lower_rows` does, in half the time.
    """
    return _triangle_at_rows("dtrmm", lower, rows, transposed, overwrite)


def _triangle_at_rows(name: str, lower: np.ndarray, rows: np.ndarray, transposed: bool, overwrite: bool) -> np.ndarray:
    lower, result = np.asfortranarray(lower), rows if overwrite else np.array(rows, order="C")
    n, m = result.shape
    side, uplo, trans, diag = b"L", b"L", b"T" if transposed else b"N", b"N"
    order, count, one = ctypes.c_int(m), ctypes.c_int(n), ctypes.c_double(1.0)
    sizes = ctypes.byref(order), ctypes.byref(count), ctypes.byref(one)
    with blas_threads(m):
        _blas(name)(side, uplo, trans, diag, *sizes, lower.ctypes.data, sizes[0], result.ctypes.data, sizes[0])
    return result


@functools.cache
def _blas(name: str) -> Callable[..., None]:
    """BLAS's dtrsm or dtrmm as a C function. SciPy's own wrappers let no other Python thread run meanwhile."""
    capsule, api = cython_blas.__pyx_capi__[name], ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    text, number = ctypes.c_char_p, ctypes.c_void_p
    return ctypes.CFUNCTYPE(None, *4 * [text], *7 * [number])(get_pointer(capsule, name_of(capsule)))


def symmetric(lower: np.ndarray) -> np.ndarray:
    """The matrix of which only the lower triangle is given."""
    return np.where(np.tri(len(lower), dtype=bool), lower, lower.T)


def solve_cholesky(factor: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """A⁻¹ rhs from the lower factor of A."""
    with blas_threads(len(factor)):
        result, _ = _potrs(factor, rhs, lower=1)
    return result
