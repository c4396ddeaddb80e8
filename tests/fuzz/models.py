"""Draws of models: likelihood × approximation × rule × kernel, at drawn hyperparameters, on odd data.

Draws of a block share their classes, number of columns and padded rows, so that compiled programs are shared.
"""

import dataclasses
import warnings
from typing import Any

import jax
import numpy as np

from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import APPROXIMATIONS
from errorband.inference import INFERENCES
from errorband.likelihoods import ClassLikelihood
from errorband.parameters import pack, unpack
from errorband.posterior.base import prior_mean
from errorband.precision import double_precision
from fuzz import references
from fuzz.outcome import Wrong
from kernels.test_contract import EXAMPLES as KERNEL_EXAMPLES
from kernels.test_contract import Example
from likelihoods.test_contract import EXAMPLES as LIKELIHOOD_EXAMPLES

ROWS = 16  # the least that is compiled for
# So few that nearly all draws have as many, and share what was compiled.
SMALL = {"n_inducing": 3, "n_rows": 5, "block_size": ROWS // 2}

# A kernel of each draw in three; the common one in the others, for which programs are shared with other blocks.
USUAL = [Example(kernel, D) for kernel, D in KERNEL_EXAMPLES["SquaredExponential"] if D == 1]
OTHERS = [Example(kernel, D) for examples in KERNEL_EXAMPLES.values() for kernel, D in examples]
LIKELIHOODS = [example for examples in LIKELIHOOD_EXAMPLES.values() for example in examples]


def approximation_of(name: str) -> Any:
    """A small approximation of this name."""
    cls = APPROXIMATIONS[name]
    fields = {f.name for f in dataclasses.fields(cls)}
    return cls(**{key: value for key, value in SMALL.items() if key in fields})  # pyright: ignore[reportCallIssue]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the draws of a block have in common."""

    likelihood: Any
    kernel: Example
    approximation: str
    rule: str
    search: bool

    @classmethod
    def drawn(cls, rng: np.random.Generator, search: bool) -> "Setting":
        """A combination that is not refused as such, or after some tries one that is."""
        for _ in range(20):
            setting = cls._tried(rng, search)
            if setting.accepted():
                break
        return setting

    def accepted(self) -> bool:
        """Whether parts go together; nothing is compiled to find out."""
        X = self.kernel.inputs(np.random.default_rng(0).normal(size=(8, self.kernel.n_features)))
        y = np.asarray(self.likelihood.y, dtype=float)[np.arange(8) % len(self.likelihood.y)]
        model = self.estimator(self.kernel.kernel, self.likelihood.likelihood, optimizer=None)
        try:
            model.objective(X, y)
        except (ValueError, TypeError):
            return False
        return True

    def estimator(self, kernel: Any, likelihood: Any, **options: Any) -> Any:
        """An estimator with these parts."""
        cls: Any = GPClassifier if isinstance(likelihood, ClassLikelihood) else GPRegressor
        approximation = approximation_of(self.approximation)
        parts = {"likelihood": likelihood, "approximation": approximation, "inference": self.rule, "random_state": 0}
        return cls(kernel, **parts, **options)

    @classmethod
    def _tried(cls, rng: np.random.Generator, search: bool) -> "Setting":
        kernels = OTHERS if rng.random() < 1 / 3 else USUAL
        names = [name for name in APPROXIMATIONS if name != "WeightSpace"]
        return cls(
            LIKELIHOODS[rng.integers(len(LIKELIHOODS))],
            kernels[rng.integers(len(kernels))],
            str(rng.choice(["Exact", *names])),
            str(rng.choice(["auto", "auto", *map(str.lower, INFERENCES)])),
            search,
        )


def redrawn(module: Any, rng: np.random.Generator, spread: float) -> Any:
    """The module with its hyperparameters moved, each by about so much on the scale that a search sees."""
    with double_precision():
        theta = pack(module)
        moved = unpack(module, theta + spread * rng.normal(size=theta.shape))
    if "__init__" in vars(type(module)):  # its arguments are not its fields
        return jax.tree.map(_plain, moved)
    leaves = {f.name: getattr(moved, f.name) for f in dataclasses.fields(moved)}
    return dataclasses.replace(module, **{k: _plain(v) for k, v in leaves.items()})


def _plain(value: Any) -> Any:
    return np.asarray(value) if hasattr(value, "aval") else value


INPUTS = ("usual", "usual", "usual", "duplicates", "constant", "far apart", "tiny", "huge", "grid", "single", "offset")
TARGETS = ("usual", "usual", "usual", "constant", "outlier", "large", "small", "offset")


def odd_inputs(rng: np.random.Generator, D: int) -> tuple[str, np.ndarray]:
    """Rows of a kind, and its name."""
    kind = str(rng.choice(INPUTS))
    n = 1 if kind == "single" else int(rng.integers(SMALL["n_rows"], ROWS + 1))
    X = rng.normal(size=(n, D))
    if kind == "duplicates":
        X = X[rng.integers(0, SMALL["n_rows"], n)]
    elif kind == "constant":
        X[:, rng.integers(D)] = 2.5
    elif kind == "far apart":
        X += 1e3 * np.arange(n)[:, None]
    elif kind == "grid":
        X = np.round(X)
    return kind, X * {"tiny": 1e-30, "huge": 1e30}.get(kind, 1.0) + (1e6 if kind == "offset" else 0.0)


def odd_targets(rng: np.random.Generator, example: Any, n: int) -> np.ndarray:
    """Targets that the likelihood can have produced, of a kind; those of additive noise in odd units too."""
    y = np.asarray(example.y, dtype=float)[rng.integers(0, len(example.y), n)]
    if not example.likelihood.location_scale:
        return y
    y, kind = y + rng.normal(size=n), str(rng.choice(TARGETS))
    if kind == "constant":
        return np.full(n, y[0])
    if kind == "outlier":
        y[rng.integers(n)] += 1e4
    return y * {"large": 1e20, "small": 1e-20}.get(kind, 1.0) + (1e6 if kind == "offset" else 0.0)


def draw(setting: Setting, rng: np.random.Generator) -> str:
    """Fit, predict and check; returns how it went. Raises what the library raises, or Wrong."""
    kind, X = odd_inputs(rng, setting.kernel.n_features)
    X = setting.kernel.inputs(X)
    y = odd_targets(rng, setting.likelihood, len(X))
    spread = float(rng.choice([0.3, 1.0, 3.0, 8.0]))
    model = setting.estimator(
        redrawn(setting.kernel.kernel, rng, spread),
        redrawn(setting.likelihood.likelihood, rng, spread),
        normalize=bool(rng.random() < 0.5),
        optimizer=LBFGS(max_iter=3) if setting.search else None,
    )
    kept = X.copy(), y.copy()
    model.fit(X, y)
    if not (np.array_equal(kept[0], X) and np.array_equal(kept[1], y)):
        raise Wrong("the data were changed")
    new = np.concatenate([X, X[:1] + 0.5])[-ROWS:] if not kind.startswith("grid") else X
    new = setting.kernel.inputs(new)
    check_numbers("log evidence", model.log_evidence_)
    if isinstance(model, GPClassifier):
        check_probabilities(model.predict_proba(new))
    else:
        check_predictive(model.predictive(new), model.likelihood_.location_scale)
    compared = check_reference(model, new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_numbers("leave-one-out", model.loo().log_density, below=np.inf)
    return "compared" if compared else "fitted"


def check_numbers(name: str, values: Any, below: float = np.inf) -> None:
    """Numbers, none of them NaN or +∞."""
    values = np.asarray(values)
    if np.any(np.isnan(values)) or np.any(values == np.inf):
        raise Wrong(f"{name} is {values}")


def check_probabilities(p: np.ndarray) -> None:
    """Between zero and one, with sum one."""
    if not (np.all(np.isfinite(p)) and np.all(p >= 0) and np.allclose(p.sum(axis=1), 1.0, atol=1e-8)):
        raise Wrong(f"probabilities are {p}")


def check_predictive(predictive: Any, real: bool = False) -> None:
    """Finite moments, quantiles in order, a cdf that rises from 0 to 1, of targets on the whole line to the levels."""
    for name in ("mean", "variance"):
        values = getattr(predictive, name)
        if np.any(np.isnan(values)):
            raise Wrong(f"{name} is {values}")
    if np.any(predictive.variance < 0):
        raise Wrong(f"variance is {predictive.variance}")
    low, middle, high = predictive.quantile([0.025, 0.5, 0.975]).T
    if not (np.all(low <= middle) and np.all(middle <= high)):
        raise Wrong(f"quantiles are {low}, {middle}, {high}")
    below, above = predictive.cdf(low), predictive.cdf(high)
    if not (np.all(below >= 0) and np.all(below <= above + 1e-9) and np.all(above <= 1 + 1e-9)):
        raise Wrong(f"the cdf at the ends is {below}, {above}")
    if getattr(predictive, "support", "") == "count":
        for level, end, reached in ((0.025, low, below), (0.975, high, above)):
            before = predictive.cdf(end - 1)
            if np.any((end < 1e299) & ((reached < level - 1e-6) | ((before > level + 1e-6) & (end < 1e12)))):
                raise Wrong(f"the cdf at quantile {level} is {reached}, one count before {before}")
    resolved = (high - low > 1e-9 * np.abs(middle)) & (np.abs(low) < 1e299) & (np.abs(high) < 1e299)
    if real and not np.allclose([below[resolved], above[resolved]], [[0.025], [0.975]], rtol=0, atol=1e-5):
        raise Wrong(f"the cdf at quantiles 0.025 and 0.975 is {below[resolved]}, {above[resolved]}")


def check_reference(model: Any, new: np.ndarray) -> bool:
    """Compare with plain NumPy, in the units that the model sees; False where NumPy has no answer."""
    inside, data, rule = model._model, model._training_data, model.inference_
    likelihood, name = inside.likelihood, type(model.inference_).__name__
    if (
        likelihood.n_latents > 1
        or model.jitter_ > 0
        or not model.inference_status_.converged
        or data.weights is not None
    ):
        return False
    latent, X, B, y = inside.latents[0], np.asarray(data.X), model.scaling_.inputs(new), np.asarray(data.y, float)
    prior = references.effective_prior(inside.approximation, latent, X, B)
    if prior is None:
        return False
    m, new_mean = prior_mean(latent.mean, X), prior_mean(latent.mean, B)
    if name == "Conjugate":
        answer = references.gaussian(prior, float(likelihood.noise_variance), y - m)
        answer = answer and answer._replace(mean=answer.mean + new_mean)
    elif (
        name in ("Laplace", "EP", "KL")
        and (likelihood.smooth or name != "Laplace")
        and resolved(likelihood, y, np.diagonal(prior.S))
    ):
        density = references.log_density(likelihood, y, ROWS)
        sites = model._state.shift[: len(y), 0], model._state.precision[: len(y), 0, 0]
        answer = references.by_sites(name, rule.ep_power or 1.0, prior, m, new_mean, density, sites)
    else:
        return False
    if answer is None:
        return False
    compare(model, answer, B, prior, exactly=name == "Conjugate")
    return True


def resolved(likelihood: Any, y: np.ndarray, variances: np.ndarray) -> bool:
    """Whether y − f is another number where f differs by its deviation, as grids need it."""
    return not likelihood.location_scale or bool(np.all(np.sqrt(variances) > 1e-9 * np.max(np.abs(y))))


def compare(model: Any, answer: references.Answer, B: np.ndarray, prior: references.Prior, exactly: bool) -> None:
    """The same evidence, means and variances, as far as NumPy can tell."""
    near = 1e-5 if exactly else 2e-3
    means, variances = (np.asarray(part).ravel() for part in model.posterior_.marginals(B))
    largest = np.max(np.diagonal(prior.new))
    size = np.max(np.abs(answer.mean)) + np.sqrt(largest)
    blur = 1e-9 * np.max(np.abs(model._training_data.y))  # of means in which large targets cancel
    if not np.allclose(means, answer.mean, rtol=near, atol=near * size + blur):
        raise Wrong(f"means are {means}, NumPy says {answer.mean}")
    if not np.allclose(variances, answer.variance, rtol=10 * near, atol=near * largest):
        raise Wrong(f"variances are {variances}, NumPy says {answer.variance}")
    n = len(model._training_data.y)
    found = model.log_evidence_ + n * np.log(model.scaling_.y_scale)
    if not np.isclose(found, answer.log_evidence, rtol=near, atol=near * n):
        raise Wrong(f"the log evidence is {found}, NumPy says {answer.log_evidence}")
