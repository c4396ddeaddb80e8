"""How many inducing inputs: ``FITC("auto")`` doubles their number until more would not help."""

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from errorband import parameters
from errorband.approximations import VFE, Inducing
from errorband.approximations.placement import add_places, move_dead, place
from errorband.inference import Inference, Sparse, TrainingData
from errorband.inference.passes import FirstPass, first_pass
from errorband.likelihoods import Gaussian
from errorband.model import Model
from errorband.numerics import in_double_precision
from errorband.objective import EvidenceObjective
from errorband.optimise import FitResult
from errorband.posterior import Posterior
from errorband.predictive import Predictive

# Nats per row, of log evidence and of held-out log density, that a doubling must gain to be worth it.
TOLERANCE = 0.01

# A doubling that gains nothing proves little while the model may be too small to see a pattern: up to this number of
# inducing inputs, where steps are cheap, the sweep goes on; and up to the second if no pattern has been seen at all.
LEAST, LEAST_BLIND = 100, 400

# The sweep learns from at most so many rows, and judges on a tenth of the rows: at least and at most so many.
SWEEP_ROWS, HELD_OUT = 10_000, (100, 5000)

# What the matrices of a search may take, in bytes.
MEMORY = 2 * 2**30

CERTIFIED, TIME, MEMORY_FULL, DISTINCT, INTERRUPTED = (
    "certified",
    "time budget",
    "memory budget",
    "all distinct rows",
    "interrupted",
)

# Given an objective, the seconds left and a second place to start from, None in the first step of the sweep: how the
# search went, None if there is none.
Search = Callable[[EvidenceObjective, float, np.ndarray | None], FitResult | None]


@dataclasses.dataclass(frozen=True)
class InducingSweep:
    """What was tried to choose the number of inducing inputs, in the units of the data; an entry for each number.

    Attributes
    ----------
    n_inducing : tuple of int
    log_evidence : tuple of float
        Per row of those learned from.
    nlpd : tuple of float
        Negative log predictive density per held-out row.
    gap : tuple of float or None
        The most by which the exact log evidence per row, at the same hyperparameters, can exceed the variational bound
        of these inducing inputs; None where noise is not Gaussian.
    seconds : tuple of float
        Wall time of each.
    chosen : int
    stopped : {"certified", "time budget", "memory budget", "all distinct rows", "interrupted"}
        Why no larger number was tried.
    certificate : str
        The same in a sentence.
    n_rows, n_held_out : int
        How many rows the sweep learned from, and how many it judged on.
    """

    n_inducing: tuple[int, ...]
    log_evidence: tuple[float, ...]
    nlpd: tuple[float, ...]
    gap: tuple[float | None, ...]
    seconds: tuple[float, ...]
    chosen: int
    stopped: str
    certificate: str
    n_rows: int
    n_held_out: int

    def __str__(self) -> str:
        head = f"{'M':>6} {'log evidence':>13} {'NLPD':>9} {'gap':>9} {'seconds':>8}"
        lines = [
            f"{M:6d} {value:13.4f} {nlpd:9.4f} {'' if gap is None else f'{gap:.2g}':>9} {seconds:8.1f}"
            for M, value, nlpd, gap, seconds in zip(
                self.n_inducing, self.log_evidence, self.nlpd, self.gap, self.seconds, strict=True
            )
        ]
        return "\n".join([head, *lines, self.certificate])


@dataclasses.dataclass(frozen=True)
class _Step:
    """One number of inducing inputs, fitted."""

    model: Model
    log_evidence: float
    nlpd: float
    gap: float | None
    blind: bool  # predictions of other rows would do as well
    seconds: float

    @property
    def n_inducing(self) -> int:
        return len(inducing_inputs(self.model))


def grow(
    model: Model,
    inference: Inference,
    data: TrainingData,
    search: Search,
    budget: float,
    log_scale: float,
    rng: np.random.RandomState,
) -> tuple[Model, InducingSweep]:
    """The model with as many inducing inputs as help, at the hyperparameters found on the way.

    Some rows are held out. The number is doubled until one of these is true, where L is log evidence per row and H is
    held-out NLPD:

    - from M/2 to M neither L nor H gained 0.01; M is 100 at least;
    - the exact L at these hyperparameters is at most 0.01 above the variational bound; M is 100 at least;
    - every distinct row is an inducing input;
    - time is too short for another step, or memory too small.

    While the predictions of other rows would do as well the number is multiplied by four, and M is 400 at least. The
    smallest number is chosen that is within 0.01 of the best H in H, and in L of the step that has it.

    Each step starts twice: where the step before ended, with the new inducing inputs where most variance is left out;
    and afresh, as too few inducing inputs may have led astray.
    """
    kept, held = _split(data, rng)
    deadline, start, second, stopped = time.perf_counter() + budget, model, None, None
    steps: list[_Step] = []
    while stopped is None:
        began = time.perf_counter()
        objective = EvidenceObjective(model, inference, kept)
        result = search(objective, deadline - began, second)
        step = _judged(objective, result, held, log_scale, began)
        steps.append(step)
        number = _next_number(step.n_inducing, kept.X, 4 if step.blind else 2)
        if result is not None and result.interrupted:
            stopped = INTERRUPTED
        elif number == step.n_inducing:
            stopped = DISTINCT
        elif step.n_inducing >= (LEAST_BLIND if step.blind else LEAST) and _enough(steps):
            stopped = CERTIFIED
        elif _bytes(step.model, inference, len(data.y), number) > MEMORY:
            stopped = MEMORY_FULL
        elif deadline - time.perf_counter() < 2 * step.seconds:  # what twice as many take at least
            stopped = TIME
        else:
            model = _enlarged(step.model, kept.X, number, rng)
            afresh = place(_approximation(start).init, number, start.kernel, kept.X, random_state=rng)
            second = parameters.pack(at_values(start, start, afresh))
    chosen = _choice(steps)
    if stopped == DISTINCT and chosen is steps[-1]:  # the rows held out are rows too
        chosen = dataclasses.replace(chosen, model=at_values(chosen.model, chosen.model, np.unique(data.X[:], axis=0)))
    return _numbered(chosen.model), InducingSweep(
        n_inducing=tuple(s.n_inducing for s in steps),
        log_evidence=tuple(s.log_evidence for s in steps),
        nlpd=tuple(s.nlpd for s in steps),
        gap=tuple(s.gap for s in steps),
        seconds=tuple(s.seconds for s in steps),
        chosen=chosen.n_inducing,
        stopped=stopped,
        certificate=_sentence(steps, chosen, stopped, budget),
        n_rows=len(kept.y),
        n_held_out=len(held.y),
    )


def inducing_inputs(model: Model) -> np.ndarray:
    """Z of a model that has inducing inputs."""
    return np.asarray(parameters.plain(_approximation(model)).inducing_inputs)


def _approximation(model: Model) -> Inducing:
    assert isinstance(model.approximation, Inducing)
    return model.approximation


def at_values(model: Model, fitted: Model, Z: np.ndarray | None = None) -> Model:
    """The model with the values of a fitted one, and these inducing inputs; what is fixed or has a prior stays so."""
    values = {e.path: e.value for e in parameters.entries(fitted)}
    if Z is not None:
        values["approximation", "inducing_inputs"] = Z
    return parameters.replace_values(model, values)


def _numbered(model: Model) -> Model:
    """With the number of inducing inputs in place of "auto"."""
    approximation = dataclasses.replace(_approximation(model), n_inducing=len(inducing_inputs(model)))
    return Model(model.kernel, model.likelihood, model.mean, approximation)


def _split(data: TrainingData, rng: np.random.RandomState) -> tuple[TrainingData, TrainingData]:
    """Rows to learn from, and rows to judge on."""
    n, (least, most) = len(data.y), HELD_OUT
    if n < 8:
        return data, data
    order = rng.permutation(n)
    n_held = min(max(n // 10, least), n // 4, most)
    held, kept = order[:n_held], order[n_held : n_held + SWEEP_ROWS]
    return data.rows(np.sort(kept)), data.rows(np.sort(held))


def _judged(
    objective: EvidenceObjective, result: FitResult | None, held: TrainingData, log_scale: float, began: float
) -> _Step:
    """What a search found, judged on the rows held out."""
    inference, kept, basis = objective.inference, objective.data, objective.basis
    fitted, prior = objective.at(objective.theta0 if result is None else result.theta)
    found = inference.evaluate(prior, kept, basis, objective.state)
    nlpd, other = _nlpd(fitted, inference.posterior(fitted, prior, kept, basis, found.state), held)
    return _Step(
        model=at_values(objective.model, fitted),
        log_evidence=found.log_evidence / len(kept.y) - log_scale,
        nlpd=nlpd + log_scale,
        gap=evidence_gap(fitted, kept) / len(kept.y) if _has_gap(fitted) else None,
        blind=other - nlpd < TOLERANCE,
        seconds=time.perf_counter() - began,
    )


def _nlpd(model: Model, posterior: Posterior, held: TrainingData) -> tuple[float, float]:
    """Negative log predictive density per held-out row, weighted if rows are, and what other rows' predictions get."""
    predictive, half = predictive_at(model, posterior, held), len(held.y) // 2
    own, other = (predictive.log_density(y) for y in (held.y, np.roll(held.y, half)))
    return -float(np.average(own, weights=held.weights)), -float(np.average(other, weights=held.weights))


def predictive_at(model: Model, posterior: Posterior, held: TrainingData) -> Predictive:
    """Distribution of the targets of rows that the posterior has not seen."""
    mean, cov = posterior.marginals(held.X)
    assert cov is not None  # asked for by default
    if held.noise_variance is not None:  # known noise is as good as variance of the function
        cov = cov + held.noise_variance[:, None, None]
    return model.likelihood.predictive(mean, cov)


def _next_number(M: int, X: np.ndarray, factor: int) -> int:
    """So many times more, but no more than there are distinct rows."""
    more = factor * M
    some = len(np.unique(X[: 2 * more], axis=0))
    return more if some >= more else min(more, max(M, len(np.unique(X, axis=0))))


def _enlarged(model: Model, X: np.ndarray, n: int, rng: np.random.RandomState) -> Model:
    """With n inducing inputs: those there are, the dead ones moved, and new ones; all distinct rows if there are n."""
    distinct = np.unique(X[: 2 * n], axis=0)
    if len(distinct) <= n and len(distinct := np.unique(X, axis=0)) <= n:
        return at_values(model, model, distinct)
    Z = inducing_inputs(model)
    Z, _ = move_dead(model.kernel, Z, X[rng.permutation(len(X))[: max(5000, len(Z))]])
    return at_values(model, model, add_places(model.kernel, Z, X, n - len(Z), rng))


def _bytes(model: Model, inference: Inference, n: int, M: int) -> int:
    """Memory of a search on n rows: some M × M matrices in the closed form, else some N × M for each latent."""
    if isinstance(inference, Sparse) and _approximation(model).has_structure:
        return 80 * M**2
    return 48 * n * M * model.likelihood.n_latents


# ------------------------------------------------------------------------------------------------ the certificate
def _gains(steps: list[_Step]) -> tuple[float, float]:
    """What the last step gained over the one before, in log evidence per row and in held-out NLPD."""
    before, last = steps[-2:]
    return last.log_evidence - before.log_evidence, before.nlpd - last.nlpd


def _enough(steps: list[_Step]) -> bool:
    gap = steps[-1].gap
    if gap is not None and gap < TOLERANCE:
        return True
    if len(steps) < 2:
        return False
    return max(_gains(steps)) < TOLERANCE


def _choice(steps: list[_Step]) -> _Step:
    best = min(steps, key=lambda s: s.nlpd)
    return next(s for s in steps if s.nlpd <= best.nlpd + TOLERANCE and s.log_evidence >= best.log_evidence - TOLERANCE)


def _sentence(steps: list[_Step], chosen: _Step, stopped: str, budget: float) -> str:
    last = steps[-1]
    took = f"{chosen.n_inducing} inducing inputs were chosen."
    if chosen.blind:
        took += " No pattern was seen: predictions of other rows would do as well."
    if stopped == DISTINCT:
        return f"With {last.n_inducing} inducing inputs every distinct row is one; {took}"
    if stopped == CERTIFIED and last.gap is not None and last.gap < TOLERANCE:
        return (
            f"With {last.n_inducing} inducing inputs the log evidence is within {last.gap:.1g} per row of the exact "
            f"model's at these hyperparameters; {took}"
        )
    if len(steps) > 1:
        evidence, nlpd = _gains(steps)
        before = f"From {steps[-2].n_inducing} to {last.n_inducing} inducing inputs"
        gains = f"{before} the log evidence per row changed by {evidence:+.3f} and the held-out NLPD by {-nlpd:+.3f}"
    else:
        gains = f"{last.n_inducing} inducing inputs were tried"
    if stopped == CERTIFIED:
        return f"{gains}: more would not help; {took}"
    reasons = {
        TIME: f"the time budget of {budget:g} s ended the sweep",
        MEMORY_FULL: f"{MEMORY / 2**30:g} GiB of memory ended the sweep",
        INTERRUPTED: "an interrupt ended the sweep",
    }
    return f"{gains}; {reasons[stopped]}, so that more might help; {took}"


def _has_gap(model: Model) -> bool:
    return isinstance(model.likelihood, Gaussian) and _approximation(model).has_structure


@in_double_precision
def evidence_gap(model: Model, data: TrainingData) -> float:
    r"""The most by which the exact log evidence can exceed the variational bound, for Gaussian noise.

    K lies between Q and Q + τI, τ = tr(K − Q), so that with t = y − m(X), V and r of (1) and the noise σ²

        log p(y) − bound ≤ ½ Σ r/σ² + ½ tᵀ[(VVᵀ + σ²)⁻¹ − (VVᵀ + σ² + τ)⁻¹]t

    (Titsias, *Variational inference for Gaussian and determinantal point processes*, 2014). Two passes over the rows.
    """
    only_noise = VFE(inducing_inputs=inducing_inputs(model))  # on the diagonal of its first pass
    model = Model(model.kernel, model.likelihood, model.mean, only_noise)
    f = first_pass(model, data)
    known = 0.0 if data.noise_variance is None else data.noise_variance
    wider = dataclasses.replace(data, noise_variance=np.full(len(data.y), np.sum(f.r)) + known)
    return 0.5 * float(np.sum(f.r / f.noise)) + 0.5 * (_quadratic(f) - _quadratic(first_pass(model, wider)))


def _quadratic(f: FirstPass) -> float:
    """The form tᵀ(VVᵀ + S)⁻¹t."""
    return float(f.E @ f.residual**2 - f.gamma @ (f.precision @ f.gamma + f.gamma))
