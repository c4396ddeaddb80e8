"""Draws of arguments: what people pass by mistake, to constructors and methods."""

from typing import Any

import numpy as np
import pandas as pd

from errorband import LBFGS, GPClassifier, GPRegressor, Parameter
from errorband.approximations import FITC, SubsetOfData
from errorband.kernels import Linear, Matern, SquaredExponential
from errorband.likelihoods import Gaussian, Poisson, StudentT
from fuzz.outcome import Wrong

ROWS = 8
KERNELS = (SquaredExponential, Matern, Linear)
JUNK = (None, "", "abc", -1, 0, 1, 2.5, np.nan, np.inf, -np.inf, 1e400, [], [1, 2], {}, {"f": 1}, True, b"x", object)
JUNK = (*JUNK, np.array(3.0), np.zeros((2, 2)), Parameter(1.0), Parameter(1.0, fixed=True), Gaussian(), LBFGS())

# Methods that take inputs, and what else they take.
REGRESSOR = (
    ("predict", ("return_std", "latent")),
    ("predict_interval", ("level",)),
    ("predict_quantiles", ("q",)),
    ("sample_posterior", ("n_samples", "random_state")),
    ("sample_prior", ("latent",)),
    ("predictive", ("latent",)),
)
CLASSIFIER = (("decide", ("loss",)), ("decide", ("reject",)), ("predict_proba", ("plug_in",)), ("predict_latent", ()))


def pick(rng: np.random.Generator, values: Any) -> Any:
    """One of some values, of whatever types."""
    return values[rng.integers(len(values))]


def strange_inputs(rng: np.random.Generator) -> Any:
    """Inputs as people have them."""
    X = rng.normal(size=(ROWS, 2))
    if rng.random() < 0.75:
        return X
    strange = (
        *(X, X, X.tolist(), X[:, 0], X[:0], X[:, :0], X[None], X.astype(np.float32), X.astype(int), X > 0),
        *(X.astype(object), X.astype(str), np.where(X > 1.5, np.nan, X), np.where(X > 1.5, np.inf, X), X * 1e200),
        *(np.ma.masked_greater(X, 1.0), X.astype("datetime64[s]"), X + 1j, X * 1e-200, X[:1], np.asfortranarray(X)),
        *(
            pd.DataFrame(X),
            pd.DataFrame(X, columns=["a", "b"]),
            pd.DataFrame(X, columns=["a", "a"]),
            pd.Series(X[:, 0]),
        ),
        *(pd.DataFrame(X).astype(str), "text", None, 3, X[:5], np.zeros((ROWS, 2)), [[1], [1, 2]], {"a": [1]}),
    )
    return pick(rng, strange)


def strange_targets(rng: np.random.Generator) -> Any:
    """Targets as people have them."""
    y = rng.normal(size=ROWS)
    if rng.random() < 0.75:
        return pick(rng, (y, y > 0))
    strange = (
        *(y, y, y.tolist(), y[:, None], y[:0], y[:5], y.astype(np.float32), y > 0, y.astype(int), y.astype(str)),
        *(np.where(y > 1, np.nan, y), np.where(y > 1, np.inf, y), y * 1e200, y * 1e-200, np.zeros(ROWS), None, 3),
        *(np.ma.masked_greater(y, 0.5), y.astype("datetime64[s]"), pd.Series(y), pd.Series(y > 0), y.astype(object)),
        *(["a", "b"] * (ROWS // 2), ["a"] * ROWS, np.array([None] * ROWS), np.abs(y), np.arange(ROWS), y + 1j, "text"),
    )
    return pick(rng, strange)


def draw(rng: np.random.Generator) -> str:
    """A call with some arguments as they should be and some not."""
    cls = pick(rng, (GPRegressor, GPRegressor, GPClassifier))
    arguments: dict[str, Any] = {"optimizer": None}
    names = ["kernel", "mean", "likelihood", "approximation", "inference", "optimizer", "n_restarts", "random_state"]
    for name in rng.choice(names, size=pick(rng, (0, 0, 0, 1, 1, 2)), replace=False):
        arguments[str(name)] = pick(rng, JUNK)
    if rng.random() < 0.1:
        arguments["kernel"] = pick(rng, KERNELS)(pick(rng, JUNK))
    if rng.random() < 0.1:
        likelihood = pick(rng, (Gaussian, StudentT, Poisson))
        arguments["likelihood"] = likelihood() if likelihood is Poisson else likelihood(pick(rng, JUNK))
    if rng.random() < 0.1:
        arguments["approximation"] = pick(rng, (FITC, SubsetOfData))(pick(rng, JUNK))
    extra = {}
    if rng.random() < 0.1:
        extra["sample_weight" if cls is GPClassifier else "noise_variance"] = pick(rng, (*JUNK, np.ones(ROWS)))
    model = cls(**arguments)
    repr(model)
    model.fit(strange_inputs(rng), strange_targets(rng), **extra)
    found = model.predict(strange_inputs(rng))
    if found.dtype.kind == "f" and not np.all(np.isfinite(found)):
        raise Wrong(f"predicted {found}")
    if rng.random() < 0.3:
        model.condition_on(strange_inputs(rng), strange_targets(rng))
    if rng.random() < 0.5:
        method, names = pick(rng, CLASSIFIER if cls is GPClassifier else REGRESSOR)
        getattr(model, method)(strange_inputs(rng), **{name: pick(rng, JUNK) for name in names})
    return "fitted"
