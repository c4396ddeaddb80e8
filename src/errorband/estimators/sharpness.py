"""Class probabilities as sure as labels are: what rows left out say of them.

The evidence is that of all rows, of which the first were predicted from next to nothing. With many inputs and classes
that hardly overlap, hyperparameters that maximise it leave probabilities closer to each other than labels ask for; and
models of one class against the rest, taken together, are not sure enough either (:mod:`.one_vs_rest`). One power of the
probabilities mends both. Theory: docs/theory/defaults.md.
"""

import numpy as np
import scipy.optimize
from scipy.special import softmax

# Standard deviation of the logarithm of the power before the rows are seen, if one number was learned from them.
SPREAD = 0.35

# The power is between these; probabilities of labels below the last are taken for that.
SOFTEST, SHARPEST, LEAST = 0.5, 4.0, 1e-6


def sharpened(shares: np.ndarray, power: float) -> np.ndarray:
    """A power of what classes have (n, C), divided by the sum over the classes."""
    return softmax(power * np.log(np.maximum(shares, np.finfo(float).tiny)), axis=-1)


def learned_sharpness(shares: np.ndarray, codes: np.ndarray, numbers: float) -> float:
    """The power with which rows left out have the highest log probability of their labels.

    Its logarithm has a normal prior around zero. Rows left out are predicted at hyperparameters that saw them, which
    makes labels look easier than they are, the more so the more numbers were learned: each makes the prior as much
    narrower as if it were a number of independent opinions that the power is one.

    Parameters
    ----------
    shares : array (n, C)
        Probability of each class for each row, given the others; need not add up to one.
    codes : array (n,)
        Position of each label.
    numbers : float
        How many numbers were learned from the same rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = 1 / (1 + np.exp(-3 * rng.normal(size=1000)))
    >>> codes = (rng.random(1000) < p).astype(int)
    >>> timid = np.sqrt(np.stack([1 - p, p], axis=1))
    >>> 1.7 < learned_sharpness(timid, codes, numbers=3) < 2.2
    True
    >>> learned_sharpness(timid[:5], codes[:5], numbers=3) < 1.2  # five rows say little
    True
    """
    rows = np.arange(len(codes))

    def minus_log_posterior(log_power: float) -> float:
        p = sharpened(shares, float(np.exp(log_power)))[rows, codes]
        return -float(np.sum(np.log(np.maximum(p, LEAST)))) + 0.5 * numbers * (log_power / SPREAD) ** 2

    found = scipy.optimize.minimize_scalar(minus_log_posterior, bounds=np.log([SOFTEST, SHARPEST]), method="bounded")
    return float(np.exp(found.x))
