"""Student's distribution made skew: the shape of errors. Plain NumPy."""

import dataclasses
import functools

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit


@dataclasses.dataclass(frozen=True)
class SkewStudent:
    r"""A distribution with mean zero whose right half is γ² times as wide as its left half.

    With t the density of Student's distribution, that of x + μ is (Fernández & Steel 1998, eq. 1)

        2/(γ + 1/γ) · t(x/γ) for x ≥ 0,    2/(γ + 1/γ) · t(γx) for x < 0,       μ = E|t| (γ − 1/γ).

    Parameters
    ----------
    df : float
        Degrees of freedom, above two: a variance exists.
    skew : float
        γ; 1 is Student's distribution itself.

    Examples
    --------
    >>> SkewStudent(5.0, 1.5).quantile(np.array([0.025, 0.5, 0.975])).round(2)
    array([-2.24, -0.23,  3.47])
    >>> SkewStudent(5.0).quantile(np.array([0.025, 0.975])).round(2)
    array([-2.57,  2.57])
    """

    df: float
    skew: float = 1.0

    @functools.cached_property
    def shift(self) -> float:
        """μ, what has to be taken off for a mean of zero."""
        df = self.df
        size = 2 * np.sqrt(df / np.pi) / (df - 1) * np.exp(gammaln(0.5 * (df + 1)) - gammaln(0.5 * df))  # E|t|
        return float(size * (self.skew - 1 / self.skew))

    @functools.cached_property
    def std(self) -> float:
        """Standard deviation, from E x² = E t² (γ³ + 1/γ³)/(γ + 1/γ)."""
        g = self.skew
        return float(np.sqrt(self.df / (self.df - 2) * (g**3 + g**-3) / (g + 1 / g) - self.shift**2))

    @property
    def below(self) -> float:
        """Share of the left half, 1/(1 + γ²)."""
        return 1 / (1 + self.skew**2)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log density at x."""
        df, g = self.df, self.skew
        x = x + self.shift
        t = np.where(x < 0, g * x, x / g)
        constant = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df) + np.log(2 / (g + 1 / g))
        return constant - 0.5 * (df + 1) * np.log1p(t**2 / df)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Probability of a number up to x."""
        x, g = x + self.shift, self.skew
        left, right = 2 * self.below * stdtr(self.df, g * x), 2 * (1 - self.below) * stdtr(self.df, -x / g)
        return np.where(x < 0, left, 1 - right)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        """Where the cdf is q."""
        left = stdtrit(self.df, np.minimum(0.5 * q / self.below, 0.5)) / self.skew
        right = -self.skew * stdtrit(self.df, np.minimum(0.5 * (1 - q) / (1 - self.below), 0.5))
        return np.where(q < self.below, left, right) - self.shift

    def of_symmetric(self, t: np.ndarray) -> np.ndarray:
        """The number at the quantile at which t is in Student's distribution itself."""
        return t if self.skew == 1 else self.quantile(np.clip(stdtr(self.df, t), 1e-300, 1 - 1e-16))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws."""
        size = np.abs(rng.standard_t(self.df, size=shape))
        return np.where(rng.random(shape) < self.below, -size / self.skew, size * self.skew) - self.shift
