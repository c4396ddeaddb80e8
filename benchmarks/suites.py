"""What is measured. A suite takes the options and returns raw numbers and the body of its page."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import problems
from harness import MACHINE, OURS, RAW, PeerError, Team, Worker, label, settle
from peers.machine import FLOPS, SIDE

Result = tuple[dict[str, Any], str]
TOLERANCE = 1e-5
SPARSE_TOLERANCE = 1e-3
SPARSE_FITTERS = (OURS, "gpflow", "gpytorch")  # those that are quick enough
CACHE = "ERRORBAND_CACHE_DIR"  # set to an empty folder where errorband is to compile anew


def exact(options: argparse.Namespace) -> Result:
    """One evaluation of the evidence and its gradient of exact ARD-SE regression, and its peak memory."""
    d, seed = options.inputs, options.seed
    raw: dict[str, Any] = {"sizes": {}, "memory": {}}
    body: list[str] = []
    with Team((*options.peers, MACHINE)) as team:
        for n in options.sizes:
            print(f"N = {n}", flush=True)
            X, y, _, _ = problems.data(n, d, seed)
            value, gradient = problems.reference(X, y, problems.parameters(d))
            checks = {p: _check(team.ask(p, "exact", N=n, D=d, seed=seed), value, gradient) for p in options.peers}
            team.ask(MACHINE, "exact", N=n, D=d, seed=seed)
            seconds = _interleaved(team, options.rounds, options.seconds)
            raw["sizes"][n] = {"checks": checks, "seconds": seconds}
            table = _evaluations(options.peers, team, checks, seconds, 2.0 * n**3, "N³ products")
            body += [f"## N = {n}, D = {d}", "", table, ""]
        raw |= {"versions": team.versions, "failures": team.failures}
    n, d = options.memory_size, options.memory_inputs
    print(f"memory at N = {n}, D = {d}", flush=True)
    for peer in options.peers:
        raw["memory"][peer] = team.failures.get(peer) or _memory(peer, n, d, seed)
    rows = [[label(p), b if isinstance(b, str) else f"{b / (8 * n * n):.1f}"] for p, b in raw["memory"].items()]
    body += [
        f"## Peak memory, N = {n}, D = {d}",
        "",
        "In copies of K (N² numbers of 8 bytes), above what import, data and a 50-point warm-up take.",
        "",
        _table(["library", "copies of K"], rows),
    ]
    return raw, "\n".join(body)


def exact_fit(options: argparse.Namespace) -> Result:
    """Fits by every library's standard optimiser from one start: how soon, how high, and how good on test points."""
    n, d, seed = options.fit_size, options.inputs, options.seed
    request = {"model": "exact", "N": n, "D": d, "seed": seed, "N_test": options.test_size}
    X, y, _, y_test = problems.data(n, d, seed, options.test_size)
    fits: dict[str, list[dict[str, Any]]] = {p: [] for p in options.peers}
    with tempfile.TemporaryDirectory() as cache, Team(options.peers, {CACHE: cache}) as team:
        for r, peer in team.turns(options.rounds):
            print(f"round {r + 1}: {label(peer)}", flush=True)
            settle()
            if fit := team.ask(peer, "fit", **request):
                fits[peer].append(fit)
        finals = {p: _evidence(X, y, f[-1]["theta"]) for p, f in fits.items() if f}
        if not finals:
            return {"failures": team.failures}, _table(["library", "result"], _failed(options.peers, team))
        goal = max(finals.values()) - options.nats
        reached = {p: _reached(team, p, f, X, y, goal) for p, f in fits.items() if f}
        rows = []
        for peer in options.peers:
            if not fits[peer]:
                rows.append([label(peer), team.failures.get(peer, "failed"), *[""] * 5])
                continue
            first, *later = reached[peer]
            error = y_test - np.array(fits[peer][-1]["mean"])
            variance = np.array(fits[peer][-1]["variance"])
            nlpd = float(np.mean(0.5 * np.log(2.0 * math.pi * variance) + 0.5 * error**2 / variance))
            rows.append(
                [
                    label(peer),
                    "never" if first is None else f"{first:.2f}",
                    _spread([s for s in later if s is not None], "{:.2f}") if first is not None else "never",
                    _spread([f["fit"] for f in fits[peer]], "{:.2f}"),
                    f"{finals[peer]:.3f}",
                    f"{math.sqrt(np.mean(error**2)):.4f}",
                    f"{nlpd:.4f}",
                ]
            )
        raw = {"fits": fits, "finals": finals, "goal": goal, "reached": reached}
        raw |= {"versions": team.versions, "failures": team.failures}
    header = ["library", "first fit (s)", "later fits (s)", "whole fit (s)", "log evidence", "test RMSE", "test NLPD"]
    text = (
        f"N = {n}, D = {d}, {options.test_size} test points. Seconds (construction and compilation included) until the "
        f"evidence is first within {options.nats:g} nat of {goal + options.nats:.3f}, the best final one; every "
        "evidence is recomputed from the parameters by the NumPy reference.\n\n"
    )
    return raw, text + _table(header, rows)


def first_use(options: argparse.Namespace) -> Result:
    """Import, first fit and first prediction in fresh processes; for errorband with an empty and with a warm cache."""
    request = {"model": "exact", "N": options.first_size, "D": options.inputs, "seed": options.seed, "N_test": 500}
    runs: dict[str, list[dict[str, float]]] = {}
    failures: dict[str, str] = {}
    versions: dict[str, dict[str, str]] = {}
    for peer in options.peers:
        try:
            with Worker(peer) as worker:  # not counted: reads the files from disk once
                versions[peer] = worker.ask("hello")["versions"]
        except PeerError as error:
            failures[label(peer)] = str(error)
    for r in range(options.rounds):
        for peer in versions:
            print(f"round {r + 1}: {label(peer)}", flush=True)
            with tempfile.TemporaryDirectory() as cache:
                for name in (f"{OURS}, empty cache", f"{OURS}, warm cache") if peer == OURS else (label(peer),):
                    settle()
                    try:
                        with Worker(peer, {CACHE: cache}) as worker:
                            answer = worker.ask("fit", **request)
                        runs.setdefault(name, []).append({k: answer[k] for k in ("import", "fit", "predict")})
                    except PeerError as error:
                        failures[name] = str(error)
    rows = [
        [
            name,
            *(_spread([t[k] for t in times], "{:.2f}") for k in ("import", "fit", "predict")),
            f"{statistics.median(sum(t.values()) for t in times):.2f}",
        ]
        for name, times in runs.items()
    ]
    rows += [[name, reason, "", "", ""] for name, reason in failures.items()]
    text = f"N = {options.first_size}, D = {options.inputs}, 500 test points; a new process for every run.\n\n"
    raw = {"runs": runs, "failures": failures, "versions": versions}
    return raw, text + _table(["library", "import (s)", "first fit (s)", "first predict (s)", "sum (s)"], rows)


def sparse(options: argparse.Namespace) -> Result:
    """One evaluation of the evidence of VFE and FITC and its whole gradient, that in the inducing inputs included."""
    n, m, d, seed = options.sparse_size, options.inducing, options.inputs, options.seed
    raw: dict[str, Any] = {"models": {}}
    body: list[str] = []
    X, y, _, _ = problems.data(n, d, seed)
    theta = problems.with_inducing_inputs(problems.parameters(d), X, m)
    along = problems.direction(theta.size)
    with Team((*options.peers, MACHINE)) as team:
        for kind in ("vfe", "fitc"):
            print(kind, flush=True)
            value, up, down = (problems.sparse_reference(X, y, theta + s * along, kind) for s in (0.0, 1e-4, -1e-4))
            slope = (up - down) / 2e-4
            answers = {p: team.ask(p, kind, N=n, D=d, seed=seed, M=m) for p in options.peers}
            checks = {p: _check_slope(a, value, slope, along) for p, a in answers.items()}
            team.ask(MACHINE, kind, N=n, D=d, seed=seed, M=m)
            seconds = _interleaved(team, options.rounds, options.seconds)
            raw["models"][kind] = {"checks": checks, "seconds": seconds}
            table = _evaluations(options.peers, team, checks, seconds, 1.0 * n * m**2, "N·M² operations")
            body += [f"## {kind.upper()}, N = {n}, M = {m}, D = {d}", "", table, ""]
        raw |= {"versions": team.versions, "failures": team.failures}
    return raw, "\n".join(body)


def sparse_fit(options: argparse.Namespace) -> Result:
    """Whole fits of VFE and FITC to a real table: how soon errorband is where every other library ends."""
    X, y, _, y_test = problems.table(options.table)
    request = {"file": options.table, "M": options.inducing, "seed": options.seed}
    raw: dict[str, Any] = {"models": {}}
    body: list[str] = []
    for kind in ("vfe", "fitc"):
        fits: dict[str, dict[str, Any]] = {}
        with Team([p for p in options.peers if p in SPARSE_FITTERS]) as team:
            for peer in list(team.workers):
                print(f"{kind}: {label(peer)}", flush=True)
                settle()
                if fit := team.ask(peer, "fit", model=kind, **request):
                    fits[peer] = fit
            raw["versions"] = raw.get("versions", {}) | team.versions
        rows = []
        for peer, fit in fits.items():
            final = _sparse_evidence(X, y, fit["theta"], kind)
            soon = _first_at(fits[OURS]["path"], lambda theta: _sparse_evidence(X, y, theta, kind), final)  # noqa: B023
            scores = _scores(y_test, np.array(fit["mean"]), np.array(fit["variance"]), float(np.mean(y)))
            there = "–" if peer == OURS else "never" if soon is None else f"{soon:.1f}"
            ratio = "–" if peer == OURS or soon is None else f"{fit['fit'] / soon:.2f}"
            rows.append([label(peer), f"{fit['fit']:.1f}", f"{final:.0f}", there, ratio, *scores])
            raw["models"].setdefault(kind, {})[peer] = {"fit": fit["fit"], "final": final, "ours_there": soon}
        header = ["library", "fit (s)", "log evidence", f"{OURS} there after (s)", "ratio", "test NMSE", "test MNLP"]
        body += [
            f"## {kind.upper()}, N = {len(X)}, M = {options.inducing}, D = {X.shape[1]}",
            "",
            _table(header, rows),
            "",
        ]
    return raw, "\n".join(body)


def classification(options: argparse.Namespace) -> Result:
    """One evaluation of the evidence of two classes and its gradient, to convergence from a cold start."""
    n, d, seed = options.class_size, options.inputs, options.seed
    raw: dict[str, Any] = {"models": {}}
    body: list[str] = []
    for kind in ("probit-ep", "probit-laplace", "logit-laplace"):
        print(kind, flush=True)
        with Team(options.peers) as team:
            answers = {p: team.ask(p, kind, N=n, D=d, seed=seed) for p in options.peers}
            seconds = _interleaved(team, options.rounds, options.seconds)
            raw["versions"] = raw.get("versions", {}) | team.versions
        raw["models"][kind] = {"evidence": {p: a and a["evidence"] for p, a in answers.items()}, "seconds": seconds}
        ours = statistics.median(seconds[OURS]) if seconds.get(OURS) else math.nan
        rows = []
        for peer in options.peers:
            if answers[peer] and (times := seconds.get(peer)):
                middle, spread = statistics.median(times), f"{1e3 * min(times):.0f} .. {1e3 * max(times):.0f}"
                evidence = f"{answers[peer]['evidence']:.3f}"
                rows.append([label(peer), evidence, f"{1e3 * middle:.0f}", spread, f"{middle / ours:.2f}"])
        header = ["library", "log evidence", "median (ms)", "min .. max (ms)", f"× {OURS}"]
        body += [f"## {kind}, N = {n}, D = {d}", "", _table(header, rows), ""]
    return raw, "\n".join(body)


def grid(options: argparse.Namespace) -> Result:
    """One evaluation of evidence and gradient at many sizes: errorband beside the fastest other library at each."""
    raw: dict[str, Any] = {"cells": [], "versions": {}}
    rows: list[list[str]] = []
    for kind in options.models:
        cells = [(n, m, d) for n, m, d in GRIDS[kind] if n <= options.most_rows and d in options.grid_inputs]
        todo = [cell for cell in cells if options.again or not _cell_file(kind, *cell).exists()]
        if todo:
            with Team([p for p in options.peers if p in GRID_PEERS[kind]]) as team:
                for cell in todo:
                    _measure_cell(team, kind, *cell, options)
        for cell in cells:
            found = json.loads(_cell_file(kind, *cell).read_text())
            raw["cells"].append(found)
            raw["versions"] |= found["versions"]
            rows.append(_cell_row(found))
            print(*rows[-1], flush=True)
    header = ["model", "N", "M", "D", f"{OURS} (ms)", "fastest other", "(ms)", "ratio", "load"]
    ratios = [c["ratio"] for c in raw["cells"] if c["ratio"] is not None]
    told = f"Ratio of at least 2: {sum(r >= 2 for r in ratios)} of {len(ratios)} cells that another library has."
    only = "No other library here has the likelihoods without a ratio under the same rule."
    load = "*load* is the load average when a cell was begun; the cells before it, on two threads, bring it to 2."
    why = (
        "Small cells are short of 2 because most of what they do is not arithmetic: calling two compiled programs and "
        "passing arrays costs as much whatever their size ([the parts](parts.md)); with up to 50 inducing inputs the "
        "rest is the exponential function and its derivative, which other libraries compute as fast. Cells of "
        "100 and 200 have not been taken apart. FITC needs six N·M² operations where VFE needs four. Of "
        "exact evaluations LAPACK is most, a factorisation and an inverse, which GPy calls too."
    )
    return raw, f"{told} {load} {only}\n\n{why}\n\n{_table(header, rows)}"


def _cell_file(kind: str, n: int, m: int | None, d: int) -> Path:
    return RAW / "grid" / f"{kind}-{n}-{m or 0}-{d}.json"


def _measure_cell(team: Team, kind: str, n: int, m: int | None, d: int, options: argparse.Namespace) -> None:
    """Measure one cell and keep it: a run that is stopped goes on there."""
    load = os.getloadavg()[0]
    request = {"N": n, "D": d, "seed": options.seed} | ({"M": m} if m else {})
    for peer in list(team.workers):
        team.ask(peer, kind, **request)
    seconds = _interleaved(team, options.rounds, options.seconds)
    medians = {p: statistics.median(s) for p, s in seconds.items() if s}
    others = {p: s for p, s in medians.items() if p != OURS}
    fastest = min(others, key=lambda p: others[p], default=None)
    ratio = None if fastest is None or OURS not in medians else others[fastest] / medians[OURS]
    found = {"model": kind, "N": n, "M": m, "D": d, "medians": medians, "fastest": fastest, "ratio": ratio}
    file = _cell_file(kind, n, m, d)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".part").write_text(json.dumps(found | {"load": load, "versions": team.versions}))
    file.with_suffix(".part").replace(file)


def _cell_row(found: dict[str, Any]) -> list[str]:
    medians, fastest = found["medians"], found["fastest"]
    own = _ms(medians[OURS]) if OURS in medians else "failed"
    told = ["–", "", ""]
    if fastest is not None:
        told = [label(fastest), _ms(medians[fastest]), "" if found["ratio"] is None else f"{found['ratio']:.2f}"]
    return [
        found["model"],
        f"{found['N']}",
        f"{found['M'] or '–'}",
        f"{found['D']}",
        own,
        *told,
        f"{found['load']:.1f}",
    ]


GRID_INPUTS = (2, 8, 32)
GRID_SIZES = [(2000, 20), (2000, 50), (2000, 200), (10_000, 20), (10_000, 100), (10_000, 500), (100_000, 50)]
GRID_LARGE = [(10_000, 1000, 8), (100_000, 500, 8)]
GRIDS: dict[str, list[tuple[int, int | None, int]]] = {
    "exact": [(n, None, d) for n in (100, 300, 1000, 2000, 4000) for d in GRID_INPUTS],
    **{k: [*((n, m, d) for n, m in GRID_SIZES for d in GRID_INPUTS), *GRID_LARGE] for k in ("vfe", "fitc")},
    **{kind: [(n, None, 8) for n in (100, 300, 1000)] for kind in ("probit-ep", "probit-laplace", "logit-laplace")},
    **{kind: [(n, 100, 8) for n in (1000, 5000)] for kind in ("probit-ep-fitc", "probit-laplace-fitc")},
    **{kind: [(n, None, 8) for n in (100, 300)] for kind in ("softmax-3", "softmax-10", "heteroscedastic")},
    "student-laplace": [(n, None, 8) for n in (100, 300)],  # GPy needs minutes for more
}
GRID_PEERS = {
    "exact": (OURS, "gpy", "gpflow", "gpytorch"),  # scikit-learn keeps N²·D numbers
    "vfe": (OURS, "gpy", "gpflow", "gpytorch"),
    "fitc": (OURS, "gpy", "gpflow"),
    "probit-ep": (OURS, "gpy"),
    "probit-laplace": (OURS, "gpy"),
    "logit-laplace": (OURS, "scikit_learn"),
    "student-laplace": (OURS, "gpy"),
    # Nobody else has these under the same rule: GPy's EP with inducing points is DTC, GPflow's softmax is variational.
    **{kind: (OURS,) for kind in ("probit-ep-fitc", "probit-laplace-fitc", "softmax-3", "softmax-10")},
    "heteroscedastic": (OURS,),
}


SUITES: dict[str, Callable[[argparse.Namespace], Result]] = {
    "exact": exact,
    "exact-fit": exact_fit,
    "first-use": first_use,
    "sparse": sparse,
    "sparse-fit": sparse_fit,
    "classification": classification,
    "grid": grid,
}


# --------------------------------------------------------------------------------------------------------------------
# Measuring


def _check(answer: dict[str, Any] | None, value: float, gradient: problems.Array) -> dict[str, Any] | None:
    """How far a library's evidence and gradient are from the reference, relative to it."""
    if answer is None:
        return None
    evidence_error = abs(answer["evidence"] - value) / abs(value)
    gradient_error = float(np.linalg.norm(np.array(answer["gradient"]) - gradient) / np.linalg.norm(gradient))
    agrees = evidence_error <= TOLERANCE and gradient_error <= TOLERANCE
    return {"evidence": evidence_error, "gradient": gradient_error, "agrees": agrees}


def _check_slope(answer: dict[str, Any] | None, value: float, slope: float, along: problems.Array) -> Any:
    """The same for a sparse model, the gradient in one direction; everybody adds some jitter of their own."""
    if answer is None:
        return None
    evidence_error = abs(answer["evidence"] - value) / abs(value)
    gradient_error = abs(np.array(answer["gradient"]) @ along - slope) / abs(slope)
    agrees = max(evidence_error, gradient_error) <= SPARSE_TOLERANCE
    return {"evidence": evidence_error, "gradient": gradient_error, "agrees": bool(agrees)}


def _interleaved(team: Team, rounds: int, target: float) -> dict[str, list[float]]:
    """Seconds of every evaluation, the peers taking turns for about `target` seconds each."""
    repeats: dict[str, int] = {}
    for peer in list(team.workers):
        if warm := team.ask(peer, "time", repeats=2):  # not counted
            repeats[peer] = max(1, min(100, round(target / max(warm["seconds"][-1], 1e-9))))
    seconds: dict[str, list[float]] = {p: [] for p in repeats}
    for _, peer in team.turns(rounds):
        settle()
        if answer := team.ask(peer, "time", repeats=repeats[peer]):
            seconds[peer] += answer["seconds"]
    return seconds


def _memory(peer: str, n: int, d: int, seed: int) -> int | str:
    try:
        with Worker(peer) as worker:
            return worker.ask("memory", model="exact", N=n, D=d, seed=seed)["bytes"]
    except PeerError as error:
        return str(error)


def _evidence(X: problems.Array, y: problems.Array, theta: Sequence[float]) -> float:
    """The reference's evidence, or minus infinity where an optimiser strayed into parameters without one."""
    try:
        with np.errstate(all="ignore"):
            value = problems.reference(X, y, np.array(theta), gradient=False)[0]
    except np.linalg.LinAlgError:
        return -math.inf
    return value if math.isfinite(value) else -math.inf


def _sparse_evidence(X: problems.Array, y: problems.Array, theta: Sequence[float], kind: str) -> float:
    return problems.sparse_reference(X, y, np.array(theta), kind, jitter=1e-6)


def _first_at(path: list[tuple[float, list[float]]], evidence: Callable[[Sequence[float]], float], goal: float) -> Any:
    """Seconds until the goal, by bisection: on the whole the evidence rises along a search. None if never."""
    if evidence(path[-1][1]) < goal:
        return None
    low, high = -1, len(path) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if evidence(path[middle][1]) >= goal else (middle, high)
    return path[high][0]


def _scores(y: problems.Array, mean: problems.Array, variance: problems.Array, y_train_mean: float) -> list[str]:
    """Mean squared error over that of the training mean, and mean negative log density."""
    nmse = np.mean((y - mean) ** 2) / np.mean((y - y_train_mean) ** 2)
    mnlp = np.mean(0.5 * np.log(2.0 * math.pi * variance) + 0.5 * (y - mean) ** 2 / variance)
    return [f"{nmse:.4f}", f"{mnlp:.3f}"]


def _reached(
    team: Team, peer: str, fits: list[dict[str, Any]], X: problems.Array, y: problems.Array, goal: float
) -> list[float | None]:
    """Seconds until the goal in every fit; a library that shows no path is asked to find them out by itself."""
    times: list[float | None] = []
    for fit in fits:
        if fit["path"]:
            times.append(next((t for t, theta in fit["path"] if _evidence(X, y, theta) >= goal), None))
        else:
            answer = team.ask(peer, "reach", evidence=goal)
            times.append(answer["seconds"] if answer else None)
    return times


# --------------------------------------------------------------------------------------------------------------------
# Tables


def _evaluations(
    peers: Iterable[str],
    team: Team,
    checks: dict[str, Any],
    seconds: dict[str, list[float]],
    operations: float,
    unit: str,
) -> str:
    """A row for every library; times also in units of what so many floating-point operations take."""
    medians = {p: statistics.median(s) for p, s in seconds.items() if s}
    product = operations * medians[MACHINE] / FLOPS if MACHINE in medians else math.nan
    rows = []
    for peer in peers:
        if peer not in medians:
            rows.append([label(peer), team.failures.get(peer, "failed"), "", "", "", ""])
            continue
        check = checks[peer]
        verdict = "yes" if check["agrees"] else f"**NO**: {check['evidence']:.0e}, {check['gradient']:.0e}"
        rows.append(
            [
                label(peer),
                verdict,
                _ms(medians[peer]),
                f"{_ms(min(seconds[peer]))} .. {_ms(max(seconds[peer]))}",
                f"{medians[peer] / medians[OURS]:.2f}" if OURS in medians else "–",
                f"{medians[peer] / product:.2f}",
            ]
        )
    header = ["library", "agrees", "median (ms)", "min .. max (ms)", f"× {OURS}", unit]
    return _table(header, rows) + f"\n\nMatrix product of side {SIDE}: {_gflops(seconds.get(MACHINE, []))}."


def _ms(seconds: float) -> str:
    ms = 1e3 * seconds
    return f"{ms:.0f}" if ms >= 100.0 else f"{ms:.3g}"


def _gflops(seconds: Sequence[float]) -> str:
    if not seconds:
        return "not measured"
    speeds = sorted(FLOPS / s / 1e9 for s in seconds)
    return f"{statistics.median(speeds):.1f} GFlop/s ({speeds[0]:.1f} .. {speeds[-1]:.1f})"


def _failed(peers: Iterable[str], team: Team) -> list[list[str]]:
    return [[label(p), team.failures.get(p, "failed")] for p in peers]


def _spread(values: Sequence[float], form: str) -> str:
    if not values:
        return "–"
    middle = form.format(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({form.format(min(values))} .. {form.format(max(values))})"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *([c.replace("|", "\\|") for c in r] for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
