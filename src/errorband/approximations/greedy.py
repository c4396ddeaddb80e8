"""Sparse greedy approximation: kernel functions of a few rows, added until a certificate says that it is enough."""

import dataclasses
from dataclasses import KW_ONLY
from typing import ClassVar

import equinox as eqx
import numpy as np

from errorband.approximations.base import with_features
from errorband.approximations.inducing import LowRankApproximation
from errorband.features import Points
from errorband.parameters.checks import check_number, check_whole

SELECTIONS = "greedy", "matching_pursuit", "residual", "information", "random"


class SparseGreedy(LowRankApproximation):
    r"""Kernel functions of a few rows, one after the other, until the posterior mode is certified to be near.

    The mean is sought among Σ_m b_m k(·, x_m) over chosen rows. For Gaussian noise a primal and a dual quadratic bound
    what is lost against all rows from above (Smola & Bartlett 2001); for other log-concave likelihoods the gradient at
    the mode in the subspace does (:mod:`errorband.training.greedy`). ``certificate_`` of the fitted estimator says: the
    mode is within so many nats of that of the exact model. Hyperparameters are learned on ``n_rows`` rows, as the exact
    model has them. Mean and evidence are then those of :class:`DTC` with inducing inputs at the chosen rows.

    Parameters
    ----------
    n_inducing : int
        Rows to choose, at most.
    tolerance : float
        Stop when the gap is below this share of the value itself.
    candidates : int or None
        Rows drawn at random in each step, of which the best is taken; 59 have one of the best twentieth among them with
        a probability of 0.95. None looks at all rows.
    selection : {"greedy", "matching_pursuit", "residual", "information", "random"}
        Which is the best: the one that lowers the objective most; the largest slope for its length; the worst fit; the
        least known; or any. For likelihoods other than Gaussian, "greedy" is the largest K̃_ii c'_i², the row's part of
        the certificate.
    n_rows : int
        Rows to learn hyperparameters from.
    features : Points or None
        The chosen rows; set by ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (400, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    >>> model = GPRegressor(approximation=SparseGreedy(n_rows=100), random_state=0).fit(X, y)
    >>> bool(model.certificate_.relative_gap < 0.025), bool(len(model.approximation_.features.inducing_inputs) < 60)
    (True, True)
    """

    short_names: ClassVar = {"sparse-greedy": {}, "sga": {}}

    n_inducing: int = eqx.field(default=500, static=True)
    _: KW_ONLY
    tolerance: float = eqx.field(default=0.025, static=True)
    candidates: int | None = eqx.field(default=59, static=True)
    selection: str = eqx.field(default="greedy", static=True)
    n_rows: int = eqx.field(default=1000, static=True)
    features: Points | None = None

    def __check_init__(self):
        for name in ("n_inducing", "n_rows"):
            check_whole("SparseGreedy", name, getattr(self, name))
        if self.candidates is not None:
            check_whole("SparseGreedy", "candidates", self.candidates, other=", or None")
        check_number("SparseGreedy", "tolerance", self.tolerance)
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection={self.selection!r}: choose one of {', '.join(map(repr, SELECTIONS))}.")

    @property
    def strategies(self):
        return ("greedy",)

    def initialised(self, latents, X, classes=None, random_state=None):
        if len(latents) > 1:
            raise ValueError("SparseGreedy is for one latent function; use FITC or VFE for several.")
        first = Points(optimize_inputs=False).at(np.asarray(X[:1]))
        return dataclasses.replace(self, features=None), with_features(latents, [first])

    def fitted(self, latents):
        return dataclasses.replace(self, features=latents[0].features)
