"""Draw models, arguments and moments at random, for as long as asked; counts are added to those of earlier runs.

    python tests/fuzz/run.py --draws 100000        # or: make fuzz
    python tests/fuzz/run.py --again 31415         # one draw, with its traceback

A draw is known by its number alone. Counts are kept in ``tests/fuzz/counts.json`` and shown in ``docs/fuzz.md``.
"""

import argparse
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)  # as in pytest
# Most of the time is compilation, and matrices are small.
QUICK = "backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1"
os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_{option}" for option in QUICK))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from fuzz import arguments, models, predictives  # noqa: E402
from fuzz.outcome import outcome  # noqa: E402

COUNTS, PAGE = HERE / "counts.json", HERE.parents[1] / "docs" / "fuzz.md"
BLOCK = 200  # draws that have their classes, and so their compiled programs, in common
LONGEST = 120.0  # seconds of the processor after which a draw is a failure; most of them are compilation
KINDS = {"models": 0.12, "searches": 0.02, "arguments": 0.6, "moments": 0.26}
WORDS = "fitted", "compared", "refused", "failure"
WHAT = {
    "models": "likelihood × approximation × rule × kernel at drawn hyperparameters, on odd data",
    "searches": "the same with a short search for hyperparameters",
    "arguments": "arguments, inputs and targets that people pass by mistake",
    "moments": "what likelihoods say of targets, given latent moments of any size",
}


@functools.lru_cache(maxsize=1)
def block_of(number: int) -> tuple[str, Callable[[np.random.Generator], str]]:
    """Kind of the draws of a block, and how each is made."""
    rng = np.random.default_rng([0, number])
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    if kind == "arguments":
        return kind, arguments.draw
    if kind == "moments":
        example = models.LIKELIHOODS[rng.integers(len(models.LIKELIHOODS))]
        return kind, functools.partial(predictives.draw, example)
    return kind, functools.partial(models.draw, models.Setting.drawn(rng, kind == "searches"))


def draw(number: int) -> tuple[str, str, str]:
    """Kind of the draw with this number, how it went, and what is to be told of a failure."""
    kind, make = block_of(number // BLOCK)
    began = time.process_time()
    word, told = outcome(functools.partial(make, np.random.default_rng([1, number])))
    took = time.process_time() - began
    return (kind, word, told) if told or took < LONGEST else (kind, "failure", f"took {took:.0f} s")


def run(draws: int, seconds: float) -> None:
    """Draw again what failed in earlier runs, then go on after the last draw."""
    counts = json.loads(COUNTS.read_text()) if COUNTS.exists() else {"next": 0, "kinds": {}, "open": {}, "fixed": 0}
    still = {n: told for n in counts["open"] if (told := draw(int(n))[2])}
    counts["fixed"] += len(counts["open"]) - len(still)
    counts["open"], began, last = still, time.perf_counter(), counts["next"] + draws
    while counts["next"] < last and time.perf_counter() - began < seconds:
        for number in range(counts["next"], counts["next"] + BLOCK):
            kind, word, told = draw(number)
            of_kind = counts["kinds"].setdefault(kind, dict.fromkeys(WORDS, 0))
            of_kind[word] += 1
            if told:
                counts["open"][str(number)] = told
                print(f"draw {number}, {kind}: {told}", flush=True)
        counts["next"] += BLOCK
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
        PAGE.write_text(page(counts))
    print(
        f"{counts['next']:,} draws in all runs; {len(counts['open'])} failures are open, {counts['fixed']} were fixed"
    )
    sys.exit(bool(counts["open"]))


def page(counts: dict) -> str:
    """The counts as a page of the documentation."""
    rows = [(kind, WHAT[kind], found) for kind, found in sorted(counts["kinds"].items())]
    totals = {word: sum(found[word] for _, _, found in rows) for word in WORDS}
    rows.append(("all", f"{sum(totals.values()):,} draws", totals))
    table = [
        f"| {kind} | {what} | {n['fitted'] + n['compared']:,} | {n['compared']:,} | {n['refused']:,} "
        f"| {n['failure']:,} |"
        for kind, what, n in rows
    ]
    return (
        f"{HEAD}{chr(10).join(table)}\n\nOf the failures {counts['fixed']} were fixed; open: {len(counts['open'])}.\n"
    )


HEAD = """# Random draws

    make fuzz        # python tests/fuzz/run.py --draws 100000

draws models, data and arguments at random. A draw fails if it raises anything but a sentence of ours with advice, or
gives numbers that are not finite, negative variances, probabilities that do not add up, quantiles out of order, or
changed inputs; or if it takes two minutes of the processor. Where NumPy can tell, evidence, means and variances are
compared with dense algebra: one latent function, Gaussian noise in closed form or a log-concave likelihood by Laplace,
EP or KL, on the whole covariance or the effective prior of the approximation
([references.py](../tests/fuzz/references.py)). Counts are of all runs so far. What failed in one run is drawn again at
the beginning of the next.

Interrupts and kills are drawn too, by tests: `pytest -m slow tests/estimators/test_interrupted_fits.py
tests/cli/test_kill.py` presses Ctrl-C 500 times at random moments in fits of ten families and 25 times in the tool, and
kills the tool 75 times. Each must end in a kept model or a clean interrupt, and no file may be lost.

| kind | what is drawn | done | of them compared with NumPy | refused in a sentence | failed at first |
|---|---|---:|---:|---:|---:|
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100_000, help="how many draws")
    parser.add_argument("--seconds", type=float, default=np.inf, help="end after so many seconds")
    parser.add_argument("--again", type=int, help="number of one draw, made again with its traceback")
    given = parser.parse_args()
    if given.again is not None:
        found = block_of(given.again // BLOCK)
        print(found, found[1](np.random.default_rng([1, given.again])))
    else:
        run(given.draws, given.seconds)
