"""Relevance vector regression."""

from errorband.estimators.regressor import GPRegressor
from errorband.estimators.relevance import RelevanceMachine


class RVMRegressor(RelevanceMachine, GPRegressor):
    r"""Relevance vector machine: a few kernel functions at training inputs, chosen by the evidence (Tipping 2001).

        f(x) = Σ_m w_m k(x, x_m),     w_m ~ N(0, 1/α_m)

    Each training input may carry a kernel function; precisions α, kernel and noise are found by maximising the
    evidence, which drives most precisions to infinity. Predictions cost O(m) for m relevance vectors. It is a Gaussian
    process with the covariance K S Kᵀ, S = diag(1/α), so the kernel need not be positive definite.

    Its bands close far from the data, where every kernel function is zero: see ``healing``, or take
    :class:`GPRegressor`.

    Parameters
    ----------
    kernel : Kernel, optional
        The functions, from :mod:`errorband.kernels`. Default: squared exponential with a length-scale per input, which
        are learned. A variance left out is fixed at 1, as the weights have variances of their own.
    likelihood : Likelihood, optional
        How targets scatter around the function. Default: Gaussian noise of learned variance. Others are dealt with by
        sites, with one latent function or several that share a prior.
    inference : "auto", "conjugate", "laplace", "ep", "kl" or Inference
        As in :class:`GPRegressor`.
    algorithm : {"sequential", "batch"}
        How precisions are found: from none, by adding, deleting and re-estimating one at a time (Tipping & Faul 2003);
        or from all, by a fixed point. Sequential is much faster.
    healing : None, "augmented" or "whitened"
        What is done about bands that close far from the data. "augmented": a basis function is added at the input asked
        about, for O(N m) per input. "whitened": independent noise in the prior, which is then rescaled to a constant
        variance; costs nothing, and is another model.
    hyperprior : (float, float)
        Shape a and rate b of a Gamma density of each precision, taken with respect to its logarithm; with b = 0 a power
        law. Zeros, the default, leave the evidence alone. For ``algorithm="batch"``.
    n_candidates : int
        Rows that may become relevance vectors, drawn at random if there are more; fewer for very many rows.
    optimizer : "lbfgs", LBFGS or None
        Search for kernel and likelihood; None keeps the given values. Precisions are found in any case.
    n_restarts : int
        Additional random starts of the first search.
    normalize : bool
        Standardise inputs and targets first, as in :class:`GPRegressor`.
    random_state : int, RandomState or None
        Seed of candidates and restarts.
    verbose : int
        1 shows progress on a terminal.

    Attributes
    ----------
    relevance_vectors_ : array (m, D)
        Their inputs, in the units of the data.
    precision_ : array (m,)
        α, in the units the model sees.
    n_relevance_vectors_ : int
        m.
    kernel_, likelihood_, log_evidence_, fit_result_, scaling_, posterior_
        As in :class:`GPRegressor`, with the rest of its attributes and methods.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import RVMRegressor
    >>> X = np.linspace(-10, 10, 100)[:, None]
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.05 * np.random.default_rng(0).normal(size=100)
    >>> model = RVMRegressor().fit(X, y)
    >>> bool(model.n_relevance_vectors_ < 15)
    True
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.1), bool(std[0] < 0.1)
    (True, True)
    """

    def __init__(
        self,
        kernel=None,
        *,
        likelihood=None,
        inference="auto",
        algorithm="sequential",
        healing=None,
        hyperprior=(0.0, 0.0),
        n_candidates=1000,
        optimizer="lbfgs",
        n_restarts=0,
        normalize=True,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.algorithm = algorithm
        self.healing = healing
        self.hyperprior = hyperprior
        self.n_candidates = n_candidates
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.normalize = normalize
        self.random_state = random_state
        self.verbose = verbose
