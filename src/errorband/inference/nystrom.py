"""Gaussian likelihood with the Nyström approximation."""

from typing import ClassVar

import numpy as np

from errorband import linalg
from errorband.approximations import Nystrom
from errorband.inference.base import TrainingData
from errorband.inference.passes import first_pass
from errorband.inference.sparse import Sparse
from errorband.kernels.padded import diagonal, gram
from errorband.likelihoods import Gaussian
from errorband.model import Model
from errorband.numerics import MEMORY_BUDGET, in_double_precision, slices
from errorband.posterior.base import prior_mean
from errorband.posterior.nystrom import NystromPosterior, clipped_variance
from errorband.predictive import GaussianPredictive


class SparseNystrom(Sparse):
    """Evidence and derivatives of :class:`Sparse` with nothing on the diagonal; predictions with the kernel itself.

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
    >>> few = Nystrom(inducing_inputs=[[0.0], [2.0]])
    >>> model = GPRegressor(kernel, approximation=few, inference=SparseNystrom(), **settings).fit(X, y)
    >>> bool(np.isclose(model.log_evidence_, dtc.log_evidence_)), bool(np.isclose(model.predict(X), dtc.predict(X))[1])
    (True, False)
    """

    reads_rows: ClassVar[bool] = False
    partners: ClassVar[str] = "Nystrom"

    @classmethod
    def applies(cls, model):
        """Gaussian likelihood, Nyström approximation."""
        return isinstance(model.likelihood, Gaussian) and isinstance(model.approximation, Nystrom)

    @in_double_precision
    def posterior(self, model, prior, data, basis, state=None):
        """All rows, their weights g = A⁻¹t, and A⁻¹ = E − HHᵀ with H = EVC⁻ᵀ, B = CCᵀ, as N × M numbers."""
        weights, precision, half = _inverse(prior, data)
        return NystromPosterior(
            kernel=model.kernel,
            mean=model.mean,
            X=data.X,
            weights=weights,
            precision=precision,
            half=half,
            jitter=0.0,
        )

    @in_double_precision
    def leave_one_out(self, prior, data, basis, state=None):
        r"""Prediction of each row by the kernel itself from the others, for O(N²M).

        Without row n, A⁻¹ is A⁻¹ − aaᵀ/a_n, a its column n, elsewhere: with k' = k(x_n, X) but 0 at n and c = k'A⁻¹,

            mean  m_n + k'g − c_n g_n/a_n,     variance  k_nn + σ² − ck'ᵀ + c_n²/a_n.
        """
        weights, precision, half = _inverse(prior, data)
        kernel, X, n = prior.kernel, data.X, len(weights)
        own = precision - np.sum(half**2, axis=1)
        means, variances = prior_mean(prior.mean, X).copy(), diagonal(kernel, X).copy()
        chunk = min(n, max(16, MEMORY_BUDGET // (32 * n)))
        for part in slices(n, chunk):
            K = gram(kernel, X[part], X).copy()
            itself = np.arange(len(K)), np.arange(part.start, part.stop)
            K[itself] = 0.0
            C = K * precision - (K @ half) @ half.T
            c = C[itself]
            means[part] += K @ weights - c * weights[part] / own[part]
            variances[part] += -np.sum(C * K, axis=1) + c**2 / own[part]
        return GaussianPredictive(means, np.sqrt(clipped_variance(variances) + data.noise(prior.likelihood)))


def _inverse(model: Model, data: TrainingData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G = A⁻¹t, E and H, with A = Q + noise."""
    f = first_pass(model, data)
    weights, half = np.empty(len(f.r)), np.empty((len(f.r), len(f.gamma)))
    for part in f.parts:
        V = f.V(part)
        weights[part] = f.E[part] * (f.residual[part] - V @ f.gamma)
        half[part] = f.E[part][:, None] * linalg.solve_lower_rows(f.chol.factor, V)
    return weights, f.E, half
