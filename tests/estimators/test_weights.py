"""Sample weights are powers of likelihood terms: a row of weight two is that row twice. Exposures of counts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import errorband
from errorband import GPClassifier, GPRegressor, means
from errorband.approximations import DTC, FITC, PITC, VFE, PowerEP
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Linear, SquaredExponential
from errorband.likelihoods import Gaussian, NegativeBinomial, Poisson, StudentT

RNG = np.random.default_rng(0)
N = 24
X = RNG.uniform(-2, 2, (N, 2))
y = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=N)
counts = RNG.poisson(np.exp(1 + X[:, 0])).astype(float)
times = RNG.integers(0, 4, N)  # zero leaves a row out
twice = np.repeat(np.arange(N), times)
new = RNG.uniform(-2, 2, (5, 2))
KERNEL = SquaredExponential([0.8, 1.5], 1.2)
INDUCING = X[:7]
TIGHT = EP(tolerance=1e-9)
AT_ROWS = FITC(inducing_inputs=X, optimize_inputs=False)  # nothing is left out at the rows


def settings(approximation="exact"):
    return {"kernel": KERNEL, "approximation": approximation, "optimizer": None}


def predicted(model):
    """What a model says of new rows: of targets, and of its latent function."""
    if isinstance(model, GPClassifier):
        return model.predict_proba(new), *model.predict_latent(new)
    return model.predict(new, return_std=True)


@pytest.mark.parametrize(
    ("options", "target"),
    [
        pytest.param({"likelihood": Gaussian(0.1)}, y, id="exact"),
        pytest.param({"likelihood": Gaussian(0.1), "approximation": VFE(inducing_inputs=INDUCING)}, y, id="VFE"),
        pytest.param({"likelihood": Gaussian(0.1), "approximation": DTC(inducing_inputs=INDUCING)}, y, id="DTC"),
        pytest.param({"likelihood": Gaussian(0.1), "mean": means.Constant(marginalize=True)}, y, id="marginal mean"),
        pytest.param({"likelihood": Poisson(), "inference": Laplace()}, counts, id="Poisson, Laplace"),
        pytest.param({"likelihood": StudentT(4.0, 0.3), "inference": KL()}, y, id="Student-t, KL"),
        pytest.param({"inference": TIGHT}, y > 0, id="two classes, EP"),
        pytest.param({"inference": TIGHT, "approximation": AT_ROWS}, y > 0, id="two classes, FITC, EP"),
        pytest.param(
            {"inference": EP("double_loop", tolerance=1e-8)},
            y > 0,
            marks=pytest.mark.slow,
            id="two classes, double loop",
        ),
        pytest.param(
            {"likelihood": StudentT(4.0, 0.3), "inference": TIGHT}, y, marks=pytest.mark.slow, id="Student-t, EP"
        ),
        pytest.param(
            {
                "likelihood": StudentT(4.0, 0.3),
                "approximation": PowerEP(power=0.5, inducing_inputs=INDUCING),
                "inference": EP(power=0.5, tolerance=1e-9),
            },
            y,
            marks=pytest.mark.slow,
            id="Student-t, power EP",
        ),
    ],
)
def test_a_weight_of_two_is_the_row_twice(options, target):
    """Evidence (also with ``normalize``, whose moments are weighted), predictions and the gradient of the objective."""
    model = (GPClassifier if target.dtype == bool else GPRegressor)(**{**settings(), **options})
    weighted = model.fit(X, target, sample_weight=times)
    repeated = clone(model).fit(X[twice], target[twice])
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-7)
    for one, other in zip(predicted(weighted), predicted(repeated), strict=True):
        assert_allclose(one, other, rtol=1e-6)
    once, again = model.objective(X, target, sample_weight=times), model.objective(X[twice], target[twice])
    theta = once.theta0 + 0.1
    at, other = once.evaluate(theta), again.evaluate(theta)
    assert_allclose(at.gradient, other.gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            # No identity as above: what repeated rows leave out is independent for each.
            GPRegressor(**settings(PITC(inducing_inputs=INDUCING, block_size=8)), likelihood=Gaussian(0.1)),
            id="blocks",
        ),
        pytest.param(GPClassifier(**settings(), inference=TIGHT), id="EP, weights below one too"),
    ],
)
def test_derivatives_by_differences(model):
    target = y > 0 if isinstance(model, GPClassifier) else y
    objective = model.objective(X, target, sample_weight=np.maximum(times, 0.5))
    theta, steps = objective.theta0, 1e-5 * np.eye(len(objective.theta0))
    numeric = [(objective.evaluate(theta + s).value - objective.evaluate(theta - s).value) / 2e-5 for s in steps]
    assert_allclose(objective.evaluate(theta).gradient, numeric, rtol=1e-4, atol=1e-5)


def test_weights_near_one_are_near_none():
    """Copies above one, powers below: the evidence has no step in between."""
    model = GPClassifier(**settings(), inference=TIGHT)
    plain = model.fit(X, y > 0).log_evidence_
    below, above = (model.fit(X, y > 0, np.full(N, 1 + step)).log_evidence_ for step in (-1e-4, 1e-4))
    assert (above - plain) / (plain - below) == pytest.approx(1, rel=0.02)


def test_targets_are_predicted_with_weight_one():
    weighted = GPRegressor(**settings(), likelihood=Gaussian(0.1)).fit(X, y, sample_weight=np.full(N, 4.0))
    loo, noise = weighted.loo(), 0.1
    for i in (0, 5):
        rest = np.arange(N) != i
        without = weighted.condition_on(X[rest], y[rest], sample_weight=np.full(N - 1, 4.0)).predictive(X[[i]])
        assert_allclose([loo.predictive.mean[i], loo.predictive.std[i]], [without.mean[0], without.std[0]], rtol=1e-7)
    assert np.all(loo.predictive.variance > noise)


def test_weights_and_known_noise():
    """Noise of one variance, in two halves."""
    known = GPRegressor(**settings(), likelihood=Gaussian(0.05), normalize=False)
    weights = np.maximum(times, 0.5)
    split = known.fit(X, y, noise_variance=np.full(N, 0.05), sample_weight=weights).log_evidence_
    whole = GPRegressor(**settings(), likelihood=Gaussian(0.1), normalize=False).fit(X, y, sample_weight=weights)
    assert split == pytest.approx(whole.log_evidence_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.zeros(N), "zero for every row"), (-np.ones(N), "not negative"), (np.ones(3), "one number per row")],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(ValueError, match=message):
        GPRegressor().fit(X, y, sample_weight=weights)


# ------------------------------------------------------------------------------------------------------- exposure
exposure = RNG.uniform(10, 1000, N)
cases = RNG.poisson(exposure * np.exp(X[:, 0] - 3)).astype(float)
table = pd.DataFrame({"a": X[:, 0], "people": exposure, "b": X[:, 1]})


def test_an_exposure_is_an_offset_of_the_log_rate():
    """With a mean that is known to be log exposure, the same posterior; kernels do not see the column."""
    model = GPRegressor(KERNEL, likelihood="poisson", exposure="people", optimizer=None, normalize=False)
    model.fit(table, cases)
    assert model.kernel_.active_dims == (0, 2)
    by_hand = GPRegressor(
        SquaredExponential([0.8, 1.5], 1.2, active_dims=[0, 2]),
        mean=means.Linear([0.0, 0.0, 1.0, 0.0]),
        likelihood=Poisson(),
        optimizer=None,
        normalize=False,
    ).fit(table.assign(people=np.log(exposure)), cases)
    assert model.log_evidence_ == pytest.approx(by_hand.log_evidence_)
    assert_allclose(model.predict(table), by_hand.predict(table.assign(people=np.log(exposure))), rtol=1e-6)
    assert_allclose(model.loo().log_density, by_hand.loo().log_density, rtol=1e-6)


def test_predictions_are_proportional_to_the_exposure(tmp_path):
    model = GPRegressor(KERNEL + Linear(), likelihood=NegativeBinomial(0.1), exposure=1).fit(table, cases)
    assert model.kernel_.left.active_dims == model.kernel_.right.active_dims == (0, 2)
    more = table.assign(people=2 * exposure)
    assert_allclose(model.predict(more), 2 * model.predict(table), rtol=1e-6)
    assert_allclose(model.predict(more, latent=True), model.predict(table, latent=True))
    rate = np.exp(model.predict(table, latent=True))
    assert np.corrcoef(np.log(rate), X[:, 0] - 3)[0, 1] > 0.95
    assert np.abs(np.log(rate) - (X[:, 0] - 3)).mean() < 0.3
    draws = model.sample_posterior(table, 400, 0, latent=False)
    assert_allclose(draws.mean(axis=0), model.predict(table), rtol=0.5)
    model.save(tmp_path / "m.eb")
    assert_allclose(errorband.load(tmp_path / "m.eb").predict(more), model.predict(more))


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"exposure": "people"}, table, "is for counts at a rate, and Gaussian is not"),
        ({"exposure": "poeple", "likelihood": "poisson"}, table, "'poeple' is not a column of X, which has 'a'"),
        ({"exposure": "people", "likelihood": "poisson"}, table.assign(people=0.0), "must be above zero"),
        ({"exposure": 0, "likelihood": "poisson"}, table[["people"]], "the only column"),
    ],
)
def test_exposures_that_make_no_sense(options, data, message):
    with pytest.raises(ValueError, match=message):
        GPRegressor(**options).fit(data, cases)


def test_leave_one_out_prints_what_it_found():
    model = GPRegressor(**settings(), likelihood=Gaussian(0.1)).fit(X, y)
    assert repr(model.loo()) == f"LeaveOneOut({N} rows, mean log density {model.loo().log_density.mean():.4g})"
    labels = GPClassifier(KERNEL, optimizer=None).fit(X, y > 0)
    assert repr(labels.loo()).startswith(f"ClassLeaveOneOut({N} rows, mean log density -")
    assert_allclose(labels.predict_log_proba(new), np.log(labels.predict_proba(new)))
