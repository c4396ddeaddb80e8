"""Small fitted models, fitted once for all tests of the reports."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from errorband import LBFGS, GPClassifier, GPRegressor

HOSTILE = "<script>alert(1)</script>"


@dataclasses.dataclass(frozen=True)
class Case:
    """A fitted model with the rows it was fitted to and rows held out."""

    model: Any
    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any


def _case(X, y, n_train, model=None):
    rows = slice(None, n_train), slice(n_train, None)
    cut = (lambda a, s: a.iloc[s]) if hasattr(X, "iloc") else (lambda a, s: a[s])
    X_train, X_test, y_train, y_test = cut(X, rows[0]), cut(X, rows[1]), cut(y, rows[0]), cut(y, rows[1])
    return Case((model or GPRegressor()).fit(X_train, y_train), X_train, y_train, X_test, y_test)


@pytest.fixture(scope="session")
def sinc():
    """One input."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, (120, 1))
    return _case(X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.normal(size=120), 80)


@pytest.fixture(scope="session")
def bump():
    """Two inputs."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (140, 2))
    return _case(X, 3 * X[:, 0] * np.exp(-(X**2).sum(axis=1)) + 0.05 * rng.normal(size=140), 100)


@pytest.fixture(scope="session")
def frame():
    """Four named inputs of different scales: one hostile, one of three values, one without effect."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {
            HOSTILE: rng.uniform(0, 100, 160),
            "level": rng.integers(0, 3, 160).astype(float),
            "idle": rng.normal(size=160),
            "50 % of %{x}": rng.uniform(-1, 1, 160),
        },
        index=[f"r{i}" for i in range(160)],
    )
    y = 20 + 0.1 * X[HOSTILE] + 2 * X["level"] + np.sin(3 * X["50 % of %{x}"]) + 0.5 * rng.normal(size=160)
    return _case(X, y.rename("yield <b>"), 110)


@pytest.fixture(scope="session")
def flags():
    """Two inputs and two classes, one with a hostile name."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (120, 2))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=120) > 0, "<b>yes", "no")
    return _case(X, y, 80, GPClassifier(optimizer=LBFGS(tolerance=1e-3)))
