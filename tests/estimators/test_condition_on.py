"""The same hyperparameters and scaling with other data, and what estimators tell about the data they keep."""

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, PIC, VFE, SubsetOfData
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.means import Constant
from errorband.predictive import GaussianPredictive

NEW = np.array([[-1.0, 12.0], [0.3, 3.0], [1.0, -20.0]])
KERNEL = SquaredExponential([0.7, 1.9], 1.3)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(0, [1.0, 10.0], (60, 2))
    return X, 100 + 5 * np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + 0.3 * rng.normal(size=60)


@pytest.fixture(scope="module")
def searched(data):
    return GPRegressor().fit(*data)


def same(a, b):
    """Whether two modules hold exactly the same numbers."""
    return jax.tree.all(jax.tree.map(np.array_equal, a, b))


def test_the_same_data_give_the_same_predictions(data, searched):
    """To rounding: a search computes the covariance in another compiled program, which may round differently."""
    again = searched.condition_on(*data)
    for one, other in zip(searched.predict(NEW, return_std=True), again.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert again.log_evidence_ == pytest.approx(searched.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(again.loo().z_score, searched.loo().z_score, rtol=1e-10)
    once_more = again.condition_on(*data)
    np.testing.assert_array_equal(once_more.predict(NEW), again.predict(NEW))


@pytest.mark.parametrize(
    "options",
    [
        {"mean": Constant(marginalize=True)},
        {"approximation": FITC(8)},
        {"approximation": VFE(8)},
        {"approximation": PIC(8, block_size=20)},
        {"approximation": SubsetOfData(20)},
    ],
    ids=["marginal mean", "fitc", "vfe", "pic", "subset"],
)
def test_every_kind_of_model_can_be_conditioned(data, options):
    X, y = data
    options = {"likelihood": Gaussian(0.1), "optimizer": None, "random_state": 0, **options}
    model = GPRegressor(KERNEL, **options).fit(X, y)
    again = model.condition_on(X, y)
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)
    assert again.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-10)
    half = model.condition_on(X[:30], y[:30])
    assert half.n_training_rows_ == min(30, len(getattr(half, "active_rows_", range(30))))
    assert same(half.approximation_, model.approximation_)


def test_fewer_rows_keep_scaling_and_hyperparameters(data, searched):
    X, y = data
    before = searched.predict(NEW)
    half = searched.condition_on(X[:30], y[:30])
    assert half.scaling_ is searched.scaling_
    assert same(half.kernel_, searched.kernel_)
    assert same(half.likelihood_, searched.likelihood_)
    assert half.fit_result_ is searched.fit_result_
    assert half.search_log_evidence_ == half.condition_on(X[:5], y[:5]).search_log_evidence_ == searched.log_evidence_
    assert not hasattr(searched, "search_log_evidence_")
    assert half.get_params() == searched.get_params()
    np.testing.assert_array_equal(searched.predict(NEW), before)
    assert (searched.n_training_rows_, half.n_training_rows_) == (60, 30)
    origin, shift = searched.scaling_.x_shift, searched.scaling_.y_shift  # units are the same, the origin is not
    by_hand = GPRegressor(searched.kernel_, likelihood=searched.likelihood_, optimizer=None, normalize=False)
    mean, std = by_hand.fit(X[:30] - origin, y[:30] - shift).predict(NEW - origin, return_std=True)
    got_mean, got_std = half.predict(NEW, return_std=True)
    np.testing.assert_allclose(got_mean, mean + shift, rtol=1e-10)
    reshaped = searched.bands_.reshaped(GaussianPredictive(mean, std), searched.scaling_.inputs(NEW))
    np.testing.assert_allclose(got_std, reshaped.std, rtol=1e-8)
    assert half.log_evidence_ == pytest.approx(by_hand.log_evidence_)


def test_known_noise_is_in_the_units_of_the_data(data):
    X, y = data
    noise = np.linspace(0.0, 4.0, 60)
    model = GPRegressor(KERNEL, likelihood=Gaussian(0.1), optimizer=None).fit(X, y, noise_variance=noise)
    again = model.condition_on(X, y, noise_variance=noise)
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)
    assert np.all(np.abs(model.condition_on(X, y).predict(NEW) - model.predict(NEW)) > 1e-6)


@pytest.mark.parametrize("multi_class", ["joint", "one_vs_rest"])
def test_classes(data, multi_class):
    X, y = data
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [98.0, 102.0])]
    model = GPClassifier(KERNEL, optimizer=None, multi_class=multi_class).fit(X, labels)
    again = model.condition_on(X, labels)
    np.testing.assert_allclose(again.predict_proba(NEW), model.predict_proba(NEW), rtol=1e-6)
    np.testing.assert_array_equal(again.classes_, model.classes_)
    two = labels != "mid"
    fewer = model.condition_on(X[two], labels[two], sample_weight=np.ones(two.sum()))
    assert fewer.predict_proba(NEW).shape == (3, 3)
    assert fewer.class_prior_[model.classes_ == "mid"] == 0
    assert fewer.scaling_ is model.scaling_
    assert len(fewer.members_) == len(model.members_) == (1 if multi_class == "joint" else 3)
    for mine, theirs in zip(fewer.members_, model.members_, strict=True):
        assert same(mine.kernel_, theirs.kernel_)
    assert model.n_training_rows_ == 60
    with pytest.raises(ValueError, match="'huge'"):
        model.condition_on(X[:2], ["huge", "low"])


def test_names_of_columns_are_checked(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = GPRegressor(KERNEL, optimizer=None).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.condition_on(frame.rename(columns={"b": "c"}), y)
    with pytest.raises(ValueError, match="features"):
        model.condition_on(X[:, :1], y)
    with pytest.raises(NotFittedError):
        GPRegressor().condition_on(X, y)


def test_training_data_come_back_in_their_units(data, searched):
    X, y = data
    got_X, got_y = searched.training_data()
    np.testing.assert_allclose(got_X, X, rtol=1e-12)
    np.testing.assert_allclose(got_y, y, rtol=1e-12)
    for options in ({"multi_class": "joint"}, {"multi_class": "one_vs_rest"}):
        labels = np.array(["low", "mid", "high"])[np.digitize(y, [98.0, 102.0])]
        model = GPClassifier(KERNEL, optimizer=None, **options).fit(X, labels)
        assert model.training_data()[1].tolist() == labels.tolist()


def test_limits_of_models_without_approximation():
    assert GPRegressor().exact_limit() == 5000
    assert GPClassifier().exact_limit() == 2000
    assert GPClassifier(multi_class="joint").exact_limit(n_classes=8) == 1000
    assert GPClassifier().exact_limit(n_classes=8) == 2000
