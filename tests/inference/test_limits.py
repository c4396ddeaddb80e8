"""Limits and truths that no rule may contradict: Student-t with many degrees of freedom, sampled evidence, classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp

import dense_reference as dense
import sparse_reference
from errorband import GPClassifier, GPRegressor
from errorband.approximations import DTC
from errorband.inference import EP, KL, Laplace
from errorband.kernels import SquaredExponential
from errorband.likelihoods import (
    Bernoulli,
    CompoundOutliers,
    Gaussian,
    Huber,
    OutlierMixture,
    Softmax,
    StudentT,
    Twinned,
)
from errorband.precision import double_precision

KERNEL = SquaredExponential([0.8, 0.8], 1.44)


@pytest.fixture(scope="module")
def data():
    return dense.formula_data()


def fixed(likelihood, rule):
    return sparse_reference.fixed("exact", KERNEL, likelihood, inference=rule)


def sampled_evidence(K, mean, cov, log_likelihood, n_samples=100_000):
    """Log evidence by importance sampling from a Gaussian a little wider than the given one, and its standard error."""
    white = np.random.default_rng(0).standard_normal((n_samples, len(mean)))
    root = np.linalg.cholesky(1.2 * cov)
    f = mean + white @ root.T
    log_q = -0.5 * np.sum(white**2, 1) - np.log(np.diag(root)).sum()
    log_p = -0.5 * np.sum(f * np.linalg.solve(K, f.T).T, 1) - 0.5 * np.linalg.slogdet(K)[1]
    log_w = log_p - log_q + log_likelihood(f)
    w = np.exp(log_w - log_w.max())
    return logsumexp(log_w) - np.log(n_samples), np.std(w) / np.mean(w) / np.sqrt(n_samples)


@pytest.mark.parametrize("rule", [Laplace(), EP(tolerance=1e-9), KL(tolerance=1e-9)], ids=["Laplace", "EP", "KL"])
def test_student_with_many_degrees_of_freedom_tends_to_gaussian(rule, data):
    X, y, X_test = data
    exact = fixed(Gaussian(0.0625), "auto").fit(X, y)
    few, many = (fixed(StudentT(df, 0.25), rule).fit(X, y) for df in (1e3, 1e5))
    gaps = [abs(m.log_evidence_ - exact.log_evidence_) for m in (few, many)]
    assert 50 < gaps[0] / gaps[1] < 200  # of the order 1/ν
    assert_allclose(many.log_evidence_, exact.log_evidence_, rtol=1e-4)
    assert_allclose(many.predict(X_test), exact.predict(X_test), atol=1e-4)


@pytest.mark.parametrize("rule", ["ep", "kl"])
def test_rows_of_which_features_say_nothing(rule):
    """Under DTC their latent value is zero for sure, and the likelihood of a row is its own."""
    far, y = 1e4 * np.arange(6.0)[:, None], np.array([0.3, -1.0, 0.5, 2.0, -0.2, 1.1])
    model = GPRegressor(
        SquaredExponential(0.5, 2.0),
        likelihood=Huber(0.4, 50.0),  # normal noise, but for its tails
        approximation=DTC(inducing_inputs=far[:2]),
        inference=rule,
        optimizer=None,
        normalize=False,
    ).fit(far, y)
    variance = np.array([2.0, 2.0, 0, 0, 0, 0]) + 0.4**2
    assert_allclose(model.log_evidence_, np.sum(stats.norm.logpdf(y, 0, np.sqrt(variance))), rtol=1e-6)


def test_the_variational_bound_is_below_the_sampled_evidence_of_a_student(data):
    X, y, _ = data
    X, y = X[:8], y[:8] + 2.0 * (np.arange(8) == 3)  # one outlier
    likelihood = StudentT(4.0, 0.2)
    bound = fixed(likelihood, KL(tolerance=1e-9)).fit(X, y)
    mean, cov = bound.predict(X, return_cov=True, latent=True)

    def log_likelihood(f):
        return np.sum(np.asarray(likelihood.log_prob(y, f)), axis=1)

    with double_precision():
        truth, error = sampled_evidence(KERNEL(X), mean, cov, log_likelihood)
    assert error < 0.02
    assert bound.log_evidence_ < truth + 3 * error
    assert bound.log_evidence_ > truth - 1.0


def test_the_variational_bound_is_below_the_sampled_evidence_of_classes_and_ep_is_close(data):
    X, y, _ = data
    X, labels = X[:8], np.sign(y[:8] - 0.1)
    ep, bound = (fixed(Bernoulli("logit"), rule(tolerance=1e-9)).fit(X, labels) for rule in (EP, KL))
    mean, cov = ep.predict(X, return_cov=True, latent=True)
    truth, error = sampled_evidence(KERNEL(X), mean, cov, lambda f: -np.logaddexp(0, -labels * f).sum(1))
    assert error < 0.003
    assert bound.log_evidence_ < truth < bound.log_evidence_ + 0.1
    assert_allclose(ep.log_evidence_, truth, atol=0.01)


@pytest.mark.slow
def test_ep_of_four_classes(data):
    """Against sampling on few rows, against Laplace on more."""
    X, y, X_test = data
    labels = np.digitize(y, [-0.6, 0.0, 0.6]).astype(float)
    few = fixed(Softmax(4), EP(tolerance=1e-8))
    objective = few.objective(X[:4], labels[:4])
    found = objective.evaluate(objective.theta0)
    sites = found.warm.state
    with double_precision():
        prior = objective.model_at(objective.theta0).prior(objective.data.X)
        K = np.asarray(prior.structure.dense())
        site_precision = np.zeros((16, 16))
        for n in range(4):
            site_precision[4 * n : 4 * n + 4, 4 * n : 4 * n + 4] = sites.precision[n]
        cov = np.linalg.inv(np.linalg.inv(K) + site_precision)
        mean = cov @ np.asarray(sites.shift)[:4].ravel()
    rows = np.arange(4)

    def log_likelihood(f):
        f = f.reshape(-1, 4, 4)
        return np.sum(f[:, rows, labels[:4].astype(int)] - logsumexp(f, axis=2), axis=1)

    truth, error = sampled_evidence(K, mean, cov, log_likelihood)
    assert error < 0.005
    assert_allclose(found.value, truth, atol=0.02)
    ep, laplace = (
        GPClassifier(KERNEL, inference=rule, optimizer=None, normalize=False).fit(X[:16], labels[:16])
        for rule in (EP(tolerance=1e-8), Laplace())  # EP as compiled above: four rows are padded to sixteen
    )
    assert ep.inference_status_.converged
    assert_allclose(ep.predict_proba(X_test), laplace.predict_proba(X_test), atol=0.1)


@pytest.mark.slow
def test_outliers_visited_first_mislead_sequential_ep_and_not_the_double_loop():
    """Three neighbouring outliers: met before all other rows they are believed, and one sweep after another is lost.

    The order of visits is a permutation drawn from the seed; rows are arranged so that it meets the outliers first, or
    last.
    """
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (24, 1)), axis=0)
    y = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=24)
    outliers, others = np.arange(10, 13), np.delete(np.arange(24), np.arange(10, 13))
    y[outliers] += 3.0
    visits = np.random.default_rng(0).permutation(24)

    def fitted(rule, order):
        rows = np.empty(24, int)
        rows[visits] = order
        kernel, likelihood = SquaredExponential(1.0, 1.0), OutlierMixture(0.01, 100.0, 0.1)
        model = GPRegressor(kernel, likelihood=likelihood, inference=rule, optimizer=None, normalize=False)
        return model.fit(X[rows], y[rows])

    first, last = np.concatenate([outliers, others]), np.concatenate([others, outliers])
    sequential = EP(mode="sequential", max_sweeps=100)
    with pytest.raises(np.linalg.LinAlgError, match="mode='auto'"):
        fitted(sequential, first)
    settled = fitted(sequential, last)
    assert settled.inference_status_.converged
    for order in (first, last):
        found = fitted(EP(mode="double_loop"), order)
        assert found.inference_status_.converged
        assert_allclose(found.log_evidence_, settled.log_evidence_, rtol=1e-6)
        assert_allclose(found.predict(X), settled.predict(X), atol=1e-5)


@pytest.mark.parametrize("likelihood", [CompoundOutliers, Twinned])
def test_an_evidence_that_is_round_off_is_none(likelihood):
    """Of rows far apart, none an outlier, it is that of independent normal targets; with hardly any noise, nothing."""
    X, y, warm, known = np.array([[0.0], [1.0], [2.0]]), np.array([0.3, 1.0, 2.0]), None, 0
    for noise in 10.0 ** np.arange(-2.0, -24.0, -2.0):
        kernel = {"mean": SquaredExponential(0.01, 1.0), "gate": SquaredExponential(1.0, 0.01)}
        given = likelihood(noise_variance=noise, bias=9.0)
        objective = GPRegressor(kernel, likelihood=given, inference=EP("parallel"), normalize=False).objective(X, y)
        try:
            point = objective.evaluate(objective.theta0, warm)
        except np.linalg.LinAlgError:
            continue
        warm, known = point.warm, known + 1
        assert point.status.converged
        assert point.value == pytest.approx(np.sum(stats.norm.logpdf(y, scale=np.sqrt(1 + noise))), abs=0.1)
    assert known >= 6
