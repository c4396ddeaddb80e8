"""Which kernel functions a relevance vector machine is made of, and with what precisions."""

import dataclasses
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from errorband import parameters
from errorband.data import TrainingData
from errorband.features import KernelColumns
from errorband.features.kernel_columns import DEAD
from errorband.inference import Inference
from errorband.kernels.padded import gram
from errorband.model import Model
from errorband.posterior.base import prior_mean
from errorband.precision import in_double_precision
from errorband.priors import Gamma
from errorband.rows import padded_size
from errorband.training.columns import Columns
from errorband.training.objective import prepared
from errorband.training.result import FitResult, Stop
from errorband.training.sequential import SequentialBayes
from errorband.training.settled import settled
from errorband.training.strategy import Found, Problem, Settings, Strategy

NOISE, PRECISION = ("likelihood", "noise_variance"), ("latents", "0", "features", "precision")
SETTLED = 1e-3  # nats: a round that brings less is the last
CHOICES = 30  # of precisions at most, each at the sites of the last: where these move, each may look better
SCALES = 1.0, 0.5, 0.25, 0.125  # of the starting length-scales that are tried
TRIAL_ROWS = 400  # rows to try them on
LITTLE = 0.1  # share of the variance of the targets that is noise at the start
NO_PART = 1e-12  # share of the prior variance
SWEEPS = 500  # of the fixed point, at most
FROZEN = 1e-3  # change of a log precision below which the fixed point is reached


class Relevance(Strategy):
    """Precisions and hyperparameters in turn.

    At given hyperparameters and sites the precisions of all candidates are found, one after the other
    (:class:`~errorband.training.sequential.SequentialBayes`) or all at once (:func:`fixed_point`). Then the search that
    this strategy wraps moves the precisions of the basis functions in the model together with the kernel and the
    likelihood, by the gradient of the evidence; and so on until a round brings less than a thousandth of a nat. Wide
    kernels are hard to leave, so that the search begins at the best of four starting length-scales.

    Without a trainer kernel and likelihood stay as they are, and the precisions are found for them.
    """

    @property
    def of_kernel(self) -> bool:
        """An exact process with the kernel of relevance vectors is another model, if it is one at all."""
        return False

    @in_double_precision
    def run(self, problem, settings):
        approximation: Any = problem.model.approximation
        began = time.perf_counter()
        deadline = began + settings.seconds
        model, data = _without_healing(problem.model), problem.data
        centres = model.latent.features.centres
        learns_noise = settings.trainer is not None and _noise_is_free(model, data)
        if learns_noise:
            model = _with_little_noise(model, data)
        if settings.trainer is not None:
            model = _started(model, problem.rule, data, centres, learns_noise)
        precision, found, value = np.full(len(centres), np.inf), None, -np.inf
        if learns_noise and _is_one_choice(model):
            end, model = _choose(model, problem.rule, data, centres, precision, learns_noise)
            found = _as_found(end, Problem(model, problem.rule, data), began)
            return self._healed(model, found, approximation, problem, settings)
        for _ in range(approximation.rounds):
            end, model = _choose(model, problem.rule, data, centres, precision, learns_noise)
            precision = end.precision
            if found is not None and not end.changed:
                break
            brief = settings.within(deadline - time.perf_counter(), n_restarts=0 if found else settings.n_restarts)
            here = self.inner.run(Problem(model, problem.rule, data), brief)
            at = here.objective.evaluate(here.theta, here.warm).value
            if found is not None and at <= value + SETTLED:
                found = here if at > value else found
                break
            found, value = here, at
            if found.result is not None and found.result.interrupted:
                break
            model = parameters.replace_values(model, _values(found))
            precision = _spread(model, centres, precision)
        else:
            warnings.warn(
                f"Relevance vectors still changed after rounds={approximation.rounds}; raise it.",
                ConvergenceWarning,
                stacklevel=6,
            )
        assert found is not None  # there is one round or more
        model = _pruned(parameters.replace_values(found.objective.model, _values(found)), data)
        return self._healed(model, found, approximation, problem, settings.within(deadline - time.perf_counter()))

    def _healed(self, model: Model, found: Found, approximation: Any, problem: Problem, settings: Settings) -> Found:
        """The model with the bands that were asked for; a whitened prior is another one, and is searched again."""
        model = dataclasses.replace(model, approximation=approximation)
        if approximation.healing != "whitened":
            objective = Problem(model, problem.rule, problem.data).objective()
            return dataclasses.replace(found, objective=objective, theta=objective.theta0, warm=None)
        columns = model.latent.features
        basis = gram(parameters.plain(model.latent.kernel), np.asarray(problem.data.X), columns.centres)
        precision = np.asarray(parameters.value_of(columns.precision))
        variance = float(np.mean(basis**2 @ (1.0 / precision))) or 1.0
        # A hundredth of the prior variance is noise to begin with.
        whitened = KernelColumns(
            columns.centres, np.where(columns.alive, 0.01 * variance * precision, precision), variance
        )
        started = Problem(model.with_features([whitened]), problem.rule, problem.data)
        return self.inner.run(started, dataclasses.replace(settings, n_restarts=0))


def _noise_is_free(model: Model, data: TrainingData) -> bool:
    """Whether the noise is one number that the evidence alone decides."""
    likelihood: Any = model.likelihood
    if not likelihood.conjugate or data.noise_variance is not None:
        return False
    entry = next(e for e in parameters.entries(model) if e.path == NOISE)
    return not entry.fixed and entry.prior is None and entry.constraint == likelihood.constraints["noise_variance"]


def _is_one_choice(model: Model) -> bool:
    """Whether noise and precisions are all there is to learn, and one after the other finds them."""
    approximation: Any = model.approximation
    free = {e.path for e in parameters.entries(model) if not e.fixed and np.size(e.value)}
    return approximation.algorithm == "sequential" and free == {NOISE, PRECISION}


def _noise(model: Model) -> float:
    likelihood: Any = model.likelihood
    return float(np.asarray(parameters.value_of(likelihood.noise_variance)))


def _with_noise(model: Model, noise: float) -> Model:
    likelihood: Any = model.likelihood
    return parameters.replace_values(model, {NOISE: max(noise, 1.001 * likelihood.min_noise_variance)})


def _with_little_noise(model: Model, data: TrainingData) -> Model:
    """The model with a tenth of the variance for noise: then more is tried, and what is noise goes later."""
    mean = np.average(data.y, weights=data.weights)
    little = LITTLE * float(np.average((data.y - mean) ** 2, weights=data.weights))
    return _with_noise(model, min(_noise(model), little)) if little > 0 else model


def _without_healing(model: Model) -> Model:
    approximation: Any = model.approximation
    return dataclasses.replace(model, approximation=dataclasses.replace(approximation, healing=None))


def _values(found: Found) -> dict[Any, Any]:
    return {e.path: e.value for e in parameters.entries(found.objective.model_at(found.theta))}


def _with_columns(model: Model, centres: np.ndarray, precision: np.ndarray, size: int | None = None) -> Model:
    """The model with the basis functions of finite precision, and some dead ones so that few shapes are compiled."""
    alive = np.flatnonzero(np.isfinite(precision))
    size = padded_size(len(alive)) if size is None else size
    places = np.concatenate([alive, np.full(size - len(alive), alive[0] if len(alive) else 0)])
    held = np.concatenate([precision[alive], np.full(size - len(alive), DEAD)])
    a, b = model.approximation.hyperprior  # pyright: ignore[reportAttributeAccessIssue]
    # Gamma(a, b) as a density of log α is Gamma(a + 1, b) as one of α.
    prior = Gamma(a + 1.0, b) if b > 0 else None
    return model.with_features([KernelColumns(centres[places], parameters.Parameter(held, prior=prior))])


def _pruned(model: Model, data: TrainingData) -> Model:
    """The model without basis functions that the last search has all but switched off."""
    columns: Any = model.latent.features
    alpha = np.asarray(parameters.value_of(columns.precision))
    kernel = parameters.plain(model.latent.kernel)
    share = np.mean(gram(kernel, np.asarray(data.X), columns.centres) ** 2, axis=0) / alpha
    return _with_columns(model, columns.centres, np.where(share > NO_PART * np.sum(share), alpha, np.inf))


def _spread(model: Model, centres: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Precisions of all candidates: those of the basis functions in the model, infinite for the others."""
    columns: Any = model.latent.features
    precision, alive = np.full(len(centres), np.inf), np.flatnonzero(np.isfinite(before))
    held = np.asarray(parameters.value_of(columns.precision))[: len(alive)]
    precision[alive] = np.where(held < 0.1 * DEAD, held, np.inf)
    return precision


class Choice(NamedTuple):
    """Precisions of all candidates; whether any is new; log evidence where they were found, and its largest slope."""

    precision: np.ndarray
    changed: bool
    log_evidence: float = np.nan
    slope: float = np.nan


def _choose(
    model: Model, rule: Inference, data: TrainingData, centres: np.ndarray, precision: np.ndarray, learns_noise: bool
) -> tuple[Choice, Model]:
    """Precisions of all candidates at these hyperparameters, and the model with them."""
    approximation: Any = model.approximation
    if approximation.algorithm == "batch" or model.likelihood.n_latents > 1:
        new = fixed_point(model, rule, data, centres, precision)
        changed = not np.array_equal(np.isfinite(new), np.isfinite(precision))
        return Choice(new, changed), _with_columns(model, centres, new)
    basis = gram(parameters.plain(model.latent.kernel), centres, np.asarray(data.X)).T
    conjugate, changed, end = model.likelihood.conjugate, False, None
    for _ in range(1 if conjugate else CHOICES):  # sites and precisions in turn
        model = _with_columns(model, centres, precision)
        columns = Columns(basis, *_sites(model, rule, data), data.size)
        before = SequentialBayes(columns, precision).log_evidence()
        end = settled(columns, precision, learns_noise and conjugate)
        precision, better = end.precision, end.log_evidence > before + SETTLED
        changed = changed or better
        if learns_noise and conjugate:
            model = _with_noise(model, _noise(model) / end.columns.sites.scale)
        if not better:
            break
    assert end is not None
    return Choice(precision, changed, end.log_evidence, end.slope), _with_columns(model, centres, precision)


def _as_found(end: Choice, problem: Problem, began: float) -> Found:
    """Where noise and precisions are all there is to learn, their choice has found both: there is nothing to search."""
    objective = problem.objective()
    value = end.log_evidence - 0.5 * problem.data.size * np.log(2 * np.pi)
    theta, took = objective.theta0, time.perf_counter() - began
    return Found(
        objective, theta, FitResult(value, theta, end.slope, 1, 1, Stop.CONVERGED, None, took, (value,), (value,))
    )


def _sites(model: Model, rule: Inference, data: TrainingData) -> tuple[np.ndarray, np.ndarray]:
    """Precision and shift of each row's site, about the prior mean."""
    plain = parameters.plain(model)
    if model.likelihood.conjugate:
        noise = data.site_noise(plain.likelihood)
        return 1.0 / noise, (data.y - prior_mean(plain.latent.mean, np.asarray(data.X))) / noise
    sites = rule.evaluate(plain, prepared(model, rule, data)).state
    n = len(data.y)
    return np.maximum(np.asarray(sites.precision)[:n, 0, 0], 0.0), np.asarray(sites.shift)[:n, 0]


def fixed_point(
    model: Model, rule: Inference, data: TrainingData, centres: np.ndarray, precision: np.ndarray
) -> np.ndarray:
    """Precisions of all candidates by MacKay's fixed point, from all in the model (Tipping 2001, eq. 16).

    With μ and Σ the posterior mean and covariance of the weights, over the L latent functions,

        α ← (Σ_l γ_l + 2a)/(Σ_l μ_l² + 2b),     γ_l = 1 − αΣ_ll.

    Those beyond 10⁸ times what would give their column the variance of the targets are taken out.
    """
    a, b = model.approximation.hyperprior  # pyright: ignore[reportAttributeAccessIssue]
    basis = gram(parameters.plain(model.latent.kernel), np.asarray(data.X), centres)
    most = 1e8 * np.maximum(np.mean(basis**2, axis=0), np.finfo(float).tiny)
    alpha = (
        np.where(np.isfinite(precision), precision, 1.0) if np.any(np.isfinite(precision)) else np.ones(len(centres))
    )
    state, size = None, padded_size(int(np.sum(np.isfinite(alpha))))
    for _ in range(SWEEPS):
        alive = np.flatnonzero(np.isfinite(alpha))
        if len(alive) == 0:
            break
        size = size if 2 * len(alive) > size else padded_size(len(alive))  # each size is compiled anew
        here = parameters.plain(_with_columns(model, centres, alpha, size))
        found = rule.conclude(here, prepared(here, rule, data), state)
        posterior: Any = found.posterior
        state, m = found.state, len(alive)
        gamma, root = np.asarray(posterior.predictor.gamma), np.asarray(posterior.predictor.inverse)
        L = len(gamma)
        # In the whitened weights √α w the covariance is αΣ.
        left = np.sum(root**2, axis=0).reshape(L, -1)[:, :m]
        known = np.sum(1.0 - left, axis=0) + 2 * a
        new = known / (np.sum(gamma[:, :m] ** 2, axis=0) / alpha[alive] + 2 * b)
        moved = np.abs(np.log(new / alpha[alive]))
        new = np.where(new > most[alive], np.inf, new)
        gone = ~np.isfinite(new)
        alpha[alive] = new
        if not np.any(gone) and np.max(moved) < FROZEN:
            break
    return alpha


def _started(model: Model, rule: Inference, data: TrainingData, centres: np.ndarray, learns_noise: bool) -> Model:
    """The model at the starting length-scale, of a few, at which the precisions of some rows give most evidence."""
    entries = [e for e in parameters.entries(model.latent.kernel) if e.path[-1] == "lengthscale" and not e.fixed]
    if not entries or model.likelihood.n_latents > 1:
        return model
    rows = np.unique(np.linspace(0, len(data.y) - 1, min(TRIAL_ROWS, len(data.y))).astype(int))
    some, few = data.rows(rows), centres[:: max(1, len(centres) // TRIAL_ROWS)]
    trials = []
    for scale in SCALES:
        values = {("latents", "0", "kernel", *e.path): scale * np.asarray(e.value) for e in entries}
        here = parameters.replace_values(model, values)
        basis = gram(parameters.plain(here.latent.kernel), few, np.asarray(some.X)).T
        dead = np.full(len(few), np.inf)
        columns = Columns(basis, *_sites(_with_columns(here, few, dead), rule, some), some.size)
        trials.append((settled(columns, dead, learns_noise).log_evidence, here))
    return max(trials, key=lambda trial: trial[0])[1]
