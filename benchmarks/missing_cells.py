"""Bands of rows with missing cells, and of complete rows, on tables of which the truth is known.

    python benchmarks/missing_cells.py           # writes docs/benchmarks/missing-cells.md

A table has four columns: three numbers and words. How the second number hangs together with the first is what the
tables differ in, and how many cells are missing in training. The target depends on all columns, with noise of standard
deviation 0.25. Each table goes through what ``errorband fit --missing impute`` does; then 1000 new rows, of which 15 %
of the cells are missing, are predicted. Results are kept in ``benchmarks/.raw/missing-cells.jsonl``: a run that was
ended goes on from there.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from errorband import missing
from errorband.cli import fitting
from errorband.cli.settings import Settings
from errorband.table_model import as_frame
from errorband.tables import TableEncoder

ROWS, NEW, NOISE = 250, 1000, 0.25
KINDS = {
    "line": "b = 2a, ± 0.1",
    "curve": "b = a², ± 0.1",
    "independent": "b does not depend on a",
    "unequal": "b = a, ± 0.5 exp(a/2)",
    "words": "the word is known from a, b from the word, ± 0.3",
}
SHARES = 0.05, 0.15, 0.3


def drawn(kind: str, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return a complete table."""
    a, c, word = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n)
    e = rng.normal(size=n)
    if kind == "words":
        word = np.digitize(a, [-0.5, 0.5])
    b = {
        "line": 2 * a + 0.1 * e,
        "curve": a**2 + 0.1 * e,
        "independent": e,
        "unequal": a + 0.5 * np.exp(a / 2) * e,
        "words": word + 0.3 * e,
    }[kind]
    y = np.sin(1.5 * a) + 0.7 * b + 0.5 * c + np.array([0.0, 0.6, -0.4])[word] + NOISE * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "where": np.array(["north", "south", "west"])[word], "y": y})


def with_gaps(table: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return the table with this share of the cells of each input missing."""
    table = table.copy()
    for name in ("a", "b", "c", "where"):
        table[name] = table[name].astype(object).where(rng.random(len(table)) >= share, None)
    return table.infer_objects()


def measured(kind: str, share: float, seed: int) -> dict:
    """Learn from a table with gaps and predict new rows; which targets are in their bands, and how wide these are."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind), round(100 * share)])
    train, new = drawn(kind, ROWS, rng), drawn(kind, NEW, rng)
    table, asked = with_gaps(train, share, rng), with_gaps(new, 0.15, rng)
    encoder = TableEncoder.fit(table, target="y", missing="impute")
    encoded, settings = encoder.transform(table), Settings(seed=seed, test_size=0.02)
    X, y = as_frame(encoded, gaps=True)
    assert y is not None
    fitted = fitting.fit(X, y, encoder, settings, fitting.split(encoded, encoder, settings))
    gaps = encoder.transform(asked).with_gaps
    predictive = missing.predictive(fitted.final, gaps, fitted.final_donors)
    low, high = predictive.interval(0.95)
    inside, gone = (low <= new["y"]) & (new["y"] <= high), np.isnan(gaps).any(axis=1)
    found = {"kind": kind, "share": share, "seed": seed, "complete": int(X.notna().all(axis=1).sum())}
    for name, rows in (("whole", ~gone), ("gaps", gone)):
        error = np.sqrt(np.mean((predictive.mean - new["y"])[rows] ** 2))
        found[name] = [float(np.mean(inside[rows])), float(np.mean((high - low)[rows])), float(error)]
    return found


def page(records: list[dict], tables: int) -> str:
    """Return the page: coverage, width and error for each kind of table and share of missing cells."""
    lines = [
        "# Bands of rows with missing cells",
        "",
        f"    python benchmarks/missing_cells.py --tables {tables}",
        "",
        f"Tables of {ROWS} rows with three numbers (a, b, c) and a column of words; the target is",
        f"sin(1.5 a) + 0.7 b + 0.5 c + a number for the word, and noise of standard deviation {NOISE}. A share of the",
        f"cells of every column is missing, in training as said and 15 % in the {NEW:,} new rows. Means over {tables}",
        "tables each, with the standard error of the coverage; the root mean squared error of a model that knew the",
        f"truth would be {NOISE} for complete rows.",
        "",
        "| b, and the word | cells missing in training | complete rows of "
        f"{ROWS} | 95 % bands hold, complete rows | rows with missing cells | error, complete | with missing cells |",
        "|---|---|---|---|---|---|---|",
    ]
    shown = [(kind, share) for kind in KINDS for share in SHARES]
    for kind, share in shown:
        own = [r for r in records if (r["kind"], r["share"]) == (kind, share)]
        if own:
            cells = [f"{100 * share:.0f} %", f"{np.mean([r['complete'] for r in own]):.0f}"]
            cells += [_coverage([r[name][0] for r in own]) for name in ("whole", "gaps")]
            cells += [f"{np.mean([r[name][2] for r in own]):.2f}" for name in ("whole", "gaps")]
            lines.append(f"| {KINDS[kind]} | {' | '.join(cells)} |")
    for share in (*SHARES, None):
        own = [r for r in records if share in (None, r["share"])]
        if own:
            cells = ["all" if share is None else f"{100 * share:.0f} %", ""]
            cells += [_coverage([r[name][0] for r in own]) for name in ("whole", "gaps")]
            lines.append(f"| all | {' | '.join(cells)} | | |")
    return "\n".join(lines) + "\n"


def _coverage(values: list[float]) -> str:
    error = np.std(values) / np.sqrt(len(values))
    return f"{100 * np.mean(values):.1f} % ± {100 * error:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", type=int, default=4, help="of each kind and share")
    folder = Path(__file__).parents[1]
    parser.add_argument("--output", type=Path, default=folder / "docs" / "benchmarks" / "missing-cells.md")
    parser.add_argument("--raw", type=Path, default=folder / "benchmarks" / ".raw" / "missing-cells.jsonl")
    asked = parser.parse_args()
    asked.raw.parent.mkdir(parents=True, exist_ok=True)
    records = [json.loads(line) for line in asked.raw.read_text().splitlines()] if asked.raw.exists() else []
    done = {(r["kind"], r["share"], r["seed"]) for r in records}
    for case in [(k, s, i) for i in range(asked.tables) for k in KINDS for s in SHARES]:
        if case not in done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.process_time()
                records.append(measured(*case))
            with asked.raw.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
            print(f"{time.process_time() - start:.1f} s", records[-1], flush=True)
    text = page([r for r in records if r["seed"] < asked.tables], asked.tables)
    asked.output.write_text(text, encoding="utf-8")
    print(text)
