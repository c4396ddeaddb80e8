"""Arguments that look right and are not: each is refused in a sentence, or means what it says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.multioutput import MultiOutputRegressor

from errorband import (
    BayesianCommittee,
    GenerativeGaussianClassifier,
    GPClassifier,
    GPRegressor,
    LeastSquaresGPClassifier,
    PlattScaling,
    ProbabilisticNearestNeighbour,
    ProductOfExperts,
    RVMRegressor,
    TransductiveGPClassifier,
)
from errorband.approximations import FITC
from errorband.inference import INFERENCES
from errorband.likelihoods import Softmax

X = np.linspace(-2, 2, 16)[:, None]
Y = np.sin(X[:, 0])


@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        (np.ma.masked_greater(X, 1.0), Y, "X has 4 masked entries"),
        (X, np.ma.masked_greater(Y, 0.9), "y has .* masked entries"),
        (X.astype("datetime64[s]"), Y, "X holds dates or times"),
        (X, X[:, 0].astype("timedelta64[s]"), "y holds dates or times"),
        (X, np.array([None, *Y[1:]]), "y has 1 values that are missing or not finite, the first in row 0"),
        (1e-162 * X, Y, "X varies by as little as .*; rescale it"),
        (X, 1e-200 * Y, "y varies by as little as .*; rescale it"),
        (pd.DataFrame(np.c_[X, X], columns=["a", "a"]), Y, "columns of the same name: 'a'. Rename"),
        (X, np.array(["a", "b"] * 8), "y must hold numbers .*'a'.* For labels of classes use GPClassifier"),
    ],
)
def test_data_that_are_not_what_they_seem(X, y, told):
    with pytest.raises(ValueError, match=told):
        GPRegressor(optimizer=None).fit(X, y)


def test_small_units_above_the_limit_are_as_good_as_any():
    tiny, usual = (GPRegressor(optimizer=None).fit(s * X, s * Y) for s in (1e-90, 1.0))
    np.testing.assert_allclose(tiny.predict(1e-90 * X, return_std=True)[1] / 1e-90, usual.predict(X, True)[1])


def test_a_mask_that_hides_nothing_and_constant_columns_are_fine():
    GPRegressor(optimizer=None).fit(np.ma.masked_array(np.c_[X, 1e-300 * np.ones(16)]), Y)


@pytest.mark.parametrize("given", ["abc", [["a"]], {"a": 1}])
def test_numbers_of_rows_that_are_no_numbers(given):
    with pytest.raises(ValueError, match="noise_variance must have one number per row"):
        GPRegressor(optimizer=None).fit(X, Y, noise_variance=given)
    with pytest.raises(ValueError, match="sample_weight must have one number per row"):
        GPClassifier(optimizer=None).fit(X, Y > 0, sample_weight=given)


@pytest.mark.parametrize("argument", [{"random_state": -1}, {"random_state": "x"}, {"mean": np.zeros(2)}])
def test_settings_that_are_none(argument):
    with pytest.raises(ValueError, match=rf"{next(iter(argument))}=.*: (give|choose)"):
        GPRegressor(optimizer=None, **argument).fit(X, Y)


@pytest.mark.parametrize("argument", [{"inference": X}, {"approximation": X}])
def test_arrays_in_the_place_of_parts_are_refused(argument):
    with pytest.raises(TypeError, match=f"{next(iter(argument))} must be"):
        GPRegressor(optimizer=None, **argument).fit(X, Y)
    with pytest.raises(ValueError, match=": choose 'lbfgs'"):
        GPRegressor(optimizer=X).fit(X, Y)
    with pytest.raises(ValueError, match="give a whole number, one or more, or 'auto'"):
        FITC([3])


def test_levels_and_choices_that_are_none():
    """Each refusal is a sentence, not Python's complaint about a comparison."""
    regressor, classifier = GPRegressor(optimizer=None).fit(X, Y), GPClassifier(optimizer=None).fit(X, Y > 0)
    for level in ([], None, np.zeros(2), b"x", Softmax):
        with pytest.raises(ValueError, match="must be a probability between 0 and 1"):
            regressor.predict_interval(X, level=level)
    for q in (Softmax, "abc", {}):
        with pytest.raises(TypeError, match="Quantile levels must be numbers"):
            regressor.predict_quantiles(X, q=q)
    for method in ("predict", "predictive", "sample_posterior", "sample_prior"):
        with pytest.raises(TypeError, match=r"latent=.*: give True, False, or the name"):
            getattr(regressor, method)(X, latent=np.zeros(2))
    with pytest.raises(TypeError, match=r"return_std=.*: give True or False"):
        regressor.predict(X, return_std=np.zeros(2))
    with pytest.raises(TypeError, match=r"plug_in=.*: give True or False"):
        classifier.predict_proba(X, plug_in=np.zeros(2))
    with pytest.raises(TypeError, match="loss must be a matrix of 2 × 2 finite numbers"):
        classifier.decide(X, loss="abc")
    with pytest.raises(ValueError, match=r"reject=.* must be a finite number"):
        classifier.decide(X, reject="abc")


def test_every_rule_has_advice_where_it_finds_no_posterior():
    for name, rule in INFERENCES.items():
        if hasattr(rule, "_advice"):
            assert rule()._advice().startswith(" "), name
            assert rule()._advice().endswith("."), name


def test_softmax_of_two_classes_for_each_class_against_the_rest():
    model = GPClassifier(likelihood=Softmax(2), multi_class="one_vs_rest", optimizer=None)
    found = model.fit(X, np.digitize(X[:, 0], [-0.7, 0.7])).predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.mean(found.argmax(axis=1) == np.digitize(X[:, 0], [-0.7, 0.7])) > 0.8


def test_several_targets_are_refused_with_what_takes_them():
    with pytest.raises(ValueError, match=r"y has 2 columns.*MultiOutputRegressor"):
        RVMRegressor(optimizer=None).fit(X, np.column_stack([Y, Y]))
    both = MultiOutputRegressor(GPRegressor(optimizer=None)).fit(X, np.column_stack([Y, -Y]))
    assert both.predict(X).shape == (len(X), 2)


# ------------------------------------------------------------------------------- committees and classic classifiers
MEMBER = GPRegressor(optimizer=None)
COMMITTEES = [
    BayesianCommittee(MEMBER, n_members=2, random_state=0),
    BayesianCommittee(MEMBER, n_members=2, query=5, random_state=0),
    ProductOfExperts(MEMBER, n_members=2, random_state=0),
]
CLASSIC = [
    GenerativeGaussianClassifier(),
    GenerativeGaussianClassifier(covariance="each"),
    LeastSquaresGPClassifier(optimizer=None),
    PlattScaling(),
    ProbabilisticNearestNeighbour(),
    TransductiveGPClassifier(optimizer=None),
]
LABELS = np.where(Y > 0, "up", "down")


def targets(model):
    return Y if model in COMMITTEES else LABELS


@pytest.mark.parametrize("model", COMMITTEES + CLASSIC, ids=repr)
@pytest.mark.parametrize(
    ("X", "told"),
    [
        (np.where(X > 1.9, np.nan, X), "NaN"),
        (np.where(X > 1.9, np.inf, X), "infinity"),
        (X[:-1], "inconsistent numbers of samples"),
        (X[:, 0], "Expected 2D array"),
        (X.astype("datetime64[s]"), "X holds dates or times"),
        (np.ma.masked_greater(X, 1.0), "X has 4 masked entries"),
        (pd.DataFrame({"a": X[:, 0], "b": ["word"] * 16}), "columns that are not numbers: 'b'"),
        (1e200 * X, "as large as 2e\\+200; rescale"),
    ],
    ids=["nan", "inf", "rows", "flat", "dates", "masked", "words", "huge"],
)
def test_inputs_that_newcomers_refuse(model, X, told):
    with pytest.raises(ValueError, match=told):
        model.fit(X, targets(model))


@pytest.mark.parametrize("model", COMMITTEES, ids=repr)
def test_targets_that_committees_refuse(model):
    with pytest.raises(ValueError, match=r"y has 2 columns|1d array|NaN"):
        model.fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match=r"missing or not finite|NaN"):
        model.fit(X, np.where(Y > 0.9, np.nan, Y))


@pytest.mark.parametrize("model", CLASSIC, ids=repr)
def test_one_class_is_none(model):
    with pytest.raises(ValueError, match="y has one class"):
        model.fit(X, np.full(16, "up"))


@pytest.mark.parametrize("model", COMMITTEES + CLASSIC, ids=repr)
def test_constant_columns_change_nothing(model):
    with_one = model.fit(np.c_[X, np.full(16, 7.0)], targets(model)).predict(np.c_[X, np.full(16, 7.0)])
    assert with_one.shape == (16,)
    if model in CLASSIC:
        assert np.mean(with_one == LABELS) > 0.7


@pytest.mark.parametrize("committee", [BayesianCommittee, ProductOfExperts])
def test_more_members_than_rows(committee):
    model = committee(MEMBER, n_members=50, random_state=0).fit(X, Y)
    assert 1 <= model.n_members_ <= 16
    assert model.part_sizes_.sum() == 16
    assert np.all(np.isfinite(model.predict(X, return_std=True)))
