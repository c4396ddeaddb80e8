"""Classic classifiers: known answers, probabilities that add up, files, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, ndtr
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC

import errorband
from errorband import (
    GenerativeGaussianClassifier,
    LeastSquaresGPClassifier,
    PlattScaling,
    ProbabilisticNearestNeighbour,
    TransductiveGPClassifier,
    compare_evidence,
)
from errorband.estimators.least_squares_classifier import left_out_density
from errorband.estimators.platt import fit_sigmoid, sigmoid
from errorband.kernels import SquaredExponential
from errorband.likelihoods.soft_margin import soft_margin

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(-1, 0.8, (25, 2)), RNG.normal(1, 0.8, (25, 2))])
Y = np.repeat(["low", "high"], 25)
THREE = np.digitize(X[:, 0], [-0.7, 0.7])
NEW = RNG.normal(0, 1.5, (7, 2))
CHEAP = [
    GenerativeGaussianClassifier(),
    GenerativeGaussianClassifier(covariance="each"),
    PlattScaling(),
    PlattScaling(link="logit"),
    ProbabilisticNearestNeighbour(),
]
ALL = [*CHEAP, LeastSquaresGPClassifier(optimizer=None), LeastSquaresGPClassifier(optimizer=None, variance=False)]


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_two_and_three_classes(model):
    for y in (Y, THREE):
        model.fit(X, y)
        p = model.predict_proba(NEW)
        assert_allclose(p.sum(axis=1), 1.0)
        assert np.array_equal(model.classes_[np.argmax(p, axis=1)], model.predict(NEW))
        assert model.score(X, y) > 0.75
        assert_allclose(model.training_data()[0], X)
        assert np.array_equal(model.training_data()[1], y)
        assert set(model.decide(NEW, reject=0.0001).tolist()) <= {None, *np.unique(y).tolist()}


@pytest.mark.parametrize("model", [m for m in ALL if not isinstance(m, PlattScaling)], ids=repr)
def test_files(model, tmp_path):
    model.fit(X, Y).save(tmp_path / "model.eb")
    assert np.array_equal(errorband.load(tmp_path / "model.eb").predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize("covariance", ["shared", "each"])
def test_generative_is_bayes_rule(covariance):
    model = GenerativeGaussianClassifier(covariance=covariance, regularisation=1e-12, normalize=False).fit(X, Y)
    high = Y == "high"
    cov = [np.cov(X[part].T, bias=True) for part in (high, ~high)]
    cov = [0.5 * (cov[0] + cov[1])] * 2 if covariance == "shared" else cov
    density = [
        multivariate_normal(X[part].mean(axis=0), c).pdf(NEW) for part, c in zip((high, ~high), cov, strict=True)
    ]
    assert_allclose(model.predict_proba(NEW)[:, 0], density[0] / (density[0] + density[1]), rtol=1e-6)


def test_nearest_neighbour_leaves_the_row_itself_out():
    x = np.array([[0.0], [0.1], [1.0], [1.0], [0.25]])
    model = ProbabilisticNearestNeighbour(normalize=False).fit(x, [0, 0, 1, 0, 1])
    assert model.accuracy_ == 2 / 5  # the first two; duplicates disagree, and so do the last and its neighbour
    assert_allclose(model.distance([[0.4]]), 0.15)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_a_sigmoid_is_found_again(link):
    rng = np.random.default_rng(1)
    score = rng.normal(size=20_000)
    cdf = ndtr if link == "probit" else expit
    sign = np.where(rng.random(20_000) < cdf(2 * score - 0.5), 1.0, -1.0)
    assert_allclose(fit_sigmoid(score, sign, link), [2.0, -0.5], atol=0.1)


def test_the_variance_flattens_the_sigmoid():
    assert_allclose(sigmoid(np.array([1.0]), 2.0, 0.5, variance=np.array([3.0])), ndtr(2.5 / np.sqrt(13)))
    far = [[50.0, -50.0]]
    wide, narrow = (LeastSquaresGPClassifier(optimizer=None, variance=v).fit(X, Y) for v in (True, False))
    assert abs(wide.predict_proba(far)[0, 0] - 0.5) <= abs(narrow.predict_proba(far)[0, 0] - 0.5) + 1e-3


def test_left_out_density_and_its_gradient():
    model = errorband.GPRegressor(SquaredExponential([1.0, 2.0], 1.0), normalize=False, approximation="exact")
    sign = np.where(Y == "high", 1.0, -1.0)
    template, step = model.objective(X, sign).model, 1e-5
    theta = model.objective(X, sign).theta0
    value, gradient = left_out_density(template, theta, X, sign)
    fitted = errorband.GPRegressor(
        SquaredExponential([1.0, 2.0], 1.0), normalize=False, approximation="exact", optimizer=None
    ).fit(X, sign)
    assert_allclose(value, np.sum(fitted.loo().log_density), rtol=1e-8)
    for i in range(len(theta)):
        ahead, behind = (left_out_density(template, theta + s * step * np.eye(4)[i], X, sign)[0] for s in (1, -1))
        assert_allclose(gradient[i], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


def test_searching_by_leaving_out_raises_it():
    start = LeastSquaresGPClassifier(optimizer=None).fit(X, Y)
    found = LeastSquaresGPClassifier().fit(X, Y)
    density = [np.sum(m.regressors_[0].loo().log_density) for m in (start, found)]
    assert density[1] > density[0]
    assert start.fit_result_ is None
    assert [result.converged for result in found.fit_result_] == [True]


@pytest.mark.slow
def test_transduction_moves_the_line_into_the_gap():
    rng = np.random.default_rng(0)
    cloud = np.concatenate([rng.normal(-2, 0.4, (20, 1)), rng.normal(3, 0.4, (20, 1))])
    x, y = [[-1.0], [-0.8], [3.0], [3.2]], ["a", "a", "b", "b"]
    settings = {"kernel": SquaredExponential(1.0, 4.0), "optimizer": None, "normalize": False}
    model = TransductiveGPClassifier(**settings).fit(x, y, unlabelled=cloud)
    assert model.transduction_.tolist() == ["a"] * 20 + ["b"] * 20
    assert np.all(np.diff(model.objective_) >= -1e-9)
    soft = TransductiveGPClassifier(labels="entropic", **settings).fit(x, y, unlabelled=cloud)
    assert np.all(np.diff(soft.objective_) >= -1e-6)
    alone = TransductiveGPClassifier(**settings).fit(x, y)
    assert alone.transduction_.shape == (0,)
    assert_allclose(alone.predict_proba(x), alone.first_.predict_proba(x), atol=0.05)
    with pytest.raises(ValueError, match="two classes"):
        TransductiveGPClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 2])


def test_soft_margins():
    grid = np.linspace(-5, 5, 101)
    assert_allclose(soft_margin(grid).sum(axis=1), 1.0)
    assert_allclose(soft_margin([0.0])[0, 2], 0.352, atol=5e-4)
    assert_allclose(soft_margin([9.0])[0, 2], 0.119, atol=5e-4)
    raw = np.exp(-np.maximum(0, 1 - grid)), np.exp(-np.maximum(0, 1 + grid))
    assert_allclose(soft_margin(grid, renormalised=True)[:, 1], raw[0] / (raw[0] + raw[1]), rtol=1e-10)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (GenerativeGaussianClassifier(covariance="some"), "choose 'shared' or 'each'"),
        (PlattScaling(link="tanh"), "choose 'probit' or 'logit'"),
        (LeastSquaresGPClassifier(criterion="cv"), "choose 'loo' or 'evidence'"),
        (TransductiveGPClassifier(labels="both"), "choose 'hard' or 'entropic'"),
        (PlattScaling(LinearRegression()), "needs a classifier with decision_function"),
    ],
)
def test_refusals(model, told):
    with pytest.raises((ValueError, TypeError), match=told):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="one class"):
        ProbabilisticNearestNeighbour().fit(X, np.zeros(50))
    with pytest.raises(ValueError, match="has one"):
        PlattScaling(SVC()).fit(X, np.arange(50) == 3)
    with pytest.raises(ValueError, match=r"unlabelled has 1 columns and X has \d"):
        TransductiveGPClassifier(optimizer=None).fit(X, Y, unlabelled=X[:, :1])


class Told(BaseEstimator):
    """A model with an evidence and nothing else."""

    def __init__(self, log_evidence):
        self.log_evidence_ = log_evidence

    def fit(self):
        return self


def test_probabilities_of_models():
    table = compare_evidence({"a": Told(-3.0), "b": Told(-1.0)})
    assert table.index.tolist() == ["b", "a"]
    assert_allclose(table.probability, [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))])
    weighted = compare_evidence({"a": Told(-3.0), "b": Told(-1.0)}, prior=[np.exp(2), 1.0])
    assert_allclose(weighted.probability, 0.5)
    with pytest.raises(ValueError, match="a positive number for each"):
        compare_evidence([Told(0.0)], prior=[0.5, 0.5])
    with pytest.raises(ValueError, match="one model or more"):
        compare_evidence([])
