"""Classification in which a second latent function says where labels can be trusted."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from errorband.likelihoods.base import ClassLikelihood, floored, in_rows
from errorband.likelihoods.bivariate import log_ndtr2
from errorband.likelihoods.twinned import gate_kernel
from errorband.parameters import REAL, Interval, hyperparameter
from errorband.programs import program
from errorband.special import log_ndtr


class TwinnedLabels(ClassLikelihood):
    """p(y | f, u) = Φ(u + bias) Φ(y f) + Φ(−u − bias) Φ(y p f), y = ±1, 0 < p < 1 (Naish-Guzman 2007, §4.1).

    Where the gate u is low labels say little about f: with p near zero they are coin flips. The scale of f is that of
    its kernel, so that regular labels have the factor one. The integral over N(f, u; m, V) is a sum of two bivariate
    normal probabilities, exact, where the original has an EP inside EP:

        Z = Φ₂(±t, y s; ±y c),    t = (m_u + bias)/√(1 + V_uu),    s = p m_f/√(1 + p²V_ff).

    Parameters
    ----------
    flatness : float, Parameter or None
        p, in (0, 1). None starts at 0.1. At 1 the labels say nothing about the gate.
    bias : float, Parameter or None
        Mean of the gate. None starts at 1.645, 5% of labels that say little.

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = TwinnedLabels(0.1, 0.0)
    >>> likelihood.plug_in_probabilities(np.array([[5.0, 0.0]])).round(2)  # half sure of it, half a guess
    array([[0.15, 0.85]])
    """

    flatness: Any = hyperparameter(Interval(0.0, 1.0), ndim=0)
    bias: Any = hyperparameter(REAL, ndim=0)
    n_latents: ClassVar[int] = 2
    closed_tilted: ClassVar[bool] = True
    further_starts: ClassVar[tuple[dict[str, float], ...]] = (
        {"latents.1.kernel.lengthscale": 0.2, "latents.1.kernel.variance": 4.0},
    )

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "f", "gate"

    def latent_kernel(self, l):
        return gate_kernel() if l == 1 else None

    @property
    def class_values(self) -> np.ndarray:
        return np.array([-1.0, 1.0])

    def log_prob(self, y, f):
        u = f[1] + self.bias
        return jnp.logaddexp(log_ndtr(u) + log_ndtr(y * f[0]), log_ndtr(-u) + log_ndtr(y * self.flatness * f[0]))

    def log_tilted(self, y, mean, cov):
        return jnp.logaddexp(*self._kinds(y, mean, cov))

    def _kinds(self, y: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
        """Log of the two terms."""
        size = jnp.sqrt(1 + cov[1, 1])
        t = (mean[1] + self.bias) / size

        def term(sign, slope):
            width = jnp.sqrt(1 + slope**2 * cov[0, 0])
            return log_ndtr2(sign * t, y * slope * mean[0] / width, sign * y * slope * cov[0, 1] / (size * width))

        return term(1.0, 1.0), term(-1.0, self.flatness)

    def outlier_probability(self, y: Any, mean: Any, cov: Any) -> np.ndarray:
        """P(the label is of the kind that says little | y), given the cavity (n, 2), (n, 2, 2)."""
        return expit(in_rows(_log_odds, self, np.asarray(y, float), *floored(mean, cov)))

    def defaults(self, y):
        return {"flatness": 0.1, "bias": 1.645}


@program
def _log_odds(likelihood: TwinnedLabels, y: Any, mean: Any, cov: Any) -> Any:
    regular, wrong = jax.vmap(likelihood._kinds)(y, mean, cov)
    return wrong - regular
