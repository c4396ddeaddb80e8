"""The soft margin of support vector machines as probabilities: with a third answer, or renormalised."""

import numpy as np
from scipy.special import expit


def soft_margin(f, renormalised: bool = False) -> np.ndarray:
    r"""Probabilities of y = −1 and y = +1 at scores f, and of neither ("don't know").

    exp(−max(0, 1 − yf)) is no likelihood: its sum over y is 0.736 at f = 0 and 1.135 at |f| = 1. Scaled by 1/(1 + e⁻²)
    (Sollich 2000) it leaves a share for a third answer, which is 0.352 at f = 0 and zero at the margin, and rises again
    beyond it, to 0.119: the more certain the score, the less the model claims to know. Divided by its sum it is

        p(y) = 1/(1 + e^{−2yf}) for |f| ≤ 1,   1/(1 + e^{−yf − y sign f}) beyond.

    Neither is a reason to trust such probabilities: fit them with :class:`errorband.PlattScaling`.

    Parameters
    ----------
    f : array (n,)
        Scores.
    renormalised : bool
        Divide by the sum, so that nothing is left for the third answer.

    Returns
    -------
    probabilities : array (n, 3)
        Of −1, of +1 and of neither.

    Examples
    --------
    >>> soft_margin([0.0, 1.0, 10.0]).round(3)
    array([[0.324, 0.324, 0.352],
           [0.119, 0.881, 0.   ],
           [0.   , 0.881, 0.119]])
    >>> soft_margin([0.5], renormalised=True).round(4)
    array([[0.2689, 0.7311, 0.    ]])
    """
    f = np.asarray(f, dtype=np.float64)
    if renormalised:
        up = expit(np.where(np.abs(f) <= 1, 2 * f, f + np.sign(f)))
        return np.stack([1 - up, up, np.zeros_like(f)], axis=-1)
    down, up = (np.exp(-np.maximum(0.0, 1.0 - y * f)) / (1 + np.exp(-2.0)) for y in (-1, 1))
    return np.stack([down, up, np.maximum(1.0 - down - up, 0.0)], axis=-1)
