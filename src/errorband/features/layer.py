"""What features in weight space share: drawing their weights, holding them, and the layer of a network they are."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from errorband.parameters import Parameter, replace_values, value_of


class Layer(NamedTuple):
    """Basis functions φ(x) = scale ∘ activation(Wx + b), in plain numbers.

    Attributes
    ----------
    W : array (M, D)
    b : array (M,)
    scale : array (M,)
        Prior standard deviation of the output weights.
    activation : str or callable
    precision : array (D,) or None
        The activation sees Wx + b − ½ Σ precision·x², if it is not None.
    """

    W: np.ndarray
    b: np.ndarray
    scale: np.ndarray
    activation: Any
    precision: np.ndarray | None = None


def seeded(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn takes as a seed."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def given_or_drawn(features: Any, name: str, draw: Callable[[], np.ndarray], columns: int) -> Any:
    """Features whose matrix of this name is set: checked if it was given, else drawn."""
    given = value_of(getattr(features, name))
    if given is None:
        return replace_values(features, {(name,): draw()})
    if np.ndim(given) != 2 or np.shape(given)[1] != columns or len(given) == 0:
        raise ValueError(
            f"{name} of {type(features).__name__} must have shape (n, {columns}) for this kernel and these inputs; got "
            f"{np.shape(given)}."
        )
    return features


def held_weights(features: Any, name: str, fixed: Any) -> Any:
    """Features whose matrix of this name is fixed (where ``fixed`` says so), on top of what was fixed already."""
    held = getattr(features, name)
    if isinstance(held, Parameter):
        fixed = np.asarray(fixed) | np.asarray(held.fixed)
        return replace_values(features, {(name,): Parameter(held.value, fixed, held.prior, held.bounds)})
    return replace_values(features, {(name,): Parameter(held, fixed)})
