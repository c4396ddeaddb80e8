"""Processor time of an effective draw: our samplers beside GPflow's, on the same two models."""

import functools
import time
import warnings
from typing import Any

import numpy as np
from common import Results, arguments, table, write_page
from sampler_data import KERNEL, NOISE, PROBIT, SPREAD, data

from errorband import GPRegressor
from errorband.inference import MCMC
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian
from errorband.samplers import Chains
from errorband.training import FullBayes

CHAINS, WARMUP = 4, 100
DRAWS = {"hyperparameters": (50, 200), "latent values": (200, 1200)}  # a short run and a long one
SAMPLERS = {"hyperparameters": ("NUTS",), "latent values": ("NUTS", "elliptical slices")}


def sample(problem: str, sampler: str, draws: int) -> tuple[float, Chains]:
    """Processor time of a whole fit, and its chains."""
    began, (X, y) = time.process_time(), data(problem)
    if problem == "hyperparameters":
        trainer = FullBayes(chains=CHAINS, warmup=WARMUP, draws=draws, members=10, spread=SPREAD)
        model = GPRegressor(
            SquaredExponential(*KERNEL), likelihood=Gaussian(NOISE), optimizer=trainer, normalize=False
        ).fit(X, y)
        return time.process_time() - began, model.fit_result_.chains
    rule = MCMC("nuts" if sampler == "NUTS" else "elliptical", chains=CHAINS, warmup=WARMUP, draws=draws, keep=10**6)
    settings: dict[str, Any] = {"likelihood": Bernoulli(), "optimizer": None, "normalize": False}
    posterior = GPRegressor(SquaredExponential(*PROBIT), inference=rule, **settings).fit(X, y).posterior_
    took, root = time.process_time() - began, posterior.factors[0]
    values = posterior.weights[:, 0] @ (root @ root.T)
    return took, Chains(values.reshape(CHAINS, draws, -1)[:, :, ::10])


def summary(problem: str, sampler: str) -> dict[str, Any]:
    few, many = DRAWS[problem]
    (cold, _), (short, _), (whole, chains) = (sample(problem, sampler, draws) for draws in (few, few, many))
    each = (whole - short) / (CHAINS * (many - few))  # warm-up cancels; only the first run compiles
    drawn = np.round(chains.draws.reshape(-1, chains.draws.shape[2]).T, 5).tolist()
    return {"each": each, "took": whole + cold - short, "version": "", "chains": CHAINS, "draws": drawn}


def line(sampler: str, piece: dict[str, Any], others: np.ndarray) -> list[object]:
    """Effective draws by the same function for all; means beside those of the first row, in standard deviations."""
    draws = np.array(piece["draws"]).T
    chains = Chains(draws.reshape(piece["chains"], -1, draws.shape[1]))
    fewest, R = float(np.min(chains.effective)), float(np.max(chains.rhat))
    off = float(np.max(np.abs(draws.mean(axis=0) - others.mean(axis=0)) / others.std(axis=0)))
    cost = piece["each"] * len(draws) / fewest
    return [sampler, len(draws), f"{fewest:.0f}", f"{R:.3f}", f"{off:.2f}", f"{1e3 * piece['each']:.2f}",
            f"{1e3 * cost:.2f}", f"{1e3 * piece['took'] / fewest:.1f}"]  # fmt: skip


def main() -> None:
    options = arguments(__doc__)
    warnings.simplefilter("ignore")
    results, sections = Results("sampler_cost", options.seconds), []
    for problem, samplers in SAMPLERS.items():
        for sampler in samplers:
            results.once(f"{problem}: errorband, {sampler}", functools.partial(summary, problem, sampler))
    header = ["sampler", "draws", "fewest effective", "largest R̂", "means off by", "ms a draw", "ms an effective draw",
              "with search, compilation and warm-up"]  # fmt: skip
    titles = {
        "hyperparameters": "Hyperparameters of a regression",
        "latent values": "Latent values of a probit classifier",
    }
    for problem, title in titles.items():
        found = {k.split(": ")[1]: p for k, p in results.pieces.items() if k.startswith(problem)}
        first = np.array(next(iter(found.values()))["draws"]).T
        rows = [line(name, piece, first) for name, piece in found.items()]
        least = {who: min(float(r[-2]) for r in rows if str(r[0]).startswith(who)) for who in ("errorband", "GPflow")}
        verdict = (
            f"The cheapest of ours takes {least['errorband'] / least['GPflow']:.2f} times what GPflow's cheapest does."
        )
        sections.append(f"## {title}\n\n{table(header, rows)}\n\n{verdict}\n")
    version = next((p["version"] for p in results.pieces.values() if p["version"]), "not run")
    text = f"""# Cost of an effective draw

100 rows of a sine, the same model and priors on both sides, processor time of one core. Regression: squared exponential
and Gaussian noise, logarithms of length-scale, variance and noise N(start, {SPREAD}²), sampled with the function
integrated out (`optimizer=FullBayes()`; GPflow's `GPR`). Classification: the whitened values of the function at given
hyperparameters (`inference=MCMC("nuts")`; GPflow's `GPMC`); every tenth row is judged. GPflow ({version}) samples by
TensorFlow Probability inside `tf.function`, one chain, NUTS with its step adapted and HMC with ten leapfrog steps as in
its guide; ours are {CHAINS} chains side by side. Effective draws are counted by the same function for all (`Chains`),
the quantity with the fewest decides; "means off by" is the largest difference of the posterior means from those of the
first row, in posterior standard deviations. The time of a draw is the difference of a long and a short run, in which
search, compilation and warm-up cancel; the last column is the whole run, divided by effective draws (ms).

{chr(10).join(sections)}
`FullBayes` draws more evenly than GPflow's NUTS, whose metric is not adapted.

GPflow's rows: `PYTHON benchmarks/reproduce/sampler_peer.py`, PYTHON an interpreter with `benchmarks/peers/gpflow.txt`.
"""
    write_page("sampler-cost", "python benchmarks/reproduce/sampler_cost.py", results.began, text)


if __name__ == "__main__":
    main()
