"""Draw models, arguments and moments at random, for as long as asked; counts are added to those of earlier runs.

    python tests/fuzz/run.py --draws 100000        # or: make fuzz
    python tests/fuzz/run.py --part 1/2            # every second block only: another process draws the others
    python tests/fuzz/run.py --kinds models        # blocks of some kinds only
    python tests/fuzz/run.py --again 31415         # one draw, with its traceback

A draw is known by its number alone. Draws come in blocks, which have their classes, and so their compiled programs, in
common; a block that has used its share of the processor ends early, and what was not drawn is not counted. Each block
is a line of ``tests/fuzz/counts.jsonl``, written when it ends, so that several processes may add to the same file.
``docs/fuzz.md`` shows the sums.
"""

import argparse
import functools
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)  # as in pytest
# Most of the time is compilation, and matrices are small.
QUICK = "backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1"
os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_{option}" for option in QUICK))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax  # noqa: E402
import numpy as np  # noqa: E402

from fuzz import arguments, models, predictives  # noqa: E402
from fuzz.outcome import outcome  # noqa: E402

COUNTS, PAGE = HERE / "counts.jsonl", HERE.parents[1] / "docs" / "fuzz.md"
BLOCK = 400  # draws of a block
SHARE = 40.0  # seconds of the processor after which a block ends
LONGEST = 120.0  # seconds of the processor after which a draw is a failure; most of them are compilation
KINDS = {"models": 0.14, "searches": 0.03, "arguments": 0.5, "moments": 0.33}
WORDS = "fitted", "compared", "refused", "given up", "failure"
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
    kind = kind_of(rng)
    if kind == "arguments":
        return kind, arguments.draw
    if kind == "moments":
        example = models.LIKELIHOODS[rng.integers(len(models.LIKELIHOODS))]
        return kind, functools.partial(predictives.draw, example)
    return kind, functools.partial(models.draw, models.Setting.drawn(rng, kind == "searches"))


def kind_of(rng: np.random.Generator) -> str:
    """What a block begins with: its kind."""
    return str(rng.choice(list(KINDS), p=list(KINDS.values())))


def draw(number: int) -> tuple[str, str, str]:
    """Kind of the draw with this number, how it went, and what is to be told of a failure."""
    kind, make = block_of(number // BLOCK)
    began = time.process_time()
    word, told = outcome(functools.partial(make, np.random.default_rng([1, number])))
    took = time.process_time() - began
    return (kind, word, told) if told or took < LONGEST else (kind, "failure", f"took {took:.0f} s")


def block(number: int) -> dict:
    """What became of the draws of a block."""
    kind, make = block_of(number)
    words, failures, began = Counter(dict.fromkeys(WORDS, 0)), {}, time.process_time()
    for n in range(number * BLOCK, (number + 1) * BLOCK):
        _, word, told = draw(n)
        words[word] += 1
        if told:
            failures[n] = told
            print(f"draw {n}, {kind}: {told}", flush=True)
        if time.process_time() - began > SHARE:
            break
    jax.clear_caches()
    return {"block": number, "kind": kind, "of": described(make)} | words | {"failures": failures}


def described(make: Any) -> str:
    """The classes that the draws of a block have in common."""
    common = make.args[0] if isinstance(make, functools.partial) else None
    if isinstance(common, models.Setting):
        parts = common.likelihood.likelihood, common.kernel.kernel
        return ", ".join([*(type(part).__name__ for part in parts), common.approximation, common.rule])
    return type(common.likelihood).__name__ if common else ""


def lines() -> list[dict]:
    """What all runs have written."""
    return [json.loads(line) for line in COUNTS.read_text().splitlines()] if COUNTS.exists() else []


def write(line: dict) -> None:
    """Add a line, whoever else does, and print the page anew."""
    with COUNTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    PAGE.write_text(page())


def still_open() -> dict[int, str]:
    """Failures of all runs that were not drawn again without one."""
    told = lines()
    fixed = {line.get("fixed") for line in told}
    failures = {int(n): why for line in told for n, why in line.get("failures", {}).items()}
    return {n: why for n, why in failures.items() if n not in fixed}


def run(draws: int, seconds: float, kinds: list[str], part: int, parts: int) -> None:
    """Draw again what failed in earlier runs, then blocks that were not drawn yet."""
    for number in list(still_open()):
        if number // BLOCK % parts == part and not draw(number)[2]:
            write({"fixed": number})
    done = {line.get("block") for line in lines()}
    todo = (
        number
        for number in itertools.count(part, parts)
        if number not in done and kind_of(np.random.default_rng([0, number])) in kinds
    )
    began = time.perf_counter()
    while draws > 0 and time.perf_counter() - began < seconds:
        found = block(next(todo))
        write(found)
        draws -= sum(found[word] for word in WORDS)
    print(f"{total():,} draws in all runs; {len(still_open())} failures are open")
    sys.exit(bool(still_open()))


def total() -> int:
    """Draws of all runs."""
    return sum(line.get(word, 0) for line in lines() for word in WORDS)


def page() -> str:
    """The counts as a page of the documentation."""
    sums = {kind: Counter() for kind in sorted(KINDS)} | {"all": Counter()}
    for line in lines():
        if "block" in line:
            for kind in (line["kind"], "all"):
                sums[kind].update({word: line[word] for word in WORDS})
    table = [
        f"| {kind} | {WHAT.get(kind, f'{total():,} draws')} | {n['fitted'] + n['compared']:,} | {n['compared']:,} "
        f"| {n['refused']:,} | {n['given up']:,} | {n['failure']:,} |"
        for kind, n in sums.items()
    ]
    blocks = [line for line in lines() if line.get("kind") in ("models", "searches")]
    fits = sum(sums[kind][word] for kind in ("models", "searches") for word in ("fitted", "compared"))
    early = sum(sum(line[word] for word in WORDS) < BLOCK for line in blocks)
    fixed = sums["all"]["failure"] - len(still_open())
    return (
        HEAD
        + "\n".join(table)
        + f"""

Of the failures {fixed} were fixed; open: {len(still_open())}. Models and searches are {fits:,} fits of {len(blocks)}
combinations; {early} of these used up their {SHARE:g} seconds of the processor before all {BLOCK} draws were made.
"""
    )


HEAD = """# Random draws

    make fuzz        # python tests/fuzz/run.py --draws 100000

draws models, data and arguments at random. A draw fails if it raises anything but a sentence of ours with advice, or
gives numbers that are not finite, negative variances, probabilities that do not add up, quantiles out of order, or
changed inputs; or if it takes two minutes of the processor. Where NumPy can tell, evidence, means and variances are
compared with dense algebra: one latent function, Gaussian noise in closed form or any likelihood by Laplace, EP or KL,
whose sites one more step in NumPy must leave where they are, on the whole covariance or the effective prior of the
approximation ([references.py](../tests/fuzz/references.py)). Counts are of all runs so far. What failed in one run is
drawn again at the beginning of the next.

Interrupts and kills are drawn too, by tests: `pytest -m slow tests/estimators/test_interrupted_fits.py
tests/cli/test_kill.py` presses Ctrl-C 500 times at random moments in fits of ten families and 25 times in the tool, and
kills the tool 75 times. Each must end in a kept model or a clean interrupt, and no file may be lost.

Done are draws that ended in numbers, all of them sound. Given up are those whose numbers cannot be had in double
precision (a covariance that is not positive definite with all jitter allowed, a posterior that is not proper), which
the user is told with advice what to do. A failure is one of the library, or of a check or a reference that asked too
much; both are mended and the draw is made again.

| kind | what is drawn | done | of them compared with NumPy | refused in a sentence | given up, with advice | failed |
|---|---|---:|---:|---:|---:|---:|
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100_000, help="how many draws")
    parser.add_argument("--seconds", type=float, default=np.inf, help="end after so many seconds")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="kinds of blocks to draw")
    parser.add_argument("--part", default="0/1", help="which part of the blocks, of how many, counted from zero")
    parser.add_argument("--again", type=int, help="number of one draw, made again with its traceback")
    given = parser.parse_args()
    if given.again is not None:
        found = block_of(given.again // BLOCK)
        print(found, found[1](np.random.default_rng([1, given.again])))
    else:
        run(given.draws, given.seconds, given.kinds, *map(int, given.part.split("/")))
