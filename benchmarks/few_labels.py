"""Classes where rows are few: tables of numbers, whose targets become "above the median" or not.

    ERRORBAND_DATA=FOLDER python benchmarks/few_labels.py       # writes docs/benchmarks/few-labels.md

Only tables of the tuned half of the league (``league.py``), two splits of each. Beside the plain default the same with
one length-scale for all inputs, with one for each without a prior, and with inputs whose tails are drawn in.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from errorband.kernels import SquaredExponential
from league_models import LABELS, MODELS, Scores, ours, scored
from league_sets import REGRESSION, TUNED, Split, split

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "few-labels.md"
SPLITS = 2


def one_each(of: Split) -> Scores:
    """Length-scales that are given, so that nothing ties them: where a search of standardised inputs might start."""
    scaler, D = StandardScaler().fit(of.X), of.X.shape[1]
    standardised = of._replace(X=scaler.transform(of.X), X_test=scaler.transform(of.X_test))
    return ours(kernel=SquaredExponential(lengthscale=np.full(D, 2.0)))(standardised)


COMPARED = {
    "errorband, default": MODELS["default"],
    "one length-scale": ours(kernel=SquaredExponential(ard=False)),
    "one each, no prior": one_each,
    "tails drawn in": ours(kernel="unskewed"),
    **{LABELS[name]: MODELS[name] for name in ("auto", "linear", "forest", "boosting", "svm", "sklearn_gp")},
}


def labelled(name: str, number: int, rows: int) -> Split | None:
    """A split with labels; None where targets hardly have two halves."""
    s = split(name, number, rows)
    middle = np.median(s.y)
    y, y_test = (s.y > middle).astype(int), (s.y_test > middle).astype(int)
    return s._replace(y=y, y_test=y_test) if 0.1 < np.mean(y) < 0.9 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200, 400])
    options = parser.parse_args()
    names = sorted(set(REGRESSION) & TUNED)
    lines, n_tables = [], 0
    for rows in options.rows:
        splits = [s for name in names for number in range(SPLITS) if (s := labelled(name, number, rows)) is not None]
        losses = np.array([[np.mean(scored(model, s)["nlpd"]) for s in splits] for model in COMPARED.values()])
        n_tables = len(splits) // SPLITS
        for name, loss in zip(COMPARED, losses, strict=True):
            gap = loss - losses[0]
            told = f"{np.mean(gap):+.4f} ± {np.std(gap) / np.sqrt(len(gap)):.4f} | {100 * np.mean(gap > 0.0):.0f} %"
            lines.append(f"| {rows} | {name} | {np.mean(loss):.4f} | {told if np.any(gap) else '|'} |")
            print(lines[-1], flush=True)
    command = f"python benchmarks/few_labels.py --rows {' '.join(map(str, options.rows))}"
    told = (
        f"{n_tables} tables of numbers (the tuned half of the [league](league.md)), {SPLITS} splits of each; labels "
        "say whether a target is above the median of those to learn from. Log loss of up to 1000 rows that no model "
        "has seen, mean of all splits; how much it is above that of the default, with its standard error; and the "
        "share of splits on which it is. *One length-scale*: `SquaredExponential(ard=False)`. *One each, no prior*: "
        'length-scales that are given, which nothing ties. *Tails drawn in*: `kernel="unskewed"`. What such tables '
        "decide: [what is chosen when nothing is said](../theory/defaults.md#one-length-scale-or-many)."
    )
    header = ["| rows | model | log loss | above the default by | worse on |", "| ---: | --- | ---: | ---: | ---: |"]
    table = "\n".join([*header, *lines])
    PAGE.write_text("\n\n".join(["# Few labels", f"`{command}`", told, table]) + "\n")


if __name__ == "__main__":
    main()
