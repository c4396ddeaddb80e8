"""What ``errorband demo`` shows: two generated curves, and a bundled table for the tool, with no network."""

from pathlib import Path
from typing import Any

import numpy as np

from errorband.estimators import GPRegressor
from errorband.plots import plot_band
from errorband.reporting import assess
from errorband.reporting.text import number, percent


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


def curve(seed: int = 0) -> tuple[GPRegressor, Any]:
    """Fit a noisy curve with a gap in the data; return the model and its assessment on 400 new rows."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 4, 60), rng.uniform(6, 10, 60)])
    y = np.sin(2 * x) + 0.3 * x + 0.2 * rng.normal(size=120)
    model = GPRegressor().fit(x[:, None], y)
    X_new = rng.uniform(0, 10, (400, 1))
    y_new = np.sin(2 * X_new[:, 0]) + 0.3 * X_new[:, 0] + 0.2 * rng.normal(size=400)
    return model, assess(model, X_new, y_new, target="y")


DEPENDING = {
    "one noise for all rows": {"likelihood": "gaussian", "calibrate": False},
    "bands that follow errors": {"likelihood": "gaussian"},  # as they do by default
    "noise that depends on x": {"likelihood": "heteroscedastic"},
}


def changing_noise(seed: int = 0) -> tuple[GPRegressor, list[tuple[str, ...]]]:
    """Fit a curve whose noise grows along the input: as if it did not, with bands as wide as errors are, and as it is.

    Returns the last model and, for all, as rows of a table (``NOISE_HEADER``): the negative log density of 400 new
    targets, and coverage and mean width of 95 % bands where noise is small (x < 5) and where it is large.
    """

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(0, 10, n)
        return x[:, None], 3 * np.sin(x) + 0.1 * np.exp(0.3 * x) * rng.normal(size=n)

    rng = np.random.default_rng(seed)
    (X, y), (X_new, y_new) = drawn(150), drawn(400)
    rows, model = [], GPRegressor()
    quiet = X_new[:, 0] < 5
    for name, options in DEPENDING.items():
        model = GPRegressor("se", **options).fit(X, y)
        found = model.predictive(X_new)
        lower, upper = found.interval(0.95)
        inside = (lower <= y_new) & (y_new <= upper)
        figures = [number(-np.mean(found.log_density(y_new)), decimals=2)]
        for part in (quiet, ~quiet):
            figures += [percent(float(np.mean(inside[part]))), number(np.mean((upper - lower)[part]), 2)]
        rows.append((name, *figures))
    return model, rows


NOISE_HEADER = ("model", "NLPD", "coverage, x < 5", "width", "coverage, x > 5", "width")


def draw_band(model: GPRegressor, path: Path, title: str = "The band widens where there are no data") -> None:
    """Write a picture of a model of one input: mean, 95 % band, data and a little beyond them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    x = model.training_data()[0]
    plot_band(model, np.linspace(x.min() - 1, x.max() + 1, 400), levels=(0.95,), ax=axes)
    axes.set(xlabel="x", ylabel="y", title=title)
    figure.savefig(path, dpi=120)
    plt.close(figure)
