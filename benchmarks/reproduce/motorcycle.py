"""Noise that changes with the input: the motorcycle data, by negative log predictive density over folds."""

import warnings
from typing import Any

import numpy as np
from common import Results, arguments, load, table, write_page
from kersting import ROUNDS, MostLikelyNoise
from sklearn.model_selection import KFold

from errorband import GPRegressor
from errorband.approximations import FITC
from errorband.kernels import Matern, SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian, OutlierMixture, StudentT, Triplet, Twinned

MODELS: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "warped": {"target_transform": "warp"},
    "Student-t": {"likelihood": StudentT()},
    "mixture": {"likelihood": OutlierMixture()},
    "twinned": {"likelihood": Twinned()},
    "triplet": {"likelihood": Triplet()},
    "most likely noise (Kersting et al. 2007)": {},
    "heteroscedastic, squared exponentials": {
        "likelihood": HeteroscedasticGaussian(),
        "kernel": SquaredExponential(),
    },
    "heteroscedastic, default kernels": {"likelihood": HeteroscedasticGaussian()},
    "heteroscedastic, Matérn mean and smooth noise": {
        "likelihood": HeteroscedasticGaussian(),
        "kernel": {"mean": Matern(nu=2.5), "log_noise": SquaredExponential()},
    },
    "heteroscedastic, FITC(20)": {"likelihood": HeteroscedasticGaussian(), "approximation": FITC(20)},
}


def fold(name: str, number: int, folds: int) -> dict[str, Any]:
    """One model on one fold: NLPD, RMSE and whether the search converged."""
    data = load("mcycle", "X (133, 1): times; y (133,): accelerations; mcycle of R's package MASS.")
    X, y = data["X"].reshape(-1, 1), data["y"].ravel()
    train, test = list(KFold(folds, shuffle=True, random_state=0).split(X))[number]
    if name.startswith("most likely"):
        model: Any = MostLikelyNoise().fit(X[train], y[train])
        converged = model.rounds_ < ROUNDS
    else:
        model = GPRegressor(**MODELS[name], random_state=0).fit(X[train], y[train])
        converged = model.fit_result_.converged and model.inference_status_.converged
    predictive = model.predictive(X[test])
    return {
        "nlpd": float(-np.mean(predictive.log_density(y[test]))),
        "squares": float(np.mean((predictive.mean - y[test]) ** 2)),
        "converged": bool(converged),
    }


def main() -> None:
    options = arguments(__doc__, models=MODELS, folds=10)
    warnings.simplefilter("ignore")  # statuses are counted below
    folds, rows = options.folds, []
    results = Results(f"motorcycle_{folds}", options.seconds)
    for number in range(folds):
        for name in options.models:
            results.once(f"{name}: {number}", lambda name=name, number=number: fold(name, number, folds))
    done = [i for i in range(folds) if all(f"{name}: {i}" in results.pieces for name in options.models)]
    for name in options.models:
        found = [results.pieces[f"{name}: {i}"] for i in done]
        nlpd = np.array([piece["nlpd"] for piece in found])
        rmse = np.sqrt(np.mean([piece["squares"] for piece in found]))
        converged = sum(piece["converged"] for piece in found)
        spread = nlpd.std(ddof=1) / np.sqrt(len(nlpd))
        rows.append([name, f"{nlpd.mean():.3f} ± {spread:.3f}", f"{rmse:.1f}", f"{converged} of {len(found)}"])
    header = ["model", "NLPD, mean of folds and standard error", "RMSE", "converged"]
    part = "" if len(done) == folds else f", of which {len(done)} were run"
    text = f"""# Noise that changes with the input

The motorcycle data (Silverman 1985): 133 accelerations of a helmet, whose noise is small at first and large later.
{folds} folds, drawn once{part}; each model is as its defaults are, apart from what the table says.

{table(header, rows)}
"""
    chosen = "" if len(options.models) == len(MODELS) else " --models " + " ".join(f'"{m}"' for m in options.models)
    command = f"python benchmarks/reproduce/motorcycle.py --folds {folds}{chosen}"
    write_page("motorcycle" if folds == 10 else f"motorcycle-{folds}", command, results.began, text)


if __name__ == "__main__":
    main()
