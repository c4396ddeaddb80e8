"""FITC and VFE on Kin-40k, Elevators and Pole Telecomm: error, density and time over the number of inducing inputs.

Each fit is done in parts that end within a time limit, and its model is kept, so the work can be done piece by piece.
"""

import time
import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import Results, arguments, load, picture, results_folder, table, write_page

import errorband
from errorband import GPRegressor
from errorband.approximations import FITC, VFE
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.metrics import nlpd, nmse
from errorband.training import LBFGS

HOW = "It holds X_train, y_train, X_test, y_test in the original split."
SETS = {"kin40k": "Kin-40k", "elevators": "Elevators", "pol": "Pole Telecomm"}
BIN = {"pol": 10.0}  # targets recorded in steps; a uniform error within a step has variance step²/12
NUMBERS = (10, 25, 50, 100, 250, 500, 750, 1000)
METHODS = {"FITC": FITC, "VFE": VFE}
ITERATIONS = 100


def fit_a_part(name: str, method: str, m: int, done: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Go on with a fit for so many seconds; scores when its iterations are all done or it has converged."""
    data = load(name, HOW)
    file = results_folder() / f"curves-{name}-{method}-{m}.eb"
    if done:
        before = errorband.load(file)
        kernel, likelihood, approximation = before.kernel_, before.likelihood_, before.approximation_
    else:
        least = BIN.get(name, 0.0) ** 2 / 12 / np.var(data["y_train"])
        kernel, likelihood = SquaredExponential(), Gaussian(min_noise_variance=least)
        approximation = METHODS[method](m)
    left = ITERATIONS - done.get("iterations", 0)
    model = GPRegressor(kernel, likelihood=likelihood, approximation=approximation, random_state=0,
                        optimizer=LBFGS(max_iter=left, max_seconds=seconds))  # fmt: skip
    began = time.perf_counter()
    model.fit(data["X_train"], data["y_train"])
    took = time.perf_counter() - began
    result = model.fit_result_
    iterations = done.get("iterations", 0) + result.iterations
    finished = result.converged or iterations >= ITERATIONS or result.iterations == 0
    if not finished:
        model.save(file)
    predictive = model.predictive(data["X_test"])
    return {
        "finished": finished,
        "iterations": iterations,
        "parts": done.get("parts", 0) + 1,
        "evaluations": done.get("evaluations", 0) + result.evaluations,
        "wall": done.get("wall", 0.0) + took,
        "evidence": model.log_evidence_,
        "nmse": nmse(data["y_test"], predictive.mean, float(data["y_train"].mean())),
        "mnlp": nlpd(predictive.log_density(data["y_test"])),
        "noise": float(model.likelihood_.noise_variance),
    }


def main() -> None:
    unfinished = "end by this time, with fits unfinished"
    options = arguments(__doc__, unfinished, sets=SETS, numbers=NUMBERS, methods=METHODS)
    warnings.simplefilter("ignore")  # that iterations are limited is said on the page
    results = Results("curves", options.seconds)
    for m in options.numbers:
        for name in options.sets:
            for method in options.methods:
                go_on(results, f"{name}/{method}/{m}/", name, method, m)
    write(results)


def go_on(results: Results, key: str, name: str, method: str, m: int) -> None:
    """Parts of a fit until it is finished or time is up."""
    while time.perf_counter() < results.deadline:
        parts = results.under(key)
        if parts and parts[-1]["finished"]:
            return
        done = parts[-1] if parts else {}
        seconds = results.deadline - time.perf_counter()
        results.once(f"{key}{len(parts)}", lambda: fit_a_part(name, method, m, done, seconds))  # noqa: B023


def write(results: Results) -> None:
    figure, axes = plt.subplots(3, len(SETS), figsize=(12, 9), squeeze=False, layout="constrained")
    sections = []
    for column, (name, title) in zip(axes.T, SETS.items(), strict=True):
        rows, unfinished = [], []
        for method in METHODS:
            found = {m: results.under(f"{name}/{method}/{m}/") for m in NUMBERS}
            done = {m: parts[-1] for m, parts in found.items() if parts and parts[-1]["finished"]}
            unfinished += [f"{method} at {m}" for m in NUMBERS if m not in done]
            for axis, key in zip(column, ("nmse", "mnlp", "wall"), strict=True):
                axis.plot(list(done), [piece[key] for piece in done.values()], "o-", label=method)
            rows += [
                [method, m, f"{p['nmse']:.4f}", f"{p['mnlp']:.3f}", f"{p['evidence']:.0f}", f"{p['noise']:.2g}",
                 p["iterations"], f"{p['wall']:.0f}"]
                for m, p in done.items()
            ]  # fmt: skip
        for axis, label in zip(column, ("NMSE", "MNLP", "seconds"), strict=True):
            axis.set(xscale="log", ylabel=label, yscale="linear" if label == "MNLP" else "log")
        column[0].set_title(title)
        column[-1].set_xlabel("inducing inputs")
        header = ["", "m", "NMSE", "MNLP", "log evidence", "noise variance", "iterations", "seconds"]
        missing = f"\nNot run: {', '.join(unfinished)}.\n" if unfinished else ""
        sections.append(f"## {title}\n\n{table(header, rows)}\n{missing}")
    axes[0, 0].legend()
    text = f"""# Curves over the number of inducing inputs

Squared exponential with a length-scale for each input, Gaussian noise, `GPRegressor(approximation=FITC(m))` and
`VFE(m)`: one start, inducing inputs from the centres of clusters and learned with the rest, {ITERATIONS} iterations
of L-BFGS at most, twice where the library found dead inducing inputs and moved them. NMSE and MNLP (nats, in the units
of the targets) on the original test rows; noise variance in units of the variance of the targets. The targets of Pole
Telecomm are recorded in steps of ten, so its noise variance was bounded below by 10²/12. Some fits were done in parts,
each of which begins the search anew where the last one ended. Times are wall times on a machine of two cores that was
busy with other work: upper limits, and uneven.

{picture(figure, "curves")}

{stalls(results)}

{chr(10).join(sections)}"""
    write_page("curves", "python benchmarks/reproduce/curves.py", results.began, text)


def stalls(results: Results) -> str:
    """What became of the statement that FITC's error stops falling near 500 inducing inputs on Kin-40k."""
    found = {m: results.under(f"kin40k/FITC/{m}/") for m in NUMBERS}
    errors = {m: parts[-1]["nmse"] for m, parts in found.items() if parts and parts[-1]["finished"]}
    said = "Lázaro-Gredilla (2010) reports that FITC's NMSE on Kin-40k stops falling near m = 500."
    steps = [m for m in (250, 500, 750, 1000) if m in errors]
    if not {500, 750} <= set(errors):
        return f"{said} Not enough was run here to say."
    gain = 1 - errors[750] / errors[500]
    verdict = "So it is here" if gain < 0.05 else "Not so here"
    return f"{said} {verdict}: {', '.join(f'{errors[m]:.4f} at {m}' for m in steps)}."


if __name__ == "__main__":
    main()
