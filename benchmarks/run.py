"""Speed of errorband and its peers, side by side: `python benchmarks/run.py exact`. See README.md beside this file."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Any

from harness import HERE, PEERS, RAW, label
from suites import GRID_INPUTS, GRIDS, SUITES

TABLE = str(Path(os.environ.get("ERRORBAND_DATA", ".")) / "kin40k.npz")
BUSY = 0.5  # load average per machine above which other work disturbs the timings


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("suite", choices=SUITES)
    p.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    p.add_argument("--rounds", type=int, default=5, help="turns of every peer")
    p.add_argument("--seconds", type=float, default=0.5, help="aimed length of one turn (exact)")
    p.add_argument("--sizes", nargs="+", type=int, default=(100, 500, 2000), help="numbers of points N (exact)")
    p.add_argument("--inputs", type=int, default=8, help="number of inputs D")
    p.add_argument("--memory-size", type=int, default=2000, help="N for peak memory (exact)")
    p.add_argument("--memory-inputs", type=int, default=20, help="D for peak memory (exact)")
    p.add_argument("--fit-size", type=int, default=1000, help="N (exact-fit)")
    p.add_argument("--test-size", type=int, default=1000, help="test points (exact-fit)")
    p.add_argument("--nats", type=float, default=0.1, help="how near to the best evidence counts as there (exact-fit)")
    p.add_argument("--first-size", type=int, default=500, help="N (first-use)")
    p.add_argument("--sparse-size", type=int, default=10_000, help="N (sparse)")
    p.add_argument("--inducing", type=int, default=500, help="number of inducing inputs M (sparse)")
    p.add_argument("--table", default=TABLE, help="an .npz with X_train, y_train, X_test, y_test (sparse-fit)")
    p.add_argument("--class-size", type=int, default=1000, help="N (classification)")
    p.add_argument("--models", nargs="+", choices=GRIDS, default=list(GRIDS), help="(grid)")
    p.add_argument("--grid-inputs", nargs="+", type=int, choices=GRID_INPUTS, default=GRID_INPUTS, help="D (grid)")
    p.add_argument("--most-rows", type=int, default=10**6, help="leave larger cells out (grid)")
    p.add_argument("--again", action="store_true", help="measure anew the cells that are kept (grid)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--output", type=Path, help="the page; by default docs/benchmarks/SUITE.md")
    return p


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def header(suite: str, loads: list[float], raw: dict[str, Any]) -> str:
    command = shlex.join(["python", "benchmarks/run.py", *sys.argv[1:]])
    versions = [f"- {label(p)}: " + ", ".join(f"{k} {v}" for k, v in vs.items()) for p, vs in raw["versions"].items()]
    notes = [
        f"# {suite}",
        "",
        (SUITES[suite].__doc__ or "").strip(),
        "",
        f"`{command}`, {raw['date']}, on {os.cpu_count()} cores ({processor()}), {platform.system()}.",
        f"Load average {loads[0]:.2f} before and {loads[1]:.2f} after. float64; threads as each library sets them.",
        "What the columns mean and how each library is called is told in `benchmarks/README.md`.",
    ]
    if loads[0] > BUSY and "cells" not in raw:  # each of which has its own, and may be of another day
        notes += ["", "**The machine was busy: these timings are not to be relied on.**"]
    return "\n".join([*notes, "", *versions, ""])


def main() -> None:
    options = parser().parse_args()
    RAW.mkdir(exist_ok=True)
    before = os.getloadavg()[0]
    if before > BUSY:
        print(f"warning: the machine is busy (load average {before:.2f}); timings will be off", file=sys.stderr)
    date = datetime.datetime.now(datetime.UTC)
    raw, body = SUITES[options.suite](options)
    loads = [before, os.getloadavg()[0]]
    raw = {"suite": options.suite, "date": f"{date:%Y-%m-%d}", "loads": loads, "versions": {}} | raw
    (RAW / f"{options.suite}-{date:%Y%m%d-%H%M%S}.json").write_text(json.dumps(raw, indent=1))
    page = options.output or HERE.parent / "docs" / "benchmarks" / f"{options.suite}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(header(options.suite, loads, raw) + "\n" + body + "\n")
    print(f"wrote {os.path.relpath(page)}")


if __name__ == "__main__":
    main()
