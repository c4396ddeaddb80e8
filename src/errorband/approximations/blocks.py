"""Inducing points and blocks: what the inducing points leave out is kept in full among rows that are close together."""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from sklearn.utils import check_random_state

from errorband.approximations.inducing import Inducing
from errorband.approximations.placement import SAMPLE, SAMPLE_EACH, cluster_centres
from errorband.arguments import check_whole


class PITC(Inducing):
    """Partially independent training conditional: Q plus the blocks of K − Q on the diagonal, for Gaussian noise.

    Rows belong to the block whose centre is nearest. Blocks of one row are :class:`FITC`, one block is the exact model.
    New inputs are predicted from the inducing points alone; :class:`PIC` predicts them from their block as well.

    Parameters
    ----------
    n_inducing, inducing_inputs, optimize_inputs, init, budget
        As in :class:`FITC`.
    block_size : int
        Rows of a block, on average. The cost is that of an exact model of so many rows for each block.
    centres : array (B, D) or None
        Centres of the blocks, in the units the model sees; None finds them by k-means.

    Examples
    --------
    >>> PITC(50, block_size=100)
    PITC(n_inducing=50, block_size=100)
    """

    block_size: int = eqx.field(default=200, static=True, kw_only=True)
    centres: Any = eqx.field(
        default=None, kw_only=True, converter=lambda c: None if c is None else np.asarray(c, float)
    )

    has_structure: ClassVar[bool] = False

    def __check_init__(self):
        check_whole(type(self).__name__, "block_size", self.block_size)

    @property
    def share(self) -> float:
        return 1.0

    def initialised(self, kernel, X, classes=None, random_state=None):
        ready = super().initialised(kernel, X, classes, random_state)
        if self.centres is not None:
            if self.centres.ndim != 2 or self.centres.shape[1] != X.shape[1] or len(self.centres) == 0:
                raise ValueError(
                    f"centres of {type(self).__name__} must be an array of shape (B, {X.shape[1]}), a row for each "
                    f"block; got shape {self.centres.shape}."
                )
            return ready
        rng = check_random_state(random_state)
        n_blocks = -(-len(X) // self.block_size)
        size = max(SAMPLE, SAMPLE_EACH * n_blocks)
        sample = X if len(X) <= size else X[rng.choice(len(X), size, replace=False)]
        n_blocks = min(n_blocks, len(np.unique(sample, axis=0)))
        centres = cluster_centres(sample, n_blocks, rng)
        return eqx.tree_at(lambda a: a.centres, ready, centres, is_leaf=lambda v: v is None)

    def structure(self, kernel, X, n_latents):
        """Not available: blocks are dealt with by the rule for them."""
        raise NotImplementedError(f"{type(self).__name__} is no low-rank structure; use inference='auto'.")

    def labels(self, X: np.ndarray) -> np.ndarray:
        """Number of the block of each row."""
        from sklearn.metrics import pairwise_distances_argmin

        return pairwise_distances_argmin(X, np.asarray(self.centres))


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
