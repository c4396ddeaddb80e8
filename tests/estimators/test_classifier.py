"""GPClassifier: GPML's figures, labels of all kinds, decisions, leave-one-out, one model for each class, files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import dense_reference as dense
import errorband
from errorband import LBFGS, GPClassifier
from errorband.approximations import FITC, IVM
from errorband.inference import EP, Laplace
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, Ordinal, RobustThreshold, Softmax
from errorband.precision import double_precision

GPML = json.loads((Path(__file__).parents[1] / "references" / "gpml_formula.json").read_text())
KERNEL = SquaredExponential([0.8, 0.8], 4.0)


def fixed(kernel=KERNEL, **options):
    """A classifier with given hyperparameters, in the units of the data."""
    return GPClassifier(kernel, optimizer=None, normalize=False, **options)


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X, np.sign(y - 0.1), X_test


@pytest.fixture(scope="module")
def three(data):
    X = data[0]
    return X, np.array(["low", "high", "mid"])[(X[:, 0] > -0.5).astype(int) + (X[:, 1] > 0.3)]


@pytest.fixture(scope="module")
def binary(data):
    return fixed().fit(*data[:2])


@pytest.fixture(scope="module")
def joint(three):
    return fixed(multi_class="joint").fit(*three)


@pytest.fixture(scope="module")
def each(three):
    return fixed(multi_class="one_vs_rest").fit(*three)


# ------------------------------------------------------------------------------------------------------- references
# The other pairs of link and rule: tests/inference/test_rules.py.
@pytest.mark.parametrize(
    ("link", "name", "rule", "tolerance"), [("logit", "laplace", Laplace(), 1e-6), ("probit", "EP", EP(), 1e-3)]
)
def test_evidence_and_predictions_agree_with_gpml(link, name, rule, tolerance, data):
    X, y, X_test = data
    expected = GPML[f"formula {link} {name}"]
    model = GPClassifier(KERNEL, likelihood=link, inference=rule, optimizer=None, normalize=False).fit(X, y)
    assert_allclose(model.log_evidence_, -expected["nlZ"], rtol=tolerance)
    mean, variance = model.predict_latent(X_test)
    assert_allclose(mean, expected["fmu"], rtol=tolerance, atol=tolerance)
    assert_allclose(variance, expected["fs2"], rtol=tolerance)
    # GPML averages the logistic function by a mixture of error functions, good to four digits.
    error = max(tolerance, 1e-4 if link == "logit" else 0.0)
    assert_allclose(np.log(model.predict_proba(X_test)[:, 1]), expected["lp1"], rtol=tolerance, atol=error)


def test_auto_is_ep_for_two_classes_and_laplace_for_more(binary, joint, each):
    assert (binary.inference_, joint.inference_, each.inference_) == (EP(), Laplace(), EP())
    assert isinstance(joint.likelihood_, Softmax)
    assert binary.inference_status_.converged
    assert joint.inference_status_.converged


# ----------------------------------------------------------------------------------------------------------- labels
@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (7, 11), (2.0, 5.0)], ids=str)
def test_labels_of_any_kind(labels, binary, data):
    X, y, X_test = data
    values = np.where(y > 0, labels[1], labels[0])
    model = fixed().fit(X, values)
    assert model.classes_.tolist() == sorted(labels)
    assert_array_equal(model.predict_proba(X_test), binary.predict_proba(X_test))
    predicted = model.predict(X_test)
    assert predicted.dtype == values.dtype
    assert set(predicted.tolist()) <= set(labels)
    assert model.score(X, values) > 0.9


def test_classes_are_sorted_and_probabilities_follow(joint, three):
    X, y = three
    assert joint.classes_.tolist() == ["high", "low", "mid"]
    assert_allclose(joint.class_prior_, [np.mean(y == c) for c in joint.classes_])
    share = joint.predict_proba(X)
    assert_allclose(share.sum(axis=1), 1.0)
    assert_array_equal(joint.predict(X), joint.classes_[share.argmax(axis=1)])
    assert joint.score(X, y) > 0.9


def test_one_class_is_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"two classes or more; y has one class \('a'\)"):
        GPClassifier().fit(X, np.full(len(X), "a"))
    with pytest.raises(ValueError, match="one class"):
        GPClassifier().fit(X, y, sample_weight=(y > 0).astype(float))


def test_unbalanced_classes(data):
    X, _, _ = data
    y = np.arange(len(X)) == 3
    model = fixed().fit(X, y)
    assert model.predict_proba(X[[3]])[0, 1] > 3 * model.class_prior_[1]
    assert model.predict_proba(X)[:, 1].mean() < 0.5


# ------------------------------------------------------------------------------------------------------ predictions
@pytest.mark.parametrize("name", ["binary", "joint", "each"])
def test_probabilities_are_averages_over_the_latent_posterior(name, request, data):
    model, X = request.getfixturevalue(name), data[2]
    mean, cov = model.predict_latent(X)
    rng = np.random.default_rng(0)
    if name == "binary":
        draws = (mean[:, None] + np.sqrt(cov)[:, None] * rng.standard_normal((1, 200_000)))[..., None]
        two_class = ndtr(draws[..., 0]).mean(axis=1)
        expected = np.stack([1 - two_class, two_class], axis=1)
    elif name == "joint":
        draws = np.stack([rng.multivariate_normal(m, V, 100_000) for m, V in zip(mean, cov, strict=True)])
        share = np.exp(draws - draws.max(axis=2, keepdims=True))
        expected = (share / share.sum(axis=2, keepdims=True)).mean(axis=1)
    else:
        assert_array_equal(cov, cov * np.eye(3))
        own = ndtr(mean / np.sqrt(1 + np.diagonal(cov, axis1=1, axis2=2)))
        expected = own / own.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), expected, atol=5e-3)
    plug_in = model.predict_proba(X, plug_in=True)
    assert_allclose(plug_in.sum(axis=1), 1.0)
    assert plug_in.max() > model.predict_proba(X).max()


def test_one_model_for_each_class(each, three, data):
    X, y = three
    assert each.classes_.tolist() == ["high", "low", "mid"]
    own = [fixed().fit(X, y == c) for c in each.classes_]
    share = np.stack([m.predict_proba(data[2])[:, 1] for m in own], axis=1)
    assert_allclose(each.predict_proba(data[2]), share / share.sum(axis=1, keepdims=True), rtol=1e-8)
    assert_allclose(each.log_evidence_, sum(m.log_evidence_ for m in own))
    assert each.score(X, y) > 0.9
    assert len(each.kernel_) == 3
    with pytest.raises(ValueError, match="objective of its own"):
        each.objective(X, y)


def test_two_classes_are_one_model_either_way(binary, data):
    X, y, X_test = data
    model = fixed(multi_class="one_vs_rest").fit(X, y)
    assert not hasattr(model, "estimators_")
    assert_array_equal(model.predict_proba(X_test), binary.predict_proba(X_test))


def test_chunks_do_not_change_the_answer(joint, three, monkeypatch):
    X = np.random.default_rng(0).uniform(-2, 2, (600, 2))
    whole = joint.predict_proba(X)
    monkeypatch.setattr("errorband.rows.MEMORY_BUDGET", 1)
    assert_allclose(joint.predict_proba(X), whole, atol=1e-12)


# -------------------------------------------------------------------------------------------------------- decisions
def test_decisions_minimise_the_expected_loss(joint, three):
    X = three[0]
    share = joint.predict_proba(X)
    assert_array_equal(joint.decide(X), joint.predict(X))
    loss = np.array([[0.0, 1.0, 1.0], [30.0, 0.0, 30.0], [1.0, 1.0, 0.0]])  # to miss "low" is dear
    dear = joint.decide(X, loss=loss)
    assert_array_equal(dear, joint.classes_[(share @ loss).argmin(axis=1)])
    assert np.sum(dear == "low") > np.sum(joint.predict(X) == "low")
    decided = joint.decide(X, reject=0.4)
    undecided = np.array([d is None for d in decided])
    assert_array_equal(undecided, share.max(axis=1) < 0.6)
    assert 0 < undecided.sum() < len(X)
    assert_array_equal(decided[~undecided], joint.predict(X)[~undecided])
    with pytest.raises(ValueError, match="matrix of 3 × 3"):
        joint.decide(X, loss=np.eye(2))
    with pytest.raises(ValueError, match="price of leaving"):
        joint.decide(X, reject=np.nan)


# ---------------------------------------------------------------------------------------------------- leave-one-out
@pytest.mark.parametrize(("name", "error"), [("binary", 0.03), ("joint", 0.05), ("each", 0.03)])
def test_leave_one_out_is_close_to_leaving_one_out(name, error, request, data, three):
    model = request.getfixturevalue(name)
    X, y = data[:2] if name == "binary" else three
    left_out = model.loo()
    assert_array_equal(left_out.y, y)
    assert_allclose(left_out.probabilities.sum(axis=1), 1.0)
    at = np.searchsorted(model.classes_, y)
    assert_allclose(np.exp(left_out.log_density), left_out.probabilities[np.arange(len(y)), at])
    for i in (0, 7, 31):
        others = np.arange(len(y)) != i
        again = clone(model).fit(X[others], y[others]).predict_proba(X[[i]])[0]
        assert_allclose(left_out.probabilities[i], again, atol=error)


# ---------------------------------------------------------------------------------------------------------- weights
@pytest.mark.parametrize("labels", ["two", "three"])
def test_a_weight_of_two_counts_twice_under_laplace(labels, data, three):
    X, y = data[:2] if labels == "two" else three
    weights = np.tile([0.0, 1.0, 2.0], 20)
    options = {"inference": "laplace", "multi_class": "joint", "optimizer": None}
    weighted = GPClassifier(KERNEL, **options).fit(X, y, weights)
    rows = np.repeat(np.arange(60), weights.astype(int))
    repeated = GPClassifier(KERNEL, **options).fit(X[rows], y[rows])
    assert_allclose(weighted.log_evidence_, repeated.log_evidence_, rtol=1e-7)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)
    assert_allclose(weighted.class_prior_, repeated.class_prior_)


# ------------------------------------------------------------------------------------------------------ likelihoods
def test_other_likelihoods(data):
    X, y, X_test = data
    threshold = fixed(likelihood=RobustThreshold(0.05)).fit(X, y)
    assert threshold.score(X, y) > 0.9
    assert threshold.predict_proba(X)[:, 1].min() > 0.05  # an error is always possible
    biased = fixed(likelihood=Bernoulli("probit", bias=1.5)).fit(X, y)
    assert_allclose(biased.predict_proba([[50.0, 50.0]])[0, 1], ndtr(1.5 / np.sqrt(5)), rtol=1e-6)
    ordered = fixed(likelihood=Ordinal(3)).fit(X, np.digitize(X[:, 0], [-0.7, 0.7]))
    assert ordered.predict_latent(X_test)[0].shape == (5,)
    assert ordered.score(X, np.digitize(X[:, 0], [-0.7, 0.7])) > 0.8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"likelihood": "softmx"},
            ValueError,
            "closest: 'softmax'.*choose from probit, logit, ordinal",
        ),
        ({"likelihood": "robust-threshold", "multi_class": "joint"}, ValueError, "for 2 classes; y has 3"),
        ({"likelihood": Gaussian()}, TypeError, "likelihood of classes"),
        ({"likelihood": Bernoulli(), "multi_class": "joint"}, ValueError, "for 2 classes; y has 3.*one_vs_rest"),
        ({"likelihood": Softmax(4)}, ValueError, "for 4 classes; y has 3"),
        ({"multi_class": "ovr"}, ValueError, "choose 'auto', 'joint' or 'one_vs_rest'"),
        ({"mean": "constant", "multi_class": "joint"}, ValueError, "has mean zero"),
        ({"inference": "conjugate"}, ValueError, "Gaussian likelihood"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(options, error, message, three):
    with pytest.raises(error, match=message):
        GPClassifier(**options).fit(*three)


# ------------------------------------------------------------------------------------------------ search, files, show
def test_search_raises_the_evidence_and_frames_are_remembered(three, data):
    X, y = three
    frame = pd.DataFrame(X, columns=["a", "b"])
    kernel = SquaredExponential(active_dims=["b"])
    model = GPClassifier(kernel, multi_class="one_vs_rest").fit(frame, y == "mid")
    start = GPClassifier(kernel, optimizer=None).fit(frame, y == "mid")
    assert model.fit_result_.converged
    assert model.log_evidence_ > start.log_evidence_
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])
    each = GPClassifier(kernel, multi_class="one_vs_rest", optimizer=None).fit(frame, y)
    assert_array_equal(each.predict(frame), each.predict(frame.to_numpy()))


@pytest.mark.parametrize("name", ["binary", "joint", "each"])
def test_files_and_cards(name, request, tmp_path, data):
    model, X = request.getfixturevalue(name), data[2]
    model.save(tmp_path / "model.eb")
    twin = errorband.load(tmp_path / "model.eb")
    assert twin.classes_.dtype == model.classes_.dtype
    assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    assert_array_equal(twin.loo().log_density, model.loo().log_density)
    assert_array_equal(twin.predict(X), model.predict(X))
    assert "60 rows, 2 inputs" in model._repr_html_()


def test_objective_is_what_fit_maximises(binary, data):
    X, y, _ = data
    objective = fixed().objective(X, y)
    with double_precision():
        value, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(value, binary.log_evidence_, rtol=1e-6)
    assert_allclose(gradient[:3] * [1, 1, 2], -np.array(GPML["formula probit EP"]["dcov"]), rtol=1e-2, atol=1e-3)


def test_another_fit_forgets_what_it_does_not_find_again():
    X = np.random.default_rng(0).normal(size=(45, 1))
    three = np.repeat(["a", "b", "c"], 15)
    model = GPClassifier(approximation=IVM(20), optimizer=None).fit(X, np.where(three == "a", "a", "b"))
    assert len(model.active_rows_) == 20
    model.set_params(approximation=FITC(4), multi_class="one_vs_rest", optimizer=LBFGS(max_iter=1), random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, three)
    assert not hasattr(model, "active_rows_")
    assert not hasattr(model, "posterior_")
    assert len(model.moved_inducing_) == 3
    assert model.approximation_reason_ == [None] * 3
    model.set_params(approximation="exact", optimizer=None, multi_class="joint").fit(X, three)
    assert not hasattr(model, "estimators_")
    assert not hasattr(model, "moved_inducing_")


def test_draws_have_the_moments_of_the_latent_function():
    X = np.linspace(0.0, 3.0, 12)[:, None]
    model = GPClassifier(optimizer=None).fit(X, X[:, 0] > 1.4)
    draws = model.sample_posterior(X[:4], n_samples=20_000, random_state=0)
    mean, variance = model.predict_latent(X[:4])
    assert_allclose(draws.mean(axis=0), mean, atol=4 * np.sqrt(variance.max() / 20_000))
    assert_allclose(draws.var(axis=0), variance, rtol=0.05)
    three = np.digitize(X[:, 0], [1.0, 2.0])
    one_each = GPClassifier(optimizer=None).fit(X, three).sample_posterior(X, 5, random_state=0)
    assert one_each.shape == (5, 12, 3)
    assert one_each[:, 0, 0].mean() > one_each[:, -1, 0].mean()  # the first class is on the left
    with pytest.raises(ValueError, match="one_vs_rest"):
        GPClassifier(optimizer=None, multi_class="joint").fit(X, three).sample_posterior(X)
