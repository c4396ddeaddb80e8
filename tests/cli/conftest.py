"""Small tables as files, and a way to run the tool in this process."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from typer.testing import CliRunner

from errorband.cli import app, fitting
from errorband.reporting.classification.baselines import CLASS_BASELINES
from errorband.reporting.regression.baselines import BASELINES


@contextlib.contextmanager
def cheap():
    """Leave out gradient boosting, which takes seconds for its cross-validation, and the choice among kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "LEAST_SECONDS", np.inf)
        for registry in (BASELINES, CLASS_BASELINES):
            patch.delitem(registry, "Gradient boosting")
        yield


@pytest.fixture(scope="session")
def run():
    """Run the tool; the result has exit_code, stdout and stderr. Few things are tried unless all are asked for."""
    runner = CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"})

    def invoke(*args, all_of_it=False, **kwargs):
        with contextlib.nullcontext() if all_of_it else cheap():
            return runner.invoke(app, [str(a) for a in args], **kwargs)

    return invoke


@pytest.fixture(scope="session")
def diabetes():
    """Eighty rows with words, dates and an id, without missing cells."""
    frame = load_diabetes(as_frame=True, scaled=False)["frame"].head(80).rename(columns={"target": "progression"})
    rng = np.random.default_rng(0)
    frame["sex"] = frame["sex"].map({1.0: "a", 2.0: "b"})
    frame["clinic"] = rng.choice(["north", "south", "west"], len(frame))
    frame["visit"] = [str(day)[:10] for day in pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(80) * 7, "D")]
    frame.insert(0, "patient", [f"{i:04d}" for i in range(len(frame))])
    return frame[["patient", "sex", "clinic", "visit", "bmi", "bp", "s5", "progression"]]


@pytest.fixture(scope="session")
def wine():
    """Sixty rows of the wine table, to be written with semicolons and with gaps; the target is a number."""
    frame = load_wine(as_frame=True)["frame"].sample(60, random_state=1)
    frame = frame[["alcohol", "malic_acid", "hue", "proline", "target"]].reset_index(drop=True)
    frame["grape"] = frame.pop("target").map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    frame.loc[[3, 17], "hue"] = np.nan
    frame.loc[5, "grape"] = None
    return frame


@pytest.fixture(scope="session")
def fitted(run, diabetes, tmp_path_factory):
    """A folder with data.csv, model.eb and report.html, made once by the tool."""
    folder = tmp_path_factory.mktemp("fitted")
    diabetes.to_csv(folder / "data.csv", index=False)
    result = run(
        "fit", folder / "data.csv", "--target", "progression", "--id", "patient", "--output", folder / "model.eb",
        "--report", folder / "report.html", "--time-budget", 20,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    (folder / "fit.txt").write_text(result.stdout)
    return folder
