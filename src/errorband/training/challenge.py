"""A result that looks like a trap is doubted, and searched for again from elsewhere."""

import dataclasses
import time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from errorband import interrupts, parameters
from errorband.approximations import FITC
from errorband.model import Model, at_values
from errorband.training.lbfgs import LBFGS, REACH, draw_restarts
from errorband.training.objective import Objective
from errorband.training.reference import linear_log_evidence
from errorband.training.result import FitResult
from errorband.training.starts import other_starts, plain_prior, started_from_data
from errorband.training.strategy import Found, Problem, Settings, Strategy
from errorband.training.tie import Tied, ties

# Noise that explains more than this share of the variance of the targets, or length-scales that went nearly as far as
# a search goes, are doubted; so is an evidence this much (in nats) below that of a linear model.
NOISE_SHARE, AT_BOUND, NATS = 0.9, 0.9 * REACH, 1.0

# A function that is said to explain more than half of the variance that trends leave, while most rows left out have
# more than the second share of it before them, fits few rows that lie close together by chance. With more than the
# first it may do so: then the evidence decides.
DOUBTFUL, UNPREDICTED = 0.6, 0.9
LONG = 10.0  # factor on the length-scales of a smoother function

# Random starts of a challenge, beside those of a scout.
SCATTERED = 2


class Challenge(Strategy):
    """Look at what was found; where searches are known to be trapped, search again from other starts.

    Doubted is a result in which noise explains all of the targets, length-scales went to their bounds (all to the
    upper, or one to the lower), or the evidence is below that of a linear model. The other starts are long and short
    length-scales with little noise (of what the data suggest, if values were given), some at random, and, for a
    variational bound, what FITC finds: it is not held back by the inducing inputs that a bound lacks. The best is kept,
    and ``fit_result_.challenged`` says what was doubted and what came of it. For Gaussian noise.

    Doubted is also a function of which, but for a trend, the other rows tell little at most rows, though little is said
    to be noise: a short length-scale fits some rows that happen to lie close together. There the other start has long
    length-scales and much noise. It is kept if its evidence is higher or, where nearly nothing is told, unless the
    function pays for its numbers.
    """

    def run(self, problem, settings):
        found = self.inner.run(problem, settings)
        known = self.of_kernel and problem.model.likelihood.conjugate and plain_prior(problem.model)
        if not isinstance(settings.trainer, LBFGS) or found.result is None or not known:
            return found
        left = settings.seconds - found.result.seconds
        if found.result.interrupted or interrupts.happened() or left <= 0:
            return found
        doubts = doubted(found, problem)
        if doubts:
            found = challenged(found, doubts, problem, settings.within(left))
        assert found.result is not None
        left = settings.seconds - found.result.seconds
        share = 0.0 if found.result.interrupted or left <= 0 else unpredicted(found)
        return smoothed(found, share, problem, settings.within(left)) if share > DOUBTFUL else found


def doubted(found: Found, problem: Problem) -> list[str]:
    """Why the result may be a trap; empty if nothing speaks for it."""
    objective, result = found.objective, found.result
    assert result is not None
    model, data = objective.model_at(found.theta), objective.data
    likelihood: Any = model.likelihood
    told = []
    free = [e for e in parameters.entries(objective.model) if not e.fixed]
    learned = any(e.path[-1] == "noise_variance" for e in free)
    if learned and float(likelihood.noise_variance) > NOISE_SHARE * float(np.var(data.y)) > 0:
        told.append("noise explains all of the targets")
    scales = np.array(["lengthscale" in name for name in parameters.vector_names(objective.model)], dtype=bool)
    moved = (found.theta - objective.theta0)[scales]
    if np.any(moved < -AT_BOUND) or (len(moved) > 0 and np.all(moved > AT_BOUND)):  # an input that does not matter may
        told.append("length-scales went to their bounds")
    if data.noise_variance is None and data.weights is None and model.latent.mean.marginalize is False:
        log_evidence = result.value - float(parameters.log_prior(objective.model, found.theta))
        short = linear_log_evidence(data) - log_evidence
        if short > NATS:
            told.append(f"the evidence is {short:.4g} below that of a linear model")
    return told


def unpredicted(found: Found) -> float:
    """Share of the variance left by trends that the other rows do not tell of most rows; 0 if noise explains it."""
    objective = found.objective
    model, data = objective.model_at(found.theta), objective.data
    likelihood: Any = model.likelihood
    free = {e.path[-1] for e in parameters.entries(objective.model) if not e.fixed}
    whole = all(latent.features is None for latent in model.latents) and data.y.ndim == 1
    if not whole or not {"lengthscale", "noise_variance"} <= free:
        return 0.0
    noise = float(likelihood.noise_variance)
    variance = min(float(np.var(data.y)), noise + local_variance(model))
    if noise > 0.5 * variance or variance == 0.0:
        return 0.0
    try:
        return float(np.median(objective.leave_one_out(found.theta).variance)) / variance
    except np.linalg.LinAlgError:
        return 0.0


def local_variance(model: Model) -> float:
    """Prior variance of all parts of the kernel that have length-scales; infinite if there is another kind of scale."""
    values = {e.path: e.value for e in parameters.entries(model)}
    parts = [path[:-1] for path in values if path[-1] == "lengthscale"]
    return float(sum(np.sum(values.get((*part, "variance"), np.inf)) for part in parts))


def smoothed(found: Found, share: float, problem: Problem, settings: Settings) -> Found:
    """What a start with long length-scales and much noise leads to, unless what was found is worth more.

    Length-scales that were kept equal stay so: many numbers would pay for themselves by chance.
    """
    objective, first = found.objective, found.result
    assert first is not None
    assert settings.trainer is not None
    fresh = started_from_data(objective.model, objective.data)
    moved: dict[tuple[str, ...], Any] = {}
    for e in parameters.entries(fresh):
        if not e.fixed and e.path[-1] in ("lengthscale", "noise_variance"):
            new = float(np.var(objective.data.y)) if e.path[-1] == "noise_variance" else LONG * np.asarray(e.value)
            moved[e.path] = e.constraint.inside(np.where(e.free, new, e.value))
    start = parameters.pack(parameters.replace_values(fresh, moved))
    groups = ties(problem) if first.tied else None
    told: Any = {"verbose": settings.verbose, "label": f"{settings.name}, smoother"}
    try:
        if groups is None:
            again, warm = settings.trainer.train(objective, start, **told)
        else:
            together: Any = Tied(objective, groups)  # stands in for an objective
            equal, warm = settings.trainer.train(together, together.numbers(start), **told)
            again = dataclasses.replace(equal, **together.in_full(equal))
    except KeyboardInterrupt:
        interrupts.caught()
        return found
    except np.linalg.LinAlgError:
        return found
    loss = first.value - again.value
    better = loss < (price(objective, first.tied) if share > UNPREDICTED else 0.0)
    much = "as much" if abs(loss) < 0.005 else f"{abs(loss):.2f} {'less' if loss > 0 else 'more'}"
    taken = f"a smoother one has {much} evidence and was taken"
    outcome = taken if better else "it pays for its numbers"
    doubt = f"The others tell little of most rows, though the function explains most of the targets: {outcome}."
    return settled(found, again, warm, better, f"{first.challenged} {doubt}".strip())


def challenged(found: Found, doubts: list[str], problem: Problem, settings: Settings) -> Found:
    """The better of what was found and what other starts lead to, with a word about it."""
    objective, first = found.objective, found.result
    assert first is not None
    assert settings.trainer is not None
    began = time.perf_counter()
    # From where the search began, or where an enlarged model did.
    origin = problem.model if len(parameters.pack(problem.model)) == len(found.theta) else objective.model
    theta0 = parameters.pack(origin)
    rng = np.random.default_rng(check_random_state(settings.random_state).randint(2**31 - 1))
    try:
        others = other_starts(origin, problem.left_out)
        if not others:  # values were given, and have led to a trap
            fresh = started_from_data(origin, objective.data)
            others = [
                parameters.pack(fresh),
                *other_starts(fresh, frozenset(e.path for e in parameters.entries(fresh))),
            ]
        starts = [theta0, *others, *bound_starts(problem, found, settings)]
        starts += list(draw_restarts(theta0, SCATTERED, rng, parameters.units(objective.model)))
        again, warm = settings.trainer.within(settings.seconds - (time.perf_counter() - began)).train(
            objective,
            starts[0],
            restarts=starts[1:],
            verbose=settings.verbose,
            label=f"{problem.label(settings)}, doubted",
        )
    except KeyboardInterrupt:
        interrupts.caught()
        return found
    except np.linalg.LinAlgError:
        return found
    # What is new must pay for the numbers that make it: in a few rows of noise some short length-scale fits a little.
    gain = again.value - first.value
    better = gain > price(objective)
    outcome = f"the evidence rose by {gain:.4g}" if better else "nothing better was found"
    told = f"Searched again from {len(starts)} other starts, because {' and '.join(doubts)}: {outcome}."
    return settled(found, again, warm, better, told)


def price(objective: Objective, tied: bool = False) -> float:
    """What the length-scales and the noise must bring in evidence to be worth their numbers; tied, they are one."""
    numbers = sum("lengthscale" in name for name in parameters.vector_names(objective.model))
    return 0.5 * (1 + (min(numbers, 1) if tied else numbers)) * float(np.log(len(objective.data.y)))


def settled(found: Found, again: FitResult, warm: Any, better: bool, told: str) -> Found:
    """What was found, or the result of the other search if that is better, with a word about it."""
    first = found.result
    assert first is not None
    best, other = (again, first) if better else (first, again)
    kept = dataclasses.replace(best.after(other), challenged=told, starts=first.starts + again.starts)
    return dataclasses.replace(found, theta=best.theta, result=kept, warm=warm if better else found.warm)


def bound_starts(problem: Problem, found: Found, settings: Settings) -> list[np.ndarray]:
    """For a variational bound with features that move: the vector that FITC finds on the same rows."""
    model = found.objective.model
    movable = all(latent.features is not None and latent.features.movable for latent in model.latents)
    if not (movable and model.approximation.site_power is not None):
        return []
    sibling = Model(model.latents, model.likelihood, FITC(max(latent.features.size for latent in model.latents)))
    objective = dataclasses.replace(problem, model=sibling, data=found.objective.data).objective()
    trainer: Any = settings.trainer
    try:
        result = trainer.within(settings.seconds / 3).train(objective, objective.theta0).result
    except np.linalg.LinAlgError:
        return []
    return [parameters.pack(at_values(model, objective.model_at(result.theta)))]
