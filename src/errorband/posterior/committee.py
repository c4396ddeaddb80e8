"""A committee: posteriors given parts of the data, multiplied."""

from typing import Any

import equinox as eqx
import numpy as np

from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.posterior.base import Posterior, latent_of, prior_mean
from errorband.precision import in_double_precision

WEIGHTINGS = "plain", "entropy", "share"
LEAST = 1e-12  # share of the prior variance below which a posterior variance counts as this


class CommitteePosterior(Posterior):
    r"""Members that saw different rows, taken together at each input by their precisions.

    With N(m_k, C_k) what member k says of the latent values and N(m_0, C_0) what all of them start from,

        C⁻¹ = Σ_k β_k C_k⁻¹ + (1 − Σ_k β_k) C_0⁻¹,     m = C [Σ_k β_k C_k⁻¹m_k + (1 − Σ_k β_k) C_0⁻¹m_0].     (1)

    If the parts of the data were independent given the latent values asked for, β = 1 would be exact (Tresp 2000).
    Without ``corrects``, the products of experts, the terms in C_0 are left out.

    Attributes
    ----------
    members : tuple of Posterior
        Given each part of the data.
    latents : tuple of Latent
        Their prior.
    base : Posterior or None
        What all members saw (the communication set), in place of the prior (Liu et al. 2018); then β_1 = 1.
    weighting : {"plain", "entropy", "share"}
        β_k = 1; what member k learned at the input, ½ log |C_0|/|C_k| (Deisenroth & Ng 2015); or the latter divided by
        its sum over the members (Cao & Fleet 2014), equal where nobody learned anything.
    corrects : bool
        Whether the prior is divided out.
    """

    members: tuple[Posterior, ...]
    latents: tuple[Latent, ...]
    base: Posterior | None = None
    weighting: str = eqx.field(default="plain", static=True)
    corrects: bool = eqx.field(default=True, static=True)

    @property
    def jitter(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The largest of the members'."""
        return max(member.jitter for member in self.members)

    @in_double_precision
    def marginals(self, X, variance=True):
        found = [member.marginals(X) for member in self.members]
        means, covs = (np.stack(a) for a in zip(*found, strict=True))
        start: Any = self._prior(X, means.shape[2]) if self.base is None else self.base.marginals(X)
        weights = self._weights(_log_det(start[1]) - np.stack([_log_det(c) for c in covs]))
        mean, cov = _multiplied(means, covs, weights, start, self.corrects)
        return mean, cov if variance else None

    @in_double_precision
    def joint(self, X, latent=0):
        """All inputs together. Their weights are one number for each member: what it learned, for each input."""
        found = [member.joint(X, latent) for member in self.members]
        if self.base is None:
            prior = latent_of(self.latents, latent)
            start = prior_mean(prior.mean, X), gram(prior.kernel, X, X)
        else:
            start = self.base.joint(X, latent)
        # In the coordinates in which the prior is the identity everything is a share of it.
        size, axes = np.linalg.eigh(start[1])
        kept = size > LEAST * size[-1]
        root = axes[:, kept] * np.sqrt(size[kept])
        inverse = axes[:, kept] / np.sqrt(size[kept])
        shares = [_floored(inverse.T @ cov @ inverse) for _, cov in found]
        means = [inverse.T @ (mean - start[0]) for mean, _ in found]
        learned = [-np.linalg.slogdet(share)[1] / len(share) for share in shares]
        weights = self._weights(np.array(learned)[:, None])[:, 0]
        eye = np.eye(len(shares[0]))
        precision = (1.0 - np.sum(weights)) * eye if self.corrects else 0.0 * eye
        shift = np.zeros(len(eye))
        for weight, mean, share in zip(weights, means, shares, strict=True):
            inverse_share = np.linalg.inv(share)
            precision, shift = precision + weight * inverse_share, shift + weight * inverse_share @ mean
        cov = np.linalg.inv(precision)
        return start[0] + root @ (cov @ shift), root @ cov @ root.T

    def _prior(self, X: np.ndarray, L: int) -> tuple[np.ndarray, np.ndarray]:
        means = np.stack([prior_mean(latent.mean, X) for latent in self.latents], axis=1)
        variances = np.stack([diagonal(latent.kernel, X) for latent in self.latents], axis=1)
        shape = len(X), L
        return np.broadcast_to(means, shape), np.broadcast_to(variances, shape)[:, :, None] * np.eye(L)

    def _weights(self, learned: np.ndarray) -> np.ndarray:
        """β (K, n) from log |C_0|/|C_k|."""
        if self.weighting == "plain":
            return np.ones_like(learned)
        entropy = np.maximum(0.5 * learned, 0.0)
        if self.weighting == "share":
            total = np.sum(entropy, axis=0)
            return np.where(total > 1e-9, entropy / np.maximum(total, 1e-9), 1.0 / len(entropy))
        if self.base is not None:
            entropy[0] = 1.0
        return entropy


def _log_det(cov: np.ndarray) -> np.ndarray:
    """Of each (L, L) block."""
    return np.linalg.slogdet(cov)[1] if cov.shape[-1] > 1 else np.log(np.maximum(cov[..., 0, 0], 1e-300))


def _floored(share: np.ndarray) -> np.ndarray:
    """A covariance without eigenvalues below rounding."""
    size, axes = np.linalg.eigh(0.5 * (share + share.T))
    return (axes * np.maximum(size, LEAST)) @ axes.T


def _multiplied(
    means: np.ndarray, covs: np.ndarray, weights: np.ndarray, start: tuple[np.ndarray, Any], corrects: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(1) at each input; means (K, n, L), covariances (K, n, L, L), weights (K, n)."""
    L = means.shape[2]
    tiny = LEAST * np.einsum("nll->n", start[1]) / L
    eye = np.eye(L)
    precisions = np.linalg.inv(covs + (tiny[:, None, None] * eye)[None])
    P = np.einsum("kn,knij->nij", weights, precisions)
    h = np.einsum("kn,knij,knj->ni", weights, precisions, means)
    if corrects:
        first = np.linalg.inv(start[1] + tiny[:, None, None] * eye)
        left = 1.0 - np.sum(weights, axis=0)
        P = P + left[:, None, None] * first
        h = h + left[:, None] * np.einsum("nij,nj->ni", first, start[0])
    cov = np.linalg.inv(P)
    return np.einsum("nij,nj->ni", cov, h), 0.5 * (cov + np.swapaxes(cov, 1, 2))
