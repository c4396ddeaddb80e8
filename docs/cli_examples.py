"""Write docs/cli.md: run the commands it shows and paste what they really print.

Run ``python docs/cli_examples.py`` after a change to the tool.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

PAGE = Path(__file__).with_name("cli.md")
SETTINGS = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "TERM": "dumb"}

INTRO = """# The command-line tool

`errorband` learns a model from a table and predicts with error bands. This page is written by
`python docs/cli_examples.py`; all output below was printed by the commands shown.

Tables are CSV (any common delimiter, decimal commas too), gzipped CSV or Parquet. Columns may hold numbers, yes/no
values, dates and words; each is encoded by itself and the encoding is kept in the model file. Results go to standard
output; notes, warnings, errors and the progress bar go to standard error.
"""

PARTS: list[tuple[str, str, list[str]]] = [
    (
        "Fit",
        """`fit` holds out a share of the rows (`--test-size`), learns from the others, and compares its
predictions of the held-out rows with those of simple baselines. Then the model learns from **all** rows, with the
same hyperparameters and scaling (`condition_on` in Python), and is written to one file. The report (`--report`)
describes the model that was judged.

- The encoding (levels of words, notation of dates) is learned from the whole table; it never looks at the target's
  values.
- `--missing error` (the default) refuses missing cells, `drop` leaves out their rows. With `impute`
  predictions of rows with missing cells are averaged over what these may be, given the known ones
  ([how](theory/missing.md)). Bands are wider by as much as the missing cells matter.
- `--model auto` (the default) uses all rows, and says how. A model without approximation holds 5,000 (2,000 or fewer
  for classes); with more, the model is `fitc`: [inducing points](theory/sparse.md), 200 of them, or fewer if the table
  is so large that the time would not suffice. What was chosen, and why, is printed, shown by `info`, kept in the model
  file (`approximation`, `n_inducing` and `approximation_reason` of `info --json`) and told in the report.
- `--time-budget` limits the search of hyperparameters. Without approximation its cost grows with the cube of the number
  of rows, so it uses at most as many rows as the time allows (2,500 for a minute,
  900 of two classes), drawn at random with `--seed`; the
  model then learns from all. To judge the model and to write it takes time besides. Without this option rows, inducing
  points and iterations are planned for a minute, and no clock ends the search: a seed gives the same model on a busy
  machine (`--inducing auto` and models that are estimators of their own have a minute by the clock).
- `--model exact` insists on a model without approximation: it keeps at most 5,000 rows (2,000 or fewer), drawn at
  random, with a warning. `--max-rows` sets another limit, for every model.
- `--model fitc` or `vfe` insists on inducing points; `--inducing` is how many, or `auto`: the report then shows what
  was tried, and the certificate that more would not help.
- Kernel and noise are chosen by evidence if neither `--kernel` nor `--likelihood` is given (`auto`): some candidates
  are fitted to at most 300 rows (600 of two classes, which mix them), the table says what came of it, and so does the
  report ([how](theory/defaults.md#auto)). With more than 1,000 rows noise is Gaussian; with more than 5,000 (2,000 of
  classes), three classes or a time budget below 20 seconds, the kernel too is the default.
- `--kernel`, `--likelihood` and `--model` take the names that Python takes: whatever is registered, by its class
  (`StudentT` is `student-t`), with arguments in brackets. `+` adds kernels, `*` multiplies them, and `column=` or
  `columns=[...]` says what they look at: `"matern52(columns=[area, rooms]) * categorical(column=district)"`,
  `"se + periodic(period=365.25, column=sold)"` (of a date, its days). A wrong name lists the choices.
- `--likelihood student-t` or `outlier-mixture` is for outliers, `heteroscedastic` for noise that changes with the
  inputs, `poisson` and `negative-binomial` for counts; `--exposure COLUMN` names what counts are proportional to
  (people, hours). `--target-transform log` (`logit`, `box-cox`, `yeo-johnson`) learns a function of the target, with
  bands in its own units. `--weight COLUMN` counts a row as often as it says.
- Three and more classes have a model for each; `--multi-class joint` is one for all.
- Ctrl-C ends the search; the best model so far is judged and written, with a warning and exit code 0.
- `--quiet` prints nothing on success.""",
        ["errorband fit houses.csv --target price --id house --report report.html"],
    ),
    (
        "Predict",
        """`predict` writes one row for each row of the table, in its order: `mean`, `std` and the ends of the band that
holds the target, noise included, with probability `--level`. The id column named at `fit`, or with `--id`, comes first.
`-` is standard input or output. Rows with missing cells stay empty if the model was fitted with `--missing drop`;
with `--missing impute` they are predicted, and a column `imputed` names what was missing in them.""",
        [
            "errorband predict model.eb new.csv --output out.csv",
            "cat new.csv | errorband predict model.eb - --level 0.8",
        ],
    ),
    (
        "Info",
        "`info` shows what a model file holds; `--json` prints the same for programs. In Python,\n"
        '`errorband.load("model.eb")` gives the estimator and `errorband.table_model.TableModel.load("model.eb")` the\n'
        "estimator with its table encoder.",
        ["errorband info model.eb"],
    ),
    (
        "Compare",
        """`compare` cross-validates Gaussian processes with several kernels and likelihoods, and three baselines, on
the same folds. `--kernels`, `--likelihoods` and `--models` say which, separated by commas; `--target-transform`,
`--exposure` and `--weight` are those of `fit`. The smallest NLPD (negative
log predictive density) comes first: it punishes errors and bands that are too narrow or too
wide. The baselines are those of `fit`: the mean and spread of the targets, linear regression with its classical band,
and gradient boosting with one band for all rows, from its errors on rows it did not see. The time is shared by all
searches, so of a large table as many rows are compared, drawn at random, as they can deal with; `--max-rows` sets
another number, and beyond 5,000 rows to learn from (2,000 or fewer for classes) the Gaussian processes have inducing
points. Differences to the first have standard errors, from the losses row by row; methods within two of them are as
good for all that the table can tell. The last line says how to fit the model. Ctrl-C ends the comparison and shows
what is finished; `--output` writes it.""",
        ["errorband compare houses.csv --target price --ignore house,sold --folds 3 --time-budget 30"],
    ),
    (
        "Classes",
        """A target of words, of yes and no, or of two whole numbers is a class; other whole numbers are classes with
`--task classification`. `fit` then learns a `GPClassifier` and judges its probabilities, `predict` writes the most
probable class and the probability of each, and `compare` puts the smallest log loss first. The report shows confusion,
reliability, errors against rejections, and the training rows whose class the other rows did not expect. The table is
scikit-learn's wine table, with semicolons.""",
        [
            "errorband fit wine.csv --target grape --output wine.eb --report wine.html",
            "errorband predict wine.eb bottles.csv --id bottle",
            "errorband compare wine.csv --target grape --folds 3 --time-budget 60",
        ],
    ),
    (
        "Demo",
        "`demo` needs no data and no network: two generated curves with pictures of their bands, one with a gap and\n"
        "one whose noise grows, then `fit` and `predict` on a table of scikit-learn, with all files in one folder.",
        ["errorband demo --output out"],
    ),
    (
        "Errors",
        """An error is one sentence on standard error that says what to do, and an exit code; `--debug` adds the
traceback. Files are written under another name and moved into place when complete, so that a crash leaves the
old file.""",
        [
            "errorband fit houses.csv --target prize",
            "errorband predict houses.csv new.csv",
            "errorband fit houses.csv --target price --kernel mattern32",
        ],
    ),
]

CODES = """| exit code | meaning |
|---|---|
| 0 | All is well. A search that stopped early, by Ctrl-C or for lack of time, is a warning. |
| 1 | Something unexpected; run again with `--debug` and report it. |
| 2 | The command was called in a wrong way: an unknown option, no such folder, a model that does not exist. |
| 3 | The table cannot be used as it is. |
| 4 | The model file cannot be read. |
| 5 | The model cannot be fitted to these numbers. |
| 6 | The disk is full or cannot be written. |
| 130 | Interrupted before there was a model to keep. |
"""

OUTRO = """## Shell completion

`errorband --install-completion` sets up completion of commands and options for the current shell.
"""


def write_tables(folder: Path) -> None:
    """A made-up table of houses (numbers, words and dates), and one of wines."""
    rng = np.random.default_rng(0)
    n = 160
    rooms, area = rng.integers(1, 7, n), rng.normal(90, 25, n).clip(30)
    district = rng.choice(["harbour", "hill", "station"], n)
    sold = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    extra = pd.Series(district).map({"harbour": 60, "hill": 90, "station": 0}).to_numpy()
    price = 40 + 2.2 * area + 12 * rooms + extra + 40 * np.sin(area / 25) + rng.normal(0, 15, n)
    frame = pd.DataFrame(
        {
            "house": [f"H{i:03d}" for i in range(n)],
            "area": area.round(1),
            "rooms": rooms,
            "district": district,
            "sold": sold.strftime("%Y-%m-%d"),
            "price": price.round(1),
        }
    )
    frame.iloc[:150].to_csv(folder / "houses.csv", index=False)
    frame.iloc[150:154].drop(columns="price").to_csv(folder / "new.csv", index=False)
    wine = load_wine(as_frame=True)["frame"].sample(frac=1, random_state=0)
    grape = wine["target"].map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    wine = wine[["alcohol", "malic_acid", "flavanoids", "hue", "proline"]].assign(grape=grape)
    wine.iloc[4:].to_csv(folder / "wine.csv", index=False, sep=";")
    bottles = wine.iloc[:4].drop(columns="grape")
    bottles.assign(bottle=["B1", "B2", "B3", "B4"]).to_csv(folder / "bottles.csv", index=False)


def run(command: str, folder: Path) -> str:
    """A command and what it prints, as on a terminal."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, **SETTINGS, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    code = f"\n[exit code {done.returncode}]" if done.returncode else ""
    lines = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    return f"```console\n$ {command}\n{lines}{code}\n```\n"


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        parts = [INTRO]
        for title, text, commands in PARTS:
            parts += [f"## {title}\n\n{text}\n", *(run(command, folder) for command in commands)]
        parts += [CODES, OUTRO, "## All options\n"]
        parts += [run(f"errorband {c} --help", folder) for c in ("fit", "predict", "info", "compare", "demo")]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
