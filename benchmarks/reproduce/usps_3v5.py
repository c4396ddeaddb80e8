"""Threes against fives (Rasmussen & Williams, §3.7.3): Laplace and EP over a grid of length-scale and magnitude."""

import argparse
import time

import matplotlib.pyplot as plt
import numpy as np
from common import load, picture, table, write_page

from errorband import GPClassifier
from errorband.inference import EP, Laplace
from errorband.kernels import SquaredExponential
from errorband.metrics import information_bits

HOW = (
    "It holds X_train (767, 256), y_train, X_test (773, 256), y_test (+1 a three, -1 a five), pixels in [-1, 1]: the "
    "repartitioned USPS digits that the book's web page offers as usps_resampled.mat."
)
RULES = {"Laplace": Laplace(), "EP": EP()}
BOOK = {"Laplace": (2.85, 2.35, -99.0), "EP": (2.6, 4.1, -90.0)}


def evaluate(data: dict[str, np.ndarray], rule: object, log_l: float, log_s: float) -> dict[str, float]:
    """Evidence, test errors and test information at one setting."""
    kernel = SquaredExponential(np.exp(log_l), np.exp(2 * log_s))
    model = GPClassifier(kernel, likelihood="probit", inference=rule, optimizer=None, normalize=False)
    model.fit(data["X_train"], data["y_train"])
    p = model.predict_proba(data["X_test"])[:, 1]
    positive = data["y_test"] > 0
    share = np.mean(data["y_train"] > 0)
    of_true = np.where(positive, p, 1 - p)
    return {
        "evidence": model.log_evidence_,
        "errors": int(np.sum((p > 0.5) != positive)),
        "bits": information_bits(of_true, np.where(positive, share, 1 - share)),
        "confident errors": int(np.sum(of_true < 0.1)),
        "converged": model.inference_status_.converged,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", type=int, nargs=2, default=(17, 23), help="numbers of log l and log s")
    options = parser.parse_args()
    began, data = time.perf_counter(), load("usps_3v5", HOW)
    lengths, sizes = np.linspace(2.0, 5.0, options.grid[0]), np.linspace(0.0, 5.0, options.grid[1])
    points, grids = [], {}
    for name, rule in RULES.items():
        log_l, log_s, evidence = BOOK[name]
        found = evaluate(data, rule, log_l, log_s)
        points.append([name, log_l, log_s, evidence, f"{found['evidence']:.2f}", 21, found["errors"],
                       found["confident errors"], f"{found['bits']:.3f}"])  # fmt: skip
        grid = [[evaluate(data, rule, a, b) for a in lengths] for b in sizes]
        grids[name] = {key: np.array([[cell[key] for cell in row] for row in grid]) for key in found}
    figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharex=True, sharey=True)
    for row, (name, grid) in zip(axes, grids.items(), strict=True):
        for axis, key, levels in zip(row, ("evidence", "errors", "bits"), (_evidence_levels(grid), 8, 8), strict=True):
            lines = axis.contour(lengths, sizes, grid[key], levels=levels)
            axis.clabel(lines, fontsize=7)
            axis.set_title(f"{name}: {key}")
        row[0].plot(*BOOK[name][:2], "k+")
        row[0].set_ylabel("log magnitude")
    for axis in axes[-1]:
        axis.set_xlabel("log length-scale")
    best = []
    for name, grid in grids.items():
        j, i = np.unravel_index(np.argmax(grid["evidence"]), grid["evidence"].shape)
        best.append([name, f"{lengths[i]:.2f}", f"{sizes[j]:.2f}", f"{grid['evidence'][j, i]:.2f}",
                     grid["errors"][j, i], grid["errors"].min(), f"{grid['bits'].max():.3f}",
                     f"{np.mean(grid['converged']):.0%}"])  # fmt: skip
    more = np.mean(grids["EP"]["bits"] > grids["Laplace"]["bits"])
    header = ["rule", "log ℓ", "log σ", "book: evidence", "here", "book: errors", "here",
              "errors with p < 0.1", "bits"]  # fmt: skip
    text = f"""# USPS 3 against 5

Squared exponential, probit, {len(data["y_train"])} training and {len(data["y_test"])} test images. Log evidence, errors
and information about the test labels (bits beyond the class frequencies) at the book's settings:

{table(header, points)}

Best evidence of a grid of {len(lengths)} log length-scales in [2, 5] and {len(sizes)} log magnitudes in [0, 5]:

{table(["rule", "log ℓ", "log σ", "evidence", "errors", "fewest errors", "most bits", "converged"], best)}

EP's test information is above Laplace's at {more:.0%} of the grid.

{picture(figure, "usps-3v5")}
"""
    write_page("usps-3v5", "python benchmarks/reproduce/usps_3v5.py", began, text)


def _evidence_levels(grid: dict[str, np.ndarray]) -> np.ndarray:
    return np.sort(grid["evidence"].max() - np.array([1.0, 5, 10, 20, 40, 80, 160]))


if __name__ == "__main__":
    main()
