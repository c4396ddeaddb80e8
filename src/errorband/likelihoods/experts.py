"""Two functions and a gate between them."""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.base import robust_scale
from errorband.likelihoods.gated import Branch, Gate, Gated
from errorband.likelihoods.twinned import gate_kernel
from errorband.parameters import POSITIVE, REAL, VARIANCE, hyperparameter

ROUNDS = 20  # in which targets are divided into high and low ones
LEVELS, LOPSIDED = 8, 0.2  # of noise, from that in which both functions are lost; what is added to the bias there


class TwoExperts(Gated):
    """p(y | f, g, u) = Φ(u + bias) N(y; f, σ²) + Φ(−u − bias) N(y; g, rσ²): two functions and a gate.

    With a smooth kernel for the gate, a mixture of two experts: one function here and the other there, as for steps
    and regimes. With ``kernel={"gate": White(1.0)}`` each row may belong to either: two overlaid functions. EP on three
    latent functions (Naish-Guzman 2007, eq. 4.5). The two functions are alike, and which is the first is decided on
    purpose: EP from scratch, which has no answer with little noise, begins with the first function at the high
    targets and the second at the low ones; and with much noise, lowered step by step, under a bias towards the first.
    The end with more evidence is kept.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the noise variance around the first function.
    variance_ratio : float, Parameter or None
        r, the ratio of the noise variance of the second to σ². None starts at 1.
    bias : float, Parameter or None
        Mean of the gate. None starts at 0: as many rows of either kind.

    Examples
    --------
    >>> import numpy as np
    >>> mean, cov = np.array([[0.0, 5.0, 0.0]]), 1e-6 * np.eye(3)[None]  # f = 0, g = 5, and an open gate
    >>> two = TwoExperts(0.01, 1.0, 0.0).predictive(mean, cov)
    >>> two.mean.round(3), two.cdf(2.5).round(3)
    (array([2.5]), array([0.5]))
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    variance_ratio: Any = hyperparameter(POSITIVE, ndim=0)
    bias: Any = hyperparameter(REAL, ndim=0)
    n_latents: ClassVar[int] = 3
    annealed: ClassVar[bool] = True
    further_starts: ClassVar[tuple[dict[str, float], ...]] = (
        {"latents.1.kernel.lengthscale": 0.3, "latents.2.kernel.lengthscale": 0.3, "likelihood.noise_variance": 0.2},
        {"latents.0.kernel.lengthscale": 0.5, "latents.1.kernel.lengthscale": 0.5, "likelihood.noise_variance": 0.02},
    )

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "mean", "other", "gate"

    def latent_in_units(self, l):
        return l < 2

    def latent_kernel(self, l):
        return gate_kernel() if l == 2 else None

    def branches(self):
        return (
            Branch(0, self.noise_variance, (Gate(2, 1.0, self.bias),)),
            Branch(1, self.noise_variance * self.variance_ratio, (Gate(2, -1.0, self.bias),), outlier=True),
        )

    def first_sites(self, y, mean):
        between = jnp.mean(y)
        for _ in range(ROUNDS):  # two means
            between = 0.5 * (jnp.mean(y, where=y > between) + jnp.mean(y, where=y <= between))
        upper = y > between
        s2 = self.noise_variance * jnp.stack([jnp.ones(()), jnp.asarray(self.variance_ratio)])
        own = jnp.stack([upper, ~upper], axis=1) / s2
        precision = jnp.pad(own, ((0, 0), (0, 1)))
        return precision * (y[:, None] - mean), precision[:, :, None] * jnp.eye(3)

    def warm_up(self, y):
        most = max(float(np.var(y)) / float(self.noise_variance), 1.0)
        return [
            dataclasses.replace(self, noise_variance=heat * self.noise_variance, bias=self.bias + LOPSIDED)
            for heat in np.geomspace(most, 1.0, LEVELS)[:-1]
        ]

    def defaults(self, y):
        return {"noise_variance": robust_scale(y) ** 2, "variance_ratio": 1.0, "bias": 0.0}
