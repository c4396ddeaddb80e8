"""One batch of rows after the other, in constant memory: ``partial_fit`` of models with features.

All that earlier rows said of the function is in the posterior N(γ, ΣΣᵀ) of the whitened features w. For the next
batch it is the prior: f = m + Φγ + ΦΣv with v ~ N(0, I), which the approximation and the inference rule see as they see
any other. For fixed features this is exact: the batches add up to what all rows would have given at once. Inducing
points follow the data (Csató & Opper 2002): inputs of which the present points leave too much open become points
themselves, about which nothing was known and nothing is lost; beyond the number asked for, those go that matter least,
and what they said is kept as far as the others can say it.
"""

import dataclasses
from typing import Any

import numpy as np

from errorband import linalg
from errorband.data import TrainingData
from errorband.inference.base import Status
from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.model import Model, PriorAtData
from errorband.posterior import FeaturePosterior, Posterior
from errorband.posterior.base import prior_mean
from errorband.precision import in_double_precision
from errorband.rows import at_rows, pad_rows, padded_size
from errorband.structures import LowRank, Sites
from errorband.structures.low_rank import LowRankPredictor

NOVEL = 0.001  # share of the prior variance that the points may leave open before an input becomes one
AT_ONCE = 32  # points that a batch can add


def streams(estimator: Any) -> bool:
    """Whether an estimator can have ``partial_fit``: not with the whole covariance, which grows with the rows."""
    if isinstance(estimator.approximation, str) and estimator.approximation in ("auto", "exact"):
        raise AttributeError("partial_fit needs inducing points or other features: approximation=VFE(200), say.")
    return True


def refusal(posterior: Any, model: Model) -> str | None:
    """None if more rows can be taken in; else why not and what can be done."""
    if not isinstance(posterior, FeaturePosterior):
        return "partial_fit needs a model with features: approximation=VFE(200) or FITC(200), say."
    if model.likelihood.n_latents > 1:
        return "partial_fit is for one latent function; with several classes use multi_class='one_vs_rest'."
    return None


@in_double_precision
def taken_in(
    model: Model, posterior: Any, rule: Any, data: TrainingData, most: int | None
) -> tuple[Model, Posterior, float, Status]:
    """Model and posterior after a batch of rows, the log evidence of the batch given those before, and a status.

    ``most`` is the number of inducing points to keep; None leaves the features as they are.
    """
    latent, factor = model.latents[0], posterior.factors[0]
    mean, root = np.asarray(posterior.predictor.gamma)[0], np.asarray(posterior.predictor.inverse).T  # cov = root rootᵀ
    X = np.asarray(data.X)
    if most is not None:
        latent, factor, mean, root = _with_novel(latent, factor, mean, root, X)
    mean, root, log_evidence, status = _updated(model, latent, factor, mean, root, rule, data)
    if most is not None and len(mean) > most:
        latent, factor, mean, root = _without_idle(latent, factor, mean, root, most)
    predictor = LowRankPredictor(mean[None], np.ascontiguousarray(root.T))  # pyright: ignore[reportArgumentType]
    after = FeaturePosterior(  # pyright: ignore[reportCallIssue]
        latents=(latent,), factors=(factor,), predictor=predictor, opens=posterior.opens, jitter=posterior.jitter
    )
    return dataclasses.replace(model, latents=(latent,)), after, log_evidence, status


# ------------------------------------------------------------------------------------------------------ the batch
def _updated(
    model: Model, latent: Latent, factor: Any, mean: np.ndarray, root: np.ndarray, rule: Any, data: TrainingData
) -> tuple[np.ndarray, np.ndarray, float, Status]:
    """Posterior of w after the batch."""
    approximation: Any = model.approximation
    X, n = np.asarray(data.X), len(data.y)
    Phi = _whitened(latent, factor, X)
    left = np.maximum(_prior_variance(latent, X) - np.sum(Phi**2, axis=1), 0.0)
    basis = Phi @ root
    centre = prior_mean(latent.mean, X) + Phi @ mean + (0.0 if data.offset is None else data.offset)
    # Padded: rows with copies of the first, whose sites are zero; columns with zeros.
    size, width = padded_size(n), padded_size(len(mean))
    padded = np.zeros((size, width))
    padded[:, : len(mean)] = pad_rows(basis, size)
    left, centre = pad_rows(left, size), pad_rows(centre, size)
    on_diagonal = np.zeros(size) if approximation.bound else approximation.share * left
    structure = LowRank(on_diagonal[None], padded[None])  # pyright: ignore[reportArgumentType]
    residual = left[:, None] if approximation.bound else None
    if model.likelihood.conjugate:
        sites, log_evidence, status = _exact_sites(approximation, structure, data, model.likelihood, centre, left)
    else:
        prior = PriorAtData(structure, model.likelihood, centre[:, None], residual)
        used, run = rule.settle(prior, data, None)
        sites, log_evidence, status = run.sites, float(run.log_evidence), rule._told(used, run)
    conditioned = structure.condition(sites)
    M = len(mean)
    step, inverse = np.asarray(conditioned.gamma)[0, :M], np.asarray(conditioned.predictor().inverse)[:M, :M]
    return mean + root @ step, root @ inverse.T, log_evidence, status


def _exact_sites(
    approximation: Any, structure: LowRank, data: TrainingData, likelihood: Any, centre: np.ndarray, left: np.ndarray
) -> tuple[Sites, float, Status]:
    """Sites of Gaussian noise, and the log evidence of the batch."""
    n, size = len(data.y), len(centre)
    noise = data.site_noise(likelihood)
    # VFE and PowerEP: what the features leave out is noise to the extent of their share.
    total = noise + approximation.share * left[:n] if approximation.bound else noise
    t = data.y - centre[:n]
    precision, shift = np.zeros((size, 1, 1)), np.zeros((size, 1))
    precision[:n, 0, 0], shift[:n, 0] = 1.0 / total, t / total
    sites = Sites(shift, precision)  # pyright: ignore[reportArgumentType]
    conditioned = structure.condition(sites)
    fit = np.sum(t**2 / total) - float(np.sum(shift * np.asarray(conditioned.mean)))
    value = -0.5 * (fit + float(conditioned.log_det) + np.sum(np.log(2 * np.pi * total)))
    if approximation.bound:
        alpha, ratio = approximation.share, left[:n] / noise
        value -= 0.5 * np.sum(ratio) if alpha == 0 else 0.5 * (1 - alpha) / alpha * np.sum(np.log1p(alpha * ratio))
    if data.weights is not None:  # as in Conjugate
        w = data.weights
        value += 0.5 * np.sum((1.0 - w) * np.log(2 * np.pi * noise * w) - np.log(w))
    return sites, float(value), Status(True, 0, "In closed form.")


def _whitened(latent: Latent, factor: Any, X: np.ndarray) -> np.ndarray:
    features: Any = latent.features
    if factor is None:
        return at_rows(lambda rows: features.K_fu(latent.kernel, rows), X)
    cross = _cross(latent, X)
    return linalg.solve_lower(np.asfortranarray(factor), np.asfortranarray(cross.T)).T


def _cross(latent: Latent, X: np.ndarray) -> np.ndarray:
    features: Any = latent.features
    if hasattr(features, "inducing_inputs"):  # in padded sizes, as their number changes
        return gram(latent.kernel, X, np.asarray(features.inducing_inputs))
    return at_rows(lambda rows: features.K_fu(latent.kernel, rows), X)


def _prior_variance(latent: Latent, X: np.ndarray) -> np.ndarray:
    return at_rows(latent.variance, X)


# ----------------------------------------------------------------------------------------------- inducing points
def _with_novel(
    latent: Latent, factor: np.ndarray, mean: np.ndarray, root: np.ndarray, X: np.ndarray
) -> tuple[Latent, np.ndarray, np.ndarray, np.ndarray]:
    """More inducing points, at rows of the batch of which the present ones leave more than ``NOVEL`` open.

    The new columns of w are independent of the old ones under the prior, and earlier rows said nothing of them.
    """
    kernel, features = latent.kernel, latent.features
    Phi, prior = _whitened(latent, factor, X), diagonal(kernel, X)
    open_, columns, chosen = prior - np.sum(Phi**2, axis=1), [], []
    while len(chosen) < min(AT_ONCE, len(X)):
        i = int(np.argmax(open_ / prior))
        if not open_[i] > NOVEL * prior[i]:
            break
        # One step of a pivoted Cholesky factorisation.
        column = gram(kernel, X, X[i : i + 1])[:, 0] - Phi @ Phi[i] - sum((c * c[i] for c in columns), np.zeros(len(X)))
        column = column / np.sqrt(column[i])
        columns.append(column)
        chosen.append(i)
        open_ = open_ - column**2
    if not chosen:
        return latent, factor, mean, root
    Z = np.concatenate([np.asarray(features.inducing_inputs), X[chosen]])
    old, new = len(mean), len(Z)
    larger = np.eye(new)
    larger[:old, :old] = root
    return *_at(latent, Z), np.concatenate([mean, np.zeros(new - old)]), larger


def _without_idle(
    latent: Latent, factor: np.ndarray, mean: np.ndarray, root: np.ndarray, most: int
) -> tuple[Latent, np.ndarray, np.ndarray, np.ndarray]:
    r"""Without the inducing points that say least, one after the other, until so many are left.

    Without point j the posterior q(u) becomes q(u_\j) p(u_j | u_\j). With Q and P the prior and posterior precision of
    u, μ and Σ its posterior mean and covariance, that is a Kullback-Leibler divergence from q of

        ½ [log P_jj/Q_jj − 1 + ((Qμ)_j² + (QΣQ)_jj)/Q_jj].
    """
    u, spread = factor @ mean, factor @ root
    Z = np.asarray(latent.features.inducing_inputs)
    Sigma, keep = spread @ spread.T, np.arange(len(Z))
    L_inverse = linalg.solve_lower(np.asfortranarray(factor), np.eye(len(Z)))
    half = np.linalg.solve(root, L_inverse)
    prior, posterior = L_inverse.T @ L_inverse, half.T @ half
    while len(keep) > most:
        alpha, own = prior @ u[keep], np.diagonal(prior)
        moved = alpha**2 + np.sum((prior @ Sigma[np.ix_(keep, keep)]) * prior, axis=1)
        j = int(np.argmin(np.log(np.diagonal(posterior) / own) + moved / own))
        rest = np.delete(np.arange(len(keep)), j)
        prior, posterior = ((A - np.outer(A[:, j], A[:, j]) / A[j, j])[np.ix_(rest, rest)] for A in (prior, posterior))
        keep = keep[rest]
    latent, smaller = _at(latent, Z[keep])
    half = linalg.solve_lower(np.asfortranarray(smaller), np.asfortranarray(spread[keep]))
    chol = linalg.cholesky(half @ half.T)
    return latent, smaller, linalg.solve_lower(np.asfortranarray(smaller), u[keep]), np.tril(chol.factor)


def _at(latent: Latent, Z: np.ndarray) -> tuple[Latent, np.ndarray]:
    """The prior with other inducing inputs, and the factor of their covariance."""
    factor = np.tril(linalg.cholesky(linalg.regularised(gram(latent.kernel, Z, Z))).factor)
    return dataclasses.replace(latent, features=latent.features.at(Z)), factor
