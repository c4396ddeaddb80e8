"""The Nyström approximation: the covariance of the data has low rank, that of new inputs with the data has not."""

from typing import Any, ClassVar

import numpy as np

from errorband import linalg
from errorband.approximations.inducing import Inducing
from errorband.conjugate import LowRankEngine
from errorband.conjugate.low_rank import first_pass
from errorband.data import TrainingData
from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.posterior import NystromPosterior
from errorband.posterior.base import prior_mean
from errorband.posterior.nystrom import clipped_variance
from errorband.precision import in_double_precision
from errorband.predictive import GaussianPredictive
from errorband.rows import rows_within_budget, slices


class Nystrom(Inducing):
    r"""Nyström approximation, for Gaussian noise: Q in place of K among the training rows, and nowhere else.

    With Q = K_fu K_uu⁻¹ K_uf and noise σ², evidence and weights are those of :class:`DTC`, and

        mean  m* + k*ᵀ(Q + σ²I)⁻¹(y − m),     variance  k** − k*ᵀ(Q + σ²I)⁻¹k*,     k* = k(X, x*).

    There is no Gaussian process whose predictions these are: the joint covariance of training and new values need not
    be positive, and variances can come out below zero. They are then set to zero, with a warning. It is here for
    comparison; use :class:`FITC` or :class:`VFE`. A prediction looks at all N training rows. Parameters are those of
    :class:`FITC`. (Williams & Seeger 2001; Quiñonero-Candela & Rasmussen 2005, §8.)

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import DTC
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> dtc = GPRegressor(kernel, approximation=DTC(inducing_inputs=[[0.0], [2.0]]), **settings).fit(X, y)
    >>> model = GPRegressor(kernel, approximation=Nystrom(inducing_inputs=[[0.0], [2.0]]), **settings).fit(X, y)
    >>> bool(np.isclose(model.log_evidence_, dtc.log_evidence_)), bool(np.isclose(model.predict(X), dtc.predict(X))[1])
    (True, False)
    """

    @property
    def engine(self):
        return NystromEngine()


class NystromEngine(LowRankEngine):
    """Evidence and derivatives of :class:`LowRankEngine` with nothing on the diagonal; predictions with the kernel."""

    reads_rows: ClassVar[bool] = False
    sites: ClassVar[bool] = False

    @in_double_precision
    def posterior(self, approximation, latent, noise, data):
        """Keep all rows, their weights g = A⁻¹t, and A⁻¹ = E − HHᵀ with H = EVC⁻ᵀ, B = CCᵀ: N × M arrays."""
        value, weights, precision, half = _inverse(approximation, latent, noise, data)
        return value, NystromPosterior(
            latent=latent, X=np.asarray(data.X), weights=weights, precision=precision, half=half, jitter=0.0
        )

    @in_double_precision
    def leave_one_out(self, approximation, latent, noise, data):
        r"""Prediction of each row by the kernel itself from the others, for O(N²M).

        Without row n, A⁻¹ is A⁻¹ − aaᵀ/a_n, a its column n, elsewhere: with k' = k(x_n, X) but 0 at n and c = k'A⁻¹,

            mean  m_n + k'g − c_n g_n/a_n,     variance  k_nn + σ² − ck'ᵀ + c_n²/a_n.
        """
        _, weights, precision, half = _inverse(approximation, latent, noise, data)
        kernel, X, n = latent.kernel, np.asarray(data.X), len(weights)
        own = precision - np.sum(half**2, axis=1)
        means, variances = prior_mean(latent.mean, X).copy(), diagonal(kernel, X).copy()
        for part in slices(n, min(n, rows_within_budget(32 * n))):
            K = gram(kernel, X[part], X).copy()
            itself = np.arange(len(K)), np.arange(part.start, part.stop)
            K[itself] = 0.0
            C = K * precision - (K @ half) @ half.T
            c = C[itself]
            means[part] += K @ weights - c * weights[part] / own[part]
            variances[part] += -np.sum(C * K, axis=1) + c**2 / own[part]
        return GaussianPredictive(means, np.sqrt(clipped_variance(variances) + noise))


def _inverse(
    approximation: Any, latent: Latent, noise: np.ndarray, data: TrainingData
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Log evidence, g = A⁻¹t, E and H, with A = Q + noise."""
    f = first_pass(approximation, latent, noise, data)
    weights, half = np.empty(len(f.r)), np.empty((len(f.r), len(f.gamma)))
    for part, chunk in zip(f.parts, f.second_rows(), strict=True):
        V = f.make_V(latent, chunk)
        weights[part] = f.E[part] * (f.t[part] - V @ f.gamma)
        half[part] = f.E[part][:, None] * linalg.solve_lower_rows(f.chol.factor, V)
    return f.log_evidence(weights), weights, f.E, half
