"""Relevance vector machines: identities, the two algorithms, healed bands, classes, files, refusals."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import errorband
from errorband import GPRegressor, RVMClassifier, RVMRegressor
from errorband.features import KernelColumns
from errorband.kernels import Kernel, SquaredExponential
from errorband.likelihoods import Gaussian, Poisson
from errorband.parameters import Parameter
from errorband.training.columns import Columns
from errorband.training.sequential import SequentialBayes
from errorband.training.settled import ASKING, FIRST, settled
from errorband.training.thinned import thinned
from errorband.training.together import Point, together

X = np.linspace(-10, 10, 100)[:, None]
TRUTH = np.sinc(X[:, 0] / np.pi)
Y = TRUTH + 0.1 * np.random.default_rng(0).normal(size=100)
KERNEL = SquaredExponential(0.25, 1.0)
GIVEN = {"likelihood": Gaussian(0.06), "optimizer": None}


@pytest.fixture(scope="module")
def model():
    return RVMRegressor().fit(X, Y)


# ------------------------------------------------------------------------------------------------------ identities
def test_with_fixed_precisions_it_is_a_gaussian_process():
    centres, alpha, noise = X[::9], 0.5 + np.arange(12.0), 0.04
    basis = KernelColumns(centres, alpha)
    model = GPRegressor(
        SquaredExponential(2.0, 1.0), approximation=basis, likelihood=Gaussian(noise), optimizer=None, normalize=False
    ).fit(X, Y)
    K = SquaredExponential(2.0, 1.0)(X, centres)
    covariance = K @ np.diag(1 / alpha) @ K.T
    A = covariance + noise * np.eye(100)
    assert_allclose(model.log_evidence_, multivariate_normal(cov=A).logpdf(Y), rtol=1e-10)
    mean, std = model.predict(X, return_std=True, latent=True)
    assert_allclose(mean, covariance @ np.linalg.solve(A, Y), atol=1e-8)
    assert_allclose(std**2, np.diag(covariance - covariance @ np.linalg.solve(A, covariance)), atol=1e-8)


def test_gradient_of_the_evidence():
    basis = KernelColumns(X[::9], 0.5 + np.arange(12.0))
    model = GPRegressor(SquaredExponential(2.0, 1.0), approximation=basis, likelihood=Gaussian(0.04), normalize=False)
    objective = model.objective(X, Y)
    theta, step = objective.theta0, 1e-5
    _, gradient = objective.value_and_gradient(theta)
    assert len(theta) == 12 + 3  # precisions, length-scale, variance, noise
    for i in range(len(theta)):
        ahead, behind = (objective.value_and_gradient(theta + s * step * np.eye(len(theta))[i])[0] for s in (1, -1))
        assert_allclose(gradient[i], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)


def random_machine(seed, n=25, m=8):
    rng = np.random.default_rng(seed)
    basis, y, noise = rng.normal(size=(n, m)), rng.normal(size=n), rng.uniform(0.1, 2.0, n)
    alpha = np.where(rng.random(m) < 0.5, np.inf, rng.gamma(2.0, size=m))
    return SequentialBayes(Columns(basis, 1 / noise, y / noise), alpha), y, noise


def dense_evidence(machine, y, noise):
    inside = np.isfinite(machine.precision)
    basis = machine.columns.basis[:, inside] / np.sqrt(machine.precision[inside])
    return multivariate_normal(cov=np.diag(noise) + basis @ basis.T).logpdf(y)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_every_change_raises_the_evidence_by_what_was_said(seed):
    machine, y, noise = random_machine(seed)
    constant = dense_evidence(machine, y, noise) - machine.log_evidence()
    for _ in range(20):
        gain, best = machine.gains()
        m = int(np.argmax(gain))
        if gain[m] < 1e-9:
            break
        before = dense_evidence(machine, y, noise)
        machine.set_precision(m, best[m])
        assert_allclose(dense_evidence(machine, y, noise) - before, gain[m], rtol=1e-6, atol=1e-9)
        assert_allclose(machine.log_evidence() + constant, dense_evidence(machine, y, noise), atol=1e-8)
    afresh = SequentialBayes(machine.columns, machine.precision)
    order = np.argsort(machine.active)
    assert_allclose(machine.mu[order], afresh.mu, atol=1e-8)
    assert_allclose(machine.S, afresh.S, atol=1e-7)
    assert_allclose(machine.Q, afresh.Q, atol=1e-7)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_at_the_end_no_single_change_helps(seed):
    machine, y, noise = random_machine(seed)
    assert machine.run(10_000, tolerance=1e-10) < 10_000
    best = dense_evidence(machine, y, noise)
    for m in range(8):
        held = machine.precision[m]
        for alpha in (np.inf, 0.5 * held, 2 * held, 1.0) if np.isfinite(held) else (0.1, 1.0, 10.0):
            machine.precision[m] = alpha
            assert dense_evidence(machine, y, noise) <= best + 1e-6
        machine.precision[m] = held


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_an_exchange_adds_what_was_said(seed):
    machine, y, noise = random_machine(seed)
    gain, best = machine.exchanges()
    assume(gain.size > 0 and np.max(gain) > -np.inf)
    m, k = np.unravel_index(np.argmax(gain), gain.shape)
    before = dense_evidence(machine, y, noise)
    machine.precision[machine.active[k]] = np.inf
    machine.precision[m] = best[m, k]
    assert_allclose(dense_evidence(machine, y, noise) - before, gain[m, k], rtol=1e-6, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_slopes_and_curvature_of_the_evidence(seed):
    rng = np.random.default_rng(seed)
    basis, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    given = basis.T @ basis, basis.T @ y, y @ y, 20.0
    theta, step = rng.normal(size=4), 1e-4
    here = Point.at(theta, *given)
    for i in range(4):
        ahead, behind = (Point.at(theta + s * step * np.eye(4)[i], *given) for s in (1, -1))
        assert_allclose(here.slope[i], (ahead.value - behind.value) / (2 * step), rtol=1e-5, atol=1e-6)
        assert_allclose(here.curvature[i], (ahead.slope - behind.slope) / (2 * step), rtol=1e-5, atol=1e-6)


def test_candidates_that_were_not_looked_at_first_are_found():
    """With more candidates than are looked at together, at the end none of all would bring anything worth asking."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 3 * FIRST)
    basis = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.3**2)
    y = np.sin(4 * x) + np.exp(-50 * (x - 1) ** 2) + 0.1 * rng.normal(size=len(x))
    columns, alpha, value, slope = settled(
        Columns(basis, np.full(len(x), 10.0), 10.0 * y), np.full(len(x), np.inf), True
    )
    assert slope < 1e-6
    machine = SequentialBayes(columns, alpha)
    assert_allclose(machine.log_evidence(), value, rtol=1e-8)
    assert_allclose(1 / columns.weights[0], 0.01, rtol=0.2)
    outside = ~np.isfinite(alpha)
    assert np.max(machine.gains()[0][outside]) < 1.5 * ASKING
    few = columns.among(np.arange(0, len(x), FIRST))
    assert_allclose(few.factor * few.G, columns.products(np.arange(0, len(x), FIRST))[:, ::FIRST], rtol=1e-10)


def test_where_many_are_needed_all_candidates_are_looked_at():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, FIRST + 100)
    basis = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.004**2)
    y = np.sin(300 * x) + 0.05 * rng.normal(size=len(x))
    columns, alpha, value, slope = settled(
        Columns(basis, np.full(len(x), 10.0), 10.0 * y), np.full(len(x), np.inf), True
    )
    assert slope < 1e-6
    assert np.sum(np.isfinite(alpha)) > 0.25 * FIRST
    machine = SequentialBayes(columns, alpha)
    assert_allclose(machine.log_evidence(), value, rtol=1e-8)
    assert np.max(machine.gains()[0]) < 1.5 * ASKING


def test_the_order_of_rows_and_candidates_does_not_matter():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, FIRST + 50)
    y = np.sin(20 * x) + 0.05 * rng.normal(size=len(x))

    def end(x, y):
        basis = np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.02**2)
        found = settled(Columns(basis, np.full(len(x), 10.0), 10.0 * y), np.full(len(x), np.inf), True)
        return found.log_evidence, np.sort(x[np.isfinite(found.precision)])

    order = rng.permutation(len(x))
    for one, other in zip(end(x, y), end(x[order], y[order]), strict=True):
        assert_allclose(one, other, rtol=1e-6)


def test_too_many_are_thinned_to_a_fixed_point():
    """α = (1 − αΣ)/μ² and σ² = ‖residuals‖²/(N − Σ(1 − αΣ)), with a model's own dense algebra."""
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(40, 8))
    y = basis[:, :3] @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=40)
    columns = Columns(basis, np.ones(40), y).among(np.arange(8))
    alpha = np.full(8, 1e-3)
    for _ in range(60):
        columns, alpha = thinned(columns, alpha, True, 1.0)
    inside, noise = np.isfinite(alpha), 1.0 / columns.sites.scale
    assert 3 <= np.sum(inside) < 8
    Sigma = np.linalg.inv(basis[:, inside].T @ basis[:, inside] / noise + np.diag(alpha[inside]))
    mu, known = Sigma @ basis[:, inside].T @ y / noise, 1.0 - alpha[inside] * np.diag(Sigma)
    assert_allclose(alpha[inside], known / mu**2, rtol=1e-6)
    assert_allclose(noise, np.sum((y - basis[:, inside] @ mu) ** 2) / (40 - np.sum(known)), rtol=1e-6)
    quiet, more = thinned(columns, alpha, True, 2.0)
    assert quiet.sites.scale > 1.5 * columns.sites.scale
    assert np.sum(np.isfinite(more)) <= np.sum(inside)


def test_of_two_that_are_alike_one_is_dropped():
    x = np.linspace(0, 1, 30)
    basis = np.column_stack([np.sin(6 * x), np.sin(6 * x) + 1e-3 * x, np.cos(6 * x)])
    y = basis @ [0.5, 0.5, 1.0]
    machine = SequentialBayes(Columns(basis, np.full(30, 100.0), 100.0 * y), np.array([2.0, 2.0, 1.0]))
    before = machine.log_evidence()
    machine.drop(0.5)
    assert list(np.isfinite(machine.precision)) in ([True, False, True], [False, True, True])
    assert before - 0.5 <= machine.log_evidence()


def test_a_candidate_that_vanishes_at_every_site_leaves_the_model():
    """As one does that was in it when the sites were others: those of rows that it reaches say nothing any more."""
    x = np.linspace(0, 1, 20)
    basis, reached = np.column_stack([np.sin(6 * x), x > 0.5]), x < 0.5
    _, alpha, value, _ = settled(Columns(basis, 25.0 * reached, 25.0 * reached * basis[:, 0]), np.ones(2), False)
    assert np.isfinite(value)
    assert list(np.isfinite(alpha)) == [True, False]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_all_precisions_and_the_noise_together(seed):
    """The evidence that is said is the dense one, and no precision and no other noise would raise it."""
    rng = np.random.default_rng(seed)
    basis, noise = rng.normal(size=(25, 4)), 0.5
    y = basis @ rng.normal(size=4) + rng.normal(size=25)
    columns = Columns(basis, np.full(25, 1 / noise), y / noise)
    columns, alpha, value, _ = together(columns, np.full(4, 2.0), learns_noise=True)
    for noises in (1 / columns.weights, 0.9 / columns.weights, 1.1 / columns.weights):
        machine = SequentialBayes(Columns(basis, 1 / noises, y / noises), alpha)
        evidence = dense_evidence(machine, y, noises)
        if noises[0] == 1 / columns.weights[0]:
            best = evidence
            assert_allclose(value - 12.5 * np.log(2 * np.pi), best, rtol=1e-8)
        assert evidence <= best + 1e-6
    machine = SequentialBayes(columns, alpha)
    for m in np.flatnonzero(np.isfinite(alpha)):
        for factor in (0.9, 1.1):
            machine.precision[m] = factor * alpha[m]
            assert dense_evidence(machine, y, 1 / columns.weights) <= best + 1e-6
        machine.precision[m] = alpha[m]


def test_both_algorithms_reach_the_same_optimum():
    """The only one, as the basis functions hardly overlap."""
    x, y, kernel = X[::4], Y[::4], SquaredExponential(0.1, 1.0)
    one = RVMRegressor(kernel, **GIVEN).fit(x, y)
    all_ = RVMRegressor(kernel, algorithm="batch", **GIVEN).fit(x, y)
    assert_allclose(one.log_evidence_, all_.log_evidence_, atol=1e-3)
    assert_allclose(np.sort(one.relevance_vectors_, axis=0), np.sort(all_.relevance_vectors_, axis=0))
    assert_allclose(one.predict(X), all_.predict(X), atol=1e-2)


def test_where_neighbours_do_as_well_each_ends_where_no_single_change_helps():
    x, y = X[::4] / np.std(X[::4]), (Y[::4] - np.mean(Y[::4])) / np.std(Y[::4])
    options = GIVEN | {"normalize": False}
    ends = [RVMRegressor(KERNEL, algorithm=a, **options).fit(x, y) for a in ("sequential", "batch")]
    assert_allclose(ends[0].log_evidence_, ends[1].log_evidence_, atol=0.1)
    basis = KERNEL(x)
    for model in ends:
        alpha = np.full(25, np.inf)
        alpha[[np.argmin(np.abs(x[:, 0] - v)) for v in model.relevance_vectors_[:, 0]]] = model.precision_
        gain, _ = SequentialBayes(Columns(basis, np.full(25, 1 / 0.06), y / 0.06), alpha).gains()
        assert np.max(gain) < 1e-4


# ------------------------------------------------------------------------------------------------------ what it finds
def test_few_vectors_follow_the_function(model):
    assert 3 <= model.n_relevance_vectors_ <= 12
    assert np.sqrt(np.mean((model.predict(X) - TRUTH) ** 2)) < 0.06
    assert_allclose(float(model.likelihood_.noise_variance), 0.01, rtol=0.4)
    rows = {tuple(x) for x in np.round(X, 8)}
    assert {tuple(x) for x in np.round(model.relevance_vectors_, 8)} <= rows
    assert model.precision_.shape == (model.n_relevance_vectors_,)


def test_the_kernel_width_is_learned(model):
    for factor in (0.8, 1.25):
        other = model.kernel_.set_params(lengthscale=factor * np.asarray(model.kernel_.lengthscale))
        held = RVMRegressor(other, likelihood=model.likelihood_, optimizer=None).fit(X, Y)
        assert held.log_evidence_ < model.log_evidence_


def test_bands_close_far_away_unless_healed(model):
    far, noise = [[60.0]], float(model.likelihood_.noise_variance)
    assert_allclose(model.predict(far, return_std=True)[1] ** 2, noise, rtol=1e-6)
    for healing in ("augmented", "whitened"):
        healed = RVMRegressor(healing=healing).fit(X, Y)
        near, std = healed.predict([[0.0], *far], return_std=True)[1]
        assert std > 3 * near, healing
        assert np.sqrt(np.mean((healed.predict(X) - TRUTH) ** 2)) < 0.06, healing
        _, cov = healed.predict(X[:30], return_cov=True)
        assert_allclose(np.sqrt(np.diag(cov)), healed.predict(X[:30], return_std=True)[1], rtol=1e-6)


def test_augmented_predictions_are_those_of_the_larger_model():
    model = RVMRegressor(KERNEL, healing="augmented", normalize=False, **GIVEN).fit(X / 5, Y)
    centres, alpha, noise = model.relevance_vectors_, model.precision_, 0.06
    for x in (0.33, 4.0):
        Z = np.append(centres, [[x]], axis=0)
        S = np.diag(1 / np.append(alpha, model.posterior_.added_precision))
        K, k = KERNEL(X / 5, Z), KERNEL([[x]], Z)[0]
        A = K @ S @ K.T + noise * np.eye(100)
        mean, std = model.predict([[x]], return_std=True, latent=True)
        assert_allclose(mean[0], k @ S @ K.T @ np.linalg.solve(A, Y), atol=1e-7)
        assert_allclose(std[0] ** 2, k @ S @ k - k @ S @ K.T @ np.linalg.solve(A, K @ S @ k), atol=1e-7)


class Tanh(Kernel):
    """A sigmoid kernel, which is not positive definite."""

    def evaluate(self, X, Z):
        import jax.numpy as jnp

        return jnp.tanh(X @ Z.T - 1.0)


def test_the_kernel_need_not_be_positive_definite():
    assert np.linalg.eigvalsh(Tanh()(X / 5))[0] < -0.01
    model = RVMRegressor(Tanh()).fit(X, np.tanh(X[:, 0] / 5) + 0.05 * np.random.default_rng(1).normal(size=100))
    assert np.sqrt(np.mean((model.predict(X) - np.tanh(X[:, 0] / 5)) ** 2)) < 0.05


def test_other_likelihoods():
    rate = np.exp(1 + np.sin(X[:, 0] / 2))
    model = RVMRegressor(likelihood=Poisson(), inference="laplace").fit(X, np.random.default_rng(0).poisson(rate))
    assert model.n_relevance_vectors_ < 15
    assert np.mean(np.abs(model.predict(X) / rate - 1)) < 0.25


# ----------------------------------------------------------------------------------------------------------- classes
def moons(n=90):
    rng = np.random.default_rng(0)
    angle, side = rng.uniform(0, np.pi, n), np.arange(n) % 2
    points = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(side, -1, 1)[:, None]
    return points + np.stack([side, 0.4 * side], 1) + 0.15 * rng.normal(size=(n, 2)), side


def test_two_classes():
    points, side = moons()
    model = RVMClassifier().fit(points, np.where(side, "right", "left"))
    assert model.score(points, np.where(side, "right", "left")) > 0.95
    assert model.n_relevance_vectors_ < 15
    assert_allclose(model.predict_proba(points).sum(axis=1), 1.0)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", pytest.param("joint", marks=pytest.mark.slow)])
def test_three_classes(multi_class):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    points = np.array([[0, 0], [2.5, 0], [0, 2.5]])[y] + 0.5 * rng.normal(size=(60, 2))
    model = RVMClassifier(multi_class=multi_class, optimizer=None).fit(points, y)
    assert model.score(points, y) > 0.9
    assert model.n_relevance_vectors_ < 60
    assert_allclose(model.predict_proba(points).sum(axis=1), 1.0)


# -------------------------------------------------------------------------------------------------- files, refusals
@pytest.mark.parametrize("healing", [None, "augmented", "whitened"])
def test_files(healing, tmp_path):
    model = RVMRegressor(KERNEL, healing=healing, **GIVEN).fit(X, Y)
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    new = np.linspace(-30, 30, 11)[:, None]
    for one, other in zip(model.predict(new, return_std=True), again.predict(new, return_std=True), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(model.relevance_vectors_, again.relevance_vectors_)


def test_weights_are_repeated_rows():
    """Noise that is learned, candidates and scaling are those of the rows repeated."""
    x, y, times = X[::4], Y[::4], np.arange(25) % 3
    kernel = SquaredExponential(Parameter(1.5, fixed=True), 1.0)
    one = RVMRegressor(kernel).fit(x, y, sample_weight=times)
    other = RVMRegressor(kernel).fit(np.repeat(x, times, axis=0), np.repeat(y, times))
    assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-6)
    assert_allclose(one.predict(X, return_std=True), other.predict(X, return_std=True), atol=1e-4)


def test_same_seed_same_result():
    few = [RVMRegressor(KERNEL, n_candidates=40, random_state=1, **GIVEN).fit(X, Y).predict(X) for _ in range(2)]
    assert np.array_equal(*few)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"algorithm": "greedy"}, "choose 'sequential' or 'batch'"),
        ({"healing": "more"}, "choose None, 'augmented' or 'whitened'"),
        ({"hyperprior": (1e-4, 1e-4)}, "is for algorithm='batch'"),
        ({"hyperprior": 3}, "give two numbers"),
        ({"n_candidates": 0}, "give a whole number, one or more"),
    ],
)
def test_refusals(settings, told):
    with pytest.raises(ValueError, match=told):
        RVMRegressor(**settings).fit(X, Y)


def test_constant_targets_need_no_vectors():
    model = RVMRegressor(optimizer=None).fit(X, np.full(100, 3.0))
    assert model.n_relevance_vectors_ == 0
    assert_allclose(model.predict(X), 3.0)
