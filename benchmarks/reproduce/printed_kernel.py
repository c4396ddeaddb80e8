"""Time-frequency features with the corrected covariances and with those printed in Lázaro-Gredilla (2010).

Equations (4.12) to (4.16) of the thesis lack ½, ℓ² beside ω² and a shift of the phase; see docs/theory/errata.md. Both
are trained by FITC on the Pendulum data and on a generated table. Results are kept piece by piece.
"""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
from common import Results, arguments, load, table, write_page

from errorband import GPRegressor
from errorband.approximations import FITC
from errorband.features import FEATURES, TimeFrequency
from errorband.linalg import NotPositiveDefinite
from errorband.metrics import nlpd, nmse
from errorband.training import LBFGS

SETS = {"pendulum": "Pendulum", "waves": "Generated, 2 inputs"}
ITERATIONS = 60


class Printed(TimeFrequency):
    """As printed: frequencies here are at unit length-scale, so that ω² of the thesis is (ω/ℓ)²."""

    def K_fu(self, kernel: Any, X):
        w2, ell2, omega = self.widths**2, kernel.lengthscale**2, self.frequencies / kernel.lengthscale
        s = w2 + ell2
        d = X[:, None] - self.centres
        size = jnp.exp(-jnp.sum((d**2 + w2 * omega**2) / (2 * s), axis=2)) * jnp.prod(jnp.sqrt(ell2 / s))
        return kernel.variance * size * jnp.cos(self.phases + jnp.sum(w2 * omega * d / s, axis=2))

    def K_uu(self, kernel: Any):
        w2, ell2, omega = self.widths**2, kernel.lengthscale**2, self.frequencies / kernel.lengthscale
        q, delta, total = 2 * w2 + ell2, self.centres[:, None] - self.centres, 0.0
        for sign in (-1.0, 1.0):
            exponent = w2 * (omega[:, None] ** 2 + omega**2) + w2**2 * (omega[:, None] + sign * omega) ** 2 + delta**2
            phase = self.phases[:, None] + sign * self.phases
            total = total + jnp.exp(-jnp.sum(exponent / (2 * q), axis=2)) * jnp.cos(phase)
        return kernel.variance * jnp.prod(jnp.sqrt(ell2 / q)) * total


FEATURES["Printed"] = Printed
KINDS = {"corrected": TimeFrequency, "printed": Printed}


def rows_of(name: str, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    if name == "waves":
        X = rng.uniform(-3, 3, (1500, 2))
        y = np.sin(3 * X[:, 0] + X[:, 1]) + np.exp(-((X[:, 1] - 1) ** 2)) + 0.2 * rng.standard_normal(1500)
    else:
        data = load(name, "It holds X and y.")
        order = rng.permutation(630)
        X, y = data["X"][order], data["y"][order]
    half = len(y) // 2
    return X[:half], y[:half], X[half:], y[half:]


def fit(name: str, kind: str, m: int, seed: int) -> dict[str, Any]:
    X, y, X_test, y_test = rows_of(name, seed)
    approximation = FITC(m, features=KINDS[kind]())
    model = GPRegressor(approximation=approximation, random_state=seed, optimizer=LBFGS(max_iter=ITERATIONS))
    try:
        model.fit(X, y)
        predictive = model.predictive(X_test)
    except (np.linalg.LinAlgError, NotPositiveDefinite) as error:
        return {"failed": str(error)[:80]}
    held = float(np.mean(np.abs(y_test - predictive.mean) < 1.96 * predictive.std))
    return {
        "nmse": nmse(y_test, predictive.mean, float(y.mean())),
        "mnlp": nlpd(predictive.log_density(y_test)),
        "coverage": held,
        "evidence": float(model.log_evidence_),
    }


def main() -> None:
    options = arguments(__doc__, sets=SETS, kinds=KINDS, seeds=3, m=25)
    warnings.simplefilter("ignore")
    results = Results("printed-kernel", options.seconds)
    for seed in range(options.seeds):
        for name in options.sets:
            for kind in options.kinds:
                results.once(f"{name}/{kind}/{options.m}/{seed}", lambda: fit(name, kind, options.m, seed))  # noqa: B023
    rows = []
    for name, title in SETS.items():
        for kind in KINDS:
            found = results.under(f"{name}/{kind}/")
            good = [f for f in found if "failed" not in f]
            middle = (
                [f"{np.median([f[k] for f in good]):.3f}" for k in ("nmse", "mnlp", "coverage")] if good else [""] * 3
            )
            rows.append([title, kind, len(found), len(found) - len(good), *middle])
    text = f"""# Time-frequency features: corrected and printed covariances

`FITC({options.m}, features=TimeFrequency())` with the covariances of this library and with those printed in
Lázaro-Gredilla (2010), (4.12) to (4.16), which are no covariances of anything ([errata](../theory/errata.md)): where
K_uu has no Cholesky factor a search takes the point for a bad one; negative variances left out are set to zero. Halves
of each table, one start, {ITERATIONS} iterations at most; medians over the seeds that ended in a model, "failed" are
those for which none was found or which cannot predict.

{table(["table", "covariances", "seeds", "failed", "NMSE", "MNLP", "within 95 % bands"], rows)}

The good figures of the thesis suggest that its code had the right covariances, or nearly so.
"""
    write_page("printed-kernel", "python benchmarks/reproduce/printed_kernel.py", results.began, text)


if __name__ == "__main__":
    main()
