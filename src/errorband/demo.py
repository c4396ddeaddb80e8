"""The demonstration: exact regression on a bundled data set and on a generated curve, with no network."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from errorband.estimators import GPRegressor
from errorband.metrics import coverage, gaussian_nlpd, rmse


@dataclasses.dataclass(frozen=True)
class Score:
    """Held-out figures of one method."""

    method: str
    rmse: float
    nlpd: float
    coverage: float


def diabetes_scores(seed: int = 0) -> list[Score]:
    """Fit scikit-learn's diabetes table (442 rows, 10 inputs) and compare with a mean and a linear baseline."""
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    X, y = load_diabetes(return_X_y=True)
    parts: Any = train_test_split(X, y, test_size=0.25, random_state=seed)
    return compare(*parts)


def compare(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> list[Score]:
    """Held-out figures of the Gaussian process and of two baselines with a constant band."""
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import LinearRegression

    mean, std = GPRegressor().fit(X, y).predict(X_test, return_std=True)
    scores = [_score("errorband GPRegressor()", y_test, mean, std)]
    for name, baseline in (("linear regression", LinearRegression()), ("mean of the targets", DummyRegressor())):
        baseline.fit(X, y)
        spread = np.std(y - baseline.predict(X))
        scores.append(_score(name, y_test, np.asarray(baseline.predict(X_test)), np.full(len(y_test), spread)))
    return scores


def _score(method: str, y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Score:
    inside = coverage(y, mean - 1.959964 * std, mean + 1.959964 * std)
    return Score(method, rmse(y, mean), gaussian_nlpd(y, mean, std), inside)


def write_diabetes(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Write the diabetes table as two CSV files, as people have them: rows to learn from, and twenty new ones."""
    from sklearn.datasets import load_diabetes

    from errorband.tables import write_table

    bunch: Any = load_diabetes(as_frame=True, scaled=False)
    frame = bunch.frame.rename(columns={"target": "progression"})
    frame["sex"] = frame["sex"].map({1.0: "a", 2.0: "b"})  # the table does not say which is which
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(len(frame))])
    new = frame.sample(20, random_state=seed)
    table, unseen = folder / "diabetes.csv", folder / "new.csv"
    write_table(frame.drop(index=new.index), table)
    write_table(new.drop(columns="progression"), unseen)
    return table, unseen


def curve(seed: int = 0) -> tuple[GPRegressor, np.ndarray, np.ndarray, list[Score]]:
    """A noisy curve with a gap in the data, its model, and its held-out figures."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 4, 60), rng.uniform(6, 10, 60)])
    y = np.sin(2 * x) + 0.3 * x + 0.2 * rng.normal(size=120)
    X = x[:, None]
    model = GPRegressor().fit(X, y)
    X_new = rng.uniform(0, 10, (400, 1))
    y_new = np.sin(2 * X_new[:, 0]) + 0.3 * X_new[:, 0] + 0.2 * rng.normal(size=400)
    return model, X, y, compare(X, X_new, y, y_new)


def draw_band(model: GPRegressor, X: np.ndarray, y: np.ndarray, path: Path) -> None:
    """Write a picture of a one-dimensional fit: mean, 95 % band, data."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid = np.linspace(X.min() - 1, X.max() + 1, 400)[:, None]
    mean = model.predict(grid)
    lower, upper = model.predict_interval(grid, 0.95)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.fill_between(grid[:, 0], lower, upper, color="#56B4E9", alpha=0.35, label="95 % band", linewidth=0)
    axes.plot(grid[:, 0], mean, color="#0072B2", label="mean")
    axes.plot(X[:, 0], y, ".", color="#222222", markersize=4, label="data")
    axes.set(xlabel="x", ylabel="y", title="The band widens where there are no data")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
