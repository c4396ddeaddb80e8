"""Twinned models with other kinds of outliers: that know nothing of the function, or are shifted."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.base import robust_scale
from errorband.likelihoods.gated import Branch, Gate
from errorband.likelihoods.twinned import REGULAR, WithGate
from errorband.parameters import LEVEL, POSITIVE, REAL, SPREAD, VARIANCE, hyperparameter


class Ignorance(WithGate):
    """p(y | f, u) = Φ(u + bias) N(y; f, σ²) + Φ(−u − bias) N(y; centre, v): outliers that know nothing of f.

    Where :class:`Twinned` takes an outlier for a poor measurement of f, here it is a draw of a distribution that is
    the same everywhere (Naish-Guzman 2007, §4.2). Fragile: on some data the search explains regular targets as
    outliers. Compare its evidence with that of :class:`Twinned`.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the noise variance of regular targets.
    centre, outlier_variance : float, Parameter or None
        Mean and variance of outliers. None starts at those of all targets.
    bias : float, Parameter or None
        Mean of the gate. None starts at 1.645, 5% of outliers.

    Examples
    --------
    >>> import numpy as np
    >>> mean, cov = np.array([[5.0, 0.0]]), 1e-6 * np.eye(2)[None]
    >>> Ignorance(0.01, 0.0, 1.0, 0.0).predictive(mean, cov).mean.round(3)  # half f, half the centre of outliers
    array([2.5])
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    centre: Any = hyperparameter(REAL, ndim=0, unit=LEVEL)
    outlier_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    bias: Any = hyperparameter(REAL, ndim=0)

    def branches(self):
        return (
            Branch(0, self.noise_variance, (Gate(1, 1.0, self.bias),)),
            Branch(None, self.outlier_variance, (Gate(1, -1.0, self.bias),), outlier=True, centre=self.centre),
        )

    def defaults(self, y):
        spread = float(np.var(y)) or 1.0
        return {
            "noise_variance": robust_scale(y) ** 2, "centre": float(np.mean(y)), "outlier_variance": spread,
            "bias": REGULAR,
        }  # fmt: skip


class CompoundOutliers(WithGate):
    """Twinned, with outliers of several kinds: Φ(−u − bias) Σ_c w_c N(y; f + offset_c, variance_c).

    For faults that shift a measurement by about the same amount, such as a wrong unit or a stuck bit, beside others
    (Naish-Guzman 2007, eq. 4.6).

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the noise variance of regular targets.
    offsets, outlier_variances : arrays (C,), Parameter or None
        Centre, relative to f, and variance of each kind. None starts with one kind far above and one far below f, and
        a wide one.
    logits : array (C,), Parameter or None
        Logarithms of the shares w_c, up to a constant. None starts with equal shares.
    bias : float, Parameter or None
        Mean of the gate. None starts at 1.645, 5% of outliers.

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = CompoundOutliers(0.01, [10.0, 0.0], [0.01, 1.0], [0.0, 0.0], 0.0)
    >>> mean, cov = np.zeros((1, 2)), 1e-6 * np.eye(2)[None]
    >>> likelihood.predictive(mean, cov).mean.round(3)  # half of the outliers, which are half, are 10 too high
    array([2.5])
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    offsets: Any = hyperparameter(REAL, ndim=1, unit=SPREAD)
    outlier_variances: Any = hyperparameter(POSITIVE, ndim=1, unit=VARIANCE)
    logits: Any = hyperparameter(REAL, ndim=1)
    bias: Any = hyperparameter(REAL, ndim=0)

    def branches(self):
        gates = (Gate(1, -1.0, self.bias),)
        log_weights = jax.nn.log_softmax(jnp.asarray(self.logits))
        kinds = [
            Branch(0, self.outlier_variances[c], gates, True, self.offsets[c], log_weights[c])
            for c in range(len(self.logits))
        ]
        return (Branch(0, self.noise_variance, (Gate(1, 1.0, self.bias),)), *kinds)

    def defaults(self, y):
        s2, spread = robust_scale(y) ** 2, float(np.var(y)) or 1.0
        far = 2 * np.sqrt(spread)
        given = [np.shape(v) for v in (self.offsets, self.outlier_variances, self.logits) if v is not None]
        C = given[0][0] if given else 3
        offsets = np.resize([0.0, far, -far], C)
        return {
            "noise_variance": s2, "offsets": offsets, "logits": np.zeros(C), "bias": REGULAR,
            "outlier_variances": np.where(offsets == 0, 4 * spread, 0.1 * spread),
        }  # fmt: skip
