"""A mixture of posteriors: draws of hyperparameters, networks trained from several starts, experts."""

from typing import Any

import numpy as np

from errorband.posterior.base import Posterior
from errorband.predictive import MixturePredictive


class MixturePosterior(Posterior):
    """Weighted posteriors, each with a likelihood of its own if hyperparameters differ.

    :meth:`predictive` is the mixture of the members' predictive distributions, :meth:`marginals` and :meth:`joint` are
    the mean and covariance of the mixture of the latent functions.

    Attributes
    ----------
    weights : array (K,)
        Not negative, with sum one.
    members : tuple of Posterior
    likelihoods : tuple of Likelihood, or None
        That of each member; None if they share the one that :meth:`predictive` is given.
    """

    weights: np.ndarray
    members: tuple[Posterior, ...]
    likelihoods: tuple[Any, ...] | None = None

    @property
    def jitter(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The largest of the members'."""
        return max(member.jitter for member in self.members)

    def marginals(self, X, variance=True):
        found = [member.marginals(X, variance) for member in self.members]
        mean = sum(w * m for w, (m, _) in zip(self.weights, found, strict=True))
        if not variance:
            return mean, None
        # Total covariance: that within the members plus that of their means.
        cov = sum(
            w * (c + (m - mean)[:, :, None] * (m - mean)[:, None, :])
            for w, (m, c) in zip(self.weights, found, strict=True)
        )
        return mean, cov

    def joint(self, X, latent=0):
        found = [member.joint(X, latent) for member in self.members]
        mean = sum(w * m for w, (m, _) in zip(self.weights, found, strict=True))
        cov = sum(w * (c + np.outer(m - mean, m - mean)) for w, (m, c) in zip(self.weights, found, strict=True))
        return mean, cov

    def predictive(self, likelihood, X, noise_variance=None, offset=None):
        likelihoods = [likelihood] * len(self.members) if self.likelihoods is None else self.likelihoods
        found = [m.predictive(l, X, noise_variance, offset) for m, l in zip(self.members, likelihoods, strict=True)]
        return MixturePredictive(self.weights, found)
