"""Inducing points and blocks: what the inducing points leave out is kept in full among rows that are close together."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from sklearn.utils import check_random_state

from errorband.approximations.inducing import Inducing
from errorband.conjugate import BlocksEngine
from errorband.conjugate.blocks import Layout, block_basis, left_out
from errorband.features.placement import SAMPLE, SAMPLE_EACH, cluster_centres
from errorband.parameters import PLACE
from errorband.parameters.checks import check_whole
from errorband.structures import LowRankBlocks

LARGEST = 2  # times block_size: clusters with more rows are split
ROUNDS = 20  # of splitting


class PITC(Inducing):
    """Partially independent training conditional: Q plus the blocks of K − Q on the diagonal.

    Rows belong to the block whose centre is nearest. Blocks of one row are :class:`FITC`, one block is the exact model.
    New inputs are predicted from the inducing points alone; :class:`PIC` predicts them from their block as well. Every
    likelihood goes with it; Gaussian noise has a closed form.

    Parameters
    ----------
    n_inducing, features, inducing_inputs, optimize_inputs, init, budget, memory, bound_noise
        As in :class:`FITC`.
    block_size : int
        Rows of a block, on average. The cost is that of an exact model of so many rows for each block.
    centres : array (B, D) or None
        Centres of the blocks, in the units of the data; None finds them by k-means, and splits clusters of more than
        twice ``block_size`` rows. A row belongs to the nearest centre (of standardised inputs, with ``normalize``); the
        rows around centres that are given stay together, however many.

    Examples
    --------
    >>> PITC(50, block_size=100)
    PITC(n_inducing=50, block_size=100)
    """

    block_size: int = eqx.field(default=200, static=True, kw_only=True)
    centres: Any = eqx.field(
        default=None,
        kw_only=True,
        converter=lambda c: None if c is None else np.asarray(c, float),
        metadata={"unit": PLACE},
    )

    local: ClassVar[bool] = False
    """Whether new inputs are predicted from the rows of their block as well."""

    def __check_init__(self):
        check_whole(type(self).__name__, "block_size", self.block_size)

    @property
    def share(self) -> float:
        return 1.0

    @property
    def engine(self):
        return BlocksEngine()

    def initialised(self, latents, X, classes=None, random_state=None):
        ready, latents = super().initialised(latents, X, classes, random_state)
        if self.centres is not None:
            if self.centres.ndim != 2 or self.centres.shape[1] != X.shape[1] or len(self.centres) == 0:
                raise ValueError(
                    f"centres of {type(self).__name__} must be an array of shape (B, {X.shape[1]}), a row for each "
                    f"block; got shape {self.centres.shape}."
                )
            return ready, latents
        return dataclasses.replace(ready, centres=self._centres(X, random_state)), latents

    def _centres(self, X: np.ndarray, random_state: Any) -> np.ndarray:
        """By k-means on a sample; clusters of more than ``LARGEST`` times the wanted size are split, if rows differ."""
        rng = check_random_state(random_state)
        n_blocks = -(-len(X) // self.block_size)
        size = max(SAMPLE, SAMPLE_EACH * n_blocks)
        sample = X if len(X) <= size else X[rng.choice(len(X), size, replace=False)]
        centres = cluster_centres(sample, min(n_blocks, len(np.unique(sample, axis=0))), rng)
        whole: set[bytes] = set()  # centres of rows that are all alike
        for _ in range(ROUNDS):
            labels = nearest(X, centres)
            sizes = np.bincount(labels, minlength=len(centres))
            large = [k for k in np.flatnonzero(sizes > LARGEST * self.block_size) if centres[k].tobytes() not in whole]
            if not large:
                break
            parts = []
            for k in large:
                rows = X[labels == k]
                rows = rows if len(rows) <= SAMPLE else rows[rng.choice(len(rows), SAMPLE, replace=False)]
                distinct = len(np.unique(rows, axis=0))
                if distinct == 1:
                    whole.add(centres[k].tobytes())
                    parts.append(centres[k : k + 1])
                else:
                    parts.append(cluster_centres(rows, min(-(-sizes[k] // self.block_size), distinct), rng))
            centres = np.concatenate([np.delete(centres, large, axis=0), *parts])
        return centres

    def layout(self, X, n):
        """Blocks, filled up to one size; their size and number are rounded up, so that folds share compiled code.

        Padding consists of copies of the first row and shares its place.
        """
        labels = nearest(X[:n], np.asarray(self.centres))
        order = np.argsort(labels, kind="stable")
        found, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        shape = _rounded(len(sizes)), _rounded(int(sizes.max()))
        rows, there, place = np.zeros(shape, int), np.zeros(shape, bool), np.empty(len(X))
        for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            rows[k, :size], there[k, :size] = order[start : start + size], True
            place[rows[k, :size]] = k * shape[1] + np.arange(size)
        place[n:] = place[0]
        block_of = np.full(len(np.asarray(self.centres)), -1)
        block_of[found] = np.arange(len(found))
        return Layout(rows, there, place, block_of)

    def structure(self, latent, X, layout=None):
        assert layout is not None
        basis = block_basis(latent, X, layout)
        rest = jax.lax.map(lambda block: left_out(latent, *block), (X[layout.rows], layout.there, basis))
        return LowRankBlocks(rest[None], basis[None], layout.place, self.local), None


class PIC(PITC):
    """Partially independent conditional: :class:`PITC` that predicts new inputs from the rows of their block as well.

    Near the data it is as local as an exact model of the block; the mean may jump where blocks meet. Parameters are
    those of :class:`PITC`. (Snelson & Ghahramani 2007.)

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import SquaredExponential
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 40, (400, 1))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=400)
    >>> model = GPRegressor(SquaredExponential(0.1), approximation=PIC(10, block_size=50), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[5.0]])[0] - np.sin(15.0)) < 0.2)  # ten points alone could not follow the sine
    True
    """

    local: ClassVar[bool] = True


def _rounded(n: int) -> int:
    """Up to a power of two, or beyond 16 to a multiple of eight."""
    return 1 << (n - 1).bit_length() if n <= 16 else -(-n // 8) * 8


def nearest(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Number of the centre that is nearest to each row."""
    from sklearn.metrics import pairwise_distances_argmin

    return pairwise_distances_argmin(X, centres)
