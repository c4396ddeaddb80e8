"""Noise bounding: the noise found with features held is the least that a search with free features may claim."""

import dataclasses
import time
from typing import Any

import numpy as np

from errorband import parameters
from errorband.model import Model, at_values
from errorband.parameters import Parameter
from errorband.training.challenge import Challenge
from errorband.training.starts import LIFT
from errorband.training.strategy import Strategy

# Names of noise levels in likelihoods, and where the second search starts, in units of the bound.
START = {"noise_variance": LIFT, "scale": np.sqrt(LIFT)}


class BoundNoise(Strategy):
    """Search with the features held first; then all together, with no less noise than that found (BN, ch. 3.3).

    Many learned features can follow the noise of the training rows, and the noise they then claim is too small
    (Lázaro-Gredilla 2010). Random ones that are held cannot: what they call noise is too much rather than too little,
    and the least that the free ones may claim.
    """

    def run(self, problem, settings):
        if settings.trainer is None or not learned_features(problem.model):
            return self.inner.run(problem, settings)
        noise_levels(problem.model)  # refuses a likelihood that has none, before anything is searched
        deadline = time.perf_counter() + settings.seconds
        held = dataclasses.replace(problem, model=with_held_features(problem.model))
        first = Challenge(self.inner).run(held, settings)  # a trap here would be a bound for all that follows
        fitted = first.objective.model_at(first.theta)
        bounds = noise_levels(fitted)
        started = at_values(problem.model, fitted)
        values = {path: _bounded(started, path, lowest, START[path[-1]] * lowest) for path, lowest in bounds.items()}
        bounded = dataclasses.replace(problem, model=parameters.replace_values(started, values))
        left = settings.within(deadline - time.perf_counter(), n_restarts=0)
        if first.result is not None and first.result.interrupted:
            left = left.within(0.0)
        found = self.inner.run(bounded, left)
        return dataclasses.replace(found, noise_bound=float(next(iter(bounds.values()))))


def learned_features(model: Model) -> bool:
    """Whether features have something to learn."""
    return any(not e.fixed for latent in model.latents for e in parameters.entries(latent.features))


def with_held_features(model: Model) -> Model:
    """The model with all numbers of its features fixed that are drawn or placed; phases of cosines stay free."""
    return model.with_features([_held(latent.features) for latent in model.latents])


def _held(features: Any) -> Any:
    if hasattr(features, "held"):
        return features.held()
    values = {e.path: Parameter(e.value, fixed=True) for e in parameters.entries(features)}
    return parameters.replace_values(features, values)


def noise_levels(model: Model) -> dict[tuple[str, ...], float]:
    """Noise levels of a likelihood, by their place in the model; ValueError if it has none."""
    found = {
        ("likelihood", *e.path): float(e.value) for e in parameters.entries(model.likelihood) if e.path[-1] in START
    }
    if not found:
        raise ValueError(
            f"bound_noise=True needs a likelihood with a noise level, such as Gaussian or DoubleExponential; "
            f"{type(model.likelihood).__name__} has none."
        )
    return found


def _bounded(model: Model, path: tuple[str, ...], lowest: float, start: float) -> Any:
    """The parameter with a lower bound; one that is fixed stays what it is."""
    held: Any = getattr(model.likelihood, path[-1])
    if isinstance(held, Parameter):
        upper = None if held.bounds is None else held.bounds[1]
        return held if held.fixed is True else Parameter(start, False, held.prior, (lowest, upper))
    return Parameter(start, bounds=(lowest, None))
