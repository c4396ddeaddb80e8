"""Simulation-based calibration of the samplers: ranks of true values among draws of their posterior are uniform."""

import warnings
from typing import Any

import numpy as np
from common import Results, arguments, table, write_page
from scipy.stats import chi2, kstest

from errorband import GPRegressor, Parameter
from errorband.inference import MCMC
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, Likelihood, StudentT, Twinned
from errorband.training import FullBayes

SETS, ROWS, APART = 32, 3, 100.0  # data sets in one run, rows of each, and their distance: none sees another
BINS, SPREAD = 8, 0.7
KERNELS = {"mean": SquaredExponential(1.0, 1.0), "gate": SquaredExponential(1.0, 2.0)}
MODELS: dict[str, tuple[Any, Likelihood]] = {
    "probit": (SquaredExponential(1.0, 4.0), Bernoulli()),
    "Student-t": (KERNELS["mean"], StudentT(4.0, 0.3)),
    "twinned": (KERNELS, Twinned(0.05, 50.0, 1.0)),
}
SAMPLERS = {
    "elliptical": MCMC("elliptical", warmup=1000, draws=250, thin=25, keep=1000),
    "nuts": MCMC("nuts", warmup=300, draws=250, keep=1000),
    "gibbs": MCMC("gibbs", warmup=200, draws=500, keep=1000),
}
RUNS = [(m, s) for m in MODELS for s in SAMPLERS if s != "gibbs" or m == "twinned"]


def simulate(kernel: Any, likelihood: Likelihood, X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Latent values (n, L) drawn from their prior and targets given them."""
    kernels = list(kernel.values()) if isinstance(kernel, dict) else [kernel]
    f = [np.linalg.cholesky(np.asarray(k(X)) + 1e-10 * np.eye(len(X))) @ rng.normal(size=len(X)) for k in kernels]
    values = np.stack(f, axis=1)
    if isinstance(likelihood, Bernoulli):
        return values, np.where(values[:, 0] + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    return values, likelihood.conditional_sample(values if len(f) > 1 else f[0], rng)


def latent_ranks(model: str, sampler: str, seed: int) -> dict[str, Any]:
    """Ranks, as shares of the draws, of a latent value of each data set, and of its log density given the targets."""
    rng = np.random.default_rng(seed)
    X = (np.arange(SETS)[:, None] * APART + np.sort(rng.uniform(0, 3, (SETS, ROWS)), axis=1)).reshape(-1, 1)
    kernel, likelihood = MODELS[model]
    f, y = simulate(kernel, likelihood, X, rng)
    fitted = GPRegressor(kernel, likelihood=likelihood, inference=SAMPLERS[sampler], optimizer=None, normalize=False)
    posterior = fitted.fit(X, y).posterior_
    roots = [posterior.factors[l] for l in range(f.shape[1])]
    draws = np.stack([posterior.weights[:, l] @ (root @ root.T) for l, root in enumerate(roots)], axis=2)
    below = np.mean(draws < f, axis=0).reshape(SETS, ROWS, -1)
    ranks = {name: below[:, 0, l].tolist() for l, name in enumerate(fitted.latent_names_)}
    first, truth = (a.reshape(*a.shape[:-2], SETS, ROWS, -1)[..., 0] for a in (draws, f))
    ranks["sum of squares"] = np.mean(np.sum(first**2, axis=-1) < np.sum(truth**2, axis=-1), axis=0).tolist()
    status = fitted.inference_status_
    return ranks | {"mixed": bool(status.converged), "status": status.message}


def hyperparameter_data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms of a length-scale and of the noise, from their starting values, as drawn from their prior; a table."""
    rng = np.random.default_rng([seed, 7])
    theta = SPREAD * rng.normal(size=2)
    X = np.sort(rng.uniform(0, 6, (16, 1)), axis=0)
    _, y = simulate(SquaredExponential(np.exp(theta[0]), 1.0), Gaussian(0.1 * np.exp(theta[1])), X, rng)
    return theta, X, y


def hyperparameter_model(**given: Any) -> GPRegressor:
    kernel = SquaredExponential(1.0, Parameter(1.0, fixed=True))
    return GPRegressor(kernel, likelihood=Gaussian(0.1), normalize=False, **given)


def hyperparameter_ranks(seed: int) -> dict[str, Any]:
    """Ranks of a length-scale and of the noise drawn from their prior, one data set."""
    theta, X, y = hyperparameter_data(seed)
    trainer = FullBayes(chains=2, warmup=150, draws=250, members=10, spread=SPREAD)
    model = hyperparameter_model(optimizer=trainer)
    chains = model.fit(X, y).fit_result_.chains
    drawn = chains.draws.reshape(-1, 2) - model.objective(X, y).theta0
    return {name: [float(np.mean(drawn[:, i] < theta[i]))] for i, name in enumerate(("length-scale", "noise"))}


def integrated_ranks(seed: int) -> dict[str, Any]:
    """The same by sums over a grid of both."""
    theta, X, y = hyperparameter_data(seed)
    objective, grid = hyperparameter_model().objective(X, y), SPREAD * np.linspace(-4, 4, 29)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1)
    log_p = [objective.evaluate(objective.theta0 + p).value - 0.5 * p @ p / SPREAD**2 for p in points.reshape(-1, 2)]
    p = np.exp(np.array(log_p) - np.max(log_p)).reshape(len(grid), -1)
    found = {}
    for i, name in enumerate(("length-scale", "noise")):
        share = p.sum(axis=1 - i) / p.sum()
        found[name] = [float(np.interp(theta[i], grid, np.cumsum(share) - 0.5 * share))]
    return found


def lines(what: list[str], pieces: list[dict[str, Any]]) -> list[list[object]]:
    """For each quantity, counts of its ranks in equal bins, their chi-square and Kolmogorov's test."""
    found = []
    for name in [key for key, value in pieces[0].items() if isinstance(value, list)] if pieces else []:
        ranks = np.concatenate([piece[name] for piece in pieces])
        counts, expected = np.histogram(ranks, BINS, (0.0, 1.0))[0], len(ranks) / BINS
        tests = chi2.sf(np.sum((counts - expected) ** 2) / expected, BINS - 1), kstest(ranks, "uniform").pvalue
        found.append([*what, name, len(ranks), " ".join(map(str, counts)), *(f"{p:.3f}" for p in tests)])
    return found


def _what_was_found(piece: dict[str, Any]) -> str:
    return piece["status"].split("; ", 1)[1].split(". ")[0]


def main() -> None:
    options = arguments(__doc__, runs=2, hyperparameters=24)
    warnings.simplefilter("ignore")  # the page counts chains that did not mix
    results, rows, unmixed = Results("sampler_ranks", options.seconds, kept=True), [], []
    for seed in range(options.runs):
        for model, sampler in RUNS:
            results.once(f"{model} {sampler} {seed}", lambda m=model, s=sampler, i=seed: latent_ranks(m, s, i))
        for number in range(options.hyperparameters * (seed + 1) // options.runs):
            results.once(f"FullBayes {number}", lambda i=number: hyperparameter_ranks(i))
            results.once(f"integrated {number}", lambda i=number: integrated_ranks(i))
    for model, sampler in RUNS:
        found = results.under(f"{model} {sampler} ")
        rows += lines([model, sampler], found)
        unmixed += [f"{model}, {sampler}: {_what_was_found(piece)}" for piece in found if not piece["mixed"]]
    found = results.under("FullBayes ")
    enough = len(found) >= 2 * BINS
    exact = [results.pieces[f"integrated {n}"] for n in range(options.hyperparameters)] if enough else []
    rows += lines(["Gaussian noise", "FullBayes"], found) if enough else []
    rows += lines(["Gaussian noise", "none: sums over a grid"], exact)
    sampled = [results.pieces[f"FullBayes {n}"] for n in range(len(exact))]
    apart = [abs(a[k][0] - b[k][0]) for a, b in zip(exact, sampled, strict=True) for k in ("length-scale", "noise")]
    beside = (
        f" Ranks of the same data sets by sums over a grid, which are exact but for its coarseness, differ by at most "
        f"{max(apart):.2f}: where those are uneven it is by chance."
        if apart
        else ""
    )
    left_out = "" if enough else f" Of these there were {len(found)}, too few to say anything, and they are left out."
    header = ["model", "sampler", "quantity", "data sets", "ranks in eight bins", "chi-square", "Kolmogorov"]
    least = min((float(row[-1]) for row in rows), default=1.0), min((float(row[-2]) for row in rows), default=1.0)
    text = f"""# Ranks of true values among draws

Simulation-based calibration (Talts et al. 2018): hidden values are drawn from their prior, targets given them, and the
sampler draws from the posterior. If it is right, the share of draws below the true value is uniform between 0 and 1.
Latent values: {ROWS} rows a data set, {SETS} data sets in one run, so far apart that none says anything of another;
the first value of each, and the sum of squares of the function's values, have one rank in each data set.
Hyperparameters (`FullBayes`): 16 rows a data set, a run for each.{left_out}{beside}
The last two columns are the probabilities of ranks at least as uneven by chance; the least of {2 * len(rows)} is
{min(least):.3f}.

{table(header, rows)}

Chains that did not mix by R̂ below 1.05 and 100 effective draws, so that they test less:
{" | ".join(unmixed) or "none"}.
All data sets of a run move together, which is hard for slices and flips: {SETS * ROWS} rows at once.
"""
    command = "python benchmarks/reproduce/sampler_ranks.py"
    command += f" --runs {options.runs} --hyperparameters {options.hyperparameters}"
    write_page("sampler-ranks", command, results.began, text)


if __name__ == "__main__":
    main()
