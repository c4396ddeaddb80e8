"""How long ``errorband fit --report`` takes, from the command to the prompt: with nothing compiled, and again.

    python benchmarks/fit_report.py             # on an idle machine; writes docs/benchmarks/fit-report.md

Each table is fitted twice in processes of their own, as a user would: first with an empty folder for compiled code
(``ERRORBAND_CACHE_DIR``), then with what the first left there. No options but the target and the files to write.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "fit-report.md"


def numbers(n: int) -> pd.DataFrame:
    """Friedman's first function of ten inputs, of which five matter, with noise of standard deviation 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]).assign(y=y + rng.normal(size=n))


def classes(n: int, n_classes: int) -> pd.DataFrame:
    """Classes that are normal in 13 inputs, with means two standard deviations from the origin."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, n_classes, n)
    centres = rng.normal(size=(n_classes, 13))
    X = 2 * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[which] + rng.normal(size=(n, 13))
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(13)]).assign(y=np.array(["red", "green", "blue"])[which])


TABLES = {
    "142 rows, 13 inputs, three classes": lambda: classes(142, 3),
    "500 rows, 13 inputs, two classes": lambda: classes(500, 2),
    "500 rows, 10 inputs, numbers": lambda: numbers(500),
    "2,000 rows, 10 inputs, numbers": lambda: numbers(2000),
}


def measured(table: Path, folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of one command."""
    command = [sys.executable, "-m", "errorband", "fit", str(table), "--target", "y", "--quiet"]
    files = ["--output", str(folder / "m.eb"), "--report", str(folder / "r.html")]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, *files], check=True, env={**os.environ, "ERRORBAND_CACHE_DIR": str(folder / "compiled")})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used


def page(rows: list[str], load: float) -> str:
    """Return the page; ``load`` is how many processes ran or waited before the first table, on average of a minute."""
    lines = [
        "# `errorband fit --report`",
        "",
        "    python benchmarks/fit_report.py",
        "",
        "From the command to the prompt: reading, the choice of kernel and noise, judging, baselines, model file and",
        "report. *First* is with an empty folder for compiled code, *again* with what the first run left there.",
        f"{os.cpu_count()} cores; other processes that ran or waited before the first table: {load:.1f} on average of",
        "a minute. Where these are some, wall time is longer than on an idle machine, and processor time too.",
        "",
        "| table | first, wall s | processor s | again, wall s | processor s |",
        "|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", default="", help="only those of which the name has this in it")
    parser.add_argument("--output", type=Path, default=PAGE)
    asked = parser.parse_args()
    rows, load = [], os.getloadavg()[0]
    for name, make in TABLES.items():
        if asked.tables in name:
            with tempfile.TemporaryDirectory() as folder:
                make().to_csv(Path(folder) / "table.csv", index=False)
                times = [measured(Path(folder) / "table.csv", Path(folder)) for _ in range(2)]
            rows.append(f"| {name} | {' | '.join(f'{t:.1f}' for pair in times for t in pair)} |")
            print(rows[-1], flush=True)
            asked.output.write_text(page(rows, load), encoding="utf-8")
