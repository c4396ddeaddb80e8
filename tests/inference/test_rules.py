"""Laplace, EP and KL: identities that need no reference, GPML's figures, and a likelihood of one's own."""

import dataclasses
import json
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import dense_reference as dense
from errorband import GPRegressor
from errorband.inference import EP, KL, Laplace, double_loop
from errorband.kernels import SquaredExponential
from errorband.likelihoods import (
    Bernoulli,
    DoubleExponential,
    Gaussian,
    Likelihood,
    OutlierMixture,
    Poisson,
    Softmax,
    StudentT,
)
from errorband.precision import double_precision
from errorband.predictive import GaussianPredictive
from sparse_reference import fixed

GPML = json.loads((Path(__file__).parents[1] / "references" / "gpml_formula.json").read_text())


class Logit(Likelihood):
    """Somebody's own likelihood: ``log_prob`` and nothing else (the prediction here is of the latent value)."""

    n_latents: ClassVar[int] = 1
    log_concave: ClassVar[bool] = True

    def log_prob(self, y, f):
        return -jax.nn.softplus(-y * f)

    def predictive(self, mean, variance):
        return GaussianPredictive(mean[:, 0], np.sqrt(variance[:, 0, 0]))


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X, y, X_test


def model(likelihood, rule, variance=4.0, **options):
    return fixed("exact", SquaredExponential([0.8, 0.8], variance), likelihood, inference=rule, **options)


@pytest.mark.parametrize(("name", "rule", "tolerance"), [("laplace", Laplace(), 1e-6), ("EP", EP(), 1e-3)])
def test_logit_agrees_with_gpml(name, rule, tolerance, data):
    X, y, X_test = data
    expected = GPML[f"formula logit {name}"]
    fitted = model(Logit(), rule)
    labels = np.sign(y - 0.1)
    objective = fitted.objective(X, labels)
    value, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(value, -expected["nlZ"], rtol=tolerance)
    assert_allclose(gradient * [1, 1, 2], -np.array(expected["dcov"]), rtol=10 * tolerance)
    mean, std = fitted.fit(X, labels).predict(X_test, return_std=True)
    assert_allclose(mean, expected["fmu"], rtol=10 * tolerance)
    assert_allclose(std**2, expected["fs2"], rtol=10 * tolerance)


@pytest.mark.slow
def test_the_ways_of_ep_agree(data):
    X, y, _ = data
    X, labels = X[:24], np.sign(y[:24] - 0.1)
    runs = [
        model(Logit(), EP(mode=mode, tolerance=1e-9)).fit(X, labels) for mode in ("auto", "sequential", "double_loop")
    ]
    for run in runs:
        assert run.inference_status_.converged
        assert_allclose(run.log_evidence_, runs[0].log_evidence_, rtol=1e-8)
        assert_allclose(run.predict(X), runs[0].predict(X), atol=1e-6)


@pytest.mark.slow
def test_fractional_ep_lies_between_ep_and_kl(data):
    X, y, _ = data
    labels = np.sign(y - 0.1)
    values = [model(Logit(), rule).fit(X, labels).log_evidence_ for rule in (EP(), EP(power=0.5), KL())]
    assert values == sorted(values, reverse=True)


def test_bad_settings_are_refused():
    for bad, message in (
        (lambda: EP(mode="magic"), "choose one of 'auto'"),
        (lambda: EP(power=0.0), r"must lie in \(0, 1\]"),
        (lambda: EP(damping=1.0), r"must lie in \[0, 1\)"),
        (lambda: Laplace(curvature="none"), "choose 'newton' or 'positive'"),
    ):
        with pytest.raises(ValueError, match=message):
            bad()


# ------------------------------------------------------------------------------------------------------ several classes
def test_two_class_softmax_is_logit_of_the_difference(data):
    """f₂ − f₁ has twice the covariance; labels ±1 stand for classes 1 and 0."""
    X, y, _ = data
    labels = (y > 0.1).astype(float)
    two = model(Softmax(2), Laplace(), variance=2.0).objective(X, labels)
    one = model(Bernoulli("logit"), Laplace(), variance=4.0).objective(X, 2 * labels - 1)
    value, gradient = two.value_and_gradient(two.theta0)
    expected, expected_gradient = one.value_and_gradient(one.theta0)
    assert_allclose(value, expected, rtol=1e-9)
    assert_allclose(gradient, expected_gradient, rtol=1e-7)


def test_softmax_laplace_gradient_and_padding(data):
    X, y, _ = data
    labels = np.digitize(y, [-0.3, 0.4]).astype(float)
    objective = model(Softmax(3), Laplace(), mean="constant").objective(X[:27], labels[:27])  # padded to 32 rows
    theta = objective.theta0 + 0.1
    _, gradient = objective.value_and_gradient(theta)
    assert_allclose(gradient, dense.finite_differences(objective, theta, 1e-4), rtol=1e-5, atol=1e-5)


# -------------------------------------------------------------------------------------------------------------- weights
@pytest.mark.parametrize(
    ("rule", "likelihood"), [(Laplace(), Logit()), (Laplace(), Softmax(2)), (KL(tolerance=1e-9), Logit())]
)
def test_a_row_of_weight_two_counts_twice(rule, likelihood, data):
    X, y, _ = data
    X, labels = X[:24], np.sign(y[:24] - 0.1) if likelihood.n_latents == 1 else (y[:24] > 0.1).astype(float)
    twice = np.arange(24) % 3 == 0
    inference = model(likelihood, rule)
    weighted = inference.objective(X, labels)
    weighted = dataclasses.replace(weighted, data=dataclasses.replace(weighted.data, weights=1.0 + twice))
    repeated = inference.objective(np.concatenate([X, X[twice]]), np.concatenate([labels, labels[twice]]))
    ours, theirs = (o.value_and_gradient(weighted.theta0) for o in (weighted, repeated))
    assert_allclose(ours[0], theirs[0], rtol=1e-6)
    assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)


def test_ep_weights_scale_the_noise_of_a_gaussian(data):
    """p(y | f)^w is a Gaussian of variance σ²/w, up to a constant."""
    X, y, _ = data
    weights, noise = 0.5 + np.arange(len(y)) % 3, 0.0625
    powered = model(Gaussian(noise), EP(tolerance=1e-9)).objective(X, y)
    powered = dataclasses.replace(powered, data=dataclasses.replace(powered.data, weights=weights))
    exact = model(Gaussian(noise), "auto").objective(X, y)
    known = noise / weights - noise
    exact = dataclasses.replace(exact, data=dataclasses.replace(exact.data, noise_variance=known))
    constant = np.sum(-0.5 * weights * np.log(2 * np.pi * noise) + 0.5 * np.log(2 * np.pi * noise / weights))
    found, expected = (o.value_and_gradient(exact.theta0)[0] for o in (powered, exact))
    assert_allclose(found, expected + constant, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- GPML's figures
def counts(X):
    i = np.arange(1, 61)
    f = np.sin(2 * X[:, 0]) + 0.5 * np.cos(3 * X[:, 1])
    return np.round(np.exp(f + 0.5 * np.sin(17 * i)))


CASES = {
    "formula probit laplace": (Bernoulli(), Laplace()),
    "formula probit EP": (Bernoulli(), EP()),
    "formula student-t laplace": (StudentT(4.0, 0.2), Laplace()),
    "formula-outliers student-t laplace": (StudentT(4.0, 0.2), Laplace()),
    "formula laplace-noise EP": (DoubleExponential(0.3 / np.sqrt(2)), EP()),
    "formula-outliers laplace-noise EP": (DoubleExponential(0.3 / np.sqrt(2)), EP()),
    "formula poisson-exp laplace": (Poisson(), Laplace()),
    "formula poisson-exp EP": (Poisson(), EP()),
}


@pytest.mark.parametrize("case", CASES)
def test_gpml_figures(case, data):
    """Laplace to 1e-6; EP to 1e-3, since GPML stops when the evidence changes by less than 1e-4."""
    X, y, X_test = data
    likelihood, rule = CASES[case]
    expected, tolerance = GPML[case], 1e-6 if isinstance(rule, Laplace) else 1e-3
    if "outliers" in case:
        y = y + 3.0 * (np.arange(1, 61) % 10 == 0)
    targets = {"Bernoulli": np.sign(y - 0.1), "Poisson": counts(X)}.get(type(likelihood).__name__, y)
    fitted = model(likelihood, rule, variance=4.0 if isinstance(likelihood, Bernoulli) else 1.44)
    objective = fitted.objective(X, targets)
    value, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(value, -expected["nlZ"], rtol=tolerance)
    # GPML's derivatives are in log ℓ, log s (we: log s²) and, for Student's t, log(ν − 1) (we: log ν).
    assert_allclose(gradient[:3] * [1, 1, 2], -np.array(expected["dcov"]), rtol=10 * tolerance, atol=1e-2 * tolerance)
    posterior = fitted.fit(X, targets).posterior_
    mean, cov = posterior.marginals(X_test)
    assert_allclose(mean[:, 0], expected["fmu"], rtol=10 * tolerance, atol=tolerance)
    assert_allclose(cov[:, 0, 0], expected["fs2"], rtol=10 * tolerance)


# ------------------------------------------------------------------------------------------ where sweeps do not settle
def clustered_outliers(size):
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (24, 1)), axis=0)
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=24)
    y[10 : 10 + size] += 3.0
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "lengthscale", "ratio", "share"),
    [
        (8, 0.2, 100.0, 0.3),
        pytest.param(4, 0.5, 100.0, 0.1, marks=pytest.mark.slow),
        pytest.param(8, 1.0, 1000.0, 0.1, marks=pytest.mark.slow),
    ],
)
def test_the_double_loop_converges_where_damped_sweeps_do_not(size, lengthscale, ratio, share):
    X, y = clustered_outliers(size)
    kernel, likelihood = SquaredExponential(lengthscale, 1.44), OutlierMixture(0.01, ratio, share)
    regressor = lambda rule: GPRegressor(  # noqa: E731
        kernel, likelihood=likelihood, inference=rule, optimizer=None, normalize=False
    )
    damped = regressor(EP(mode="parallel", damping=0.5)).objective(X, y)
    with pytest.raises(np.linalg.LinAlgError, match="no proper posterior"):
        damped.evaluate(damped.theta0)
    fitted = regressor("ep").fit(X, y)  # falls back by itself
    assert fitted.inference_status_.converged
    # At a fixed point the evidence is stationary in the sites: its derivative is that of re-converged runs.
    objective = fitted.objective(X, y)
    theta = objective.theta0
    _, gradient = objective.value_and_gradient(theta)

    def value(move):
        fresh = fitted.objective(X, y)
        return fresh.value_and_gradient(theta + move)[0]

    step = np.zeros_like(theta)
    step[1] = 1e-3
    assert_allclose(gradient[1], (value(step) - value(-step)) / 2e-3, rtol=1e-3, atol=1e-3)


# ----------------------------------------------------------------------- where EP has no fixed point at the power asked
def mismatch(K, y, log_prob, shift, precision, power):
    """How far marginals are from tilted moments, in standard deviations: dense algebra and sums over a fine grid."""
    cov = np.linalg.solve(np.eye(len(K)) + K * precision, K)  # (K⁻¹ + Π)⁻¹, whatever the signs of Π
    mean, variance = cov @ shift, np.diag(cov)
    assert np.all(variance > 0)
    left = 1 / variance - power * precision
    assert np.all(left > 0)  # proper cavities
    centre, width = (mean / variance - power * shift) / left, 1 / np.sqrt(left)
    f = centre + width * np.linspace(-12, 12, 200_001)[:, None]
    log_w = power * log_prob(y, f) - 0.5 * ((f - centre) / width) ** 2
    w = np.exp(log_w - log_w.max(0))
    w /= w.sum(0)
    tilted = np.sum(w * f, axis=0)
    spread = np.sum(w * (f - tilted) ** 2, axis=0)
    return max(np.max(np.abs(tilted - mean) / np.sqrt(variance)), np.max(np.abs(spread - variance) / variance))


def log_mixture(y, f, noise=0.01, ratio=100.0, share=0.1):
    kinds = ((1 - share, noise), (share, ratio * noise))
    return np.log(sum(p * np.exp(-0.5 * (y - f) ** 2 / v) / np.sqrt(2 * np.pi * v) for p, v in kinds))


def log_student(y, f, df=2.0, scale=0.1):
    return -0.5 * (df + 1) * np.log1p(((y - f) / scale) ** 2 / df)


NO_FIXED_POINT = {  # outliers, length-scale, likelihood, power asked and power reached
    "mixture": (8, 2.0, OutlierMixture(0.01, 100.0, 0.1), log_mixture, 1.0, 0.5),
    "mixture, shorter scale": (8, 1.0, OutlierMixture(0.01, 100.0, 0.1), log_mixture, 1.0, 0.25),
    "student": (4, 0.5, StudentT(2.0, 0.1), log_student, 0.5, 0.25),
}


def hard(case, rule=None):
    size, lengthscale, likelihood, log_prob, asked, power = NO_FIXED_POINT[case]
    X, y = clustered_outliers(size)
    rule = EP(power=asked, tolerance=1e-8) if rule is None else rule
    kernel = SquaredExponential(lengthscale, 1.44)
    regressor = GPRegressor(kernel, likelihood=likelihood, inference=rule, optimizer=None, normalize=False)
    return regressor, X, y, log_prob, power


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 8])
def test_a_fixed_point_that_the_outer_loop_creeps_to_is_found_soon(size, monkeypatch):
    """One cavity is nearly improper there: the outer loop alone takes some 300 rounds, or gives up before."""
    rounds, original = [], double_loop._minimised
    monkeypatch.setattr(double_loop, "_minimised", lambda *args: rounds.append(1) or original(*args))
    X, y = clustered_outliers(size)
    kernel, likelihood = SquaredExponential(0.5, 1.44), StudentT(2.0, 0.05)
    objective = GPRegressor(kernel, likelihood=likelihood, inference="ep", optimizer=None, normalize=False).objective(
        X, y
    )
    found = objective.evaluate(objective.theta0)
    assert found.status.converged
    assert not found.status.fell_back
    assert len(rounds) < 40
    state = found.warm[1]
    shift, precision = (np.asarray(a)[: len(y)].ravel() for a in (state.shift, state.precision))
    assert mismatch(np.asarray(kernel(X)), y, lambda y, f: log_student(y, f, 2.0, 0.05), shift, precision, 1.0) < 1e-5


@pytest.mark.parametrize(
    "case", [case if case == "mixture" else pytest.param(case, marks=pytest.mark.slow) for case in NO_FIXED_POINT]
)
def test_where_there_is_no_fixed_point_ep_reaches_one_with_less_power(case, monkeypatch):
    monkeypatch.setattr("errorband.inference.double_loop.MAX_OUTER", 2)  # however the double loop ends
    regressor, X, y, log_prob, power = hard(case)
    objective = regressor.objective(X, y)
    found = objective.evaluate(objective.theta0)
    assert f"reached no fixed point; EP(power={power}, tolerance=1e-08) did" in found.status.message
    gradient, (rule, state) = found.gradient, found.warm
    assert rule == EP(power=power, tolerance=1e-8)  # and so the rest of a search
    with double_precision():
        K = np.asarray(SquaredExponential(regressor.kernel.lengthscale, 1.44)(X))
        shift, precision = (np.asarray(a)[: len(y)].ravel() for a in (state.shift, state.precision))
    assert mismatch(K, y, log_prob, shift, precision, power) < 1e-6
    along = dense.random_directions(objective.theta0, 1)  # each evaluation falls back again
    numeric = dense.central_differences(objective, objective.theta0, 1e-4 * along) / 1e-4
    assert_allclose(along @ gradient, numeric, rtol=1e-4, atol=1e-4)


def test_with_many_rows_less_power_comes_before_the_double_loop(monkeypatch):
    monkeypatch.setattr("errorband.inference.ep.LOOPED", 1)
    called = []
    monkeypatch.setattr("errorband.inference.double_loop.double_loop", lambda *_: called.append(1))
    regressor, X, y, *_ = hard("mixture", "ep")
    with pytest.warns(ConvergenceWarning, match=r"EP\(power=0\.5\) did"):
        regressor.fit(X, y)
    assert regressor.inference_ == EP(power=0.5)
    assert not called
    asked = regressor.set_params(inference=EP("double_loop"))
    with pytest.raises(AttributeError):  # what stands in for it returns nothing
        asked.fit(X, y)
    assert called


def test_the_last_evaluation_falls_back_though_later_ones_of_a_search_do_not():
    regressor, X, y, _, _ = hard("mixture")
    objective = regressor.objective(X, y)
    easy = objective.theta0 + np.log([0.25, 1.0, 20.0, 1.0, 1.0])  # shorter length-scale, more noise
    warm = objective.evaluate(easy).warm
    assert warm.rule == EP(tolerance=1e-8)
    with pytest.raises(np.linalg.LinAlgError, match="smaller powers"):
        objective.evaluate(objective.theta0, warm)
    _, found = objective.conclude(objective.theta0, warm)
    assert "reached no fixed point" in found.status.message
    assert found.status.converged
    assert found.rule == EP(power=0.5, tolerance=1e-8)


def test_a_fit_with_less_power_says_so():
    regressor, X, y, _, _ = hard("mixture", "ep")
    with pytest.warns(ConvergenceWarning, match="reached no fixed point"):
        regressor.fit(X, y)
    assert regressor.inference_ == EP(power=0.5)
    assert regressor.inference_status_.converged
    assert "EP(power=0.5) did" in regressor.inference_status_.message
