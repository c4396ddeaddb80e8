"""A relevance vector regression of another package, for its own interpreter: ``python rvm_fit.py NAME ROWS.npz``.

ROWS.npz holds standardised X, y, X_test, y_test and gamma, the kernel exp(−gamma ‖x − x'‖²). Prints one line of JSON:
rows of the relevance vectors; the log evidence, or the precisions and the noise variance to compute it from;
means and standard deviations of predictions; processor time of the second of two fits.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np


def fastrvm(X: np.ndarray, y: np.ndarray, gamma: float) -> tuple[object, dict[str, object]]:
    from fastrvm import RVR

    model = RVR(gamma=gamma).fit(X, y)
    settled = "" if model.fit_status_ == 0 else f"not converged after {model.n_iter_} steps"
    # Its precisions are in units of its own; the evidence it says lacks a constant.
    evidence = float(model.scores_[-1]) - 0.5 * len(y) * np.log(2 * np.pi)
    return model, {"evidence": evidence, "note": settled}


def sklearn_rvm(X: np.ndarray, y: np.ndarray, gamma: float) -> tuple[object, dict[str, object]]:
    from sklearn_rvm import EMRVR

    model = EMRVR(gamma=gamma, bias_used=False)
    model.fit(X, y)
    # It divides the kernel by a number of its own, and the weights are multiplied by it.
    alpha = model.alpha_ * model._scale**2
    return model, {"alpha": alpha.tolist(), "noise": 1.0 / model.beta_, "note": ""}


def main() -> None:
    warnings.simplefilter("ignore")
    fit = {"fastrvm": fastrvm, "sklearn_rvm": sklearn_rvm}[sys.argv[1]]
    with np.load(sys.argv[2]) as data:
        X, y, new, gamma = data["X"], data["y"], data["X_test"], float(data["gamma"])
    seconds = []
    for _ in range(2):
        began = time.process_time()
        model, told = fit(X, y, gamma)
        seconds.append(time.process_time() - began)
    mean, std = model.predict(new, return_std=True)
    rows = np.asarray(model.relevance_).ravel().tolist()
    print(json.dumps(told | {"rows": rows, "mean": mean.tolist(), "std": std.tolist(), "processor": min(seconds)}))


if __name__ == "__main__":
    main()
