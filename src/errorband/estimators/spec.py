"""What the constructor's arguments stand for: latent priors, likelihood, approximation and rule."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import parameters
from errorband.approximations import APPROXIMATIONS, FITC, Approximation, Exact, WeightSpace
from errorband.data import TrainingData
from errorband.estimators.scaling import chunks, spread_rows
from errorband.features import FEATURES, Features
from errorband.inference import INFERENCES, Inference
from errorband.kernels import KERNELS, Kernel, SquaredExponential
from errorband.latents import Latent
from errorband.likelihoods import LIKELIHOODS, ClassLikelihood, Gaussian, Likelihood
from errorband.means import Mean, Zero, as_mean
from errorband.model import Model, latents_in_units
from errorband.names import Names
from errorband.parameters import Change
from errorband.transforms import TRANSFORMS, Transform

# approximation="auto" keeps the whole covariance up to this many rows: two arrays of 200 MB and a few seconds for each
# evaluation; fewer where sites are found by many sweeps over it.
EXACT_ROWS, EXACT_ROWS_SITES = 5000, 2000

# A marginalised mean has no other way; up to this many rows, of which matrices take some 5 GB, it is taken unasked.
EXACT_ROWS_MARGINAL = 10_000

# What may be given by name. Features that are a whole prior stand where an approximation does.
KERNEL_NAMES = Names("kernel", (KERNELS,), renamed={"column": "active_dims", "columns": "active_dims"})
NOISE_NAMES = Names("likelihood", (LIKELIHOODS,), accepts=lambda cls: not issubclass(cls, ClassLikelihood))
APPROXIMATION_NAMES = Names(
    "approximation",
    (APPROXIMATIONS, FEATURES),
    accepts=lambda cls: getattr(cls, "weight_space", True),
    nested=(FEATURES,),
    also=("auto", "exact"),
)
INFERENCE_NAMES = Names("inference", (INFERENCES,), also=("auto",))
TRANSFORM_NAMES = Names("target_transform", (TRANSFORMS,))


def class_likelihood_names(n_classes: int) -> Names:
    """Names of the likelihoods of so many classes."""
    accepts = lambda cls: issubclass(cls, ClassLikelihood)  # noqa: E731
    return Names("likelihood", (LIKELIHOODS,), accepts, supplied={"n_classes": n_classes})


@dataclasses.dataclass(frozen=True)
class Spec:
    """A model before it has seen targets.

    Attributes
    ----------
    likelihood : Likelihood
    latents : tuple of Latent
        Kernels (columns by position) and means; one if all latent functions share it, else one for each.
    change : Change or None
        From the units of the data, in which all was given, to those the model sees, in which it is here.
    """

    likelihood: Likelihood
    latents: tuple[Latent, ...]
    change: Change | None = None

    @classmethod
    def of(cls, likelihood: Likelihood, kernel: Any, mean: Any, names: Sequence[str] | None, n_features: int) -> "Spec":
        """From the arguments ``kernel`` and ``mean``, and the columns of X."""
        latents = likelihood.latent_names if len(set(likelihood.latent_kinds)) > 1 else likelihood.latent_names[:1]
        kernels = _each("kernel", kernel, likelihood, latents, as_kernel)
        for l, name in enumerate(latents):  # a latent with a kernel of its own takes another only by its name
            own = likelihood.latent_kernel(l)
            if own is not None and not (isinstance(kernel, dict) and name in kernel):
                kernels[l] = own
        means = _each("mean", mean, likelihood, latents, as_mean)
        if not isinstance(mean, dict):
            means[1:] = [Zero() for _ in means[1:]]  # a single mean is that of the first latent function
        columns = None if names is None else list(names)
        ready = [k.with_columns(columns, n_features) for k in kernels]
        return cls(likelihood, tuple(Latent(k, m) for k, m in zip(ready, means, strict=True)))

    def raw_columns(self, n_features: int) -> np.ndarray:
        """Mask of the columns that some kernel reads as labels, which must not be standardised."""
        return np.any([latent.kernel.raw_columns(n_features) for latent in self.latents], axis=0)

    def without_column(self, column: int, n_features: int) -> "Spec":
        """A copy whose kernels do not look at a column, unless they were told to."""
        latents = (Latent(l.kernel.without_column(column, n_features), l.mean) for l in self.latents)
        return dataclasses.replace(self, latents=tuple(latents))

    def left_out(self, model: Model) -> frozenset[tuple[str, ...]]:
        """Paths of the hyperparameters of a model of this kind whose starting values the user left out."""
        bare = Model(self.latents, self.likelihood, model.approximation)
        return frozenset(e.path for e in parameters.entries(bare) if e.value is None)

    def columns_alike(self, n_features: int) -> list[np.ndarray]:
        """Groups of columns to be standardised by one number (:meth:`~errorband.kernels.Kernel.columns_alike`)."""
        return [group for latent in self.latents for group in latent.kernel.columns_alike(n_features)]

    def in_units(self, change: Change) -> "Spec":
        """What was said of the data, said of the data as the model sees them."""
        for part in (self.likelihood, *self.latents):
            parameters.check(part)  # here, so that messages have the numbers that were given
        latents = latents_in_units(self.latents, self.likelihood, change)
        return Spec(self.likelihood.in_units(change), latents, change)

    def model(self, data: TrainingData, approximation: Approximation, random_state: Any) -> Model:
        """The model with every hyperparameter at its starting value."""
        likelihood = self.likelihood
        for rows in chunks(data.X):
            for latent in self.latents:
                latent.kernel.check(rows)
        likelihood.check_targets(data.y)
        some = spread_rows(data.X)
        targets = _as_weighted(data) if likelihood.location_scale else data.y
        X, y = data.X[some], targets[some]
        seen = _with_spread(targets) if likelihood.location_scale else targets
        # The mean of targets that are all the same may be far from the prior's, which is zero.
        variance = float(np.var(seen) if seen is targets else np.mean(seen**2)) or 1.0
        latents = tuple(
            Latent(
                latent.kernel.initialised(X, likelihood.latent_variance(l, variance)),
                latent.mean.initialised(X, y if likelihood.latent_in_units(l) else np.zeros(len(y))),
            )
            for l, latent in enumerate(self.latents)
        )
        classes = data.y if likelihood.classes else None
        approximation = approximation if self.change is None else approximation.in_units(self.change)
        approximation, latents = approximation.initialised(latents, data.X, classes, random_state)
        model = Model(latents, likelihood.initialised(seen), approximation)
        parameters.check(model)
        return model


def _as_weighted(data: TrainingData) -> np.ndarray:
    """Targets with the mean and the variance that they have with their weights: those of repeated rows."""
    y, w = data.y, data.weights
    if w is None or np.ptp(y) == 0:
        return y
    mean = np.average(y, axis=0, weights=w)
    spread = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=w))
    return mean + (y - np.mean(y, axis=0)) * (spread / np.std(y, axis=0))


def _with_spread(y: np.ndarray) -> np.ndarray:
    """Targets to take starting values from: those that are all the same with one more, zero (or one beside zeros).

    Nobody knows how far others may lie from them. So their size is the unit, and the more there are the less they
    vary: n of them and a zero have a standard deviation of |y|√n/(n + 1).
    """
    return y if np.ptp(y) > 0 else np.concatenate([y, np.full_like(y[:1], 0.0 if y.flat[0] != 0 else 1.0)])


def _each(what: str, given: Any, likelihood: Likelihood, latents: Sequence[str], convert: Any) -> list[Any]:
    """One for each latent prior: the same for all, or by the name of the latent function."""
    if not isinstance(given, dict):
        return [convert(given) for _ in latents]
    names = likelihood.latent_names
    if len(latents) == 1 < len(names):
        raise ValueError(
            f"{what}={{...}}: the {len(names)} latent functions of {type(likelihood).__name__} share one {what}; give "
            "one object."
        )
    if strange := sorted(set(given) - set(names), key=str):
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"{what}={{...}}: {type(likelihood).__name__} has no latent function {strange[0]!r}; it has {listed}."
        )
    return [convert(given.get(name, None if what == "kernel" else "zero")) for name in latents]


def as_kernel(kernel: Any) -> Kernel:
    """A kernel, by its name too; squared exponential by default."""
    if kernel is None:
        return SquaredExponential()
    if isinstance(kernel, str):
        return KERNEL_NAMES(kernel)
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel must be an errorband kernel, the name of one ({KERNEL_NAMES.listed()}), a dictionary of them by "
            f"latent function, or None; got {type(kernel).__name__}."
        )
    return kernel


def as_likelihood(likelihood: Any) -> Likelihood:
    """A likelihood of numbers, by its name too; Gaussian noise by default."""
    if likelihood is None:
        return Gaussian()
    if isinstance(likelihood, str):
        return NOISE_NAMES(likelihood)
    if not isinstance(likelihood, Likelihood):
        raise TypeError(
            f"likelihood must be an errorband likelihood or the name of one ({NOISE_NAMES.listed()}); got "
            f"{type(likelihood).__name__}."
        )
    return likelihood


def as_transform(transform: Any) -> Transform | None:
    """A transform of targets, by its name too; None for none."""
    if isinstance(transform, str):
        return TRANSFORM_NAMES(transform)
    if transform is None or isinstance(transform, Transform):
        return transform
    raise TypeError(
        f"target_transform must be None, one of errorband.transforms or the name of one ({TRANSFORM_NAMES.listed()}); "
        f"got {transform!r}."
    )


def as_approximation(given: Any, n: int, mean: Mean, limit: int) -> tuple[Approximation, str | None]:
    """The approximation for n rows and, if it was chosen here, why this one."""
    if isinstance(given, str) and given != "auto":
        given = APPROXIMATION_NAMES(given)
    if isinstance(given, Approximation):
        return given, None
    if isinstance(given, Features):
        return WeightSpace(given), None
    if isinstance(given, str):  # "auto"
        if n <= limit:
            return Exact(), f"No approximation: {n} rows, of at most {limit}."
        if not mean.marginalize:
            return FITC(), f"FITC with {FITC().n_inducing} inducing inputs: {n} rows are more than {limit}."
        if n <= EXACT_ROWS_MARGINAL:
            return Exact(), "No approximation: a marginalised mean needs the whole covariance."
        raise ValueError(
            f"A marginalised mean needs the whole covariance: for {n} rows several matrices of "
            f"{8e-9 * n**2:.1f} GB. Use marginalize=False, or approximation='exact' if there is memory and time."
        )
    raise TypeError(
        f"approximation must be one of errorband.approximations, such as FITC(200), or the name of one "
        f"({APPROXIMATION_NAMES.listed()}); got {given!r}."
    )


def as_rule(given: Any, automatic: Any) -> Inference:
    """The inference rule asked for; ``automatic()`` if none was."""
    if isinstance(given, Inference):
        return given
    if isinstance(given, str):
        return automatic() if given == "auto" else INFERENCE_NAMES(given)
    raise TypeError(
        f"inference must be an object of errorband.inference or the name of one ({INFERENCE_NAMES.listed()}); got "
        f"{given!r}."
    )
