"""EP, Laplace and KL against annealed importance sampling and Markov chains, on small data."""

import warnings
from typing import Any

import numpy as np
from common import Results, arguments, picture, table, write_page

from errorband import GPRegressor
from errorband.inference import EP, KL, MCMC, Laplace
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Bernoulli, OutlierMixture, StudentT, Twinned

SMOOTH = SquaredExponential(0.8, 1.0)
MODELS: dict[str, dict[str, Any]] = {
    "probit": {"kernel": SquaredExponential(0.8, 4.0), "likelihood": Bernoulli()},
    "Student-t": {"kernel": SMOOTH, "likelihood": StudentT(3.0, 0.1)},
    "mixture": {"kernel": SMOOTH, "likelihood": OutlierMixture(0.01, 200.0, 0.1)},
    "twinned": {
        "kernel": {"mean": SMOOTH, "gate": SquaredExponential(0.4, 2.0)},
        "likelihood": Twinned(0.01, 200.0, 1.5),
    },
}
STARTS = "posterior", "prior"
RULES = {"EP": EP("parallel"), "Laplace": Laplace(), "KL": KL()}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A sine at 30 inputs with a burst of three wrong targets and a single one, or labels of its sign."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (30, 1)), axis=0)
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=30)
    if name == "probit":
        return X, np.where(y + 0.3 * rng.normal(size=30) > 0, 1.0, -1.0)
    y[[12, 13, 14, 24]] += [2.5, 2.6, 2.4, -3.0]
    return X, y


def fitted(name: str, rule: Any) -> GPRegressor:
    return GPRegressor(**MODELS[name], inference=rule, optimizer=None, normalize=False).fit(*data(name))


def evidence(name: str, rule: Any) -> dict[str, Any]:
    """Log evidence and the marginals of the first latent function."""
    try:
        model = fitted(name, rule)
    except np.linalg.LinAlgError:
        return {"evidence": None}
    latent = model.latent_names_[0]
    mean, std = model.predict(data(name)[0], return_std=True, latent=latent)
    converged = bool(model.inference_status_.converged)
    return {"evidence": model.log_evidence_, "mean": list(mean), "std": list(std), "converged": converged}


def annealed(name: str, start: str, runs: int, temperatures: int) -> dict[str, Any]:
    found = fitted(name, RULES["EP"]).annealed_evidence(runs=runs, temperatures=temperatures, start=start)
    return {"evidence": found.log_evidence, "error": found.error, "runs": found.effective_runs}


GRID = np.linspace(-3.3, 3.3, 80)[:, None]


def curves(rule: Any) -> dict[str, Any]:
    """What the twinned model says of the function, of the gate and of a new target, over a grid."""
    model = fitted("twinned", rule)
    found = {"outlier": model.predict_outlier_probability(GRID)}
    for latent in model.latent_names_:
        found[latent], found[f"{latent} sd"] = model.predict(GRID, return_std=True, latent=latent)
    return {key: np.round(value, 4).tolist() for key, value in found.items()}


def drawn(pieces: dict[str, dict[str, Any]]) -> str:
    """The twinned posterior by EP and by Gibbs sampling, side by side; how far they are from one another."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 2, figsize=(10, 8), sharex=True, sharey="row", layout="constrained")
    for column, (rule, found) in zip(axes.T, pieces.items(), strict=True):
        for axis, latent in zip(column, ("mean", "gate"), strict=False):
            mean, sd = np.array(found[latent]), np.array(found[f"{latent} sd"])
            axis.fill_between(GRID[:, 0], mean - 2 * sd, mean + 2 * sd, alpha=0.25)
            axis.plot(GRID[:, 0], mean)
        column[0].plot(*data("twinned"), "k.")
        column[0].set_title(rule)
        column[2].plot(GRID[:, 0], found["outlier"])
    for axis, name in zip(axes[:, 0], ("f, ± 2 sd", "gate, ± 2 sd", "P(outlier) of a new target"), strict=True):
        axis.set_ylabel(name)
    ep, gibbs = pieces.values()
    off = {k: np.abs(np.subtract(ep[k], gibbs[k])) / np.array(gibbs[f"{k} sd"]) for k in ("mean", "gate")}
    wide = {k: np.median(np.divide(ep[f"{k} sd"], gibbs[f"{k} sd"])) for k in ("mean", "gate")}
    said = "; ".join(
        f"{k}: means differ by {np.mean(off[k]):.2f} standard deviations on average and {np.max(off[k]):.2f} at most, "
        f"EP's standard deviation is {wide[k]:.2f} times that of the draws (median)"
        for k in off
    )
    outlier = np.max(np.abs(np.subtract(ep["outlier"], gibbs["outlier"])))
    said = f"{said}; P(outlier) of a new target differs by at most {outlier:.2f}."
    said = f"{said}\nThe thesis finds that EP matches f and loses detail of the gate."
    return f"{said}\n\n{picture(figure, 'twinned-ep-mcmc')}"


def row(name: str, pieces: dict[str, dict[str, Any]]) -> list[object]:
    """Evidence of each rule, and how far its marginals are from those of the chains, in their standard deviations."""
    chains = pieces["chains"]
    sampled = [pieces[start] for start in STARTS]
    cells: list[object] = [name, *(f"{p['evidence']:.2f} ± {p['error']:.2f} ({p['runs']:.0f})" for p in sampled)]
    for rule in RULES:
        piece = pieces.get(rule)
        if piece is None:
            cells += ["not run", "–"]
            continue
        if piece["evidence"] is None:
            cells += ["none", "–"]
            continue
        off = np.abs(np.subtract(piece["mean"], chains["mean"])) / chains["std"]
        mark = "" if piece["converged"] else "*"
        cells += [f"{piece['evidence']:.2f}{mark}", f"{np.mean(off):.2f} / {np.max(off):.2f}"]
    return [*cells, "yes" if chains["converged"] else "no"]


def main() -> None:
    options = arguments(__doc__, runs=300, temperatures=1000, models=MODELS)
    warnings.simplefilter("ignore")  # statuses are in the table
    results, rows, off = Results("ep_ais", options.seconds, kept=True), [], []
    chains = MCMC("elliptical", warmup=5000, draws=2000, thin=10, keep=2000)
    gibbs = MCMC("gibbs", warmup=500, draws=2000, keep=2000)
    given = options.runs, options.temperatures
    for name in options.models:
        sampler = gibbs if name == "twinned" else chains
        for start in STARTS:
            results.once(f"{name} AIS {start} {given}", lambda n=name, s=start: annealed(n, s, *given))
        results.once(f"{name} chains", lambda n=name, s=sampler: evidence(n, s))
    for rule_name, rule in {"EP": RULES["EP"], "Gibbs": gibbs}.items():
        results.once(f"curves {rule_name}", lambda r=rule: curves(r))
    for rule_name, rule in RULES.items():
        for name in options.models:
            results.once(f"{name} {rule_name}", lambda n=name, r=rule: evidence(n, r))
    for name in MODELS:
        keys = {start: f"{name} AIS {start} {given}" for start in STARTS}
        keys |= {"chains": f"{name} chains"} | {rule: f"{name} {rule}" for rule in RULES}
        pieces = {k: results.pieces[v] for k, v in keys.items() if v in results.pieces}
        if {*STARTS, "chains", "EP"} <= set(pieces):
            rows.append(row(name, pieces))
            sampled = pieces["posterior"]
            off.append(f"{name} {pieces['EP']['evidence'] - sampled['evidence']:+.2f} ± {sampled['error']:.2f}")
    header = ["model", "AIS from near the posterior (effective runs)", "AIS from the prior"]
    for rule in RULES:
        header += [rule, "mean off by"]
    pictured = {r: results.pieces.get(f"curves {r}") for r in ("EP", "Gibbs")}
    shown = (
        f"\n## The twinned posterior by EP and by Gibbs sampling\n\n{drawn(pictured)}\n"
        if all(pictured.values())
        else ""
    )
    text = f"""# Gaussian rules against samplers

30 rows, hyperparameters fixed; for the three robust models a burst of three wrong targets and a single one. Log
evidence by annealed importance sampling ({options.runs} runs of {options.temperatures} temperatures, with its
standard error) and by the rules (* did not converge). "Mean off by": difference of the posterior means of f at the
rows from those of Markov chains (Gibbs on the indicators for the twinned model, elliptical slices for the others), in
posterior standard deviations: average and largest. The last column says whether the chains mixed (R̂ below 1.05 and
100 effective draws everywhere).

{table([*header, "mixed"], rows)}

EP's evidence less that sampled from near the posterior: {", ".join(off)}. Runs begin with draws around EP's
posterior, or with draws of the prior. Both are unbiased averages of weights, so that their logarithm is
rather too low where effective runs are few, and its error too small: with less than a quarter of the runs they decide
nothing.
{shown}"""
    command = f"python benchmarks/reproduce/ep_ais.py --runs {options.runs} --temperatures {options.temperatures}"
    write_page("ep-ais", command, results.began, text)


if __name__ == "__main__":
    main()
