"""Checks of settings: numbers that are given once and not learned. Each message says what came and what to give."""

from typing import Any

import numpy as np

_COUNTS = "zero", "one", "two"


def generator(random_state: Any) -> np.random.Generator:
    """NumPy's generator for a seed; ValueError for what is none.

    Examples
    --------
    >>> generator("today")
    Traceback (most recent call last):
    ValueError: random_state='today': give a whole number, zero or more, a Generator, or None.
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={random_state!r}: give a whole number, zero or more, a Generator, or None."
        ) from None


def check_whole(owner: str, name: str, value: Any, least: int = 1, other: str = "") -> None:
    """Raise ValueError unless a value is a whole number, ``least`` or more. True is none: it is an answer, not a count.

    Parameters
    ----------
    owner, name : str
        Of the class or function, and of the argument.
    value
        What was given.
    least : int
        0, 1 or 2.
    other : str
        What else may be given, for the message.

    Examples
    --------
    >>> check_whole("FITC", "n_inducing", 2.5, other=", or 'auto'")
    Traceback (most recent call last):
    ValueError: FITC(n_inducing=2.5): give a whole number, one or more, or 'auto'.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (whole and value >= least):
        raise ValueError(f"{owner}({name}={value!r}): give a whole number, {_COUNTS[least]} or more{other}.")


def check_answer(name: str, value: Any) -> None:
    """Raise TypeError unless a value answers a question.

    Examples
    --------
    >>> check_answer("return_std", "std")
    Traceback (most recent call last):
    TypeError: return_std='std': give True or False.
    """
    if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1))):
        raise TypeError(f"{name}={value!r}: give True or False.")


def check_latent(value: Any) -> None:
    """Raise TypeError unless a value says whether a latent function is meant, or which."""
    if not isinstance(value, (bool, np.bool_, str)):
        raise TypeError(f"latent={value!r}: give True, False, or the name of a latent function.")


def check_number(owner: str, name: str, value: Any, what: str = "a number above zero", zero: bool = False) -> None:
    """Raise ValueError unless a value is a finite number above zero, or zero if that may be.

    Examples
    --------
    >>> check_number("LBFGS", "tolerance", -1.0)
    Traceback (most recent call last):
    ValueError: LBFGS(tolerance=-1.0): give a number above zero.
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise ValueError(f"{owner}({name}={value!r}): give {what}.")
