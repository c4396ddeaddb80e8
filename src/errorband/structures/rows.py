"""All rows of the data, a piece at a time: traced loops whose memory does not grow with the number of rows.

Pieces have one size, so that one compiled body serves them all; the last overlaps the one before it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

NUMBERS = 2**20  # of the largest array that is made for a piece
LEAST = 256  # rows of a piece: with fewer, a product costs less than adding it up


class Piece(NamedTuple):
    """Some rows that follow one another. ``fresh`` (size,) says which are in no piece before; None: all."""

    start: Any
    size: int
    fresh: Array | None

    def of(self, array: Array, axis: int = 0) -> Array:
        """These rows of an array."""
        return array if self.fresh is None else jax.lax.dynamic_slice_in_dim(array, self.start, self.size, axis)

    def once(self, array: Array, axis: int = 0) -> Array:
        """These rows, zero where a piece before has them: what is to be summed."""
        return self.new_only(self.of(array, axis), axis)

    def new_only(self, rows: Array, axis: int = 0) -> Array:
        """The same for an array of these rows."""
        if self.fresh is None:
            return rows
        shape = [self.size if i == axis else 1 for i in range(rows.ndim)]
        return jnp.where(self.fresh.reshape(shape), rows, 0.0)


def piece_size(n: int, numbers: int) -> int:
    """Rows of a piece if the largest array made for it has so many numbers for each row."""
    return min(n, max(LEAST, NUMBERS // numbers))


def sum_over_rows(function: Callable[[Piece], Any], n: int, size: int) -> Any:
    """Sum of a function (with values in a pytree) over the pieces of n rows.

    When it is differentiated, each piece is computed again on the way back: nothing is kept of it.
    """
    if size >= n:  # quicker to compile
        return function(Piece(0, n, None))

    @jax.checkpoint
    def add(total, number):
        return jax.tree.map(jnp.add, total, function(_piece(number, n, size))), None

    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), _shapes(function, n, size))
    return jax.lax.scan(add, start, jnp.arange(-(-n // size)))[0]


def map_over_rows(function: Callable[[Piece], Any], n: int, size: int) -> Any:
    """What a function gives for each row, put together: it maps a piece to arrays that begin with its rows."""
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
