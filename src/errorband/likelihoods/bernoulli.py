"""Two classes: probit and logit links, label noise, and a threshold with errors."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from errorband.likelihoods.base import ClassLikelihood
from errorband.parameters import REAL, Interval, Real, as_value, hyperparameter
from errorband.quadrature import log_integral
from errorband.special import log_ndtr

HALF = Interval(0.0, 0.5)


def _optional(value: Any) -> Any:
    """A hyperparameter, or None if it is zero."""
    return None if isinstance(value, (int, float)) and value == 0 else as_value(value)


class Bernoulli(ClassLikelihood):
    """Classes y = ±1: p(y | f) = η + (1 − 2η) s(y (f + bias)), s the normal cdf Φ or the logistic function.

    Parameters
    ----------
    link : {"probit", "logit"}
        The function s. The log probability of a wrong label decreases like −f²/2 for the probit and like −|f| for the
        logit (Rasmussen & Williams 2006, fig. 3.3).
    bias : float, Parameter or None
        Starting value of a learned offset of the latent function; None for no offset.
    label_noise : float, Parameter or None
        Starting value of η, the fraction of flipped labels, which is learned unless fixed by a Parameter; None or 0 for
        no label noise. With label noise the likelihood is not log-concave.

    Notes
    -----
    Probit: ∫ Φ(y(f + b)) N(f; m, v) df = Φ(y(m + b)/√(1 + v)) (Rasmussen & Williams 2006, eq. 3.82). Logit:
    quadrature.

    Examples
    --------
    >>> import numpy as np
    >>> Bernoulli().class_probabilities(np.array([[1.0]]), np.array([[[9.0]]])).round(5)
    array([[0.37591, 0.62409]])
    >>> from errorband.parameters import Parameter
    >>> Bernoulli("logit", label_noise=Parameter(0.02, fixed=True))
    Bernoulli(link='logit', label_noise=0.02 (fixed))
    """

    short_names: ClassVar = {"probit": {"link": "probit"}, "logit": {"link": "logit"}}

    link: str = eqx.field(default="probit", static=True)
    bias: Any = hyperparameter(REAL, ndim=0)
    label_noise: Any = eqx.field(default=None, converter=_optional, metadata={"constraint": HALF, "ndim": 0})

    def __check_init__(self):
        if self.link not in ("probit", "logit"):
            raise ValueError(f"link={self.link!r}: choose 'probit' or 'logit'.")

    @property
    def constraints(self) -> dict[str, Real | None]:
        """An offset or label noise of None is not a hyperparameter."""
        return {name: None for name in ("bias", "label_noise") if getattr(self, name) is None}

    @property
    def log_concave(self) -> bool:
        return self.label_noise is None

    @property
    def class_values(self) -> np.ndarray:
        return np.array([-1.0, 1.0])

    def log_prob(self, y, f):
        return self._with_noise(self._log_link(y * self._shifted(f)))

    def log_tilted(self, y, mean, cov):
        mean = self._shifted(mean)
        if self.link == "probit":
            return self._with_noise(log_ndtr(y * mean / jnp.sqrt(1 + cov)))

        def log_g(f):
            return self._log_link(y * f)

        return self._with_noise(log_integral(log_g, mean, cov, frozen=log_g, concave=True, feature=(0.0 * cov, 2.0)))

    def feature(self, y):
        return -self._shifted(0.0 * y), 1.0 if self.link == "probit" else 2.0

    def defaults(self, y):
        return {"bias": ndtri((np.sum(y > 0) + 0.5) / (len(y) + 1)), "label_noise": 0.05}

    def _log_link(self, z: Any) -> Any:
        return log_ndtr(z) if self.link == "probit" else -jax.nn.softplus(-z)

    def _shifted(self, f: Any) -> Any:
        return f if self.bias is None else f + self.bias

    def _with_noise(self, log_p: Any) -> Any:
        if self.label_noise is None:
            return log_p
        return jnp.logaddexp(jnp.log(self.label_noise), jnp.log1p(-2 * self.label_noise) + log_p)


class RobustThreshold(ClassLikelihood):
    """Classes y = ±1 by the sign of f, wrong with probability ``error``: ε + (1 − 2ε)·[yf > 0].

    The logarithm is constant except for a step, so only rules that integrate (EP, variational) can use it. For ε = 0
    and a latent function with Gaussian noise of variance 1 it is the probit likelihood (Rasmussen & Williams 2006,
    exercise 3.10.1).

    Parameters
    ----------
    error : float, Parameter or None
        ε, in (0, ½). None starts the search at 0.02.

    Examples
    --------
    >>> import numpy as np
    >>> RobustThreshold(0.1).class_probabilities(np.array([[1.0]]), np.array([[[1.0]]])).round(4)  # 0.1 + 0.8 Φ(1)
    array([[0.2269, 0.7731]])
    """

    error: Any = hyperparameter(HALF, ndim=0)
    smooth: ClassVar[bool] = False

    @property
    def class_values(self) -> np.ndarray:
        return np.array([-1.0, 1.0])

    def log_prob(self, y, f):
        right, wrong = jnp.log1p(-self.error), jnp.log(self.error)
        return jnp.where(y * f > 0, right, jnp.where(y * f < 0, wrong, -np.log(2)))

    def log_tilted(self, y, mean, cov):
        return self.log_tilted_power(y, mean, cov, 1.0)

    def log_tilted_power(self, y, mean, cov, power):
        z = y * mean / jnp.sqrt(cov)
        right, wrong = power * jnp.log1p(-self.error), power * jnp.log(self.error)
        return jnp.logaddexp(right + log_ndtr(z), wrong + log_ndtr(-z))

    def expected_log_prob(self, y, mean, cov):
        right, wrong = jnp.log1p(-self.error), jnp.log(self.error)
        return wrong + (right - wrong) * jax.scipy.special.ndtr(y * mean / jnp.sqrt(cov))

    def defaults(self, y):
        return {"error": 0.02}
