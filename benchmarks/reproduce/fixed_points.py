"""Outliers in a cluster: how EP comes to a fixed point at hyperparameters where sweeps of all sites do not settle."""

import argparse
import itertools
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
from common import Results, table, write_page

from errorband import GPRegressor
from errorband.inference import EP
from errorband.kernels import SquaredExponential
from errorband.likelihoods import OutlierMixture, StudentT

ROWS, FIRST, SHIFT = 24, 10, 3.0


def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A sine wave on which ``size`` neighbouring targets are all too high."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (ROWS, 1)), axis=0)
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=ROWS)
    y[FIRST : FIRST + size] += SHIFT
    return X, y


def settings() -> dict[str, tuple[int, float, Any]]:
    """Size of the cluster, length-scale and likelihood, by name."""
    found = []
    for size, scale, ratio, share in itertools.product((4, 8), (0.2, 0.5, 1.0, 2.0), (100.0, 1000.0), (0.1, 0.3)):
        found.append((size, scale, OutlierMixture(0.01, ratio, share)))
    for size, scale, df, width in itertools.product((4, 8), (0.5, 1.0, 2.0), (2.0, 4.0), (0.05, 0.1)):
        found.append((size, scale, StudentT(df, width)))
    for size, scale in itertools.product((2, 4, 8), (0.5, 1.0, 2.0)):
        found.append((size, scale, OutlierMixture(0.001, 1e4, 0.05)))
    return {f"{size} {scale:g} {likelihood}": (size, scale, likelihood) for size, scale, likelihood in found}


def reach(size: int, scale: float, likelihood: Any) -> dict[str, Any]:
    """How the default EP ends, and how its sweeps of all sites alone do."""
    X, y = draw(size)
    ends = {}
    for name, rule in (("sweeps", EP("parallel")), ("auto", EP())):
        kernel = SquaredExponential(scale, 1.44)
        model = GPRegressor(kernel, likelihood=likelihood, inference=rule, optimizer=None, normalize=False)
        began = time.perf_counter()
        try:
            model.fit(X, y)
            end: Any = {"converged": bool(model.inference_status_.converged), "power": model.inference_.power}
        except np.linalg.LinAlgError:
            end = {"converged": False, "power": 1.0}
        ends[name] = end | {"took": time.perf_counter() - began}
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no further setting after this time")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # counted below
    results = Results("fixed-points", options.seconds)
    for key, setting in settings().items():
        results.once(key, lambda setting=setting: reach(*setting))
    found = results.pieces
    ends = Counter(
        "none" if not end["auto"]["converged"]
        else "sweeps" if end["sweeps"]["converged"]
        else "double loop" if end["auto"]["power"] == 1
        else f"power {end['auto']['power']:g}"
        for end in found.values()
    )  # fmt: skip
    late = [
        [*key.split(" ", 2), "yes" if end["auto"]["converged"] else "no", f"{end['auto']['power']:g}",
         f"{end['auto']['took']:.0f}"]
        for key, end in found.items()
        if not end["sweeps"]["converged"]
    ]  # fmt: skip
    text = f"""# EP with outliers in a cluster

{ROWS} rows of a sine wave with noise of sd 0.1, of which some neighbouring ones are all too high by {SHIFT:g};
likelihoods that are not log-concave, hyperparameters as given, `inference=EP()`. Sweeps of all sites come first, then
the double loop, then smaller powers of the likelihood; `inference_` has the power reached, and the status says so.

{table(["a fixed point by", "settings"], [[how, number] for how, number in sorted(ends.items())])}

{len(found)} settings in all. Those in which sweeps did not settle (times are wall times on a machine that had other
work, compilation included):

{table(["rows in the cluster", "length-scale", "likelihood", "fixed point", "power", "seconds"], late)}
"""
    write_page("fixed-points", "python benchmarks/reproduce/fixed_points.py", results.began, text)


if __name__ == "__main__":
    main()
