"""What every estimator of the registry can do: frames, files, spreads or probabilities, refusals, reports."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import errorband
from errorband import GPClassifier, GPRegressor
from errorband.estimators import ESTIMATORS
from errorband.reporting import report

# An example of each, without a search. A new estimator gets a line here.
EXAMPLES = {
    "GPClassifier": {"optimizer": None},
    "GPRegressor": {"optimizer": None},
    "RVMClassifier": {"optimizer": None},
    "RVMRegressor": {"optimizer": None},
    "BayesianCommittee": {"estimator": GPRegressor(optimizer=None), "n_members": 2, "random_state": 0},
    "ProductOfExperts": {"estimator": GPClassifier(optimizer=None), "n_members": 2, "random_state": 0},
    "LeastSquaresGPClassifier": {"optimizer": None},
    "PlattScaling": {"estimator": LogisticRegression()},
    "ProbabilisticNearestNeighbour": {},
    "GenerativeGaussianClassifier": {},
    "TransductiveGPClassifier": {"optimizer": None},
}
NO_PROCESS = {
    "LeastSquaresGPClassifier",
    "PlattScaling",
    "ProbabilisticNearestNeighbour",
    "GenerativeGaussianClassifier",
    "TransductiveGPClassifier",
}
NO_FILES = {"PlattScaling"}  # what is inside belongs to another package

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(48, 2)), columns=["width", "height"])
NUMBERS = np.sin(FRAME["width"].to_numpy()) + 0.1 * RNG.normal(size=48)
CLASSES = np.where(NUMBERS > 0, "up", "down")
NEW = FRAME.iloc[::3] + 0.1


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request):
    cls = ESTIMATORS[request.param]
    model = cls(**EXAMPLES[request.param])
    return model.fit(FRAME, CLASSES if is_classifier(model) else NUMBERS)


def told(model, X):
    """Everything that it says of new rows."""
    return model.predict_proba(X) if is_classifier(model) else np.stack(model.predict(X, return_std=True))


def test_frames(fitted):
    assert fitted.feature_names_in_.tolist() == ["width", "height"]
    with pytest.warns(UserWarning, match="valid feature names"):
        assert_allclose(told(fitted, NEW.to_numpy()), told(fitted, NEW), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(NEW[["height", "width"]])


def test_predictions(fitted):
    found = told(fitted, NEW)
    assert np.all(np.isfinite(found))
    if is_classifier(fitted):
        assert found.shape == (len(NEW), 2)
        assert_allclose(found.sum(axis=1), 1.0)
        assert np.array_equal(fitted.classes_[np.argmax(found, axis=1)], fitted.predict(NEW))
        assert fitted.score(FRAME, CLASSES) > 0.6
        assert set(fitted.decide(NEW, reject=0.2).tolist()) <= {None, "up", "down"}
    else:
        mean, std = found
        assert np.all(std > 0)
        assert np.array_equal(mean, fitted.predict(NEW))
        low, high = fitted.predict_interval(NEW, level=0.9)
        assert np.all((low < mean) & (mean < high))
        assert fitted.score(FRAME, NUMBERS) > 0.5


def test_files(fitted, tmp_path):
    if type(fitted).__name__ in NO_FILES:
        with pytest.raises((TypeError, ValueError), match="sav"):
            fitted.save(tmp_path / "model.eb")
        return
    fitted.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert type(again) is type(fitted)
    assert np.array_equal(told(again, NEW), told(fitted, NEW))


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (lambda X: X.assign(width=np.nan), "NaN"),
        (lambda X: X.assign(width=np.inf), "infinity"),
        (lambda X: X.assign(width="wide"), "width|number|convert"),
        (lambda X: X.to_numpy()[:, :1], "1 feature"),
        (lambda X: X.to_numpy()[:, 0], "2D array|one row per"),
        (lambda X: X.iloc[:0], "0 sample"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_inputs(fitted, bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted.predict(bad(NEW))


def test_not_fitted(fitted):
    with pytest.raises(NotFittedError):
        type(fitted)(**EXAMPLES[type(fitted).__name__]).predict(NEW)


def test_bad_targets(fitted):
    fresh = type(fitted)(**EXAMPLES[type(fitted).__name__])
    y = CLASSES if is_classifier(fresh) else NUMBERS
    for targets in (y[:-1], np.array([None, *y[1:]], dtype=object), np.full(48, np.nan)):
        with pytest.raises(ValueError, match=r"\w"):
            fresh.fit(FRAME, targets)


def test_reports(fitted):
    """What all can say is in every report; what only a Gaussian process knows is there if there is one inside."""
    y = CLASSES if is_classifier(fitted) else NUMBERS
    page = report(fitted, NEW, y[::3], title="Forty-eight rows", baselines=False).html
    for title in ("Forty-eight rows", "How good it is", "Predictions and their", "Which inputs matter", "The data"):
        assert title in page
    assert ("What is left over" in page) == is_regressor(fitted)
    inside = hasattr(fitted, "process_")
    assert inside == (type(fitted).__name__ not in NO_PROCESS)
    for title in ("Fitted hyperparameters", "log evidence", "the uncertainty of this average"):
        assert (title in page) == inside
    assert ">nan<" not in page
