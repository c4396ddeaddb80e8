"""Relevance vector classification."""

from typing import ClassVar

from errorband.estimators.classifier import GPClassifier
from errorband.estimators.relevance import RelevanceMachine


class RVMClassifier(RelevanceMachine, GPClassifier):
    r"""Relevance vector machine for classes: a few kernel functions at training inputs, chosen by the evidence.

        p(y = ±1 | x) = s(±f(x)),    f(x) = Σ_m w_m k(x, x_m),     w_m ~ N(0, 1/α_m)

    As :class:`RVMRegressor`, with the likelihood of labels and Laplace's approximation at the mode (Tipping 2001, §3).

    Parameters
    ----------
    kernel : Kernel, optional
        The functions, from :mod:`errorband.kernels`. Default: squared exponential with a length-scale per input, which
        are learned. A variance left out is fixed at 1, as the weights have variances of their own.
    likelihood : {"logit", "probit"} or ClassLikelihood
        How labels arise from the latent function, as in :class:`GPClassifier`.
    inference : "laplace", "ep", "kl", "auto" or Inference
        How the posterior of the weights is approximated.
    multi_class : {"one_vs_rest", "joint"}
        For three or more classes: a machine for each class against the others; or one with the softmax, in which all
        classes share their relevance vectors and precisions (by ``algorithm="batch"``).
    algorithm : {"sequential", "batch"}
        How precisions are found, as in :class:`RVMRegressor`.
    healing : None, "augmented" or "whitened"
        What is done about the latent function's variance far from the data, as in :class:`RVMRegressor`. Without it the
        probabilities far away are those of f = 0.
    hyperprior : (float, float)
        As in :class:`RVMRegressor`.
    n_candidates : int
        Rows that may become relevance vectors, drawn at random if there are more; fewer for very many rows.
    optimizer : "lbfgs", LBFGS or None
        Search for kernel and likelihood; None keeps the given values. Precisions are found in any case.
    n_restarts : int
        Additional random starts of the first search.
    normalize : bool
        Standardise the inputs first.
    random_state : int, RandomState or None
        Seed of candidates and restarts.
    verbose : int
        1 shows progress on a terminal.

    Attributes
    ----------
    relevance_vectors_, precision_ : arrays (m, D), (m,)
        Inputs of the relevance vectors, in the units of the data, and the precisions of their weights; lists with a
        machine for each class.
    n_relevance_vectors_ : int
        How many, in all machines together.
    classes_, class_prior_, kernel_, likelihood_, log_evidence_, estimators_
        As in :class:`GPClassifier`, with the rest of its attributes and methods.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import RVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (80, 1))
    >>> y = np.where(np.sin(2 * X[:, 0]) > 0, "up", "down")
    >>> model = RVMClassifier().fit(X, y)
    >>> model.predict([[0.8], [2.4]]).tolist(), bool(model.n_relevance_vectors_ < 15)
    (['up', 'down'], True)
    """

    _learns_bias: ClassVar[bool] = False  # a column of ones would be a relevance vector

    def __init__(
        self,
        kernel=None,
        *,
        likelihood="logit",
        inference="laplace",
        multi_class="one_vs_rest",
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
        self.multi_class = multi_class
        self.algorithm = algorithm
        self.healing = healing
        self.hyperprior = hyperprior
        self.n_candidates = n_candidates
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.normalize = normalize
        self.random_state = random_state
        self.verbose = verbose
