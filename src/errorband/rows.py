"""Rows of data in pieces: padding, chunk sizes, and loops over chunks on the host and inside compiled code.

Two kinds of loop, one budget:

- :func:`map_reduce` and :func:`map_rows` run on the host, in NumPy, and may use several threads;
- :func:`sum_over_rows` and :func:`map_over_rows` are traced by JAX.

A chunk function of :func:`map_reduce` is pure: what it returns depends on its arguments only, it writes to nothing
else, and it can be pickled. Any executor with ``map(function, items)`` may therefore run it, in threads by default.
"""

import collections
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from errorband import interrupts, linalg

# Temporary arrays of chunked work on the host stay below this many bytes.
MEMORY_BUDGET = 256 * 2**20

# Entries of the largest array that is made for a piece inside compiled code, and the least number of rows of a piece.
TRACED_ENTRIES, TRACED_ROWS = 2**20, 256

# Chunks worked on at a time, at most: each has arrays of its own.
WORKERS = 8


# ---------------------------------------------------------------------------------------------------------- padding
def padded_size(n: int) -> int:
    """Round a number of rows up to one of few sizes, so that folds of unequal size share compiled code.

    A multiple of 16 up to 256, and beyond one of 32 sizes per octave. In place of 256, 512, ... there is the size 8
    above: matrices whose rows are a power of two apart share few lines of the cache, and factorising them takes a third
    longer. The rows added are fewer than 24, beyond 264 at most a thirty-second of the whole.

    Examples
    --------
    >>> [padded_size(n) for n in (5, 100, 401, 402, 512, 2000)]
    [16, 112, 408, 408, 520, 2016]
    """
    step = 16 if n <= 256 else 2 ** ((n - 1).bit_length() - 6)
    size = max(1, -(-n // step)) * step
    power = 2 ** round(math.log2(max(n, 1)))
    return power + 8 if power >= 256 and (size == power or power < n <= power + 8) else size


def pad_rows(array: np.ndarray, n: int) -> np.ndarray:
    """Append copies of the first row until there are ``n`` rows (copies are always valid inputs for a kernel)."""
    missing = n - len(array)
    return array if missing == 0 else np.concatenate([array, np.broadcast_to(array[:1], (missing, *array.shape[1:]))])


def pad_zeros(array: np.ndarray, n: int) -> np.ndarray:
    """Append zeros until there are ``n`` entries along the first axis."""
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]))]) if n > len(array) else array


def at_rows(function: Callable[[np.ndarray], Any], X: np.ndarray, size: int | None = None) -> np.ndarray:
    """Apply a compiled function to X padded to ``size`` rows (by default the next padded size), and cut the result."""
    return np.asarray(function(pad_rows(X, padded_size(len(X)) if size is None else size)))[: len(X)]


# ------------------------------------------------------------------------------------------------ loops on the host
def slices(n: int, size: int) -> list[slice]:
    """The positions 0 to n − 1 in consecutive pieces of ``size``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def rows_within_budget(bytes_per_row: float, least: int = 16) -> int:
    """Rows of a chunk whose temporary arrays stay below :data:`MEMORY_BUDGET`."""
    return max(least, int(MEMORY_BUDGET // max(bytes_per_row, 1)))


def map_rows(function: Callable[[Any], Any], n: int, size: int) -> Any:
    """Apply a function to each slice of n rows and concatenate the arrays (or tuples of arrays) that it returns."""
    return joined([function(part) for part in slices(n, size)])


class Executor(Protocol):
    """Runs a pure function on many items."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        ...


class Threads:
    """As many chunks at a time as BLAS has threads, each with one BLAS thread.

    Chunk functions mix matrix products with kernels and other passes over the chunk. Those use one core otherwise, and
    the threads of BLAS, which wait for work in a busy loop, take the other from JAX. Few results are held at once.
    """

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Results in the order of the items."""
        if len(items) == 1:
            yield function(items[0])
            return
        workers = min(WORKERS, linalg.number_of_blas_threads())
        with linalg.single_blas_thread():
            if workers == 1:
                yield from map(function, items)
                return
            with ThreadPoolExecutor(workers) as pool:
                waiting: collections.deque[Any] = collections.deque()
                try:
                    for item in items:
                        waiting.append(pool.submit(function, item))
                        if len(waiting) > workers:
                            yield waiting.popleft().result()
                    while waiting:
                        yield waiting.popleft().result()
                finally:
                    for future in waiting:  # after an error
                        future.cancel()


THREADS = Threads()


def map_reduce(
    function: Callable[[Any, Any], tuple[Any, Any]], state: Any, chunks: Sequence[Any], executor: Executor = THREADS
) -> tuple[Any, list[Any]]:
    """Sum one result of a chunk function over all chunks, and list the other.

    Parameters
    ----------
    function : callable (state, chunk) → (sums, values)
        Pure. ``sums`` is a pytree of arrays of the same shapes for every chunk, ``values`` anything.
    state : any
        The same for all chunks.
    chunks : sequence
    executor : Executor
        Where to run it.

    Returns
    -------
    sums : pytree of NumPy arrays
    values : list
        One entry for each chunk.

    Examples
    --------
    >>> def moments(shift, rows):
    ...     return (rows - shift).sum(), rows**2
    >>> total, squares = map_reduce(moments, 1.0, [np.array([1.0, 2.0]), np.array([3.0])])
    >>> float(total), joined(squares).tolist()
    (3.0, [1.0, 4.0, 9.0])
    """
    total, collected = None, []
    for sums, values in executor.map(functools.partial(function, state), chunks):
        interrupts.safe_point()
        sums = jax.tree.map(np.asarray, sums)
        total = sums if total is None else jax.tree.map(np.add, total, sums)
        collected.append(values)
    return total, collected


def joined(values: Sequence[Any]) -> Any:
    """Arrays of all chunks put together; of tuples of arrays, each in turn."""
    if isinstance(values[0], tuple):
        return tuple(np.concatenate(column) for column in zip(*values, strict=True))
    return np.concatenate(values)


class Scratch(threading.local):
    """Arrays kept for reuse by name and shape, for each thread its own: fresh memory costs more than its use."""

    def __init__(self) -> None:
        self._arrays: dict[Any, np.ndarray] = {}

    def array(self, name: str, n: int, m: int) -> np.ndarray:
        """An n × m array with arbitrary contents; the next call by the same name may return the same memory."""
        held = self._arrays.get(name)
        if held is None or held.size < n * m:
            held = self._arrays[name] = linalg.aligned_empty(n, m).reshape(-1)
        return held[: n * m].reshape(n, m)


class Spare:
    """One value at a time that the next call may use up, such as the memory of the last covariance matrix.

    It is taken out before use and put back only after success, so an interrupted call leaves nothing half used.
    """

    def __init__(self) -> None:
        self._held: dict[Any, Any] = {}

    def take(self, key: Any) -> Any:
        """What was given last under this key, None if nothing was; it is no longer held."""
        return self._held.pop(key, None)

    def give(self, key: Any, value: Any) -> None:
        """Hold a value for the next call; only one is held."""
        self._held = {key: value}


# -------------------------------------------------------------------------------------------------- traced by JAX
class Piece(NamedTuple):
    """Consecutive rows. Pieces have one size; the last overlaps the one before it.

    ``fresh`` (size,) marks the rows that no earlier piece has; None if there is only one piece.
    """

    start: Any
    size: int
    fresh: Array | None

    def of(self, array: Array, axis: int = 0) -> Array:
        """These rows of an array."""
        return array if self.fresh is None else jax.lax.dynamic_slice_in_dim(array, self.start, self.size, axis)

    def once(self, array: Array, axis: int = 0) -> Array:
        """These rows, zero where an earlier piece has them: for sums over pieces."""
        return self.new_only(self.of(array, axis), axis)

    def new_only(self, rows: Array, axis: int = 0) -> Array:
        """The same for an array that holds just these rows."""
        if self.fresh is None:
            return rows
        shape = [self.size if i == axis else 1 for i in range(rows.ndim)]
        return jnp.where(self.fresh.reshape(shape), rows, 0.0)


def piece_size(n: int, entries_per_row: int) -> int:
    """Rows of a piece, if the largest array made for it has this many entries for each row."""
    return min(n, max(TRACED_ROWS, TRACED_ENTRIES // entries_per_row))


def sum_over_rows(function: Callable[[Piece], Any], n: int, size: int) -> Any:
    """Sum of a function (with values in a pytree) over the pieces of n rows.

    When it is differentiated, each piece is computed again in the backward pass, so no intermediate results are kept.
    """
    if size >= n:  # quicker to compile
        return function(Piece(0, n, None))

    @jax.checkpoint
    def add(total, number):
        return jax.tree.map(jnp.add, total, function(_piece(number, n, size))), None

    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), _shapes(function, n, size))
    return jax.lax.scan(add, start, jnp.arange(-(-n // size)))[0]


def map_over_rows(function: Callable[[Piece], Any], n: int, size: int) -> Any:
    """Concatenate what a function returns for each piece: arrays that begin with the rows of the piece."""
    if size >= n:
        return function(Piece(0, n, None))

    def put(number, found):
        piece = _piece(number, n, size)
        place = lambda whole, rows: jax.lax.dynamic_update_slice_in_dim(whole, rows, piece.start, 0)  # noqa: E731
        return jax.tree.map(place, found, function(piece))

    start = jax.tree.map(lambda s: jnp.zeros((n, *s.shape[1:]), s.dtype), _shapes(function, n, size))
    return jax.lax.fori_loop(0, -(-n // size), put, start)


def _piece(number: Any, n: int, size: int) -> Piece:
    start = jnp.minimum(number * size, n - size)
    return Piece(start, size, start + jnp.arange(size) >= number * size)


def _shapes(function: Callable[[Piece], Any], n: int, size: int) -> Any:
    return jax.eval_shape(lambda number: function(_piece(number, n, size)), 0)
