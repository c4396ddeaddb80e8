"""Sparse spectra, networks and inter-domain features on five tables (Lázaro-Gredilla 2010, chapters 2 to 5).

Elevators, Pole Telecomm and Kin-40k in the original splits, Pendulum in a random half, and a generated table of 32
inputs of which 4 matter. Results are kept piece by piece: a run that was stopped goes on where it was.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import Results, arguments, load, picture, table, write_page
from spectral_claims import chooser, claims

from errorband import GPRegressor, Mixture
from errorband.approximations import FITC, SubsetOfData, WeightSpace
from errorband.features import Network, SparseSpectrum, TimeFrequency, WindowedFourier
from errorband.kernels import ArcSine, SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.metrics import nlpd, nmse
from errorband.networks.export import layer_of
from errorband.networks.reduction import directions
from errorband.training import LBFGS

HOW = "It holds X_train, y_train, X_test, y_test in the original split, or X and y."
SMALL, LARGE, INPUTS = (10, 25, 50, 200, 400, 800), (10, 25, 50, 100, 250, 500), (10, 20, 50, 100, 250)
SOME = 2000  # rows of a large set that are learned from, where it is not called "-all"
SETS = {  # titles, and the numbers m of basis functions
    "elevators": ("Elevators, 2,000 rows", LARGE),
    "pol": ("Pole Telecomm, 2,000 rows", LARGE),
    "pol-free": ("Pole Telecomm, 2,000 rows, noise not bounded", (50, 250)),
    "kin40k": ("Kin-40k, 2,000 rows", LARGE),
    "pendulum": ("Pendulum", SMALL),
    "robot": ("32 inputs, 4 matter, 2,000 rows", INPUTS),
    "puma8nh": ("Puma-8nh, 2,000 rows", INPUTS),
    "bank32nh": ("Bank-32nh, 2,000 rows", INPUTS),
    "elevators-long": ("Elevators, 2,000 rows, up to 200 iterations", (50,)),
    "kin40k-long": ("Kin-40k, 2,000 rows, up to 200 iterations", (50,)),
    "robot-all": ("32 inputs, 4 matter, 7,168 rows", INPUTS),
    "elevators-all": ("Elevators, all 8,752 rows", LARGE),
    "pol-all": ("Pole Telecomm, all 10,000 rows", LARGE),
    "kin40k-all": ("Kin-40k, all 10,000 rows", LARGE),
    "kin40k-all-long": ("Kin-40k, all 10,000 rows, up to 200 iterations", (500,)),
}
NUMBERS = sorted({m for _, numbers in SETS.values() for m in numbers})
BIN = {"pol": 10.0, "pol-all": 10.0}  # targets recorded in steps; a uniform error within a step has variance step²/12
LONG = 200  # iterations where a set is called "-long"
PUMADYN = 7168  # training rows of Pumadyn-32nm
MATTER = (3, 4, 14, 15)  # columns of the generated table
COSINE, ERF = "cosine", "erf"

# Each method by the number m of basis functions.
METHODS: dict[str, Any] = {
    "full GP": lambda m: SubsetOfData(SOME),
    "SPGP": FITC,
    "SSGP-fixed": lambda m: SparseSpectrum(m // 2),
    "SSGP": lambda m: SparseSpectrum(m // 2, learn=True),
    "MCN": Network,
    "BN-MCN": lambda m: WeightSpace(Network(m), bound_noise=True),
    "MCNmix": lambda m: Network(m // 2),
    "FIFGP": lambda m: FITC(m, features=WindowedFourier()),
    "TFIFGP": lambda m: FITC(m, features=TimeFrequency()),
    "SPGP-MLP": FITC,
    "BN-MMLP": lambda m: WeightSpace(Network(m, ERF), bound_noise=True),
    "MMLPmix": lambda m: Network(m // 2, ERF),
}
WITH_ARC_SINE = ("SPGP-MLP", "BN-MMLP", "MMLPmix")


def generated(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A robot arm's kind of table: 32 inputs, of which four columns matter, and noise."""
    X = rng.uniform(-1, 1, (n, 32))
    a, b, c, d = X[:, MATTER].T
    return X, np.sin(2 * a + b) * (1 + c) + np.cos(3 * d) * a + 0.2 * rng.standard_normal(n)


def rows_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows; where there are more than a seed asks for, training rows are drawn by it."""
    base, _, which = name.partition("-")
    rng = np.random.default_rng(seed)
    if base == "robot":
        number = PUMADYN if which == "all" else SOME
        return *generated(number, np.random.default_rng(1 + seed)), *generated(1024, np.random.default_rng(0))
    data = load(base, HOW)
    if "X_train" not in data:
        n, order = min(SOME, len(data["y"]) // 2), rng.permutation(len(data["y"]))
        return data["X"][order[:n]], data["y"][order[:n]], data["X"][order[n:]], data["y"][order[n:]]
    n = len(data["y_train"])
    rows = np.arange(n) if which.startswith("all") else rng.permutation(n)[:SOME]
    return data["X_train"][rows], data["y_train"][rows], data["X_test"], data["y_test"]


def model_of(name: str, method: str, m: int, seed: int, iterations: int) -> Any:
    """The estimator, to be fitted."""
    kernel = ArcSine() if method in WITH_ARC_SINE else SquaredExponential()
    noise = Gaussian(min_noise_variance=BIN.get(name, 0.0) ** 2 / 12)
    model: Any = GPRegressor(kernel, likelihood=noise, approximation=METHODS[method](m), calibrate=False,
                             random_state=seed, optimizer=LBFGS(max_iter=iterations))  # fmt: skip
    return Mixture(model, n=4, random_state=seed) if method.endswith("mix") else model


def fit(name: str, method: str, m: int, seed: int, iterations: int) -> dict[str, Any]:
    """Scores of one fit."""
    X, y, X_test, y_test = rows_of(name, seed)
    model = model_of(name, method, m, seed, LONG if name.endswith("-long") else iterations)
    began, wall = time.process_time(), time.perf_counter()
    model.fit(X, y)
    search = model.fit_result_
    if method == "full GP":  # what was found on 2,000 rows, with all of them
        found: dict[str, Any] = {"kernel": model.kernel_, "likelihood": model.likelihood_, "approximation": "exact"}
        model = GPRegressor(**found, optimizer=None).fit(X, y)
    took, wall = time.process_time() - began, time.perf_counter() - wall
    predictive = model.predictive(X_test)
    z = (y_test - predictive.mean) / predictive.std
    piece = {
        "nmse": nmse(y_test, predictive.mean, float(y.mean())),
        "mnlp": nlpd(predictive.log_density(y_test)),
        "coverage": float(np.mean(np.abs(z) < 1.96)),
        "spread": float(np.mean(z**2)),
        "train": nmse(y[:SOME], model.predict(X[:SOME]), float(y.mean())),
        "noise": float(model.likelihood_.noise_variance) / float(np.var(y)),
        "evidence": float(model.log_evidence_),
        "iterations": search.iterations,
        "evaluations": search.evaluations,
        "challenged": search.challenged,
        "processor": took,
        "wall": wall,
    }
    if method in ("BN-MCN", "BN-MMLP"):
        piece["singular"] = directions(model)[0].tolist()
    if name.startswith("robot"):
        piece["relevance"] = relevance(model).tolist()
    return piece


def relevance(model: Any) -> np.ndarray:
    """How much the function varies with each of the standardised inputs."""
    latent = model._model.latent
    if hasattr(latent.features, "layer"):
        return np.linalg.norm(layer_of(model).W, axis=0)
    return 1.0 / np.asarray(latent.kernel.lengthscale)


def main() -> None:
    options = arguments(__doc__, sets=SETS, numbers=NUMBERS, methods=METHODS, seeds=1, iterations=60)
    warnings.simplefilter("ignore")  # that iterations are limited is said on the page
    results = Results("spectral", options.seconds, kept=True)
    for m in options.numbers:
        for name in (name for name in options.sets if m in SETS[name][1]):
            for method in options.methods:
                for seed in range(options.seeds):  # innermost: one shape after another is compiled
                    size = 0 if method == "full GP" else m
                    key = f"{name}/{method}/{size}/{seed}"
                    results.once(key, lambda: fit(name, method, m, seed, options.iterations))  # noqa: B023
    write(results, options.iterations)


def draw(axes: Any, results: Results, name: str) -> None:
    """NMSE and MNLP of a set over the number of basis functions, medians over seeds."""
    title, numbers = SETS[name]
    for axis, key in zip(axes, ("nmse", "mnlp"), strict=True):
        for i, method in enumerate(METHODS):
            found = {m: results.under(f"{name}/{method}/{m}/") for m in (0, *numbers)}
            points = [(m, float(np.median([f[key] for f in pieces]))) for m, pieces in found.items() if pieces]
            if method == "full GP" and points:
                axis.axhline(points[0][1], color="black", lw=0.8, label=method)
            elif points:
                style = {"color": f"C{i % 10}", "ls": "--" if i > 6 else "-", "lw": 1, "ms": 3, "marker": "o"}
                axis.plot(*zip(*points, strict=True), label=method, **style)
        axis.set(xscale="log", ylabel=key.upper(), yscale="log" if key == "nmse" else "linear")
        axis.set_xticks(numbers, numbers)
        axis.xaxis.minorticks_off()
    values = [piece["mnlp"] for piece in results.under(f"{name}/")]
    axes[1].set_ylim(min(values) - 0.2, min(max(values), min(values) + 4) + 0.2)  # the worst are far above
    axes[0].set_title(title)
    axes[1].set_xlabel("basis functions m")


def cells(results: Results, name: str, told: Callable[[list[dict[str, Any]]], str]) -> list[list[Any]]:
    """Rows of a table of a set: a method, and what is told of its fits for each number of basis functions."""
    rows = []
    for method in METHODS:
        numbers = (0, *SETS[name][1])
        found = [results.under(f"{name}/{method}/{m}/") for m in numbers]
        if any(found):
            rows.append([method, *(told(pieces) if pieces else "" for pieces in found)])
    return rows


def median(pieces: list[dict[str, Any]], key: str) -> float:
    return float(np.median([piece[key] for piece in pieces]))


def scores(pieces: list[dict[str, Any]]) -> str:
    return f"{median(pieces, 'nmse'):.4f} ({median(pieces, 'mnlp'):.2f}) {len(pieces)}"


def bands(pieces: list[dict[str, Any]]) -> str:
    return f"{median(pieces, 'coverage'):.0%} {median(pieces, 'noise'):.4f}"


def seconds(pieces: list[dict[str, Any]]) -> str:
    return f"{median(pieces, 'processor'):.1f} / {median(pieces, 'wall'):.1f}"


def write(results: Results, iterations: int) -> None:
    sizes = {name: {key.split("/")[2] for key in results.pieces if key.startswith(f"{name}/")} for name in SETS}
    shown = [name for name in SETS if len(sizes[name]) > 3] or list(SETS)[:1]
    figure, axes = plt.subplots(2, len(shown), figsize=(3.6 * len(shown), 7), squeeze=False, layout="constrained")
    sections = []
    for name, (title, numbers) in SETS.items():
        header = ["", "", *(f"m = {m}" for m in numbers)]
        parts = [
            f"{text}\n\n{table(header, rows)}\n"
            for text, told in (
                ("NMSE (MNLP) and number of seeds:", scores),
                ("Targets within 95 % bands, and noise found:", bands),
                ("Seconds, processor / wall:", seconds),
            )
            if (rows := cells(results, name, told))
        ]
        if parts:
            sections.append(f"### {title}\n\n" + "\n".join(parts))
    for column, name in zip(axes.T, shown, strict=True):
        draw(column, results, name)
    fullest = max(axes[0], key=lambda axis: len(axis.get_lines()))
    figure.legend(*fullest.get_legend_handles_labels(), loc="outside lower center", fontsize="x-small", ncols=6)
    seeds = sorted({key.split("/")[3] for key in results.pieces})
    states = {
        kind: ", ".join(sorted({p["state"] for k, p in results.pieces.items() if ("/BN-" in k) == (kind == "bounded")}))
        for kind in ("bounded", "others")
    }
    text = f"""# Sparse spectra, networks and inter-domain features

Methods and claims of Lázaro-Gredilla, *Sparse Gaussian Processes for Large-Scale Machine Learning* (thesis, 2010), on
the original splits of Elevators, Pole Telecomm (noise variance at least 10²/12) and Kin-40k; on random halves of
Pendulum (the original one is lost); and, in place of Pumadyn-32nm, which is not at hand, on a generated table, Puma-8nh
and Bank-32nh. A smaller form of the thesis' experiments: {SOME:,} of the training rows, drawn by the seed, with which
the full GP is exact and m/n goes further than in the thesis (0.25; there 0.125), and single fits to all rows. Medians
over seeds, at most {len(seeds)}; tables say how many. One start, at most {iterations} iterations of L-BFGS after
short searches on few rows that find where to begin (for bounded noise twice that; mixtures: four networks of m/2 units
each). An empty cell was not run. What {iterations} iterations cost is seen in some fits with {LONG}.
The full GP of all rows has hyperparameters from {SOME:,} of them. MNLP in nats, in
the units of the targets; noise found as a share of their variance. Seconds are those of one fit on one core, with
compiling where a fit is the first of its shape, on a machine that was busy with other work: processor time is the one
to compare. The results are in `benchmarks/reproduce/results/spectral.json`, with the state of
the library (git's name of the folder `src/errorband`): fits with bounded noise {states["bounded"]}, the others
{states["others"]}; between the last two only the search with bounded noise was changed.

{picture(figure, "spectral")}

## Claims

Each comparison is at the m it names; smaller is better throughout. What is asked for is written out; medians decide.

{claims(results, MATTER)}

### With all rows

The same where all rows were learned from, as far as that was run:

{claims(results, MATTER, "-all")}

With all rows and up to {LONG} iterations:

{claims(results, MATTER, "-all-long")}

## Table 6.1, measured

{chooser(results, [name for name in SETS if "-" not in name])}

## Figures

{chr(10).join(sections)}"""
    write_page("spectral", "python benchmarks/reproduce/spectral.py", results.began, text)


if __name__ == "__main__":
    main()
