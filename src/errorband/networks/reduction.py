"""Supervised linear dimensionality reduction from the input weights of a trained network."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband.approximations import WeightSpace
from errorband.estimators import GPRegressor
from errorband.features import Network
from errorband.networks.export import layer_of
from errorband.parameters.checks import check_whole


class SupervisedReduction(TransformerMixin, BaseEstimator):
    r"""Projection of the inputs onto the directions along which a trained network varies.

    The input weights W = USVᵀ (M × D) of a network that is trained to predict a target say which directions of the
    inputs matter: the projection x → S_R V_Rᵀx keeps R of them, and ‖S_R‖/‖S‖ of the information (Frobenius norms;
    Lázaro-Gredilla 2010, §3.4). A kernel ``Projection(kernel, rank=R)`` learns a projection of rank R by design.

    Parameters
    ----------
    model : GPRegressor or GPClassifier, optional
        With ``approximation=Network(...)`` or ``SparseSpectrum(..., learn=True)``; default: a network of 50 cosines
        with bounded noise. One that is fitted is taken as it is if ``prefit``.
    n_components : int or None
        R; None: as many as keep ``retain`` of the information.
    retain : float
        Share of the information to keep, between 0 and 1.
    prefit : bool
        Take ``model`` as it is: ``fit`` looks at nothing else.

    Attributes
    ----------
    singular_values_ : array (min(M, D),)
        S, of weights for standardised inputs.
    components_ : array (R, D)
        S_R V_Rᵀ, in the units of the data.
    retained_information_ : array (min(M, D),)
        ‖S_R‖/‖S‖ for R = 1, 2, ….
    model_ : GPRegressor or GPClassifier
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=200)
    >>> model = GPRegressor(approximation=Network(10), random_state=0)
    >>> reduction = SupervisedReduction(model, n_components=1).fit(X, y)
    >>> reduction.transform(X).shape
    (200, 1)
    >>> bool(abs(np.corrcoef(reduction.transform(X)[:, 0], X[:, 0])[0, 1]) > 0.97)
    True
    """

    def __init__(self, model=None, n_components=None, *, retain=0.95, prefit=False):
        self.model = model
        self.n_components = n_components
        self.retain = retain
        self.prefit = prefit

    def fit(self, X: Any, y: Any) -> "SupervisedReduction":
        """Train the model on X and y, and find the directions."""
        X = validate_data(self, X, dtype=np.float64)
        if not (isinstance(self.retain, (int, float, np.floating)) and 0 < self.retain <= 1):
            raise ValueError(f"SupervisedReduction(retain={self.retain!r}): give a share above 0, at most 1.")
        if self.prefit:
            check_is_fitted(self.model)
            self.model_: Any = self.model
        else:
            model: Any = _default() if self.model is None else clone(self.model)
            self.model_ = model.fit(X, y)
        self.singular_values_, V = directions(self.model_)
        total = np.cumsum(self.singular_values_**2)
        self.retained_information_ = np.sqrt(total / total[-1])
        R = self.n_components
        if R is None:
            R = 1 + int(np.searchsorted(self.retained_information_, self.retain - 1e-12))
        check_whole("SupervisedReduction", "n_components", R)
        if len(V) < R:
            raise ValueError(f"SupervisedReduction(n_components={R}): there are {len(V)} directions.")
        self.components_ = self.singular_values_[:R, None] * V[:R] / self.model_.scaling_.x_scale
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The inputs along the directions, (n, R)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return (X - self.model_.scaling_.x_shift) @ self.components_.T

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the directions."""
        return np.asarray([f"direction{i}" for i in range(len(self.components_))], dtype=object)


def _default() -> GPRegressor:
    bounded: Any = WeightSpace(Network(50), bound_noise=True)  # pyright: ignore[reportCallIssue]
    return GPRegressor(approximation=bounded, random_state=0)


def directions(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Singular values and directions (rows) of the input weights of a fitted model, for standardised inputs."""
    layer = layer_of(model)
    W = layer.W
    if layer.precision is not None:
        raise ValueError("Bumps have centres and no input weights: use basis='cosine' or 'erf', or a sparse spectrum.")
    _, size, V = np.linalg.svd(W, full_matrices=False)
    return size, V
