"""Friedman's function of ten inputs with outliers, scattered or in two clusters: six models of the noise."""

import functools
import warnings
from typing import Any

import numpy as np
from common import Results, arguments, picture, table, write_page

from errorband import GPRegressor
from errorband.kernels import SquaredExponential
from errorband.likelihoods import DoubleExponential, Huber, Ignorance, OutlierMixture, StudentT, Twinned

MODELS: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "double exponential": {"likelihood": DoubleExponential()},
    "Student-t": {"likelihood": StudentT()},
    "mixture": {"likelihood": OutlierMixture()},
    "Huber": {"likelihood": Huber(), "inference": "laplace"},
    "twinned": {"likelihood": Twinned()},
    "ignorance": {"likelihood": Ignorance()},
}
TITLES = {1: "Friedman (1): scattered outliers", 2: "Friedman (2): two clusters of outliers"}


def truth(X: np.ndarray) -> np.ndarray:
    return (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    )  # the other five inputs say nothing


def draw(kind: int, seed: int) -> tuple[np.ndarray, ...]:
    """Rows of which the last ten are outliers; new inputs, the function there, and targets with noise."""
    rng = np.random.default_rng([kind, seed])
    X, X_new = rng.uniform(size=(90, 10)), rng.uniform(size=(10_000, 10))
    y = truth(X) + rng.normal(size=90)
    if kind == 1:
        wrong, y_wrong = rng.uniform(size=(10, 10)), rng.normal(15, 3, 10)
    else:
        centres = np.repeat(rng.uniform(size=(2, 10)), 5, axis=0)
        wrong, y_wrong = centres + np.sqrt(1e-3) * rng.normal(size=(10, 10)), rng.normal(0, 1, 10)
    f_new = truth(X_new)
    return np.concatenate([X, wrong]), np.r_[y, y_wrong], X_new, f_new, f_new + rng.normal(size=10_000)


def scores(settings: dict[str, Any], kind: int, seed: int, clean: bool = False) -> dict[str, Any]:
    """One model on one set, or on its clean rows only."""
    X, y, X_new, f_new, y_new = draw(kind, seed)
    shown = slice(0, 90 if clean else 100)
    model = GPRegressor(SquaredExponential(), n_restarts=2, random_state=0, **settings).fit(X[shown], y[shown])
    several = {"latent": "mean"} if len(model.latent_names_) > 1 else {}
    return {
        "rmse": float(np.sqrt(np.mean((model.predict(X_new, **several) - f_new) ** 2))),
        "nlpd": float(-np.mean(model.predictive(X_new).log_density(y_new))),
        "evidence": model.log_evidence_,
        "converged": bool(model.fit_result_.converged and model.inference_status_.converged),
    }


def line(name: str, found: list[dict[str, Any]]) -> list[object]:
    """Median, quartiles and extremes, as a box plot has them."""
    cells: list[object] = [name]
    for score in ("rmse", "nlpd"):
        low, first, middle, third, high = np.quantile([p[score] for p in found], [0, 0.25, 0.5, 0.75, 1])
        cells += [f"{middle:.2f}", f"{first:.2f} – {third:.2f}", f"{low:.2f} – {high:.2f}"]
    return [*cells, f"{sum(p['converged'] for p in found)} of {len(found)}"]


def boxes(found: dict[int, dict[str, list[dict[str, Any]]]]) -> str:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 6), sharey="row", layout="constrained")
    for row, score in zip(axes, ("rmse", "nlpd"), strict=True):
        for axis, (kind, models) in zip(row, found.items(), strict=True):
            axis.boxplot([[p[score] for p in pieces] for pieces in models.values()], tick_labels=list(models))
            axis.set_title(TITLES[kind] if score == "rmse" else "")
            axis.set_ylabel(score.upper() if axis is row[0] else "")
            axis.tick_params(axis="x", rotation=30)
    return picture(figure, "friedman")


def best(models: dict[str, list[dict[str, Any]]], score: str) -> str:
    """Medians of twinned and of the best other model, and how often twinned beat each."""
    own = np.array([p[score] for p in models["twinned"]])
    medians = {name: np.median([p[score] for p in models[name]]) for name in MODELS}
    other = min((name for name in MODELS if name != "twinned"), key=lambda name: medians[name])
    against = ", ".join(
        f"{name} {np.sum(own < [p[score] for p in models[name]])}" for name in MODELS if name != "twinned"
    )
    compared = f"twinned {medians['twinned']:.2f}, least of the others {medians[other]:.2f} ({other})"
    return f"Median {score.upper()}: {compared}. Sets of {len(own)} on which twinned had less: {against}."


def main() -> None:
    options = arguments(__doc__, sets=10, models=("oracle", *MODELS))
    warnings.simplefilter("ignore")  # statuses are counted below
    results = Results("friedman", options.seconds, kept=True)
    found: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for seed in range(options.sets):
        for kind in TITLES:
            for name in options.models:
                given = MODELS.get(name, {}), kind, seed, name == "oracle"
                results.once(f"{kind} {seed} {name}", functools.partial(scores, *given))
    for kind in TITLES:
        keys = {name: [f"{kind} {seed} {name}" for seed in range(options.sets)] for name in ("oracle", *MODELS)}
        done = [i for i in range(options.sets) if all(k[i] in results.pieces for k in keys.values())]
        found[kind] = {name: [results.pieces[k[i]] for i in done] for name, k in keys.items()}
    header = ["model", "RMSE", "quartiles", "range", "NLPD", "quartiles", "range", "converged"]
    sections = [
        f"## {title}\n\n{table(header, [line(name, pieces) for name, pieces in found[kind].items()])}\n\n"
        f"{best(found[kind], 'rmse')}\n\n{best(found[kind], 'nlpd')}\n"
        for kind, title in TITLES.items()
    ]
    text = f"""# Friedman's function with outliers

{len(found[1]["oracle"])} sets of (1) and {len(found[2]["oracle"])} of (2), of 90 rows with noise N(0, 1) and ten
outliers (Naish-Guzman 2007, §3.3): y = 10 sin(πx₁x₂) + 20(x₃ − ½)² + 10x₄ + 5x₅ of ten inputs. In (1) the outliers are
anywhere, with targets N(15, 9); in (2) they are two clusters of five with targets N(0, 1). RMSE to the function at
10,000 new inputs; NLPD of targets there, with noise and without outliers. All models have a squared exponential with a
length-scale for each input, and two random starts of the search beside their own, of which the evidence chooses; the
oracle is the Gaussian model of the 90 clean rows.

The thesis reports (in box plots, without figures) that on (1) robust models are alike in RMSE and twinned has the best
NLPD, and that on (2) twinned is clearly best in both while the others are little better than Gaussian noise; that
ignorance did poorly on two of ten sets of (2).
Here, on (2), so it is: twinned is clearly ahead of all others but ignorance, which is as good and fails on no set. The
mixture, from starts with a smooth function, leaves the clusters alone on few. On (1) all robust models but Huber's are
alike, Student-t, which the thesis did not run, among them: that twinned has the best NLPD there does not come out.

{boxes(found)}

{chr(10).join(sections)}"""
    write_page("friedman", f"python benchmarks/reproduce/friedman.py --sets {options.sets}", results.began, text)


if __name__ == "__main__":
    main()
