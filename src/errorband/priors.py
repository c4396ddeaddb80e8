"""Priors on hyperparameters: small frozen densities, traceable by JAX."""

import dataclasses
import math

import jax.numpy as jnp


@dataclasses.dataclass(frozen=True, repr=False)
class Prior:
    """Density of one hyperparameter. Subclasses give ``log_density``."""

    def __post_init__(self):
        for f in dataclasses.fields(self):
            if f.name not in ("location", "lower") and not getattr(self, f.name) > 0:
                raise ValueError(f"{f.name} of {type(self).__name__} must be positive; got {getattr(self, f.name)!r}.")

    def log_density(self, value):
        """Log density, elementwise."""
        raise NotImplementedError

    def rescaled(self, factor: float, shift: float = 0.0) -> "Prior":
        """Density of factor · value + shift, factor > 0: the same belief in other units."""
        if shift != 0:
            raise ValueError(f"{self!r} is a prior of numbers above zero, not of a level; use Normal.")
        return self._scaled(factor)

    def _scaled(self, factor: float) -> "Prior":
        raise NotImplementedError(f"{type(self).__name__} does not say what it is in other units; use normalize=False.")

    def __repr__(self) -> str:
        given = [f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]
        fields = ", ".join(f"{f.name}={getattr(self, f.name):g}" for f in given)
        return f"{type(self).__name__}({fields})"


@dataclasses.dataclass(frozen=True, repr=False)
class LogNormal(Prior):
    """log (value − lower) ~ N(location, scale²).

    Parameters
    ----------
    location : float
        Logarithm of the median, less ``lower``.
    scale : float
        Standard deviation of the logarithm.
    lower : float
        Least value; 0 unless said.

    Examples
    --------
    >>> from errorband import Parameter
    >>> from errorband.kernels import SquaredExponential
    >>> SquaredExponential(lengthscale=Parameter(1.0, prior=LogNormal(0.0, 1.0)))
    SquaredExponential(lengthscale=1 ~ LogNormal(location=0, scale=1))
    """

    location: float
    scale: float
    lower: float = 0.0

    def log_density(self, value):
        log = jnp.log(value - self.lower)
        z = (log - self.location) / self.scale
        return -0.5 * z**2 - log - math.log(self.scale * math.sqrt(2 * math.pi))

    def _scaled(self, factor):
        return LogNormal(self.location + math.log(factor), self.scale, factor * self.lower)


@dataclasses.dataclass(frozen=True, repr=False)
class Gamma(Prior):
    """Density ∝ value^(shape−1) exp(−rate·value).

    Parameters
    ----------
    shape : float
        The mean is shape/rate, the relative variance 1/shape.
    rate : float
        Inverse of the scale.

    Examples
    --------
    >>> prior = Gamma(shape=2.0, rate=1.0)
    >>> round(float(prior.log_density(1.0)), 4)  # log(1 · e⁻¹)
    -1.0
    """

    shape: float
    rate: float

    def log_density(self, value):
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1) * jnp.log(value) - self.rate * value

    def _scaled(self, factor):
        return Gamma(self.shape, self.rate / factor)


@dataclasses.dataclass(frozen=True, repr=False)
class InverseGamma(Prior):
    """1/value ~ Gamma(shape, rate=scale): keeps length-scales away from zero.

    Parameters
    ----------
    shape : float
        The larger, the narrower.
    scale : float
        The mode is scale/(shape + 1).

    Examples
    --------
    >>> prior = InverseGamma(shape=3.0, scale=4.0)
    >>> bool(prior.log_density(1.0) > prior.log_density(0.9)), bool(prior.log_density(1.0) > prior.log_density(1.1))
    (True, True)
    """

    shape: float
    scale: float

    def log_density(self, value):
        constant = self.shape * math.log(self.scale) - math.lgamma(self.shape)
        return constant - (self.shape + 1) * jnp.log(value) - self.scale / value

    def _scaled(self, factor):
        return InverseGamma(self.shape, self.scale * factor)


@dataclasses.dataclass(frozen=True, repr=False)
class HalfNormal(Prior):
    """|N(0, scale²)|.

    Parameters
    ----------
    scale : float
        Values beyond two or three of it are unlikely.

    Examples
    --------
    >>> prior = HalfNormal(scale=1.0)
    >>> round(float(prior.log_density(0.0)), 4)  # log √(2/π)
    -0.2258
    """

    scale: float

    def log_density(self, value):
        return -0.5 * (value / self.scale) ** 2 + 0.5 * math.log(2 / math.pi) - math.log(self.scale)

    def _scaled(self, factor):
        return HalfNormal(self.scale * factor)


@dataclasses.dataclass(frozen=True, repr=False)
class HalfCauchy(Prior):
    """Density ∝ 1/(1 + (value/scale)²): flat near zero, and large values are unlikely but never out of the question.

    Parameters
    ----------
    scale : float
        The median.

    Examples
    --------
    >>> prior = HalfCauchy(scale=10.0)
    >>> round(float(prior.log_density(1000.0) - prior.log_density(0.0)), 1)  # a half-normal says −5000
    -9.2
    """

    scale: float

    def log_density(self, value):
        return -jnp.log1p((value / self.scale) ** 2) + math.log(2 / (math.pi * self.scale))

    def _scaled(self, factor):
        return HalfCauchy(self.scale * factor)


@dataclasses.dataclass(frozen=True, repr=False)
class Hypoexponential(Prior):
    """Sum of two exponential numbers: values well below ``low`` are unlikely, those from there to ``high`` are alike.

    Parameters
    ----------
    low, high : float
        Means of the two, the smaller one first.

    Examples
    --------
    >>> prior = Hypoexponential(low=0.01, high=10.0)
    >>> round(float(prior.log_density(0.1) - prior.log_density(1.0)), 1)
    0.1
    >>> round(float(prior.log_density(1e-6) - prior.log_density(1.0)), 1)  # proportional to the value there
    -9.1
    """

    low: float
    high: float

    def __post_init__(self):
        super().__post_init__()
        if not self.low < self.high:
            raise ValueError(f"low of {type(self).__name__} must be below high; got {self.low!r} and {self.high!r}.")

    def log_density(self, value):
        rise = jnp.log(-jnp.expm1(-value * (1 / self.low - 1 / self.high)))
        return rise - value / self.high - math.log(self.high - self.low)

    def _scaled(self, factor):
        return Hypoexponential(self.low * factor, self.high * factor)


@dataclasses.dataclass(frozen=True, repr=False)
class Normal(Prior):
    """N(location, scale²).

    Parameters
    ----------
    location : float
        Mean.
    scale : float
        Standard deviation.

    Examples
    --------
    >>> from errorband import Parameter
    >>> from errorband.likelihoods import Bernoulli
    >>> Bernoulli(bias=Parameter(0.0, prior=Normal(0.0, 2.0)))
    Bernoulli(bias=0 ~ Normal(location=0, scale=2))
    """

    location: float
    scale: float

    def log_density(self, value):
        z = (value - self.location) / self.scale
        return -0.5 * z**2 - math.log(self.scale * math.sqrt(2 * math.pi))

    def rescaled(self, factor, shift=0.0):
        return Normal(factor * self.location + shift, factor * self.scale)


PRIORS = {
    cls.__name__: cls for cls in (LogNormal, Gamma, InverseGamma, HalfNormal, HalfCauchy, Hypoexponential, Normal)
}
