"""A transform of the targets learned together with the hyperparameters: the warped Gaussian process."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from errorband.training.objective import Point, Warm
from errorband.training.result import Trainer
from errorband.training.strategy import Found
from errorband.training.tie import Tied
from errorband.transforms import Transform

STEP = 1e-5  # of differences in the numbers of a transform, which are of order one


@dataclasses.dataclass(frozen=True)
class Warped:
    r"""Log evidence of y, where z = g(y) has a Gaussian process, as a function of the hyperparameters and of g.

    The model sees t = (z − m)/s, m and s the mean and the spread of all z. With the weight w of each row,

        log p(y) = log p_t(t) + Σ w (log g′(y) − log s)        (Snelson, Rasmussen & Ghahramani 2004, eq. 6).

    A vector is θ followed by the numbers ψ of g, ``Transform.vector``. The derivative in ψ is that of
    Σ t̄t + Σ w (log g′(y) − log s) with t̄ = ∂ log p_t/∂t held, by central differences: no matrix is needed for it.

    Parameters
    ----------
    objective : Objective or Tied
        At the transform the search starts with.
    theta : array
        Vector of the objective to start from.
    transform : Transform
        Likewise.
    scaled : callable
        From a transform to the scaling that goes with it.
    y : array (n,)
        Targets in the units of the data.
    """

    objective: Any
    theta: np.ndarray
    transform: Transform
    scaled: Callable[[Transform], Any]
    y: np.ndarray

    @property
    def inference(self) -> Any:
        """The rule of the objective."""
        return self.objective.inference

    @property
    def likelihood(self) -> Any:
        """That of the objective."""
        return self.objective.likelihood

    @property
    def theta0(self) -> np.ndarray:
        """Where the search starts."""
        return np.concatenate([self.theta, self.transform.vector])

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, Transform]:
        """Vector of the objective, and the transform."""
        n = len(self.theta)
        return numbers[:n], self.transform.at(numbers[n:])

    def seen(self, transform: Transform) -> Any:
        """The objective with the targets as this transform makes them."""
        return self.objective.with_targets(self.scaled(transform).targets(self.y))

    def slopes(self, transform: Transform) -> float:
        """Σ w (log g′(y) − log s)."""
        slopes = transform.log_slope(self.y) - np.log(self.scaled(transform).y_scale)
        weights = self.objective.data.weights
        return float(np.sum(slopes if weights is None else weights * slopes))

    def evaluate(self, numbers: np.ndarray, warm: Warm | None = None) -> Point:
        """Value and gradient."""
        theta, transform = self.parts(numbers)
        with np.errstate(all="ignore"):  # what overflows makes a bad point
            point = self.seen(transform).evaluate(theta, warm)
            psi, t_bar = numbers[len(theta) :], np.asarray(point.targets)
            moved = [transform.at(psi + step) for row in np.eye(len(psi)) for step in (STEP * row, -STEP * row)]
            values = np.array([t_bar @ self.scaled(g).targets(self.y) + self.slopes(g) for g in moved]).reshape(-1, 2)
            value = point.value + self.slopes(transform)
        in_psi = (values[:, 0] - values[:, 1]) / (2 * STEP)
        return dataclasses.replace(point, value=value, gradient=np.concatenate([point.gradient, in_psi]))


def learned_transform(
    found: Found,
    start: Transform,
    scaled: Callable[[Transform], Any],
    groups: np.ndarray | None,
    trainer: Trainer,
    verbose: int = 0,
) -> tuple[Found, Transform]:
    """Search on from what was found with ``start``, the transform of the targets moving too."""
    result = found.result
    assert result is not None
    tied = None if groups is None else Tied(found.objective, groups)
    whole = Warped(
        objective=tied or found.objective,
        theta=found.theta if tied is None else tied.numbers(found.theta),
        transform=start,
        scaled=scaled,
        y=scaled(start).original(found.objective.data.y),
    )
    rest = trainer.within(trainer.seconds - result.seconds)
    searched, warm = rest.train(whole, whole.theta0, verbose=verbose, label="transform")
    theta, transform = whole.parts(searched.theta)
    theta = theta if tied is None else tied.whole(theta)
    changed: dict[str, Any] = {name: getattr(searched, name) for name in ("stop", "limit", "gradient_norm")}
    value = searched.value - whole.slopes(transform)
    told = dataclasses.replace(result.after(searched), value=value, theta=theta, **changed)
    objective = found.objective.with_targets(scaled(transform).targets(whole.y))
    return dataclasses.replace(found, objective=objective, theta=theta, result=told, warm=warm), transform
