"""Exclusive or hidden among noise inputs (Naish-Guzman 2007, §2.5): a learned projection to two inputs, and ARD.

Results are kept piece by piece: a run that was stopped goes on where it was.
"""

import warnings
from typing import Any

import numpy as np
from common import Results, arguments, class_scores, table, write_page
from xor import CENTRE, TEST_ROWS, best_error, draw

from errorband import GPClassifier
from errorband.approximations import FITC
from errorband.inference import EP
from errorband.kernels import Kernel, Projection, SquaredExponential
from errorband.likelihoods import Bernoulli
from errorband.parameters import Parameter
from errorband.training import LBFGS

INPUTS, SETS, INDUCING = 10, 10, 4
ROWS = (80, 160, 320)
STARTS, FIRST, BEST, LONG = 20, 30, 3, 200  # short searches from all starts; the best few go on
PRINTED = {"projection": (7.5, 37.0), "ARD": (2.0, 6.8)}  # least and mean error, per cent


def hidden(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs of the exclusive or, eight of noise."""
    X, y = draw(rng, 2, n)
    return np.hstack([X, rng.standard_normal((n, INPUTS - 2))]), y


def kernel(how: str, rng: np.random.Generator) -> Kernel:
    if how == "ARD":
        return SquaredExponential(np.full(INPUTS, 2.0) * np.exp(rng.normal(0, 0.3, INPUTS)), np.exp(rng.normal()))
    plane, _ = np.linalg.qr(rng.standard_normal((INPUTS, 2)))
    one = Parameter(1.0, fixed=True)  # the scale is the matrix'
    return Projection(SquaredExponential(one, np.exp(rng.normal()), ard=False), rank=2, matrix=plane)


def fit(how: str, n: int, seed: int) -> dict[str, Any]:
    """A single start of 30 iterations, the best of many such by evidence, and the best of a few carried on."""
    X, y = hidden(np.random.default_rng([seed, n]), n)
    X_test, y_test = hidden(np.random.default_rng([seed, n, 1]), TEST_ROWS)
    common: dict[str, Any] = {"likelihood": Bernoulli(bias=0.0), "inference": EP()}
    models = []
    for start in range(STARTS):
        approximation = FITC(INDUCING, init="random")
        model = GPClassifier(kernel(how, np.random.default_rng([seed, n, 2, start])), approximation=approximation,
                             optimizer=LBFGS(max_iter=FIRST), random_state=start, **common)  # fmt: skip
        models.append(model.fit(X, y))
    first = models[0]
    models.sort(key=lambda model: -model.log_evidence_)
    longer = []
    for model in models[:BEST]:
        freed = model.kernel_
        if how == "projection":
            freed = Projection(SquaredExponential(Parameter(1.0, fixed=True), freed.kernel.variance, ard=False),
                               rank=2, matrix=freed.matrix)  # fmt: skip
        again = GPClassifier(freed, approximation=model.approximation_, optimizer=LBFGS(max_iter=LONG), **common)
        longer.append(again.set_params(likelihood=model.likelihood_).fit(X, y))
    last = max(longer, key=lambda model: model.log_evidence_)
    error = lambda model: class_scores(model, X_test, y_test)["error"]  # noqa: E731
    return {
        "one": error(first),
        "best": error(models[0]),
        "longer": error(last),
        "evidence": last.log_evidence_,
        "nlp": class_scores(last, X_test, y_test)["nlp"],
    }


def main() -> None:
    options = arguments(__doc__, sets=SETS, rows=ROWS)
    warnings.simplefilter("ignore")  # that iterations are limited is said on the page
    results = Results("projection", options.seconds)
    for seed in range(options.sets):
        for n in options.rows:
            for how in PRINTED:
                results.once(f"{how}/{n}/{seed}", lambda: fit(how, n, seed))  # noqa: B023
    write(results)


def write(results: Results) -> None:
    rows = []
    for how, (least, mean) in PRINTED.items():
        for n in ROWS:
            pieces = results.under(f"{how}/{n}/")
            cells = [np.array([piece[key] for piece in pieces]) for key in ("one", "best", "longer")]
            if pieces:
                rows.append(
                    [
                        how,
                        n,
                        len(pieces),
                        f"{least} / {mean}",
                        *(f"{100 * c.min():.1f} / {100 * c.mean():.1f}" for c in cells),
                    ]
                )
    text = f"""# Supervised projection

Naish-Guzman 2007, §2.5: the exclusive or of two inputs among {INPUTS}, the others noise, with {INDUCING} inducing
inputs. `FITC({INDUCING})` with EP and the kernel `Projection(SquaredExponential(...), rank=2)`, the matrix learned from
a random plane, or a squared exponential with a length-scale for each input (ARD). Centres at ±{CENTRE}; the best
possible error is {best_error(2):.1%}. Neither centres nor the number of training rows are printed, so several numbers
were tried.

Least / mean error in per cent over the data sets ({TEST_ROWS} test rows each): of a single start of {FIRST}
iterations; of the best of {STARTS} such starts by evidence; and of the best of {BEST} of them after {LONG} further
iterations at most.

{table(["kernel", "N", "data sets", "printed", "one start", f"best of {STARTS}", "carried on"], rows)}
"""
    write_page("projection", "python benchmarks/reproduce/projection.py", results.began, text)


if __name__ == "__main__":
    main()
