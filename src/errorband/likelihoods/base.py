"""The likelihood contract: p(y_n | f_n), f_n the L latent values of datum n.

A new likelihood is a subclass of :class:`Likelihood` that declares its hyperparameters and implements ``log_prob``.
This is sufficient for all inference rules and predictions; other methods may be overridden by closed forms.
"""

import abc
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from errorband.likelihoods.numerical import ConditionalPredictive, TabulatedPredictive
from errorband.parameters import Module, entries, fill
from errorband.precision import double_precision
from errorband.predictive import CategoricalPredictive, Predictive
from errorband.programs import program
from errorband.quadrature import REACH, expectation, expectation_nd, log_integral, log_integral_nd, panel_rule
from errorband.rows import pad_rows

# A start from which outliers look wrong: a function that is too smooth to follow them.
SMOOTHER = {"latents.0.kernel.lengthscale": 3.0}

CHUNKS = 4096, 256, 16  # sizes of the chunks for which functions of rows are compiled


class Likelihood(Module):
    """p(y | f) of one datum.

    Attributes
    ----------
    n_latents : int
        L, the number of latent values per datum.
    log_concave : bool
        Whether log p(y | f) is concave in f. Then the posterior has one mode, and site precisions are not negative.
    smooth : bool
        Whether log p(y | f) is well described by its gradient and curvature, as Laplace's approximation assumes.
    simplex : bool
        Whether −∇² log p(y | f) = diag(d) − ddᵀ/Σd for a vector d = ``share(f)`` with d ≥ 0.
    conjugate : bool
        Whether p(y | f) is Gaussian in f, so that the posterior is Gaussian and inference exact.
    classes : bool
        Whether targets are class labels (a :class:`ClassLikelihood`).
    closed_conditionals : bool
        Whether ``conditional_mean``, ``_variance``, ``_cdf`` and ``_sample`` are overridden by closed forms. If so, and
        if L = 1, predictions average these over f instead of tabulating the density of y.
    closed_tilted : bool
        Whether ``log_tilted`` of several latents is a closed form, so that EP is no dearer than Laplace.
    further_starts : tuple of dict
        Further starts of the search, from which the best is taken: by name of a hyperparameter of the model, such as
        ``latents.1.kernel.variance``, the factor on its first starting value.
    annealed : bool
        Whether EP from scratch, which may have no answer or a poor one where latent functions are alike, begins from
        :meth:`first_sites`, and with the noise of :meth:`warm_up`; the better end is kept, and every start of a search
        begins so.
    from_gaussian : dict or None
        Factors, by name in the same way, for a start with the kernel that a search with Gaussian noise ended with.
    indicators : (float, float, float) or None
        If rows are of two kinds with one leaf and one gate: their noise variances and the bias of the gate, for Gibbs
        sampling of the kinds.
    location_scale : bool
        Whether y may be standardised: p(y | f) depends on y − f and a scale only.
    support : {"real", "positive", "unit", "count"}
        Values a target can take.
    log_rate : bool
        Whether e^f is a rate: counts over an exposure of c have the latent value f + log c.
    upper : float
        Largest count.
    """

    n_latents: ClassVar[int] = 1
    log_concave: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    simplex: ClassVar[bool] = False
    conjugate: ClassVar[bool] = False
    classes: ClassVar[bool] = False
    closed_conditionals: ClassVar[bool] = False
    closed_tilted: ClassVar[bool] = False
    further_starts: ClassVar[tuple[dict[str, float], ...]] = ()
    from_gaussian: ClassVar[dict[str, float] | None] = None
    annealed: ClassVar[bool] = False
    indicators: ClassVar[Any] = None
    location_scale: ClassVar[bool] = False
    support: ClassVar[str] = "real"
    log_rate: ClassVar[bool] = False
    upper: ClassVar[float] = np.inf

    # ------------------------------------------------------------------ implemented by subclasses
    @abc.abstractmethod
    def log_prob(self, y: Any, f: Any) -> Any:
        """Log p(y | f) of one datum: f is a scalar if L = 1, else a vector of length L. Traceable."""

    def defaults(self, y: np.ndarray) -> dict[str, Any]:
        """Starting values, computed from the targets, for the hyperparameters that are None."""
        raise NotImplementedError(f"{type(self).__name__} has hyperparameters but no defaults for them.")

    @property
    def latent_names(self) -> tuple[str, ...]:
        """Names of the L latent functions."""
        return ("f",) if self.n_latents == 1 else tuple(f"f_{l}" for l in range(self.n_latents))

    @property
    def latent_kinds(self) -> tuple[str, ...]:
        """Kind of each latent function: those of one kind share one prior. By default the kinds are the names."""
        return self.latent_names

    def latent_variance(self, l: int, y_variance: float) -> float:
        """Starting value for the prior variance of latent function l, given the variance of the targets.

        ``y_variance`` for a latent in the units of the targets, 1 for others.
        """
        return y_variance if self.latent_in_units(l) else 1.0

    def latent_kernel(self, l: int) -> Any:
        """Kernel of latent function l where none is given by name; None: the kernel given, or the default."""
        return None

    def latent_in_units(self, l: int) -> bool:
        """Whether latent function l is in the units of the targets, so that predictions of it are scaled back."""
        return self.location_scale

    def check_targets(self, y: np.ndarray) -> None:
        """Raise ValueError for targets outside the support."""
        check_support(y, self.support, type(self).__name__, self.upper)

    def feature(self, y: Any) -> tuple[Any, Any] | None:
        """Centre and width of the peak or step of p(y | ·) as a function of one latent value. Traceable.

        A hint for quadrature, which places more nodes there. None if there is no hint.
        """
        return None

    def first_sites(self, y: Any, mean: Any) -> tuple[Any, Any]:
        """Shifts (N, L) and precisions (N, L, L) that EP tries first where nothing is known, of an annealed likelihood.

        ``mean`` (N, L) is that of the prior; sites are of latent values less that.
        """
        raise NotImplementedError(f"{type(self).__name__} is annealed but has no first sites.")

    def warm_up(self, y: np.ndarray) -> "list[Likelihood]":
        """Likelihoods of less and less noise, down to this one: the sites of EP for one are a start for the next.

        Of an annealed likelihood. They must not be symmetric in latent functions that are alike, or none would be told
        from another.
        """
        raise NotImplementedError(f"{type(self).__name__} is annealed but has no likelihoods with more noise.")

    # ------------------------------------------------------------------ called by inference
    def log_tilted(self, y: Any, mean: Any, cov: Any) -> Any:
        """Log ∫ p(y | f) N(f; mean, cov) df of one datum; mean and cov are scalars if L = 1.

        The default is adaptive quadrature (:mod:`errorband.quadrature`). EP takes first and second derivatives in the
        mean by automatic differentiation.
        """
        return self._log_tilted_quadrature(y, mean, cov, 1.0)

    def log_tilted_power(self, y: Any, mean: Any, cov: Any, power: Any) -> Any:
        """Log ∫ p(y | f)^power N(f; mean, cov) df, for fractional EP."""
        if isinstance(power, (int, float)) and power == 1:
            return self.log_tilted(y, mean, cov)
        return self._log_tilted_quadrature(y, mean, cov, power)

    def expected_log_prob(self, y: Any, mean: Any, cov: Any) -> Any:
        """E log p(y | f) under N(mean, cov), for variational inference."""
        if self.n_latents > 1:
            return expectation_nd(lambda f: self.log_prob(y, f), mean, cov)
        rule = {"frozen": self._frozen(y), "concave": self.log_concave, "feature": self.feature(y)}
        return expectation(lambda f: self.log_prob(y, f), mean, cov, **rule)

    def variational_term(self, y: Any, mean: Any, cov: Any) -> Any:
        """What the rule KL adds for a datum: E log p(y | f) under N(mean, cov), or a lower bound that costs less."""
        return self.expected_log_prob(y, mean, cov)

    def _log_tilted_quadrature(self, y: Any, mean: Any, cov: Any, power: Any) -> Any:
        still = self._frozen(y)
        rule: dict[str, Any] = {
            "frozen": lambda f: jax.lax.stop_gradient(power) * still(f),
            "concave": self.log_concave,
        }

        def log_g(f):
            return power * self.log_prob(y, f)

        if self.n_latents > 1:
            return log_integral_nd(log_g, mean, cov, **rule)
        return log_integral(log_g, mean, cov, feature=self.feature(y), **rule)

    def _frozen(self, y: Any) -> Callable[[Any], Any]:
        """Log p(y | ·) with constant hyperparameters (``stop_gradient``), used to place quadrature nodes."""
        still, y = jax.lax.stop_gradient((self, y))
        return lambda f: still.log_prob(y, f)

    def initialised(self, y: np.ndarray) -> "Likelihood":
        """Copy in which hyperparameters that are None have their values from :meth:`defaults`."""
        return fill(self, self.defaults(y)) if any(e.value is None for e in entries(self)) else self

    # ------------------------------------------------------------------ called by prediction (NumPy)
    def predictive(self, mean: np.ndarray, cov: np.ndarray) -> Predictive:
        """Distribution of targets, given mean (n, L) and covariance (n, L, L) of their latent values."""
        mean, cov = floored(mean, cov)
        if self.closed_conditionals and self.n_latents == 1:
            return ConditionalPredictive(self, mean[:, 0], cov[:, 0, 0])
        log_density = functools.partial(self._log_density_table, mean, cov)  # unlike a closure, it can be pickled
        return TabulatedPredictive(log_density, *self._where_to_look(mean, np.sqrt(cov[:, 0, 0])), self.support)

    def _log_density_table(self, mean: np.ndarray, cov: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log predictive density of G targets at each of n inputs: (n, G) → (n, G)."""
        n, G = y.shape
        return self.log_density(y.ravel(), np.repeat(mean, G, axis=0), np.repeat(cov, G, axis=0)).reshape(n, G)

    def log_density(self, y: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Log predictive density of targets (n,): :meth:`log_tilted` for each row, as a NumPy array."""
        mean, cov = floored(mean, cov)
        return in_rows(_log_tilted, self, np.asarray(y, float), mean, cov)

    def predictive_moments(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of targets from those of their latent value (L = 1), by the law of total variance."""
        s = np.sqrt(variance)[:, None]
        f, w = panel_rule(mean[:, None], s, mean - REACH * s[:, 0], mean + REACH * s[:, 0], xp=np)
        w = w * np.exp(-0.5 * ((f - mean[:, None]) / s) ** 2)
        w /= w.sum(axis=1, keepdims=True)
        given_f = self.conditional_mean(f)
        average = np.sum(w * given_f, axis=1)
        spread = self.conditional_variance(f) + (given_f - average[:, None]) ** 2
        return average, np.sum(w * spread, axis=1)

    def conditional_mean(self, f: np.ndarray) -> np.ndarray:
        """E(y | f) for latent values (...,) if L = 1, else (..., L). The default integrates log_prob over y."""
        return self._conditional(f).mean.reshape(self._shape(f))

    def conditional_variance(self, f: np.ndarray) -> np.ndarray:
        """Var(y | f)."""
        return self._conditional(f).variance.reshape(self._shape(f))

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """P(target ≤ y | f). y and f are broadcast, except for the axis of latents of f."""
        shape = np.broadcast_shapes(np.shape(y), self._shape(f))
        f = np.broadcast_to(f, shape if self.n_latents == 1 else (*shape, self.n_latents))
        return self._conditional(f).cdf(np.broadcast_to(y, shape).ravel()).reshape(shape)

    def conditional_sample(self, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One draw of y for each latent value, or vector of L latent values."""
        return self._conditional(f).sample(1, rng).reshape(self._shape(f))

    def feature_array(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """:meth:`feature` on the host, of targets (n,), for which few sizes are compiled."""
        padded = np.pad(y, (0, 2 ** math.ceil(math.log2(max(len(y), 16))) - len(y)), mode="edge")
        with double_precision():
            found = self.feature(padded)
        if found is None:
            return None
        centre, width = (np.broadcast_to(a, padded.shape)[: len(y)] for a in found)
        return centre, width

    def _shape(self, f: Any) -> tuple[int, ...]:
        return np.shape(f) if self.n_latents == 1 else np.shape(f)[:-1]

    def _conditional(self, f: np.ndarray) -> TabulatedPredictive:
        f = np.asarray(f, float).reshape(-1, self.n_latents)

        def log_density(y):
            n, G = y.shape
            return in_rows(log_prob_of, self, y.ravel(), np.repeat(f, G, axis=0)).reshape(n, G)

        return TabulatedPredictive(log_density, *self._where_to_look(f, np.ones(len(f))), self.support)

    def _where_to_look(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centre and width of a first guess of the distribution of targets, in unbounded coordinates."""
        return mean[:, 0], std if self.support == "real" else np.ones(len(std))


class ClassLikelihood(Likelihood):
    """A likelihood of class labels."""

    classes: ClassVar[bool] = True

    @property
    def class_values(self) -> np.ndarray:
        """The labels, in order."""
        raise NotImplementedError

    def class_probabilities(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Class probabilities (n, C), averaged over latent values of mean (n, L) and covariance (n, L, L)."""
        columns = [self.log_density(np.full(len(mean), value), mean, cov) for value in self.class_values]
        return _normalised(np.stack(columns, axis=1))

    def plug_in_probabilities(self, mean: np.ndarray) -> np.ndarray:
        """Class probabilities (n, C) at the latent mean (n, L), ignoring its uncertainty."""
        chunks = CHUNKS if len(mean) < CHUNKS[1] else CHUNKS[:1]  # rows cost little here, and calls much
        columns = [
            in_rows(log_prob_of, self, np.full(len(mean), float(value)), np.asarray(mean, float), chunks=chunks)
            for value in self.class_values
        ]
        return _normalised(np.stack(columns, axis=1))

    def predictive(self, mean, cov):
        """Distribution of the class label, a number among ``class_values``."""
        return CategoricalPredictive(self.class_probabilities(mean, cov), self.class_values)

    def check_targets(self, y):
        """Raise ValueError for labels that are not among the class values."""
        values = self.class_values
        if strange := sorted(set(np.unique(y)) - set(values))[:3]:
            raise ValueError(
                f"{type(self).__name__} needs targets from {_listed(values)}; got {_listed(strange)}. "
                "Encode the labels first, as GPClassifier does."
            )


def _normalised(log_p: np.ndarray) -> np.ndarray:
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


# ------------------------------------------------------------------------------------------------------------ helpers
def floored(mean: Any, cov: Any) -> tuple[np.ndarray, np.ndarray]:
    """Latent moments as float64, with variances raised to round-off, since a latent value may be known exactly."""
    mean, cov = np.asarray(mean, float), np.array(cov, float)
    diagonal = np.einsum("nii->ni", cov)
    diagonal += np.maximum(1e-20 * (1 + mean**2) - diagonal, 0.0)
    return mean, cov


def in_rows(function: Any, likelihood: Likelihood, *arrays: np.ndarray, chunks: Sequence[int] = CHUNKS) -> np.ndarray:
    """Apply a compiled function to the rows of arrays in chunks of three sizes: at most three shapes are compiled."""
    out, start, n = [], 0, len(arrays[0])
    with double_precision():
        while start < n:
            size = next((s for s in chunks if s <= n - start), chunks[-1])
            chunk = [pad_rows(a[start : start + size], size) for a in arrays]
            out.append(np.asarray(function(likelihood, *chunk))[: n - start])
            start += size
    return np.concatenate(out) if out else np.zeros(0)


@program
def _log_tilted(likelihood: Likelihood, y: Any, mean: Any, cov: Any) -> Any:
    if likelihood.n_latents == 1:
        return jax.vmap(likelihood.log_tilted)(y, mean[:, 0], cov[:, 0, 0])
    return jax.vmap(likelihood.log_tilted)(y, mean, cov)


@program
def log_prob_of(likelihood: Likelihood, y: Any, f: Any) -> Any:
    return jax.vmap(likelihood.log_prob)(y, f[:, 0] if likelihood.n_latents == 1 else f)


def check_support(y: np.ndarray, support: str, name: str, upper: float) -> None:
    """Raise ValueError for targets outside the support of a likelihood."""
    y = np.asarray(y)
    if support == "count":
        bad = y[(y < 0) | (y != np.floor(y)) | (y > upper)]
        wanted = "counts 0, 1, 2, …" if upper == np.inf else f"counts from 0 to n_trials={upper:g}"
        advice = "Round them if they are counts, or choose a likelihood of continuous targets."
        if upper < np.inf:
            advice = "Set n_trials to the number of trials behind each count."
    elif support == "positive":
        bad, wanted = y[y <= 0], "positive targets"
        advice = "Shift them or drop the zeros, or choose a likelihood of real targets."
    elif support == "unit":
        bad, wanted = y[(y <= 0) | (y >= 1)], "targets strictly between 0 and 1"
        advice = "Divide percentages by 100; move exact zeros and ones inside, e.g. (y (n − 1) + ½)/n."
    else:
        return
    if bad.size:
        raise ValueError(f"{name} needs {wanted}; got {bad.size} of {y.size} others, such as {bad[0]:g}. {advice}")


def _listed(values: Any) -> str:
    return ", ".join(f"{v:g}" for v in values)


def robust_scale(y: np.ndarray) -> float:
    """Half a robust estimate of the standard deviation of the targets: starting value of noise scales."""
    low, high = np.quantile(y, [0.25, 0.75])
    return 0.5 * float((high - low) / 1.349 or np.std(y) or 1.0)
