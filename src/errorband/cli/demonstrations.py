"""What ``errorband demo`` shows: regression on a bundled data set and on a generated curve, with no network."""

from pathlib import Path
from typing import Any

import numpy as np

from errorband.estimators import GPRegressor
from errorband.plots import plot_band
from errorband.reporting import assess


def diabetes(seed: int = 0) -> Any:
    """Fit scikit-learn's diabetes table (442 rows, 10 inputs) and return the assessment on a quarter of the rows."""
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    X, y = load_diabetes(return_X_y=True)
    parts: Any = train_test_split(X, y, test_size=0.25, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    return assess(GPRegressor().fit(X_train, y_train), X_test, y_test, target="progression")


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


def draw_band(model: GPRegressor, path: Path) -> None:
    """Write a picture of a model of one input: mean, 95 % band, data and a little beyond them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    x = model.training_data()[0]
    plot_band(model, np.linspace(x.min() - 1, x.max() + 1, 400), levels=(0.95,), ax=axes)
    axes.set(xlabel="x", ylabel="y", title="The band widens where there are no data")
    figure.savefig(path, dpi=120)
    plt.close(figure)
