"""The first fit of every kind of model: a new process, nothing compiled before, 100 rows and three inputs.

    python benchmarks/first_fits.py          # writes docs/benchmarks/first-fits.md

Each kind is fitted twice in its process. The first fit compiles, the second does not. On an idle machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "first-fits.md"
REGRESSORS = {
    "Gaussian": {},
    "Student-t": {"likelihood": "student-t"},
    "outlier mixture": {"likelihood": "outlier-mixture"},
    "heteroscedastic": {"likelihood": "heteroscedastic"},
    "twinned": {"likelihood": "twinned"},
    "Poisson": {"likelihood": "poisson"},
    "Gaussian, VFE(20)": {"approximation": "vfe(20)"},
}
CLASSIFIERS = {
    "two classes": {},
    "two classes, FITC(20)": {"approximation": "fitc(20)"},
    "three classes": {},
    "three classes, joint softmax": {"multi_class": "joint"},
}


def fit(kind: str) -> dict[str, float]:
    """Seconds of the import, of the first and of the second fit."""
    began = time.perf_counter()
    from errorband import GPClassifier, GPRegressor

    imported = time.perf_counter()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    f = np.sin(X[:, 0]) + X[:, 1]
    if kind in CLASSIFIERS:
        model = GPClassifier(**CLASSIFIERS[kind])
        y = np.digitize(f, [-0.5, 0.5]) if "three" in kind else f > 0
    else:
        model = GPRegressor(**REGRESSORS[kind])
        y = rng.poisson(np.exp(f / 2)) if kind == "Poisson" else f + 0.1 * rng.standard_t(3, size=100)
    times = []
    for _ in range(2):
        before = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - before)
    return {"import": imported - began, "first": times[0], "again": times[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        warnings.simplefilter("ignore")
        print(json.dumps(fit(options.kind)))
        return
    lines, load = [], os.getloadavg()[0]
    for kind in (*REGRESSORS, *CLASSIFIERS):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "--kind", kind]
            environment = os.environ | {"ERRORBAND_CACHE_DIR": cache}
            told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        found = json.loads(told)
        lines.append(f"| {kind} | {found['first']:.1f} | {found['again']:.2f} |")
        print(lines[-1], flush=True)
    table = "\n".join(["| model | first fit (s) | again (s) |", "| --- | ---: | ---: |", *lines])
    PAGE.write_text(f"""# First fits

`python benchmarks/first_fits.py`, on {os.cpu_count()} cores; load average {load:.2f} before.

100 rows, three inputs, defaults apart from what the table says; a new process for each, with nothing compiled before.

{table}
""")


if __name__ == "__main__":
    main()
