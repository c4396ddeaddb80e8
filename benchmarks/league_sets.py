"""The tables of the league: real ones from ``$ERRORBAND_DATA`` and from scikit-learn, and a few that are generated.

Repeated splits of a table are drawn at random, whatever splits come with it, so that all are treated alike.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

REGRESSION = [
    *("abalone", "ailerons", "airfoil", "autompg", "autos", "bank32nh", "bank8fm", "bike", "boston"),
    *("california", "concreteslump", "cpu_act", "delta_ailerons", "delta_elevators", "diabetes"),
    *("elevators", "energy", "fertility", "forest", "fried_40k", "gpstuff_2d", "kin40k", "kin8nm"),
    *("machine", "mcycle", "naval", "nycflights13", "parkinsons", "pendulum", "pol", "power", "protein"),
    *("puma8nh", "sarcos_test", "servo", "skillcraft", "sml", "snelson1d", "solar", "stock", "tamielectric"),
    *("wine_red", "wine_white", "wpbc_reg", "yacht", "counts", "outliers"),
]

CLASSIFICATION = [
    *("crabs", "digits8x8", "gpml_toy_class", "magic", "neal_3class", "pima_ripley", "pima_uci"),
    *("raetsch_banana", "raetsch_breast_cancer", "raetsch_diabetis", "raetsch_flare_solar"),
    *("raetsch_heart", "raetsch_image", "raetsch_splice", "raetsch_thyroid", "raetsch_titanic"),
    *("raetsch_twonorm", "ripley_synth", "sonar", "spambase", "usps_3v5", "wisconsin", "breast", "iris"),
    *("wine", "moons", "ringnorm"),
]

# Defaults were tuned on every second set in alphabetical order, the first one included; the others were left alone.
TUNED = frozenset(sorted(REGRESSION)[::2] + sorted(CLASSIFICATION)[::2])

MOST_TEST_ROWS = 1000


class Split(NamedTuple):
    """Rows to learn from and rows to be judged on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split(name: str, number: int, rows: int) -> Split:
    """Split ``number`` of a table: a quarter of its rows, at most 1000, for the test, and at most ``rows`` to learn.

    Classes that have fewer than five rows to learn from are left out.
    """
    X, y = table(name)
    order = np.random.default_rng(number).permutation(len(y))
    n_test = min(len(y) // 4, MOST_TEST_ROWS)
    test, train = order[:n_test], order[n_test : n_test + rows]
    if name in CLASSIFICATION:
        labels, counts = np.unique(y[train], return_counts=True)
        kept = labels[counts >= 5]
        train, test = train[np.isin(y[train], kept)], test[np.isin(y[test], kept)]
    return Split(X[train], y[train], X[test], y[test])


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets; numbers for a regression, labels for classes."""
    if name in GENERATED:
        return GENERATED[name](np.random.default_rng(0))
    if name in ("breast", "iris", "wine"):
        from sklearn import datasets

        made = {"breast": datasets.load_breast_cancer, "iris": datasets.load_iris, "wine": datasets.load_wine}[name]
        return made(return_X_y=True)
    folder = os.environ.get("ERRORBAND_DATA")
    if folder is None or not (Path(folder) / f"{name}.npz").exists():
        sys.exit(
            f"Set ERRORBAND_DATA to a folder with {name}.npz (arrays X and y, or X_train, y_train, X_test, y_test)."
        )
    with np.load(Path(folder) / f"{name}.npz") as arrays:
        if "X" in arrays:
            X, y = arrays["X"], arrays["y"]
        else:
            X = np.vstack([arrays["X_train"], arrays["X_test"]])
            y = np.concatenate([arrays["y_train"], arrays["y_test"]])
        if "clean_cols" in arrays:  # columns that do not give the target away
            X = X[:, arrays["clean_cols"]]
    X, y = np.asarray(X, float), np.asarray(y).ravel()
    return X, y.astype(float) if name in REGRESSION else y.astype(int)


def counts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts whose logarithm is a smooth function of two inputs."""
    X = rng.uniform(-2, 2, (500, 2))
    return X, rng.poisson(np.exp(0.6 + np.sin(2 * X[:, 0]) + 0.4 * X[:, 1])).astype(float)


def outliers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of two of three inputs with small noise; one target in ten is grossly wrong."""
    X = rng.uniform(-2, 2, (400, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=400)
    return X, y + np.where(rng.random(400) < 0.1, 5.0 * rng.normal(size=400), 0.0)


def moons(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles that reach into each other, with noise."""
    angle, which = np.pi * rng.random(1000), rng.integers(0, 2, 1000)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.where(which[:, None] == 1, [1.0, 0.5] - X, X)
    return X + 0.25 * rng.normal(size=X.shape), which


def ringnorm(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Breiman's ringnorm: 20 inputs; N(0, 4I) against N((a, ..., a), I), a = 1/√20."""
    which = rng.integers(0, 2, 2000)
    Z = rng.normal(size=(2000, 20))
    return np.where(which[:, None] == 1, 1 / np.sqrt(20) + Z, 2.0 * Z), which


GENERATED = {"counts": counts, "outliers": outliers, "moons": moons, "ringnorm": ringnorm}
