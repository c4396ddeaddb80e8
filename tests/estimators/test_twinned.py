"""Twinned Gaussian processes: outliers that come in bursts, one by one, or not at all."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, ndtr
from scipy.stats import multivariate_normal

import dense_reference as dense
import errorband
from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import FITC, VFE
from errorband.features import MultiScale, SparseSpectrum
from errorband.inference import EP, KL, Laplace, sites
from errorband.kernels import Constant, SquaredExponential, White
from errorband.likelihoods import Ignorance, OutlierMixture, StudentT, Twinned, TwinnedLabels, TwoExperts
from errorband.parameters import Change, Parameter
from errorband.training import Settings, gaussian_first, race_first
from errorband.training.strategy import Maximise, with_enough_noise
from errorband.training.tie import Tie
from errorband.training.trimmed import trimmed

BURST, SINGLE = np.arange(24, 32), np.arange(4, 60, 9)
KERNEL = {"mean": SquaredExponential(0.8, 1.2), "gate": SquaredExponential(0.6, 1.5)}
LIKELIHOOD = Twinned(0.05, 60.0, 1.1)
FIXED = {"likelihood": LIKELIHOOD, "optimizer": None, "normalize": False}
TIGHT = EP(mode="parallel", tolerance=1e-11, max_sweeps=500)


def data(wrong, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, (60, 1)), axis=0)
    f = np.sin(2 * X[:, 0])
    y = f + 0.1 * rng.normal(size=60)
    if wrong is BURST:
        y[wrong] = 3 + 0.3 * rng.normal(size=len(wrong))
    elif wrong is not None:
        y[wrong] += rng.choice([-4.0, 4.0], len(wrong))
    return X, y, f


@pytest.fixture(scope="module")
def burst():
    X, y, _ = data(BURST)
    return GPRegressor(likelihood=Twinned()).fit(X, y)


@pytest.mark.parametrize("wrong", [BURST, SINGLE])
def test_it_just_works(wrong, burst):
    X, y, f = data(wrong)
    model = burst if wrong is BURST else GPRegressor(likelihood=Twinned()).fit(X, y)
    assert model.inference_status_.converged
    assert np.sqrt(np.mean((model.predict(X, latent="mean") - f) ** 2)) < 0.1
    p = model.outlier_probability_
    assert np.min(p[wrong]) > 0.9
    assert np.mean(np.delete(p, wrong)) < 0.05


def test_starts_race_on_some_of_the_rows(monkeypatch):
    X, y, f = data(SINGLE)
    monkeypatch.setattr(race_first, "ROWS", len(y) // 2)
    model = GPRegressor(likelihood=OutlierMixture(), random_state=0).fit(X, y)
    assert len(model.fit_result_.starts) == 1  # on all rows
    assert model.fit_result_.evaluations > 30  # those of the race count
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.1


def test_what_has_raced_is_not_started_anew(burst, monkeypatch):
    """As ``kernel="auto"`` does for all kernels after the first, and on all rows."""
    X, y, _ = data(BURST)
    searched = []
    search = gaussian_first.gaussian_search
    monkeypatch.setattr(gaussian_first, "gaussian_search", lambda *given: searched.append(1) or search(*given))
    again = GPRegressor(likelihood=Twinned(), optimizer=LBFGS(max_iter=2))
    again._fitted_before = [burst]
    assert len(again.fit(X, y).fit_result_.starts) == 1
    assert not searched


@pytest.mark.slow
@pytest.mark.parametrize(
    ("likelihood", "seed"), [(Twinned(), [2, 1]), (Twinned(), [2, 2]), (OutlierMixture(), [1, 0]), (StudentT(), [1, 0])]
)
def test_ten_inputs_of_which_five_matter(likelihood, seed):
    """Friedman's function with ten wrong targets of 100, two clusters of them or scattered: sets that were traps."""
    rng = np.random.default_rng(seed)
    X, X_new = rng.uniform(size=(90, 10)), rng.uniform(size=(10_000, 10))
    y = friedman(X) + rng.normal(size=90)
    if seed[0] == 2:
        centres = np.repeat(rng.uniform(size=(2, 10)), 5, axis=0)
        wrong, y_wrong = centres + np.sqrt(1e-3) * rng.normal(size=(10, 10)), rng.normal(0, 1, 10)
    else:
        wrong, y_wrong = rng.uniform(size=(10, 10)), rng.normal(15, 3, 10)
    model = GPRegressor(likelihood=likelihood, random_state=0).fit(np.r_[X, wrong], np.r_[y, y_wrong])
    latent = {"latent": "mean"} if len(model.latent_names_) > 1 else {}
    error = np.sqrt(np.mean((model.predict(X_new, **latent) - friedman(X_new)) ** 2))
    assert error < 1.0  # with noise of 1; 2.4 and more in the traps


def friedman(X):
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def test_a_process_of_the_rows_that_agree_knows_nothing_of_a_burst():
    """Neighbours that are wrong together are predicted well from each other, so that Gaussian noise follows them."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 60))
    y = np.sin(2 * x) + 0.1 * rng.normal(size=60)
    y[40:46] += 3.0
    model = GPRegressor(random_state=0)
    problem, _, _ = model._problem(*model._training(x[:, None], y, None, None)[:2])
    fit = lambda data: Maximise().run(dataclasses.replace(problem, data=data), Settings(LBFGS()))  # noqa: E731
    found = trimmed(problem.data, fit)
    assert_array_equal(np.flatnonzero(found.objective.data.noise_variance), np.arange(40, 46))
    whole = fit(problem.data)
    x_new = np.ravel(problem.data.X)[40:46, None]
    at_burst = [f.objective.conclude(f.theta)[1].posterior.marginals(x_new)[0].mean() for f in (found, whole)]
    assert at_burst[0] < at_burst[1] - 1.0  # in standard deviations of the targets


@pytest.mark.parametrize(("weights", "each"), [((1.0, 0.0, 0.0), True), ((1.0, 1.0, 1.0), False)])
def test_equal_lengthscales_are_searched_for_unless_rows_that_agree_tell_inputs_apart(weights, each, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40, 3))
    y = np.sum(weights * np.sin(3 * X), axis=1) + 0.05 * rng.normal(size=40)
    tied = []
    monkeypatch.setattr(Tie, "run", lambda self, _, settings: tied.append(settings.equal) or pytest.fail("seen"))
    with pytest.raises(pytest.fail.Exception):
        GPRegressor(likelihood="twinned", random_state=0).fit(X, y)
    assert tied == [False if each else None]


@pytest.mark.parametrize("n", [1, 2, 3, 25])
def test_rows_that_a_function_goes_through_are_no_trap(n):
    """A process of few rows may have no noise at all, with which EP would have no answer."""
    model = GPRegressor(likelihood=Ignorance(), random_state=0).fit(np.arange(n)[:, None], np.arange(n) % 2)
    assert np.all(np.isfinite(model.predict(np.arange(n)[:, None])))


def test_a_search_starts_with_the_noise_that_inference_needs():
    """Without an answer at its first point a search cannot move."""
    X, y, _ = data(BURST)
    objective = GPRegressor(KERNEL, likelihood=Twinned(0.05, 60.0, Parameter(1.1, fixed=True))).objective(X, y)

    class Picky:
        model, model_at = objective.model, objective.model_at

        def evaluate(self, theta, warm=None):
            if self.model_at(theta).likelihood.noise_variance < 0.4:
                raise np.linalg.LinAlgError
            return SimpleNamespace(value=0.0)

    theta = with_enough_noise(Picky(), objective.theta0)
    moved = np.flatnonzero(theta != objective.theta0)
    first, found = (objective.model_at(t).likelihood.noise_variance for t in (objective.theta0, theta))
    assert len(moved) == 1
    assert found > 0.4
    assert_allclose(np.log(found / first) / np.log(3), np.round(np.log(found / first) / np.log(3)))


def test_what_is_predicted(burst):
    X, y, _ = data(BURST)
    assert burst.latent_names_ == ("mean", "gate")
    inside, outside = X[BURST[3:4]], X[[5]]
    rate = burst.predict_outlier_probability(np.concatenate([inside, outside]))
    assert rate[0] > 0.5 > 0.2 > rate[1]
    there = burst.predictive(np.concatenate([inside, outside]))
    assert there.std[0] > 3 * there.std[1]  # where targets are wrong the band of targets is wide
    _, std = burst.predict(np.concatenate([inside, outside]), return_std=True, latent="mean")
    assert std[0] < 0.5 * there.std[0]  # and that of the function is not
    assert_allclose(there.cdf(there.quantile(0.9)), 0.9, atol=1e-8)
    given = burst.predict_outlier_probability(X[[5, 5]], [y[5], y[5] + 5.0])
    assert given[0] < 0.1
    assert given[1] > 0.9
    hundredths = Change(np.ones(1), np.zeros(1), y=100.0)
    kernel = burst.kernel_ | {"mean": burst.kernel_["mean"].in_units(hundredths)}
    likelihood = burst.likelihood_.in_units(hundredths)
    scaled = GPRegressor(kernel, likelihood=likelihood, optimizer=None).fit(X, 100 * y + 7)
    assert_allclose(scaled.predict(X, latent="mean"), 100 * burst.predict(X, latent="mean") + 7, rtol=1e-4, atol=1e-2)
    assert_allclose(scaled.predict(X, latent="gate"), burst.predict(X, latent="gate"), atol=1e-3)


def test_files_and_other_data(burst, tmp_path):
    X, y, _ = data(BURST)
    burst.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert np.array_equal(again.predict(X), burst.predict(X))
    assert np.array_equal(again.outlier_probability_, burst.outlier_probability_)
    other = burst.condition_on(X[:59], y[:59])
    assert other.outlier_probability_.shape == (59,)


def test_the_gate_has_a_kernel_of_its_own():
    X, y, _ = data(None)
    given = SquaredExponential(0.7)
    latents = GPRegressor(given, likelihood=Twinned(), normalize=False).objective(X, y).model.latents
    assert latents[0].kernel.lengthscale == 0.7
    assert latents[1].kernel.variance.prior is not None
    named = GPRegressor({"gate": White()}, likelihood=Twinned(), normalize=False).objective(X, y).model.latents
    assert isinstance(named[1].kernel, White)


def test_a_gate_without_smoothness_is_the_mixture():
    """A gate of its own for each row is integrated out: Φ(bias/√(1 + v)) is the share of regular targets."""
    X, y, _ = data(SINGLE)
    twinned = GPRegressor(KERNEL | {"gate": White(2.0)}, inference=TIGHT, **FIXED).fit(X, y)
    share = float(ndtr(-1.1 / np.sqrt(3.0)))
    given = FIXED | {"likelihood": OutlierMixture(0.05, 60.0, share), "inference": TIGHT}
    mixture = GPRegressor(KERNEL["mean"], **given).fit(X, y)
    assert_allclose(twinned.log_evidence_, mixture.log_evidence_, rtol=1e-8)
    assert_allclose(twinned.predict(X, latent="mean"), mixture.predict(X, latent=True), atol=1e-6)
    assert_allclose(twinned.outlier_probability_, mixture.outlier_probability_, atol=1e-6)


def test_gradients_and_an_inducing_input_at_each_row():
    X, y, _ = data(BURST)
    exact = GPRegressor(KERNEL, inference=TIGHT, **FIXED).objective(X, y)
    sparse = GPRegressor(KERNEL, inference=TIGHT, approximation=FITC(inducing_inputs=X[::10]), **FIXED).objective(X, y)
    for objective in (exact, sparse):
        _, gradient = objective.value_and_gradient(objective.theta0)
        along = dense.random_directions(objective.theta0, 2)
        expected = dense.precise_differences(objective, objective.theta0, along)
        assert_allclose(along @ gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())
    both = [
        GPRegressor(KERNEL, inference=TIGHT, approximation=a, **FIXED).fit(X, y)
        for a in ("exact", FITC(inducing_inputs=X))
    ]
    assert_allclose(both[1].log_evidence_, both[0].log_evidence_, rtol=1e-5)
    assert_allclose(both[1].outlier_probability_, both[0].outlier_probability_, atol=1e-4)


TIGHT_KL = KL(tolerance=1e-10, max_sweeps=3000)


def test_the_variational_model_bounds_the_evidence():
    """Exact for six rows: a sum over which of them are outliers, each a normal density times an orthant probability."""
    X, y, _ = data(BURST)
    X, y = X[20:32:2], y[20:32:2]
    K, K_gate = (v * np.exp(-0.5 * (X - X.T) ** 2 / s**2) for s, v in ((0.8, 1.2), (0.6, 1.5)))
    terms = []
    for outlier in itertools.product([False, True], repeat=6):
        noise, sign = np.where(outlier, 0.05 * 60.0, 0.05), np.where(outlier, -1.0, 1.0)
        covariance = (K_gate + np.eye(6)) * np.outer(sign, sign)
        gates = multivariate_normal(np.zeros(6), covariance, seed=0).cdf(1.1 * sign)
        terms.append(np.log(gates) + multivariate_normal(np.zeros(6), K + np.diag(noise)).logpdf(y))
    exact = logsumexp(terms)
    bound = GPRegressor(KERNEL, inference=KL(), **FIXED).fit(X, y)
    assert bound.inference_status_.converged
    assert exact - 1.5 < bound.log_evidence_ < exact  # 1.35 below: the rows are half of two kinds
    assert_allclose(GPRegressor(KERNEL, inference=EP(), **FIXED).fit(X, y).log_evidence_, exact, atol=0.15)


def test_the_variational_model_finds_the_burst_and_its_gradient_is_right():
    X, y, f = data(BURST)
    dense_model = GPRegressor(KERNEL, inference=TIGHT_KL, **FIXED).fit(X, y)
    assert np.sqrt(np.mean((dense_model.predict(X, latent="mean") - f) ** 2)) < 0.1
    assert np.min(dense_model.outlier_probability_[BURST]) > 0.9
    sparse_model = GPRegressor(KERNEL, approximation=VFE(inducing_inputs=X), inference=TIGHT_KL, **FIXED).fit(X, y)
    assert_allclose(sparse_model.log_evidence_, dense_model.log_evidence_, rtol=1e-5)
    for approximation in ("exact", VFE(inducing_inputs=X[::6])):
        given = {"inference": TIGHT_KL, "approximation": approximation} | FIXED
        objective = GPRegressor(KERNEL, **given).objective(X, y)
        _, gradient = objective.value_and_gradient(objective.theta0)
        along = dense.random_directions(objective.theta0, 2)
        expected = dense.precise_differences(objective, objective.theta0, along)
        assert_allclose(along @ gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_every_heavy_tailed_noise_names_its_outliers():
    X, y, _ = data(SINGLE)
    for likelihood in (OutlierMixture(0.01, 100.0, 0.05), StudentT(3.0, 0.1)):
        model = GPRegressor(KERNEL["mean"], **FIXED | {"likelihood": likelihood, "inference": Laplace()}).fit(X, y)
        p = model.outlier_probability_
        assert np.min(p[SINGLE]) > 0.9
        assert np.mean(np.delete(p, SINGLE)) < 0.2
        assert 0 < model.predict_outlier_probability(X[:1])[0] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("approximation", [VFE(12), FITC(12), SparseSpectrum(12), FITC(12, features=MultiScale())])
def test_features(approximation):
    X, y, f = data(BURST)
    model = GPRegressor(approximation=approximation, likelihood=Twinned()).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X, latent="mean") - f) ** 2)) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("number", [12, 24])
def test_inducing_inputs_do_not_lose_the_start(number, seed):
    """Wherever they are placed first: they follow the burst if they move before the gate has settled."""
    X, y, f = data(BURST)
    model = GPRegressor(approximation=FITC(number), likelihood=Twinned(), random_state=seed).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X, latent="mean") - f) ** 2)) < 0.1
    assert np.min(model.outlier_probability_[BURST]) > 0.9


@pytest.mark.slow
def test_two_experts_have_three_latents_and_an_evidence():
    """Two functions and a gate around a step."""
    rng = np.random.default_rng(0)
    X = np.linspace(-1, 1, 60)[:, None]
    truth = np.where(X[:, 0] < 0, -1.0, 1.0)
    y = truth + 0.05 * rng.normal(size=60)
    kernel = {"mean": SquaredExponential(3.0, 1.0), "other": SquaredExponential(3.0, 1.0), "gate": KERNEL["gate"]}
    fixed = {"likelihood": TwoExperts(0.01, 1.0, 0.0), "optimizer": None, "normalize": False}
    start = EP(mode="sequential", damping=0.3, max_sweeps=100)
    model = GPRegressor(kernel, inference=start, **fixed).fit(X, y)
    assert model.latent_names_ == ("mean", "other", "gate")
    assert np.isfinite(model.log_evidence_)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_two_experts_find_a_step(seed):
    X = np.linspace(-1, 1, 60)[:, None]
    truth = np.where(X[:, 0] < 0, -1.0, 1.0)
    y = truth + 0.05 * np.random.default_rng(seed).normal(size=60)
    model = GPRegressor(likelihood=TwoExperts()).fit(X, y)
    first, second = (model.predict(X, latent=name) for name in ("mean", "other"))
    chosen = np.where(model.predict(X, latent="gate") + model.likelihood_.bias > 0, first, second)
    assert np.sqrt(np.mean((chosen - truth) ** 2)) < 0.05
    assert model.log_evidence_ > GPRegressor().fit(X, y).log_evidence_ + 50


def two_functions(seed):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, (80, 1)), axis=0)
    functions = np.stack([np.sin(X[:, 0]), 2 + 0.5 * np.cos(1.5 * X[:, 0])], axis=1)
    which = rng.integers(0, 2, 80)
    return X, functions[np.arange(80), which] + 0.1 * rng.normal(size=80), functions


def test_two_functions_are_told_apart_where_noise_is_small():
    """EP from nowhere has no answer here; the first function is the upper one, on purpose."""
    X, y, functions = two_functions(0)
    kernel = {"mean": SquaredExponential(1.2), "other": SquaredExponential(1.2), "gate": White(1.0)}
    model = GPRegressor(kernel, likelihood=TwoExperts(0.01, 1.0, 0.0), optimizer=None, normalize=False).fit(
        X, y - y.mean()
    )
    assert model.inference_status_.converged
    found = np.stack([model.predict(X, latent=name) for name in ("other", "mean")], axis=1) + y.mean()
    assert np.sqrt(np.mean((found - functions) ** 2)) < 0.1


@pytest.mark.slow
def test_a_search_finds_two_functions_more_often_than_not():
    errors = []
    for seed in range(4):
        X, y, functions = two_functions(seed)
        model = GPRegressor({"gate": White()}, likelihood=TwoExperts(), random_state=0).fit(X, y)
        found = np.stack([model.predict(X, latent=name) for name in ("mean", "other")], axis=1)
        errors.append(min(np.sqrt(np.mean((f - functions) ** 2)) for f in (found, found[:, ::-1])))
    assert np.sum(np.array(errors) < 0.1) >= 3  # the fourth is a draw in which another division has some evidence


def test_rows_that_repeat_each_other_settle_one_by_one(monkeypatch):
    """Five times the same wrong target: in parallel all sites change their minds together, which is seen soon."""
    sweeps, run = [], sites.run_rule
    monkeypatch.setattr(sites, "run_rule", lambda *given: sweeps.append(run(*given).sweeps) or run(*given))
    given = {"likelihood": Twinned(0.1, 100.0, 2.0), "optimizer": None, "normalize": False}
    kernel, rule = {"mean": Constant(1.0), "gate": Constant(1.0)}, EP("parallel", damping=0.5, max_sweeps=500)
    model = GPRegressor(kernel, inference=rule, **given).fit(np.zeros((5, 1)), np.full(5, 5.0))
    assert model.inference_status_.converged
    assert model.inference_status_.fell_back
    assert sweeps[0] < 100
    assert_allclose(model.predict(np.zeros((1, 1)), latent="mean"), 4.90, atol=0.01)  # exact, by a grid


@pytest.mark.slow
def test_regions_of_wrong_labels():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (60, 1)), axis=0)
    labels = np.where(X[:, 0] > 0, 1, -1)
    labels[10:15] *= -1
    given = {"kernel": {"f": SquaredExponential(2.0, 9.0), "gate": KERNEL["gate"]}, "optimizer": None}
    plain = GPClassifier(given["kernel"]["f"], optimizer=None, normalize=False).fit(X, labels)
    model = GPClassifier(likelihood=TwinnedLabels(0.05, 1.2), normalize=False, **given).fit(X, labels)
    assert isinstance(model.inference_, EP)
    assert model.log_evidence_ > plain.log_evidence_
