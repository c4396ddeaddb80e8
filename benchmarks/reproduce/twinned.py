"""Experiments of chapters 3 and 4 of Naish-Guzman's thesis: twinned Gaussian processes beside other robust models."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Results, arguments, load, table, write_page
from sklearn.model_selection import KFold

from errorband import GPRegressor
from errorband.inference import EP
from errorband.kernels import SquaredExponential, White
from errorband.likelihoods import (
    DoubleExponential,
    HeteroscedasticGaussian,
    Huber,
    Ignorance,
    OutlierMixture,
    StudentT,
    Twinned,
    TwoExperts,
)

ROBUST: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "double exponential": {"likelihood": DoubleExponential()},
    "Student-t": {"likelihood": StudentT()},
    "mixture": {"likelihood": OutlierMixture()},
    "Huber": {"likelihood": Huber(), "inference": "laplace"},
    "twinned": {"likelihood": Twinned()},
}
NOISE: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian()},
    "twinned": {"likelihood": Twinned()},
}
Sets = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # inputs and targets to learn from, and to predict


def scored(settings: dict[str, Any], sets: Sets) -> dict[str, Any]:
    """Root mean squared error and negative log predictive density of a model."""
    X, y, X_new, y_new = sets
    model = GPRegressor(**settings).fit(X, y)
    predictive = model.predictive(X_new)
    return {
        "rmse": float(np.sqrt(np.mean((predictive.mean - y_new) ** 2))),
        "nlp": float(-np.mean(predictive.log_density(y_new))),
        "converged": bool(model.fit_result_.converged and model.inference_status_.converged),
    }


# ------------------------------------------------------------------------------------------------- data
def sinc(seed: int) -> Sets:
    """sin(x)/x; scattered errors at the left end and five wrong targets close together in the middle."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-12, 12, (80, 1)), axis=0)
    y = np.sinc(X[:, 0] / np.pi) + 0.05 * rng.normal(size=80)
    left = rng.choice(np.flatnonzero(X[:, 0] < -7), 5, replace=False)
    y[left] += 0.7 * rng.normal(size=5)
    y[np.argsort(np.abs(X[:, 0]))[:5]] = -0.3 + 0.02 * rng.normal(size=5)
    X_new = np.linspace(-12, 12, 300)[:, None]
    return X, y, X_new, np.sinc(X_new[:, 0] / np.pi) + 0.05 * rng.normal(size=300)


def friedman(kind: int, seed: int) -> Sets:
    """Friedman's function of ten inputs: 90 good rows and 10 wrong ones, scattered (1) or in two clusters (2)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(10_100, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y = f + rng.normal(size=len(f))
    if kind == 1:
        y[90:100] = 15 + 3 * rng.normal(size=10)
    else:
        X[90:100] = np.repeat(rng.uniform(size=(2, 10)), 5, axis=0) + np.sqrt(1e-3) * rng.normal(size=(10, 10))
        y[90:100] = rng.normal(size=10)
    return X[:100], y[:100], X[100:], y[100:]


def cosine(seed: int) -> Sets:
    """cos(x) with noise whose standard deviation is a wave of lower frequency, largest at 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-15, 15, (450, 1))
    y = np.cos(X[:, 0]) + (0.05 + 0.45 * (1 + np.cos(2 * np.pi * X[:, 0] / 30))) * rng.normal(size=450)
    return X[:150], y[:150], X[150:], y[150:]


def motorcycle(fold: int) -> Sets:
    """Fold of twelve of the motorcycle data, accelerations in units of their standard deviation."""
    data = load("mcycle", "X (133, 1): times; y (133,): accelerations; mcycle of R's package MASS.")
    X, y = data["X"].reshape(-1, 1), data["y"].ravel() / data["y"].std()
    train, test = list(KFold(12, shuffle=True, random_state=0).split(X))[fold]
    return X[train], y[train], X[test], y[test]


def step(seed: int) -> Sets:
    """A step with little noise."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, (60, 1)), axis=0)
    X_new = np.linspace(-3, 3, 200)[:, None]
    y, y_new = (np.where(x[:, 0] > 0.3, 1.0, -1.0) + 0.05 * rng.normal(size=len(x)) for x in (X, X_new))
    return X, y, X_new, y_new


# ------------------------------------------------------------------------------------------------- other experiments
def overlaid(seed: int) -> dict[str, Any]:
    """Two functions of ten inputs, each seen in 50 rows, which do not say which; hyperparameters as drawn."""
    rng = np.random.default_rng(seed)
    X, f, kernels = rng.uniform(size=(200, 10)), [], []
    for _ in range(2):
        kernels.append(SquaredExponential(1 / np.exp(rng.normal(-2, 1, 10)), np.exp(2 * rng.normal(1, 1))))
        K = np.asarray(kernels[-1](X, X)) + 1e-8 * np.eye(200)
        f.append(np.linalg.cholesky(K) @ rng.normal(size=200))
    y = np.concatenate([f[0][:50], f[1][50:100]]) + 0.1 * rng.normal(size=100)
    fixed: dict[str, Any] = {"optimizer": None, "normalize": False}
    priors = {"mean": kernels[0], "other": kernels[1], "gate": White(1.0)}
    model = GPRegressor(priors, likelihood=TwoExperts(0.01, 1.0, 0.0), inference=EP(), **fixed).fit(X[:100], y)
    found, alone = [], []
    for l, name in enumerate(("mean", "other")):
        rows = slice(50 * l, 50 * (l + 1))
        oracle = GPRegressor(kernels[l], likelihood="gaussian(0.01)", **fixed).fit(X[rows], y[rows])
        alone.append(np.mean((oracle.predict(X[100:]) - f[l][100:]) ** 2) / np.var(f[l]))
        found.append(np.mean((model.predict(X[100:], latent=name) - f[l][100:]) ** 2) / np.var(f[l]))
    converged = bool(model.inference_status_.converged)
    return {"found": float(np.mean(found)), "oracle": float(np.mean(alone)), "converged": converged}


def orders(name: str) -> dict[str, Any]:
    """EP one site at a time, in ten orders: how many different ends, by the evidence, and in how many sweeps."""
    rng = np.random.default_rng(0)
    X = np.linspace(-3, 3, 25)[:, None]
    y = np.sinc(X[:, 0]) + 0.05 * rng.normal(size=25)
    y[11:14] = -1.0
    likelihood = Twinned(0.0025, 400.0, 1.5) if name == "twinned" else OutlierMixture(0.0025, 400.0, 0.07)
    kernel = SquaredExponential(0.7, 0.25)
    priors = {"mean": kernel, "gate": SquaredExponential(0.5, 2.0)} if name == "twinned" else kernel
    ends, sweeps = [], []
    for seed in range(10):
        rule = EP("sequential", seed=seed)
        model = GPRegressor(priors, likelihood=likelihood, inference=rule, optimizer=None, normalize=False)
        try:
            model.fit(X, y)
        except np.linalg.LinAlgError:
            continue
        if model.inference_status_.converged:
            ends.append(round(model.log_evidence_, 3))
            sweeps.append(model.inference_status_.sweeps)
    return {"converged": len(ends), "ends": sorted(set(ends)), "sweeps": float(np.mean(sweeps)) if sweeps else None}


# ------------------------------------------------------------------------------------------------- the page
Draw = Callable[[int], Sets]
COMPARED: dict[str, tuple[str, Draw, dict[str, dict[str, Any]], int]] = {
    "sinc": ("sinc, scattered errors at one end and a cluster in the middle", sinc, ROBUST, 5),
    "motorcycle": ("Motorcycle data, twelve folds", motorcycle, NOISE, 12),
    "cosine": ("cos with noise that changes", cosine, NOISE, 5),
    "step": ("A step, by two experts", step, {"Gaussian": {}, "two experts": {"likelihood": TwoExperts()}}, 5),
    "friedman1": ("Friedman 1: ten scattered wrong rows", lambda seed: friedman(1, seed), ROBUST, 10),
    "friedman2": (
        "Friedman 2: two clusters of five wrong rows",
        lambda seed: friedman(2, seed),
        ROBUST | {"ignorance": {"likelihood": Ignorance()}},
        10,
    ),
}


def compared(results: Results, name: str, sets: int) -> str:
    """A table of every model on every set, as a section."""
    title, draw, models, most = COMPARED[name]
    for number in range(min(sets, most)):
        for model, settings in models.items():
            key = f"{name} {number} {model}"
            results.once(key, lambda settings=settings, number=number: scored(settings, draw(number)))
    rows: list[list[object]] = []
    for model in models:
        found = [
            results.pieces[key] for n in range(min(sets, most)) if (key := f"{name} {n} {model}") in results.pieces
        ]
        if found:
            rmse, nlp = ([piece[k] for piece in found] for k in ("rmse", "nlp"))
            settled = f"{sum(piece['converged'] for piece in found)}/{len(found)}"
            cells = [f"{of(x):.3f}" for x in (rmse, nlp) for of in (np.median, np.max)]
            rows.append([model, *cells, settled])
    if not rows:
        return ""
    best = [min(rows, key=lambda row: float(str(row[column])))[0] for column in (1, 3)]
    header = ["model", "RMSE, median", "largest", "NLP, median", "largest", "converged"]
    return f"## {title}\n\n{table(header, rows)}\n\nBest by RMSE: {best[0]}; by NLP: {best[1]}.\n"


def main() -> None:
    options = arguments(__doc__, sets=3, parts=["overlaid", "orders", *COMPARED])
    warnings.simplefilter("ignore")  # statuses are counted
    results, sections = Results("twinned", options.seconds), []
    if "overlaid" in options.parts:
        for seed in range(options.sets):
            results.once(f"overlaid {seed}", lambda seed=seed: overlaid(seed))
        found = results.under("overlaid")
        rows = [[f"{p['found']:.3f}", f"{p['oracle']:.3f}", "yes" if p["converged"] else "no"] for p in found]
        header = ["mean squared error / variance", "two separate Gaussian processes", "converged"]
        sections.append(f"## Mixture of two functions, hyperparameters as drawn\n\n{table(header, rows)}\n")
    if "orders" in options.parts:
        for name in ("mixture", "twinned"):
            results.once(f"orders {name}", lambda name=name: orders(name))
        rows = [
            [name, p["converged"], ", ".join(f"{end:.3f}" for end in p["ends"]), p["sweeps"]]
            for name in ("mixture", "twinned")
            if (p := results.pieces.get(f"orders {name}"))
        ]
        header = ["likelihood", "converged of 10 orders", "log evidences reached", "sweeps"]
        sections.append(f"## Three wrong neighbours, sites in ten orders\n\n{table(header, rows)}\n")
    sections += [compared(results, name, options.sets) for name in COMPARED if name in options.parts]
    text = f"""# Twinned Gaussian processes

Naish-Guzman, *Sparse and robust kernel methods* (2007), chapters 3 and 4; his results are figures without numbers. Root
mean squared error and negative log predictive density (NLP) of new targets, without outliers. A small form, where he
has ten or twelve sets: here {options.sets} of each experiment at most.

{chr(10).join(section for section in sections if section)}"""
    command = f"python benchmarks/reproduce/twinned.py --sets {options.sets}"
    write_page("twinned", command, results.began, text)


if __name__ == "__main__":
    main()
