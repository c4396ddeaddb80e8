"""What reports find in tables of which the truth is known: precision and recall of every finding.

    python benchmarks/findings.py                # 200 tables, writes docs/benchmarks/findings.md
    python benchmarks/findings.py --tables 20 --output out/trial.md

What was found in each table is kept in ``benchmarks/.raw/findings.jsonl``: a run that was ended goes on from there, and
one that shall begin anew needs it removed.

Each table has 300 rows, five numbers and a column of words. Which inputs bend the target, move it along a straight line
or do nothing is drawn for each table, and so is what is wrong with it: outliers, a burst of rows in error, noise that
grows with an input, or none of these; missing cells; rows copied; an input computed from the target. The tables go
through what ``errorband fit --missing impute --report --kernel matern52+linear`` does (the default model, without a
choice among others; no clock ends a search), and its findings are compared with what was planted.
"""

import argparse
import collections
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from errorband import missing
from errorband.cli import fitting
from errorband.cli.settings import Settings
from errorband.reporting import report
from errorband.reporting.regression.calibration import inside, pit_bounds
from errorband.table_model import as_frame
from errorband.tables import TableEncoder

ROWS = 300
OF_INPUTS = {"without effect": "Inputs without effect", "straight line": "Straight lines"}
OF_TABLES = {
    "outliers": ("Outliers",),
    "burst": ("Neighbouring rows err together",),
    "unequal noise": ("Errors are not equally large everywhere",),
    "missing cells": ("Missing cells",),
    "copied rows": ("Repeated rows", "Training rows among the held-out rows"),
    "leak": ("An input that gives the target away",),
}
PLANTED = {
    "without effect": "inputs that the target does not depend on",
    "straight line": "inputs with a straight effect",
    "outliers": "three rows moved by 8 standard deviations of the noise",
    "burst": "twelve neighbouring rows moved by 3 standard deviations",
    "unequal noise": "noise that grows sixfold along an input",
    "missing cells": "8 % of the cells of two inputs",
    "copied rows": "ten rows repeated",
    "leak": "an input that is the target with 1 % of noise",
}


def planted_table(seed: int) -> tuple[pd.DataFrame, dict[str, set[str]], set[str]]:
    """Return a table, its inputs by kind, and what is wrong with it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (ROWS, 5)), columns=list("abcde"))
    names = list(rng.permutation(list("abcde")))
    bent, straight, idle = names[:2], names[2:3], names[3:]
    y = np.sin(3 * X[bent[0]]) + rng.choice([-1, 1]) * (1.5 * X[bent[1]] ** 2) + rng.uniform(0.5, 1.5) * X[straight[0]]
    word = rng.choice(["north", "south", "west"], ROWS)
    if matters := rng.random() < 0.5:
        y = y + pd.Series(word).map({"north": 0.0, "south": 0.6, "west": -0.4})
    wrong = {str(rng.choice(["none", "outliers", "burst", "unequal noise"]))} - {"none"}
    sd = 0.25
    noise = sd * rng.normal(size=ROWS)
    if "unequal noise" in wrong:
        noise *= np.exp(0.9 * X[bent[0]])
    y = y + noise
    if "outliers" in wrong:
        y.iloc[rng.choice(ROWS, 3, replace=False)] += 8 * sd * rng.choice([-1, 1], 3)
    if "burst" in wrong:
        first = int(rng.integers(0, ROWS - 12))
        y.iloc[first : first + 12] += 3 * sd
    table = X.assign(where=word, y=y)
    kinds = {"straight line": set(straight), "without effect": set(idle) | (set() if matters else {"where"})}
    for name, share in (("missing cells", 0.4), ("copied rows", 0.3), ("leak", 0.2)):
        if rng.random() < share:
            wrong.add(name)
    if "leak" in wrong:
        table.insert(0, "invoice", table["y"] + 0.01 * table["y"].std() * rng.normal(size=ROWS))
    if "copied rows" in wrong:
        table = pd.concat([table, table.iloc[rng.choice(ROWS, 10, replace=False)]], ignore_index=True)
    if "missing cells" in wrong:
        for name in (bent[0], "where"):
            table[name] = table[name].astype(object).where(rng.random(len(table)) >= 0.08, None)
    return table.infer_objects(), kinds, wrong


def looked_at(table: pd.DataFrame, seed: int) -> tuple[dict[str, set[str]], np.ndarray, np.ndarray]:
    """Findings by title with what they are about; whether held-out targets lie in their bands, and are complete."""
    encoder = TableEncoder.fit(table, target="y", missing="impute")
    encoded, settings = encoder.transform(table), Settings(seed=seed, kernel="matern52+linear")
    X, y = as_frame(encoded, gaps=True)
    assert y is not None
    fitted = fitting.fit(X, y, encoder, settings, fitting.split(encoded, encoder, settings))
    X_test, y_test = X.iloc[fitted.test], y[fitted.test]
    made = report(
        fitted.judged, X_test, y_test, X_train=fitted.X.iloc[fitted.learned], y_train=y[fitted.learned], target="y",
        baselines=False, columns=encoder.inputs, donors=fitted.judged_donors,
        incomplete=encoded.incomplete,
    )  # fmt: skip
    predictive = missing.predictive(fitted.judged, X_test.to_numpy(), fitted.judged_donors)
    held = inside(pit_bounds(y_test, predictive), 0.95)
    found = {f.title: set(f.about) for f in made.content.findings}
    return found, held, X_test.notna().all(axis=1).to_numpy()


class Tally:
    """Counts of what was planted and what was found."""

    def __init__(self):
        self.right = collections.Counter()
        self.planted = collections.Counter()
        self.found = collections.Counter()

    def add(self, kind: str, truth: set, said: set) -> None:
        self.right[kind] += len(truth & said)
        self.planted[kind] += len(truth)
        self.found[kind] += len(said)

    def row(self, kind: str) -> str:
        recall = f"{self.right[kind]} of {self.planted[kind]}{_share(self.right[kind], self.planted[kind])}"
        precision = f"{self.right[kind]} of {self.found[kind]}{_share(self.right[kind], self.found[kind])}"
        return f"| {kind} | {PLANTED[kind]} | {recall} | {precision} |"


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.0f} %)" if whole else ""


def run(n_tables: int, raw: Path) -> list[dict]:
    """Look at tables; what was found in each is kept in a file, so that a run that was ended goes on from there."""
    records = [json.loads(line) for line in raw.read_text().splitlines()] if raw.exists() else []
    done = {record["seed"] for record in records}
    for seed in (seed for seed in range(n_tables) if seed not in done):
        table, kinds, wrong = planted_table(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, held, complete = looked_at(table, seed)
        record = {
            "seed": seed,
            "inputs": {kind: sorted(names) for kind, names in kinds.items()},
            "planted": sorted(wrong),
            "found": {title: sorted(about) for title, about in found.items()},
            "complete": held[complete].tolist(),
            "incomplete": held[~complete].tolist(),
        }
        with raw.open("a") as file:
            file.write(json.dumps(record) + "\n")
        records.append(record)
        print(f"{seed}: planted {record['planted']}, found {sorted(found)}", flush=True)
    return [record for record in records if record["seed"] < n_tables]


def counted(records: list[dict]) -> Tally:
    """Compare what was found with what was planted."""
    tally = Tally()
    for record in records:
        wrong, found, seed = set(record["planted"]), record["found"], {record["seed"]}
        # An input that is the target itself leaves the others no effect, and no errors to be found.
        hidden = {*OF_INPUTS, "outliers", "burst", "unequal noise"} if "leak" in wrong else set()
        for kind, title in OF_INPUTS.items():
            if kind not in hidden:
                tally.add(kind, set(record["inputs"][kind]), set(found.get(title, ())))
        for kind, titles in OF_TABLES.items():
            if kind not in hidden:
                tally.add(kind, seed if kind in wrong else set(), seed if set(titles) & set(found) else set())
    return tally


def page(records: list[dict]) -> str:
    """Return the page: precision, recall, coverage."""
    n, tally = len(records), counted(records)
    expected = {title for titles in OF_TABLES.values() for title in titles} | set(OF_INPUTS.values())
    sound = [set(r["found"]) - set(OF_INPUTS.values()) for r in records if not r["planted"]]
    others = collections.Counter(title for r in records for title in set(r["found"]) - expected)
    lines = [
        "# Findings of reports on tables with planted truths",
        "",
        f"    python benchmarks/findings.py --tables {n}",
        "",
        f"{n} tables of {ROWS} rows, each with inputs that bend the target, move it along a straight line or do",
        "nothing, and with something wrong or not. *Found* is how much of what was planted the report named (recall),",
        "*right* how much of what it named was planted (precision). Inputs are counted one by one, the rest by tables;",
        "tables with a leak count for that and for cells and copies only, for the target itself explains all the rest.",
        "",
        "| | planted | found | right |",
        "|---|---|---|---|",
        *[tally.row(kind) for kind in (*OF_INPUTS, *OF_TABLES)],
        "",
        f"Of {len(sound)} tables with nothing wrong, {sum(map(bool, sound))} got a finding that is not about inputs.",
        "",
        "| held-out rows | targets inside their 95 % band |",
        "|---|---|",
    ]
    for key, name in (("complete", "complete"), ("incomplete", "with missing cells")):
        held = np.array([v for r in records for v in r[key]])
        if len(held):
            error = 100 * held.std() / np.sqrt(len(held))
            lines.append(f"| {name} ({len(held):,}) | {100 * held.mean():.1f} % ± {error:.1f} |")
    lines += ["", "Findings about what was not planted, by tables:", ""]
    lines += [f"- {title}: {k}" for title, k in others.most_common()] or ["- none"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parents[1] / "docs" / "benchmarks" / "findings.md"
    )
    parser.add_argument("--raw", type=Path, default=Path(__file__).parent / ".raw" / "findings.jsonl")
    asked = parser.parse_args()
    asked.raw.parent.mkdir(parents=True, exist_ok=True)
    text = page(run(asked.tables, asked.raw))
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(text, encoding="utf-8")
    print(text)
