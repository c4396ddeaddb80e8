"""Verdicts on the claims C2 to C13 and C16 of Lázaro-Gredilla (2010), and table 6.1, from results of ``spectral.py``.

A test is a sentence with its figures and an outcome: True, False, or None where something was not run.
"""

import itertools
from typing import Any

import numpy as np
from common import Results, table

NOT_RUN = "not run"
FULL = "full GP"
MANY = 250  # basis functions, where the thesis speaks of many
Test = tuple[str, bool | None]

ELSEWHERE = {
    "C1": ("The sinc toy", "spectral-toy.md"),
    "C14": ("Robust networks", "spectral-toy.md"),
    "C15": ("Classification, table 5.1", "table-5-1.md"),
    "C17": ("Covariances from few spectral points", "spectral-toy.md"),
    "C18": ("Speed", "spectral-speed.md"),
}
EFFECTIVE = {"elevators": "8 of 17", "pendulum": "4 of 9", "robot": "4 of 32 (Pumadyn)", "pol": "no knee"}

# What table 6.1 of the thesis says: accuracy, resistance to over-fitting, quality of uncertainty.
SAID = {
    "SSGP-fixed": ("medium", "very high", "high"),
    "SSGP": ("high", "medium", "low to medium"),
    "MCN": ("", "", ""),
    "BN-MCN": ("high", "high", "low"),
    "BN-MMLP": ("high", "high", "low"),
    "MCNmix": ("very high", "high", "medium to high"),
    "MMLPmix": ("very high", "high", "medium to high"),
    "SPGP": ("medium to high", "high", "high"),
    "FIFGP": ("medium to high", "high", "high"),
    "TFIFGP": ("medium to high", "high", "high"),
}


CORE = ("SSGP", "BN-MCN", "MCNmix", "SPGP")


class Found:
    """Medians over seeds."""

    def __init__(self, results: Results, which: str = ""):
        self.results, self.which = results, which

    def sizes(self, name: str, method: str) -> list[int]:
        """Numbers of basis functions that were run, ascending; 0 for a full GP."""
        name += self.which
        return sorted({int(k.split("/")[2]) for k in self.results.pieces if k.startswith(f"{name}/{method}/")})

    def median(self, name: str, method: str, m: int, key: str) -> float:
        """Of a score at m."""
        return float(np.median([f[key] for f in self.results.under(f"{name}{self.which}/{method}/{m}/")]))

    def below(
        self,
        name: str,
        a: str,
        b: str,
        key: str = "nmse",
        *,
        at: int | None = None,
        least: int = 1,
        times: float = 1.0,
        plus: float = 0.0,
    ) -> Test:
        """Whether a's score is below ``times`` b's plus ``plus``, at m or the largest m that both were run with.

        Nothing is said of numbers below ``least``.
        """
        of_a, of_b = self.sizes(name, a), self.sizes(name, b)
        common = [m for m in {*of_a, *of_b} if (m in of_a or a == FULL) and (m in of_b or b == FULL)]
        common = [m for m in common if of_a and of_b and at in (None, m) and m >= least]
        if not common:
            where = f" at m = {at}" if at else f" from m = {least} on" if least > 1 else ""
            return f"{name}: {a} and {b} {NOT_RUN}{where}", None
        m = max(common)
        x, y = (self.median(name, k, 0 if k == FULL else m, key) for k in (a, b))
        return f"{name}, m = {m}: {key.upper()} of {a} {x:.4g}, of {b} {y:.4g}", x < times * y + plus

    def falls(self, name: str, method: str, key: str = "nmse", slack: float = 0.05) -> Test:
        """Whether the score at the largest m is the best, give or take ``slack`` (a share, or nats)."""
        sizes = self.sizes(name, method)
        if len(sizes) < 2:
            return f"{name}: {method} {NOT_RUN} with several numbers", None
        values = [self.median(name, method, m, key) for m in sizes]
        allowed = min(values) * (1 + slack) if key == "nmse" else min(values) + slack
        told = ", ".join(f"{v:.4g} at {m}" for m, v in zip(sizes, values, strict=True))
        return f"{name}: {key.upper()} of {method} {told}", values[-1] <= allowed


def opposite(test: Test) -> Test:
    return test[0], None if test[1] is None else not test[1]


def verdict(*tests: Test) -> tuple[str, str]:
    """Of a claim that asks for all of these."""
    told = "; ".join(text for text, _ in tests)
    outcomes = [outcome for _, outcome in tests if outcome is not None]
    if not outcomes:
        return NOT_RUN, told
    found = (
        "as claimed" if all(outcomes) else f"in part ({sum(outcomes)} of {len(outcomes)})" if any(outcomes) else "not"
    )
    return found + (f"; {len(outcomes)} of {len(tests)} parts run" if len(outcomes) < len(tests) else ""), told


def claims(results: Results, matter: tuple[int, ...], which: str = "") -> str:
    """The table of claims; ``which`` is the end of the names of sets of another size, where only those count."""
    f = Found(results, which)
    below = f.below
    lines: list[tuple[str, str, tuple[str, str]]] = [
        ("C2", "Elevators: SSGP better than SPGP in both, near the full GP from m = 50 on, no over-fitting", verdict(
            below("elevators", "SSGP", "SPGP"), below("elevators", "SSGP", "SPGP", "mnlp"),
            below("elevators", "SSGP", FULL, at=50, times=1.1), f.falls("elevators", "SSGP"))),
        ("C3", "Elevators: BN-MCN and MCNmix better than SSGP; MCNmix than the full GP", verdict(
            below("elevators", "BN-MCN", "SSGP"), below("elevators", "MCNmix", "SSGP"),
            below("elevators", "MCNmix", FULL))),
        ("C4", "Pole: SSGP's NMSE far below SPGP's; a bound on the noise improves MNLP, not NMSE", verdict(
            below("pol", "SSGP", "SPGP", times=0.8), *floor(f, "SSGP"), *floor(f, "SPGP"))),
        ("C5", "Pole: MCN over-fits at m = 500, SSGP and BN-MCN do not; MCNmix best in MNLP", verdict(
            opposite(f.falls("pol", "MCN", "mnlp")), f.falls("pol", "SSGP", "mnlp"), f.falls("pol", "BN-MCN", "mnlp"),
            below("pol", "BN-MCN", "MCN", "mnlp", at=500), below("pol", "MCNmix", "BN-MCN", "mnlp", at=500))),
        ("C6", "Pole: BN-MCN and MCNmix better than SPGP in NMSE, BN-MCN not in MNLP", verdict(
            below("pol", "BN-MCN", "SPGP"), below("pol", "MCNmix", "SPGP"),
            opposite(below("pol", "BN-MCN", "SPGP", "mnlp")))),
        ("C7", "Kin-40k: SSGP better than SPGP, and than the full GP in NMSE with many basis functions", verdict(
            below("kin40k", "SSGP", "SPGP"), below("kin40k", "SSGP", FULL, least=MANY))),
        ("C8", "Kin-40k: MCNmix better than the full GP in both; BN-MCN better in NMSE than SPGP", verdict(
            below("kin40k", "MCNmix", FULL, least=MANY), below("kin40k", "MCNmix", FULL, "mnlp", least=MANY),
            below("kin40k", "BN-MCN", "SPGP"))),
        ("C9", "32 inputs: all find the four that matter; SSGP with m = 20 at the level of the full GP", verdict(
            relevant(f, matter), below("robot", "SSGP", FULL, at=20, times=1.05))),
        ("C10", "Pendulum: MNLP of SSGP and BN-MCN very bad for m > 10 (a nat above the full GP), of MCNmix not at "
         "m = 50; BN-MCN and MCNmix beat the full GP in NMSE with many", verdict(
            below("pendulum", FULL, "SSGP", "mnlp", at=50, plus=-1.0),
            below("pendulum", FULL, "BN-MCN", "mnlp", at=50, plus=-1.0),
            below("pendulum", "MCNmix", FULL, "mnlp", at=50, plus=1.0),
            below("pendulum", "BN-MCN", FULL), below("pendulum", "MCNmix", FULL))),
        ("C11", "FIFGP and TFIFGP better than SPGP in NMSE on Elevators and Pole, in MNLP on Elevators; equal on "
         "Kin-40k (a tenth); proper variances on Pendulum", verdict(
            below("elevators", "FIFGP", "SPGP"), below("elevators", "TFIFGP", "SPGP"), below("pol", "FIFGP", "SPGP"),
            below("pol", "TFIFGP", "SPGP"), below("elevators", "FIFGP", "SPGP", "mnlp"),
            below("kin40k", "FIFGP", "SPGP", times=1.1), below("pendulum", "FIFGP", "SSGP", "mnlp", at=50))),
        ("C12", "BN-MMLP better in NMSE than SPGP on Elevators and Pole, than the full GP on Kin-40k; SPGP-MLP better "
         "than BN-MMLP on Pole, than SPGP with few on 32 inputs (half)", verdict(
            below("elevators", "BN-MMLP", "SPGP"), below("pol", "BN-MMLP", "SPGP"),
            below("kin40k", "BN-MMLP", FULL, least=MANY),
            below("pol", "SPGP-MLP", "BN-MMLP"), below("robot", "SPGP-MLP", "SPGP", at=20, times=0.5))),
        ("C13", "MMLPmix better than BN-MMLP, and than the full GP on Kin-40k in both", verdict(
            below("elevators", "MMLPmix", "BN-MMLP", "mnlp"), below("pol", "MMLPmix", "BN-MMLP", "mnlp"),
            below("kin40k", "MMLPmix", "BN-MMLP", "mnlp"), below("kin40k", "MMLPmix", FULL, least=MANY),
            below("kin40k", "MMLPmix", FULL, "mnlp", least=MANY))),
    ]  # fmt: skip
    rows: list[list[Any]] = [[number, text, outcome, told] for number, text, (outcome, told) in lines]
    if which:
        rows = [row for row in rows if row[2] != NOT_RUN]
        return table(["", "claim", "here", "figures"], rows) if rows else "None of them."
    kept = "; ".join(f"{name}: {effective(results, name)} (thesis {text})" for name, text in EFFECTIVE.items())
    rows.append(["C16", "Effective dimension of BN-MCN's input weights", "see figures", kept])
    rows += [[number, text, f"[page]({page})", ""] for number, (text, page) in ELSEWHERE.items()]
    rows.sort(key=lambda row: int(row[0][1:]))
    return table(["", "claim", "here", "figures"], rows)


def floor(f: Found, method: str) -> list[Test]:
    """Pole with the noise bounded by its steps against without, at m = 50: MNLP lower, NMSE not (5 %)."""
    if not (50 in f.sizes("pol", method) and 50 in f.sizes("pol-free", method)):
        return [(f"{method} without a bound {NOT_RUN}", None)]
    told, tests = f"pol, m = 50, {method} with the bound and without: ", []
    for key, better in (("mnlp", lambda x, y: x < y), ("nmse", lambda x, y: x > 0.95 * y)):
        x, y = (f.median(name, method, 50, key) for name in ("pol", "pol-free"))
        tests.append((f"{told}{key.upper()} {x:.4g}, {y:.4g}", better(x, y)))
    return tests


def relevant(f: Found, matter: tuple[int, ...]) -> Test:
    """Whether each fit of the generated table gives the columns that matter the largest weights."""
    found = {} if f.which else f.results.pieces
    pieces = {k: p["relevance"] for k, p in found.items() if k.startswith("robot/") and "relevance" in p}
    if not pieces:
        return f"32 inputs {NOT_RUN}", None
    missed = [k for k, r in pieces.items() if set(np.argsort(r)[-len(matter) :]) != set(matter)]
    names = ", ".join(f"{k.split('/')[1]} with {k.split('/')[2]}" for k in missed)
    return f"found in {len(pieces) - len(missed)} of {len(pieces)} fits" + (
        f", not by {names}" * bool(missed)
    ), not missed


def effective(results: Results, name: str) -> str:
    """How many directions keep so much of BN-MCN's input weights, with the most basis functions that were run."""
    pieces = [
        (int(k.split("/")[2]), p["singular"]) for k, p in results.pieces.items() if k.startswith(f"{name}/BN-MCN/")
    ]
    if not pieces:
        return NOT_RUN
    m, s = max(pieces, key=lambda piece: piece[0])
    kept = np.sqrt(np.cumsum(np.square(s)) / np.sum(np.square(s)))
    numbers = " and ".join(f"{1 + int(np.searchsorted(kept, share))} ({100 * share:.0f} %)" for share in (0.95, 0.99))
    return f"{numbers} of {len(s)} directions, m = {m}"


def geometric(ratios: list[float]) -> str:
    return f"{np.exp(np.mean(np.log(ratios))):.2f}"


def chooser(results: Results, sets: Any) -> str:
    """Table 6.1, measured: over the sets and numbers that the methods of ``CORE`` were run with."""
    f = Found(results)
    numbers = sorted({m for name in sets for m in f.sizes(name, "SSGP") if m >= 20})
    cells = [(name, m) for name, m in itertools.product(sets, numbers)
             if f.sizes(name, FULL) and all(m in f.sizes(name, method) for method in CORE)]  # fmt: skip
    if not cells:
        return f"Measured: {NOT_RUN}."
    rows = []
    for method, said in SAID.items():
        own = [(name, m) for name, m in cells if m in f.sizes(name, method)]
        if not own:
            continue
        ratio = geometric([f.median(n, method, m, "nmse") / f.median(n, FULL, 0, "nmse") for n, m in own])
        follow = geometric([f.median(n, method, m, "nmse") / f.median(n, method, m, "train") for n, m in own])
        behind = [f.median(n, method, m, "mnlp") - f.median(n, FULL, 0, "mnlp") for n, m in own]
        held = [100 * f.median(n, method, m, "coverage") for n, m in own]
        inside = f"{np.mean(held):.0f} % ({min(held):.0f} %)"
        nats = f"{np.median(behind):+.2f} ({max(behind):+.2f})"
        rows.append([method, len(own), ratio, said[0], follow, said[1], inside, nats, said[2]])
    named = dict.fromkeys(name for name, _ in cells)
    listed = "; ".join(f"{name} {', '.join(str(m) for n, m in cells if n == name)}" for name in named)
    header = ["", "pairs", "NMSE, full GP = 1", "accuracy (thesis)", "NMSE, test / training",
              "resists over-fitting (thesis)", "targets in 95 % bands (worst)", "MNLP above the full GP's (worst)",
              "bands (thesis)"]  # fmt: skip
    return f"""Over pairs of set and m: {listed}.
Methods with fewer pairs were not run with all of them. Geometric means of ratios, the mean share of targets, the median
of nats. A model that follows noise has a test error far above its training error; bands should hold 95 %.

{table(header, rows)}"""
