"""The posterior mean of a model with basis functions as a plain network, for NumPy alone."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from errorband.features.bases import IN_NUMPY
from errorband.features.layer import Layer
from errorband.precision import double_precision


@dataclasses.dataclass(frozen=True)
class PlainNetwork:
    """output = bias + Σ_i v_i activation(W_i·x + b_i), in the units of the data.

    Attributes
    ----------
    W : array (M, D)
        Input weights.
    b : array (M,)
        Biases, or phases.
    v : array (M,)
        Output weights.
    bias : float
    activation : str or callable
        "cosine" is ``numpy.cos``, "erf" the error function, "bumps" ``numpy.exp``.
    precision : array (D,) or None
        For bumps the activation sees W·x + b − ½ Σ precision·(x − centre)².
    centre : array (D,)
        Subtracted from inputs under ``precision``.
    """

    W: np.ndarray
    b: np.ndarray
    v: np.ndarray
    bias: float
    activation: Any
    precision: np.ndarray | None = None
    centre: np.ndarray | None = None

    def predict(self, X: Any) -> np.ndarray:
        """The output at the rows of X."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.W.shape[1]:
            raise ValueError(f"This network needs inputs of shape (n, {self.W.shape[1]}); got {X.shape}.")
        argument = X @ self.W.T + self.b
        if self.precision is not None:
            argument -= 0.5 * ((X - self.centre) ** 2 @ self.precision)[:, None]
        with double_precision():  # for a function of JAX
            function: Any = IN_NUMPY.get(self.activation, self.activation)
            units = np.asarray(function(argument))
        return units @ self.v + self.bias


def layer_of(model: Any) -> Layer:
    """The hidden layer of a fitted model, as the model sees its inputs; ValueError if it has none."""
    check_is_fitted(model)
    latents = model._model.latents
    features = latents[0].features
    if len(latents) > 1 or not hasattr(features, "layer"):
        raise ValueError(
            "This needs a model of one function with basis functions, such as approximation=Network(100) or "
            f"SparseSpectrum(100); got {type(features or model.approximation_).__name__}."
        )
    return features.layer(latents[0].kernel, model.n_features_in_)


def posterior_weights(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean (M,) and covariance (M, M) of the weights u ~ N(0, I) of a fitted model, given the data."""
    predictor = getattr(model.posterior_, "predictor", None)
    if predictor is None or len(predictor.mean_weights) > 1:
        raise ValueError("The weights of a mixture, or of several functions, are not one network: ask each member.")
    inverse = np.asarray(predictor.inverse)
    return np.asarray(predictor.mean_weights[0]), inverse.T @ inverse


def export(model: Any) -> PlainNetwork:
    """The posterior mean of the function of a fitted model as a plain network.

    Parameters
    ----------
    model : GPRegressor or GPClassifier
        Fitted with ``approximation=Network(...)`` or ``SparseSpectrum(...)``, and a prior mean of zero.

    Returns
    -------
    network : PlainNetwork
        Its ``predict`` needs NumPy only. For a classifier its output is the mean of the latent function.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.features import Network
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (50, 2))
    >>> model = GPRegressor(approximation=Network(8), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.allclose(export(model).predict(X), model.predict(X)))
    True
    """
    layer, (mean, _), scaling = layer_of(model), posterior_weights(model), model.scaling_
    if np.size(model._model.latent.mean.basis(np.zeros((1, model.n_features_in_)))):
        raise ValueError("A plain network has no prior mean beside it: fit with mean='zero'.")
    units = getattr(model, "_units", lambda latent: (1.0, 0.0))
    scale, shift = units(True)
    W = layer.W / scaling.x_scale
    precision = None if layer.precision is None else layer.precision / scaling.x_scale**2
    return PlainNetwork(
        W=W,
        b=layer.b - W @ scaling.x_shift,
        v=scale * layer.scale * mean,
        bias=float(shift),
        activation=layer.activation,
        precision=precision,
        centre=None if precision is None else np.asarray(scaling.x_shift),
    )
