"""Reports on classifiers: their numbers, against the metrics they name, and what the page says."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from errorband import GPClassifier, effects, metrics
from errorband.kernels import SquaredExponential
from errorband.reporting import report


@pytest.fixture(scope="module")
def two(flags):
    return report(flags.model, flags.X_test, flags.y_test, title="Flags", target="flag", data_notes="A note.")


@pytest.fixture(scope="module")
def three(flags):
    """One input, three classes, a model for each."""
    x = np.random.default_rng(3).uniform(-3, 3, (60, 1))
    y = np.digitize(x[:, 0] + 0.1 * np.sin(40 * x[:, 0]), [-1.0, 1.0]) * 10
    model = GPClassifier(multi_class="one_vs_rest", optimizer=None).fit(x[:40], y[:40])
    return report(model, x[40:], y[40:], class_names=["left", "middle", "right"])


def test_metrics_are_those_of_the_probabilities(two, flags):
    c, y = two.content, np.asarray(flags.y_test)
    share = flags.model.predict_proba(flags.X_test)
    at = np.searchsorted(flags.model.classes_, y)
    true = share[np.arange(len(y)), at]
    own = c.scores[0].values
    assert own["error_rate"] == pytest.approx(np.mean(flags.model.predict(flags.X_test) != y))
    assert own["log_loss"] == pytest.approx(-np.mean(np.log(true)))
    assert own["information"] == pytest.approx(metrics.information_bits(true, flags.model.class_prior_[at]))
    error = metrics.expected_calibration_error(y, share, flags.model.classes_)
    assert own["calibration_error"] == pytest.approx(error)
    assert c.confusion.sum() == len(y)
    assert np.trace(c.confusion) == np.sum(flags.model.predict(flags.X_test) == y)
    for i, label in enumerate(flags.model.classes_):
        assert c.confusion[i].sum() == np.sum(y == label)
    rejected, errors = metrics.error_reject_curve(y, share, flags.model.classes_)
    np.testing.assert_allclose(c.error_reject, [rejected, errors])
    assert [s.name for s in c.scores[1:]] == ["Class frequencies", "Logistic regression", "Gradient boosting"]
    assert c.scores[1].values["information"] == pytest.approx(0.0)


def test_surprises_have_the_smallest_leave_one_out_probability(two, flags):
    left_out = flags.model.loo()
    worst = np.argsort(left_out.log_density)[:10]
    found = two.content.surprises
    assert [s.row for s in found] == [str(i) for i in worst]
    assert [s.observed for s in found] == [str(v) for v in left_out.y[worst]]
    np.testing.assert_allclose([s.probability for s in found], np.exp(left_out.log_density[worst]))


def test_a_wrong_label_is_the_greatest_surprise(flags):
    X, y = np.asarray(flags.X_train), np.array(flags.y_train)
    kernel = SquaredExponential([1.0, 2.5], 50.0)  # sure of itself
    model = GPClassifier(kernel, optimizer=None).fit(X, y)
    row = int(np.argmax(model.loo().log_density))
    y[row] = next(label for label in model.classes_ if label != y[row])
    model.fit(X, y)
    content = report(model, flags.X_test, flags.y_test, baselines=False).content
    assert content.surprises[0].row == str(row)
    assert "Labels hard to believe" in [f.title for f in content.findings]
    assert len(content.scores) == 1


def test_relevance_and_curves_are_about_probabilities(flags):
    model, X = flags.model, np.asarray(flags.X_train)
    relevance = effects.relevance(model, X)
    assert relevance.shape == (2,)
    assert 0.05 < relevance.max() < 0.75
    found = effects.class_dependence(model, X, 0, n_grid=5, n_rows=len(X))
    assert (found.discrete, found.n_rows) == (False, len(X))
    changed = X.copy()
    changed[:, 0] = found.grid[2]
    np.testing.assert_allclose(found.share[2], model.predict_proba(changed).mean(axis=0))
    assert np.all((found.lower < found.share) & (found.share < found.upper))


def test_the_page(two, three):
    page = two.html
    for title in ("Before you trust it", "The probabilities", "How good it is", "Predictions and their probabilities",
                  "Which inputs matter", "What the inputs do", "Most surprising training rows",
                  "The search for hyperparameters", "Fitted hyperparameters"):  # fmt: skip
        assert f"<h2>{title}</h2>" in page
    assert "A note." in page
    assert "<b>yes" not in page  # a class name is text
    assert "Bernoulli(probit)" in page
    assert "held-out rows of flag right" in page
    other = three.html
    assert "The probabilities</h2>" not in other
    assert "3, one for each class against the others" in other
    assert "middle" in other
    assert "Flags" in repr(two)


def test_what_cannot_be_reported_is_refused(flags):
    X, y = flags.X_test, np.asarray(flags.y_test)
    with pytest.raises(ValueError, match="labels the model was not fitted to: 'maybe'"):
        report(flags.model, X, np.full(len(y), "maybe"))
    with pytest.raises(ValueError, match="one target for each row"):
        report(flags.model, X, y[:-1])
    with pytest.raises(TypeError, match="regressor or classifier; got LogisticRegression"):
        report(LogisticRegression().fit(X, y), X, y)
