"""GPBoost: `GPModel` with its own L-BFGS, which profiles the noise variance out.

The library gives the evidence but keeps its gradient to itself. A first L-BFGS step of a given length goes along the
gradient, so the step's direction and the evidence's rise along it tell the gradient. Such a fit of one iteration
evaluates evidence and gradient twice, at the start and at the end of the step: half its time is that of one evaluation.
"""

from __future__ import annotations

import time

import gpboost
import numpy as np

from peers.base import Model, Record
from problems import Array, labels, split

STEP = 1e-5


def theirs(theta: Array) -> Array:
    """Noise, variance, ranges; the library's range is √2 length-scales."""
    lengthscale, variance, noise = split(theta)
    return np.concatenate([[noise, variance], np.sqrt(2.0) * lengthscale])


def ours(pars: Array) -> Array:
    return np.log(np.concatenate([pars[2:] / np.sqrt(2.0), [pars[1], pars[0]]]))


class ExactGP(Model):
    packages = ("gpboost",)

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        self.gp = gpboost.GPModel(gp_coords=X, cov_function="gaussian_ard", likelihood="gaussian")
        self.enough: dict[float, int] = {}  # evidence → iterations

    def evidence(self, theta: Array) -> float:
        return -self.gp.neg_log_likelihood(cov_pars=theirs(theta), y=self.y)

    def optimise(self, theta: Array, **options: object) -> Array:
        self.gp.fit(self.y, params={"init_cov_pars": theirs(theta), **options})
        return ours(self.gp.get_cov_pars(format_pandas=False))

    def step(self, theta: Array, length: float) -> Array:
        return self.optimise(
            theta, optimizer_cov="lbfgs_not_profile_out_nugget", lr_cov=length, maxit=1, delta_rel_conv=1e-300
        )

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        value = self.evidence(theta)
        move = (self.step(theta, STEP) - theta) / STEP
        slopes = [(self.evidence(self.step(theta, h)) - value) / h for h in (STEP, 2.0 * STEP)]
        slope = 2.0 * slopes[0] - slopes[1]  # extrapolated to a step of length nought
        # Its coordinates are log noise, log (variance / noise) and −2 log range.
        ratio = move[-2] - move[-1]
        return value, slope * np.concatenate([4.0 * move[:-2], [ratio, move[-1] - ratio]])

    def seconds(self, theta: Array) -> float:
        begin = time.perf_counter()
        self.step(theta, STEP)
        return (time.perf_counter() - begin) / 2.0

    def fit(self, record: Record) -> Array:
        return self.optimise(self.theta)  # no way to watch it: see `reach`

    def reach(self, evidence: float) -> float | None:
        """Seconds of the shortest fit that attains the evidence; the first call bisects the number of iterations."""

        def attempt(iterations: int) -> tuple[float, bool]:
            begin = time.perf_counter()
            model = ExactGP(self.X, self.y, self.theta)
            theta = model.optimise(self.theta, maxit=iterations)
            return time.perf_counter() - begin, model.evidence(theta) >= evidence

        if evidence not in self.enough:
            low, high = 0, int(self.gp._get_num_optim_iter()) + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if attempt(middle)[1] else (middle, high)
            self.enough[evidence] = high
        seconds, reached = attempt(self.enough[evidence])
        return seconds if reached else None

    def predict(self, X: Array) -> tuple[Array, Array]:
        prediction = self.gp.predict(gp_coords_pred=X, predict_var=True, predict_response=True)
        return prediction["mu"], prediction["var"]


class ProbitLaplace(Model):
    """A probit likelihood is integrated by Laplace's approximation; the gradient stays inside the library."""

    packages = ("gpboost",)

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        self.classes = 0.5 * (labels(y) + 1.0)
        self.gp = gpboost.GPModel(gp_coords=X, cov_function="gaussian_ard", likelihood=self.likelihood)

    likelihood = "bernoulli_probit"

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        value = -self.gp.neg_log_likelihood(cov_pars=theirs(theta)[1:], y=self.classes)
        return value, np.full(theta.size - 1, np.nan)

    def seconds(self, theta: Array) -> float:
        params = {"init_cov_pars": theirs(theta)[1:], "optimizer_cov": "lbfgs", "maxit": 1, "lr_cov": STEP}
        begin = time.perf_counter()
        self.gp.fit(self.classes, params=params | {"delta_rel_conv": 1e-300})
        return (time.perf_counter() - begin) / 2.0


class LogitLaplace(ProbitLaplace):
    """The same with a logistic link."""

    likelihood = "bernoulli_logit"


MODELS = {"exact": ExactGP, "probit-laplace": ProbitLaplace, "logit-laplace": LogitLaplace}
