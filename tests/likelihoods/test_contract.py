"""Every registered likelihood keeps the contract: normalised, differentiable to the tails, integrals right."""

import copy
import functools
import pickle
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband.likelihoods import (
    LIKELIHOODS,
    Bernoulli,
    Beta,
    Binomial,
    ClassLikelihood,
    CompoundOutliers,
    DoubleExponential,
    EpsilonInsensitive,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    Huber,
    Ignorance,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    OutlierMixture,
    Poisson,
    RobustThreshold,
    Softmax,
    StudentT,
    Triplet,
    Twinned,
    TwinnedLabels,
    TwoExperts,
)
from errorband.parameters import Change, check, entries, pack, replace_values, unpack


class Example(NamedTuple):
    """A likelihood with all values set, and three targets it can produce."""

    likelihood: Likelihood
    y: list[float]

    @property
    def L(self) -> int:
        return self.likelihood.n_latents


# A newcomer adds itself here.
EXAMPLES: dict[str, list[Example]] = {
    "Bernoulli": [
        Example(Bernoulli(), [-1, 1, 1]),
        Example(Bernoulli("logit"), [-1, 1, 1]),
        Example(Bernoulli("probit", bias=0.3, label_noise=0.1), [-1, 1, 1]),
        Example(Bernoulli("logit", bias=-0.4, label_noise=0.05), [-1, 1, 1]),
    ],
    "Beta": [Example(Beta(30.0), [0.04, 0.5, 0.9])],
    "Binomial": [Example(Binomial(7), [0, 3, 7])],
    "DoubleExponential": [Example(DoubleExponential(0.4), [-1.2, 0.1, 3.0])],
    "Gamma": [Example(Gamma(2.5), [0.1, 1.0, 8.0])],
    "Gaussian": [Example(Gaussian(0.3), [-1.2, 0.1, 3.0])],
    "HeteroscedasticGaussian": [Example(HeteroscedasticGaussian(0.5), [-1.2, 0.1, 3.0])],
    # Its kinks at ±ε fall between panels of target_rule.
    "EpsilonInsensitive": [Example(EpsilonInsensitive(0.5, 0.05 * np.sinh(2.5)), [-1.2, 0.1, 3.0])],
    "Huber": [Example(Huber(0.5, 1.3), [-1.2, 0.1, 3.0])],
    "NegativeBinomial": [Example(NegativeBinomial(0.4), [0, 2, 11])],
    "Ordinal": [Example(Ordinal(4, [-1.0, 0.2, 1.5]), [0, 2, 3])],
    "OutlierMixture": [Example(OutlierMixture(0.1, 30.0, 0.1), [-1.2, 0.1, 3.0])],
    "Poisson": [Example(Poisson(), [0, 2, 11])],
    "RobustThreshold": [Example(RobustThreshold(0.1), [-1, 1, 1])],
    "Softmax": [Example(Softmax(3), [0, 1, 2]), Example(Softmax(2), [0, 1, 1])],
    "StudentT": [Example(StudentT(4.0, 0.3), [-1.2, 0.1, 3.0])],
    "CompoundOutliers": [
        Example(CompoundOutliers(0.3, [2.0, -1.0, 0.0], [0.5, 0.8, 5.0], [0.2, 0.0, -0.1], 0.4), [-1.2, 0.1, 3.0])
    ],
    "Ignorance": [Example(Ignorance(0.3, 0.5, 4.0, 0.4), [-1.2, 0.1, 3.0])],
    "TwinnedLabels": [Example(TwinnedLabels(0.2, 0.4), [-1, 1, 1])],
    "TwoExperts": [Example(TwoExperts(6.0, 1.5, 0.3), [-1.2, 0.1, 3.0])],
    "Triplet": [Example(Triplet(6.0, 2.0, 2.0, 0.4, 0.1), [-1.2, 0.1, 3.0])],
    "Twinned": [Example(Twinned(0.3, 20.0, 0.4), [-1.2, 0.1, 3.0])],
}
ALL = [
    pytest.param(example, id=name + (f"-{i}" if i else ""))
    for name, examples in EXAMPLES.items()
    for i, example in enumerate(examples)
]
every_example = pytest.mark.parametrize("example", ALL)
# Relatives of Twinned: the same integrals with other branches.
RELATIVES = "CompoundOutliers", "Ignorance", "Triplet", "TwoExperts"
marked = [pytest.param(*p.values, id=p.id, marks=pytest.mark.slow if p.id in RELATIVES else ()) for p in ALL]
pytestmark = pytest.mark.usefixtures("x64")


def test_every_registered_likelihood_has_an_example():
    assert set(EXAMPLES) == set(LIKELIHOODS), "add an example of the new likelihood to EXAMPLES"
    for name, examples in EXAMPLES.items():
        assert all(type(e.likelihood) is LIKELIHOODS[name] for e in examples)


@every_example
def test_the_same_density_in_other_units(example):
    if not example.likelihood.location_scale:
        assert not any(e.unit.y for e in entries(example.likelihood)), "only additive noise has the unit of the targets"
        return
    scale = 7.0
    other = example.likelihood.in_units(Change(np.ones(1), np.zeros(1), y=scale))
    f = np.array([0.4, -0.3, 0.2][: example.L])
    there = f * [scale if example.likelihood.latent_in_units(l) else 1.0 for l in range(example.L)]
    log_prob, other_log_prob = (_one_latent(lik.log_prob, lik) for lik in (example.likelihood, other))
    for y in example.y:
        assert_allclose(float(other_log_prob(scale * y, there)), float(log_prob(y, f)) - np.log(scale), rtol=1e-12)


# ------------------------------------------------------------------------------------------------ compiled, row by row
def _one_latent(function, likelihood):
    """With vectors of latents even if there is one."""
    if likelihood.n_latents > 1:
        return function
    return lambda y, f, *rest: function(y, f[0], *(V[0, 0] if jnp.ndim(V) == 2 else V for V in rest))


@jax.jit
def _log_prob(likelihood, y, f):
    return jax.vmap(_one_latent(likelihood.log_prob, likelihood))(y, f)


def log_prob(likelihood, y, f):
    """Row by row, compiled for two sizes only."""
    n, size = len(y), 64 if len(y) <= 64 else -(-len(y) // 8192) * 8192
    rest = np.zeros(size - n, int)
    return np.asarray(_log_prob(likelihood, np.r_[y, y[rest]], np.r_[f, f[rest]]))[:n]


@jax.jit
def point_derivatives(likelihood, y, f):
    """Gradient, Hessian, third derivatives in f, and gradient in the hyperparameters."""
    g = _one_latent(likelihood.log_prob, likelihood)

    def row(y, f):
        def gradient(f):
            found = jax.grad(g, 1)(y, f)
            return found, found

        def hessian(f):
            found, below = jax.jacfwd(gradient, has_aux=True)(f)
            return found, (below, found)

        third, (first, second) = jax.jacfwd(hessian, has_aux=True)(f)
        return first, second, third

    theta_bar = jax.jacfwd(lambda p: jax.vmap(_one_latent(p.log_prob, p))(y, f))
    return (*jax.vmap(row)(y, f), theta_bar(likelihood) if jax.tree.leaves(likelihood) else ())


@functools.partial(jax.jit, static_argnums=4)
def integral(likelihood, y, mean, cov, kind="log_tilted", power=1.0):
    """Value, gradient and Hessian in the mean, gradient in the covariance, gradient in the hyperparameters.

    There is no Hessian of expectations: no rule asks for it.
    """

    def row(y, m, V):
        def value(likelihood, m, V):
            rest = (power,) if kind == "log_tilted_power" else ()
            return _one_latent(getattr(likelihood, kind), likelihood)(y, m, V, *rest)

        def gradients(m):
            value_, bars = jax.value_and_grad(value, (0, 1, 2))(likelihood, m, V)
            return bars[1], (value_, *bars)

        if kind == "expected_log_prob":
            hessian, (value_, theta_bar, by_mean, by_cov) = None, gradients(m)[1]
        else:
            hessian, (value_, theta_bar, by_mean, by_cov) = jax.jacfwd(gradients, has_aux=True)(m)
        return value_, by_mean, hessian, by_cov, theta_bar

    return jax.vmap(row)(y, mean, cov)


def rows(example, means, variances):
    """All targets with three means and three variances, for any number of latents: y (27,), mean (27, L), cov."""
    grid = [(y, m, v) for y in example.y for m in means for v in variances]
    rng = np.random.default_rng(0)
    L = example.L
    mean = np.array([m * np.r_[1.0, rng.normal(size=L - 1)] for _, m, _ in grid])
    A = rng.normal(size=(len(grid), L, L))
    cov = np.array([v for _, _, v in grid])[:, None, None] * (
        np.eye(L) if L == 1 else 0.3 * np.eye(L) + A @ A.transpose(0, 2, 1) / L
    )
    return np.array([float(y) for y, _, _ in grid]), mean, cov


# ------------------------------------------------------------------------------------------------------- the density
KINKS = {Huber: lambda l: l.threshold * l.scale, EpsilonInsensitive: lambda l: l.epsilon}  # of y − f


def target_rule(support: str, upper: float = np.inf):
    """Targets and weights over the whole support."""
    if support == "count":
        y = np.arange(min(upper + 1, 1024.0))
        return y, np.ones_like(y)
    x, w = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(-16, 16, 129)
    half = 0.5 * np.diff(edges)[:, None]
    u = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
    y, slope = from_unbounded(0.05 * np.sinh(u), support)
    return y, (half * w).ravel() * 0.05 * np.cosh(u) * slope


def from_unbounded(t, support):
    """A target and its derivative."""
    if support == "real":
        return t, 1.0
    t = np.clip(t, -600, 600)
    if support == "positive":
        return np.exp(t), np.exp(t)
    y = np.clip(1 / (1 + np.exp(-t)), 1e-300, 1 - 1e-16)
    return y, 1 / (1 + np.exp(-t)) / (1 + np.exp(t))


def all_targets(likelihood, centre=0.0):
    if isinstance(likelihood, ClassLikelihood):
        return likelihood.class_values, np.ones(len(likelihood.class_values))
    y, w = target_rule(likelihood.support, likelihood.upper)
    return (y + centre, w) if likelihood.support == "real" else (y, w)


@every_example
def test_log_prob_is_normalised_over_the_targets(example):
    rng = np.random.default_rng(1)
    for scale in (0.0, 1.0, 3.0):
        f = scale * rng.normal(size=example.L)
        y, w = all_targets(example.likelihood, centre=f[0])  # a kink at y = f falls between panels
        p = np.exp(log_prob(example.likelihood, y, np.tile(f, (len(y), 1))))
        assert_allclose(p @ w, 1.0, rtol=1e-8)


@every_example
def test_derivatives_against_differences(example):
    y, f, _ = rows(example, [-2.1, -0.37, 1.7], [1.0, 1.0, 1.0])
    gradient, hessian, third, theta_bar = point_derivatives(example.likelihood, y, f)
    h = 1e-4

    def differences(function):
        steps = [h * np.eye(example.L)[i] for i in range(example.L)]
        central = [
            (8 * (function(f + s) - function(f - s)) - (function(f + 2 * s) - function(f - 2 * s))) / (12 * h)
            for s in steps
        ]
        return np.stack(central, axis=-1)

    assert_allclose(gradient, differences(lambda f: log_prob(example.likelihood, y, f)), atol=1e-8, rtol=1e-8)
    for higher, order in ((hessian, 0), (third, 1)):
        lower = differences(lambda f: np.asarray(point_derivatives(example.likelihood, y, f)[order]))  # noqa: B023
        assert_allclose(higher, lower, atol=2e-7, rtol=1e-7)
    for bar, (low, high, step) in zip(jax.tree.leaves(theta_bar), hyperparameter_steps(example), strict=True):
        by_difference = (log_prob(high, y, f) - log_prob(low, y, f)) / (2 * step)
        assert_allclose(bar.reshape(len(y), -1)[:, 0], by_difference, atol=1e-6, rtol=1e-6)


def hyperparameter_steps(example):
    """For each hyperparameter, the likelihood with (its first entry) a little lower and higher, and the step."""
    for e in entries(example.likelihood):
        step = np.zeros_like(e.value)
        step.flat[0] = 1e-5 * np.abs(e.value).flat[0]
        low, high = (replace_values(example.likelihood, {e.path: e.value + s}) for s in (-step, step))
        yield low, high, step.max()


@every_example
def test_nothing_breaks_far_out(example):
    y, f, cov = rows(example, [-40.0, 0.0, 40.0], [1.0, 1e-4, 1e4])
    for out in (log_prob(example.likelihood, y, f), point_derivatives(example.likelihood, y, f)):
        assert all(np.isfinite(a).all() for a in jax.tree.leaves(out))
    far = integral(example.likelihood, y, f, cov, tilted_method(example))
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(far))
    expected = integral(example.likelihood, y, f, cov, "expected_log_prob")
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(expected))
    if example.likelihood.log_concave:  # the tilted variance is positive and below the variance before
        for V, H in zip(cov, np.asarray(far[2]), strict=True):
            root = np.linalg.cholesky(V)
            relative = 1 + np.linalg.eigvalsh(root.T @ H @ root)
            assert (relative > -1e-6).all()
            assert (relative < 1 + 1e-6).all()


@every_example
def test_log_concave_is_what_it_says(example):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 600, example.L)) * rng.choice([0.5, 3.0, 10.0], size=(600, 1))
    if example.L == 1:
        b = -np.abs(b) * np.sign(a)
    y = np.resize(np.asarray(example.y, float), 600)
    ends = [log_prob(example.likelihood, y, f) for f in (a, b)]
    middle = np.asarray(log_prob(example.likelihood, y, 0.5 * (a + b)))
    gap = middle - 0.5 * (ends[0] + ends[1])
    if example.likelihood.log_concave:
        assert (gap >= -1e-12 * (1 + np.abs(middle))).all()
    else:
        assert (gap < -1e-3).any()


# ----------------------------------------------------------------------------------------------------- the integrals
def brute_nodes(example, mean, cov):
    """Latent nodes (k, L) and weights of N(mean, cov), fine and wide, panels ending at kinks."""
    if example.L == 1:
        m, s = mean[0], np.sqrt(cov[0, 0])
        edges = np.concatenate([np.linspace(m - 14 * s, m + 14 * s, 801), [0.0, *example.y]])
        if type(example.likelihood) in KINKS:
            k = float(KINKS[type(example.likelihood)](example.likelihood))
            edges = np.concatenate([edges, np.add.outer(example.y, [-k, k]).ravel()])
        edges = np.unique(np.clip(edges, m - 14 * s, m + 14 * s))
        x, w = np.polynomial.legendre.leggauss(8)
        half = 0.5 * np.diff(edges)[:, None]
        f = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
        return f[:, None], (half * w).ravel() * np.exp(-0.5 * ((f - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
    exponents = isinstance(example.likelihood, HeteroscedasticGaussian)  # narrow where a variance is small
    t = np.linspace(-11, 11, 521 if exponents else 261) if example.L == 2 else np.linspace(-8.5, 8.5, 61)
    X = np.stack(np.meshgrid(*[t] * example.L, indexing="ij"), -1).reshape(-1, example.L)
    w = np.exp(-0.5 * np.sum(X**2, 1))
    return mean + X @ np.linalg.cholesky(cov).T, w / w.sum()


def by_brute_force(example, y, mean, cov, power=1.0):
    """Value, gradient, Hessian in the mean of log ∫ p^power N, and of E log p with gradient in mean and covariance."""
    f, w = brute_nodes(example, mean, cov)
    log_p = log_prob(example.likelihood, np.full(len(f), y), f)
    off = np.linalg.solve(cov, (f - mean).T).T
    top = log_p.max()
    p = w * np.exp(power * (log_p - top))
    Z = p.sum()
    p /= Z
    g = p @ off
    inverse = np.linalg.inv(cov)
    H = (off * p[:, None]).T @ off - np.outer(g, g) - inverse
    wl = w * log_p
    by_cov = 0.5 * ((off * wl[:, None]).T @ off - wl.sum() * inverse)
    return (power * top + np.log(Z), g, H), (wl.sum(), wl @ off, by_cov)


def tilted_method(example):
    """Where log_tilted is the default quadrature, log_tilted_power is the same function, and compiled anyway."""
    own = type(example.likelihood).log_tilted is not Likelihood.log_tilted
    return "log_tilted" if own else "log_tilted_power"


TILTED = [-1.5, 0.4, 2.5], [0.05, 1.0, 6.0]
TILTED_SEVERAL = [-1.5, 0.4, 2.5], [0.05, 0.5, 1.5]  # the grid of the reference resolves no more


@pytest.mark.parametrize("example", marked)
def test_integrals_against_brute_force(example):
    likelihood = example.likelihood
    y, mean, cov = rows(example, *(TILTED if example.L == 1 else TILTED_SEVERAL))
    tilted = integral(likelihood, y, mean, cov, tilted_method(example))
    powered = integral(likelihood, y, mean, cov, "log_tilted_power", 0.6)
    expected = integral(likelihood, y, mean, cov, "expected_log_prob")
    accuracy = 1e-8 if example.L == 1 else 1e-7
    close = functools.partial(assert_allclose, rtol=accuracy, atol=10 * accuracy)
    for i in range(0, len(y), 1 if example.L == 1 else 5):
        (value, g, H), (average, by_mean, by_cov) = by_brute_force(example, y[i], mean[i], cov[i])
        for found, right in zip([a[i] for a in tilted[:3]], [value, g, H], strict=True):
            close(found, right)
        close(symmetric(tilted[3][i]), 0.5 * (H + np.outer(g, g)))  # the heat equation
        for found, right in zip([expected[k][i] for k in (0, 1, 3)], [average, by_mean, by_cov], strict=True):
            close(symmetric(found), right)
    for i in range(0, len(y), 5 if example.L == 1 else 13):
        (value, g, H), _ = by_brute_force(example, y[i], mean[i], cov[i], power=0.6)
        for found, right in zip([a[i] for a in powered[:3]], [value, g, H], strict=True):
            close(found, right)
    # and they follow the hyperparameters
    for kind, found in ((tilted_method(example), tilted), ("expected_log_prob", expected)):
        for bar, (low, high, step) in zip(jax.tree.leaves(found[4]), hyperparameter_steps(example), strict=True):
            values = [np.asarray(integral(p, y, mean, cov, kind)[0]) for p in (low, high)]
            by_difference = (values[1] - values[0]) / (2 * step)
            assert_allclose(bar.reshape(len(y), -1)[:, 0], by_difference, rtol=1e-5, atol=1e-5)


def symmetric(a):
    return 0.5 * (a + a.T) if np.ndim(a) == 2 else a


# -------------------------------------------------------------------------------------------------------- prediction
@every_example
def test_predictive_distribution(example):
    mean, cov = (a[:4] for a in rows(example, [-0.8, 1.1], [0.04, 0.6])[1:])
    p = example.likelihood.predictive(mean, cov)
    y, w = all_targets(example.likelihood)
    each = [np.repeat(y, 4), np.tile(mean, (len(y), 1)), np.tile(cov, (len(y), 1, 1))]
    density = np.exp(example.likelihood.log_density(*each)).reshape(len(y), 4)
    half = len(y) // 2
    assert_allclose(np.log(density[half]), p.log_density(y[half]), rtol=1e-9)
    assert_allclose(w @ density, 1.0, rtol=1e-7)
    assert_allclose(p.mean, w @ (density * y[:, None]), rtol=1e-6, atol=1e-8)
    spread = (np.clip(y, -1e100, 1e100)[:, None] - p.mean) ** 2
    assert_allclose(p.variance, w @ (density * spread), rtol=1e-5)
    assert_allclose(p.std, np.sqrt(p.variance))
    # cdf: the density summed up to a target where a panel ends
    discrete = example.likelihood.support == "count" or isinstance(example.likelihood, ClassLikelihood)
    for k in (45, 56, 64, 73, 80, 88):
        at = (
            from_unbounded(0.05 * np.sinh(-16 + k / 4), example.likelihood.support)[0]
            if not discrete
            else y[k % len(y)]
        )
        assert_allclose(p.cdf(at), w @ (density * (y[:, None] <= at)), atol=1e-6)
    # quantiles
    q = [0.02, 0.3, 0.5, 0.9, 0.999]
    found = p.quantile(q)
    assert found.shape == (4, 5)
    assert_allclose(p.quantile(0.3), found[:, 1])
    for level, column in zip(q, found.T, strict=True):
        reached = p.cdf(column)
        if discrete:
            assert (reached >= level - 1e-12).all()
            assert (p.cdf(column - 1e-6) < level).all()
        else:
            assert_allclose(reached, level, atol=1e-8)
    lower, upper = p.interval(0.6)
    assert (lower <= upper).all()
    # draws
    draws = p.sample(20000, random_state=0)
    assert draws.shape == (20000, 4)
    assert_allclose(draws.mean(0), p.mean, atol=5 * (p.std / np.sqrt(20000)).max())
    for level in (0.1, 0.7):
        edge = p.quantile(level)
        assert_allclose(np.mean(draws <= edge, axis=0), p.cdf(edge), atol=0.02)


@every_example
def test_a_latent_value_known_exactly(example):
    mean = np.full((2, example.L), 0.3)
    p = example.likelihood.predictive(mean, np.zeros((2, example.L, example.L)))
    assert np.isfinite(p.mean).all()
    expected = np.asarray(log_prob(example.likelihood, np.full(2, float(example.y[1])), mean))
    assert_allclose(p.log_density(example.y[1]), expected, rtol=1e-6, atol=1e-6)
    assert np.isfinite(p.quantile([0.1, 0.9])).all()


@every_example
def test_a_predictive_distribution_can_be_pickled(example):
    p = example.likelihood.predictive(np.full((2, example.L), 0.3), 0.1 * np.ones((2, 1, 1)) * np.eye(example.L))
    again = pickle.loads(pickle.dumps(p))
    assert_allclose(again.log_density(example.y[1]), p.log_density(example.y[1]))


@every_example
def test_latents_have_names_kinds_and_variances(example):
    likelihood = example.likelihood
    assert len(likelihood.latent_names) == len(set(likelihood.latent_names)) == example.L
    assert len(likelihood.latent_kinds) == example.L
    assert likelihood.latent_variance(0, 7.0) == (7.0 if likelihood.location_scale else 1.0)
    for l in range(example.L):
        assert 0.0 < likelihood.latent_variance(l, 7.0) <= 7.0


def test_names_and_kinds_of_latents():
    assert Gaussian().latent_names == Gaussian().latent_kinds == ("f",)
    noise = HeteroscedasticGaussian()
    assert noise.latent_names == noise.latent_kinds == ("mean", "log_noise")
    assert [noise.latent_variance(l, 7.0) for l in (0, 1)] == [7.0, 0.25]
    assert Softmax(3).latent_names == ("class_0", "class_1", "class_2")
    assert Softmax(3).latent_kinds == ("class", "class", "class")


@pytest.mark.parametrize("cls", LIKELIHOODS.values())
def test_declarations_are_true(cls):
    assert cls.classes == issubclass(cls, ClassLikelihood)
    assert cls.conjugate == (cls is Gaussian)
    assert cls.closed_conditionals == (cls.conditional_cdf is not Likelihood.conditional_cdf)


@pytest.mark.parametrize("example", [p for p in ALL if isinstance(p.values[0].likelihood, ClassLikelihood)])
def test_class_probabilities(example):
    likelihood = example.likelihood
    _, mean, cov = rows(example, [-1.0, 0.5], [0.5, 20.0])
    p = likelihood.class_probabilities(mean, cov)
    assert p.shape == (len(mean), len(likelihood.class_values))
    assert_allclose(p.sum(1), 1.0)
    f = np.random.default_rng(0).normal(size=(40000, example.L))
    draws = f @ np.linalg.cholesky(cov[0]).T + mean[0]
    for c, value in enumerate(likelihood.class_values):
        sampled = np.mean(np.exp(log_prob(likelihood, np.full(len(f), value), draws)))
        assert_allclose(p[0, c], sampled, atol=0.01)
        assert_allclose(p[:, c], np.exp(likelihood.log_density(np.full(len(p), value), mean, cov)), atol=1e-5)
    plug_in = likelihood.plug_in_probabilities(mean)
    assert_allclose(plug_in.sum(1), 1.0)
    assert_allclose(plug_in, likelihood.class_probabilities(mean, 1e-12 * cov), atol=1e-6)


# ------------------------------------------------------------------------------------------------------------- values
@every_example
def test_is_a_value(example):
    likelihood = example.likelihood
    assert type(likelihood).__name__ in repr(likelihood)
    for e in entries(likelihood):
        assert e.path[-1] in repr(likelihood)
    y, f, _ = rows(example, [0.3], [1.0])
    right = log_prob(likelihood, y, f)
    for again in (copy.deepcopy(likelihood), pickle.loads(pickle.dumps(likelihood))):
        assert jax.tree.structure(again) == jax.tree.structure(likelihood)
        assert_allclose(log_prob(again, y, f), right)
    before = _log_prob._cache_size()
    other = unpack(likelihood, pack(likelihood) + 0.1)
    log_prob(jax.tree.map(np.asarray, other), y, f)
    assert _log_prob._cache_size() == before


@every_example
def test_initialised_sets_every_value_inside_its_constraint(example):
    likelihood = example.likelihood
    bare = replace_values(likelihood, {e.path: None for e in entries(likelihood)})
    for y in (np.resize(np.asarray(example.y, float), 40), np.full(5, float(example.y[1]))):
        if isinstance(likelihood, Bernoulli):  # absent means absent
            assert list(entries(bare)) == []
            continue
        ready = bare.initialised(y)
        check(ready)
        assert all(np.isfinite(e.value).all() for e in entries(ready))
        assert len(pack(ready)) == len(pack(likelihood))
    for e in entries(likelihood):
        given = replace_values(bare, {e.path: e.value}).initialised(np.asarray(example.y, float))
        assert_allclose({r.path: r.value for r in entries(given)}[e.path], e.value)


@every_example
def test_targets_are_checked(example):
    likelihood = example.likelihood
    likelihood.check_targets(np.asarray(example.y, float))
    if likelihood.support == "real" and not isinstance(likelihood, ClassLikelihood):
        return
    for bad in (-3.0, 1e6) if likelihood.support != "positive" else (0.0, -1.0):
        if likelihood.support == "count" and bad > 0 and likelihood.upper == np.inf:
            bad = 1.5
        with pytest.raises(ValueError, match=rf"{type(likelihood).__name__} needs .*got .*\. "):
            likelihood.check_targets(np.array([example.y[0], bad]))
