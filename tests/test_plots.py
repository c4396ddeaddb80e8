"""Plots with matplotlib: what is drawn is what the model says."""

import inspect

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

mpl.use("Agg")
import matplotlib.pyplot as plt

from errorband import LBFGS, GPClassifier, GPRegressor, effects, metrics, plots
from errorband.predictive import GaussianPredictive


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, 60)
    y = np.sin(x) + 0.1 * rng.normal(size=60)
    return GPRegressor().fit(x[:, None], y), x, y


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(-1, 1, 80), rng.integers(0, 3, 80)])
    y = X[:, 0] + 3 * X[:, 1] + 0.1 * rng.normal(size=80)
    return GPRegressor().fit(X, y), X, y


def _polygon(collection):
    return collection.get_paths()[0].vertices


@pytest.mark.parametrize("latent", [False, True])
def test_bands_are_quantiles(line, latent):
    model, _, _ = line
    grid = np.linspace(1, 5, 20)
    ax = plots.plot_band(model, grid, latent=latent, data=False)
    for collection, level in zip(ax.collections, (0.95, 0.8, 0.5), strict=True):
        lower, upper = model.predict_interval(grid[:, None], level, latent=latent)
        corners = _polygon(collection)
        for x, low, high in zip(grid, lower, upper, strict=True):
            at = corners[np.isclose(corners[:, 0], x), 1]
            assert at.min() == pytest.approx(low)
            assert at.max() == pytest.approx(high)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), model.predict(grid[:, None]))


def test_band_with_draws_and_data(line):
    model, x, y = line
    ax = plots.plot_band(model, n_samples=3, random_state=1)
    assert len(ax.lines) == 3 + 1 + 1
    np.testing.assert_allclose(ax.lines[-1].get_xdata(), x)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), y)
    grid = ax.lines[0].get_xdata()
    assert grid[0] < x.min() < x.max() < grid[-1]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), effects.posterior_draws(model, grid[:, None], 3, 1)[1])
    assert ax.get_xlabel() == "x0"


def test_band_is_for_one_input(plane):
    with pytest.raises(ValueError, match=r"one input; this one has 2.*plot_map"):
        plots.plot_band(plane[0])


def test_calibration_is_that_of_the_metrics_module(line):
    model, x, y = line
    predictive = model.predictive(x[:, None])
    ax = plots.plot_calibration(model, x[:, None], y)
    levels, observed = metrics.calibration_curve(metrics.pit(y, predictive))
    np.testing.assert_array_equal(ax.lines[-1].get_xdata(), levels)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), observed)
    corners = _polygon(ax.collections[0])
    for level in (0.5, 0.9):
        at = corners[np.isclose(corners[:, 0], level), 1]
        assert at.min() <= level <= at.max()


def test_relevance_has_the_largest_bar_first(plane):
    model, X, _ = plane
    ax = plots.plot_relevance(model)
    widths = [bar.get_width() for bar in ax.patches]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x1", "x0"]
    np.testing.assert_allclose(widths, np.sort(effects.relevance(model, X))[::-1])
    assert ax.yaxis_inverted()
    assert len(plots.plot_relevance(model, most=1).patches) == 1


class Known:
    """A model with the predictions it is given: the rows are their numbers."""

    def __init__(self, predictive=None, proba=None, classes=None):
        self.said, self.proba = predictive, proba
        if classes is not None:
            self.classes_ = np.asarray(classes)
            self.predict_proba = lambda X: self.proba[X]
        else:
            self.predictive = lambda X: self.said


def test_predicted_vs_actual_separates_rows_outside_their_band():
    y = np.array([0.0, 1.0, 9.0])
    predictive = GaussianPredictive([0.5, 0.5, 0.5], [1.0, 1.0, 2.0])
    ax = plots.plot_predicted_vs_actual(Known(predictive), np.arange(3), y, level=0.5)
    inside, outside = ax.containers
    assert ax.get_legend_handles_labels()[1] == ["inside its 50 % band (2)", "outside (1)"]
    np.testing.assert_array_equal(outside.lines[0].get_xdata(), [9.0])
    lower, upper = predictive.interval(0.5)
    bars = np.array([s[:, 1] for s in inside.lines[2][0].get_segments()])
    np.testing.assert_allclose(bars, np.column_stack([lower, upper])[:2])


def test_residuals_against_an_input(plane):
    model, X, y = plane
    p = model.predictive(X)
    ax = plots.plot_residuals(model, X, y, feature="x1")
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), (y - p.mean) / p.std)
    np.testing.assert_allclose(ax.lines[-1].get_xdata(), X[:, 1])
    assert ax.get_xlabel() == "x1"
    assert plots.plot_residuals(model, X, y).get_xlabel() == "predicted"


def test_partial_dependence_as_curve_and_as_levels(plane):
    model, X, _ = plane
    ax = plots.plot_partial_dependence(model, X, feature=0, levels=(0.9,))
    effect = effects.partial_dependence(model, X, 0)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), effect.curve.mean)
    corners = _polygon(ax.collections[0])
    assert corners[:, 1].max() == pytest.approx(effect.curve.interval(0.9)[1].max())
    ax = plots.plot_partial_dependence(model, X, feature="x1")
    np.testing.assert_array_equal(ax.get_xticks(), [0, 1, 2])
    np.testing.assert_allclose(np.diff(ax.lines[0].get_ydata()), 3, atol=0.2)


def test_map_shows_mean_and_latent_spread(plane):
    model, X, _ = plane
    left, right = plots.plot_map(model, n_grid=8)
    at = np.stack(np.meshgrid(*[np.linspace(a, b, 8) for a, b in zip(X.min(0), X.max(0), strict=True)]), -1)
    mean, std = model.predict(at.reshape(-1, 2), return_std=True, latent=True)
    np.testing.assert_allclose(np.ravel(left.collections[0].get_array()), mean)
    np.testing.assert_allclose(np.ravel(right.collections[0].get_array()), std)
    with pytest.raises(ValueError, match=r"two inputs; this one has 1.*plot_band"):
        plots.plot_map(GPRegressor(optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0]))


def test_trace_ends_at_the_evidence(line):
    model, _, _ = line
    ax = plots.plot_trace(model)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(model.log_evidence_)
    with pytest.raises(ValueError, match="optimizer=None"):
        plots.plot_trace(GPRegressor(optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0]))


def test_everything_draws_into_given_axes(line, plane):
    model, x, y = line
    X = x[:, None]
    _, axes = plt.subplots(2, 4)
    a = axes.ravel()
    assert plots.plot_band(model, ax=a[0]) is a[0]
    assert plots.plot_calibration(model, X, y, ax=a[1]) is a[1]
    assert plots.plot_relevance(plane[0], ax=a[2]) is a[2]
    assert plots.plot_predicted_vs_actual(model, X, y, ax=a[3]) is a[3]
    assert plots.plot_residuals(model, X, y, ax=a[4]) is a[4]
    assert plots.plot_partial_dependence(plane[0], plane[1], ax=a[5]) is a[5]
    assert plots.plot_trace(model, ax=a[6]) is a[6]
    pair = plt.subplots(1, 2)[1]
    assert plots.plot_map(plane[0], ax=pair) is pair


def test_class_plots_show_the_metrics():
    rng = np.random.default_rng(0)
    share = rng.dirichlet([1.0, 1.0, 1.0], 300)
    y = np.array(["a", "b", "c"])[(share.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)]
    pair = plt.subplots(1, 2)[1]
    model, rows = Known(proba=share, classes=["a", "b", "c"]), np.arange(300)
    ax = plots.plot_reliability(model, rows, y, n_bins=5, ax=pair[0])
    assert ax is pair[0]
    confidence, frequency, _ = metrics.reliability_curve(y, share, ["a", "b", "c"], 5)
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), np.stack([confidence, frequency], axis=1))
    ax = plots.plot_error_reject(model, rows, y, ax=pair[1])
    rejected, errors = metrics.error_reject_curve(y, share, ["a", "b", "c"])
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), np.stack([rejected, errors], axis=1))


def test_what_a_plot_cannot_draw_is_refused_in_a_sentence(plane):
    model, X, y = plane
    classifier = GPClassifier(optimizer=None).fit(X, y > 3)
    with pytest.raises(TypeError, match="plot_band draws regressors, and GPClassifier predicts classes"):
        plots.plot_band(classifier)
    with pytest.raises(ValueError, match="draws two maps of this model: give ax as many"):
        plots.plot_map(model, ax=plt.gca())
    with pytest.raises(TypeError, match="write feature='x1'"):
        plots.plot_partial_dependence(model, "x1")
    with pytest.raises(
        TypeError, match=r"plot_calibration\(model, X, y\) draws fitted errorband regressors; got ndarray"
    ):
        plots.plot_calibration(y, X, y)
    with pytest.raises(TypeError, match="plot_residuals draws regressors, and GPClassifier predicts classes"):
        plots.plot_residuals(classifier, X, y)
    with pytest.raises(TypeError, match=r"plot_reliability\(model, X, y\) draws fitted classifiers; got GPRegressor"):
        plots.plot_reliability(model, X, y)


def test_all_plots_are_called_in_one_way():
    for name in plots.__all__:
        arguments = inspect.signature(getattr(plots, name)).parameters.values()
        positional = [a.name for a in arguments if a.kind is a.POSITIONAL_OR_KEYWORD]
        assert positional == ["model", "X", "y"][: len(positional)], name
        assert next(reversed(list(arguments))).name == "ax", name


def test_frames_and_pipelines_are_drawn_by_the_names_of_columns(plane):
    _, X, y = plane
    frame = pd.DataFrame(X, columns=["depth", "level"])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), GPRegressor(optimizer=None)).fit(frame, y)
    assert plots.plot_residuals(model, frame, y, feature="level").get_xlabel() == "level"
    assert plots.plot_partial_dependence(model, frame, feature="depth").get_xlabel() == "depth"
    assert [ax.get_xlabel() for ax in plots.plot_map(model, frame, n_grid=3)] == ["depth", "depth"]
    assert {t.get_text() for t in plots.plot_relevance(model).get_yticklabels()} == {"depth", "level"}
    for plot in (plots.plot_calibration, plots.plot_predicted_vs_actual):
        assert plot(model, frame, y).lines
    one = make_pipeline(StandardScaler(), GPRegressor(optimizer=None)).fit(X[:, :1], y)
    assert len(plots.plot_band(one, X[:, 0]).lines) == 2


def test_classifiers_are_drawn_by_their_probabilities(plane):
    _, X, y = plane
    model = GPClassifier(optimizer=None).fit(X, y > 3)
    ax = plots.plot_map(model, n_grid=5)
    assert ax.get_title() == "probability of True"
    at = np.stack(np.meshgrid(*(np.linspace(X[:, j].min(), X[:, j].max(), 5) for j in (0, 1))), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(np.ravel(ax.collections[0].get_array()), model.predict_proba(at)[:, 1])
    ax = plots.plot_partial_dependence(model, X, feature=0)
    found = effects.class_dependence(model, X, 0)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.share[:, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["True"]


def test_a_trace_for_each_class(plane):
    X = plane[1]
    model = GPClassifier(optimizer=LBFGS(max_iter=1)).fit(X, X[:, 1])
    ax = plots.plot_trace(model)
    assert len(ax.lines) == 3
    for line, member in zip(ax.lines, model.members_, strict=True):
        assert line.get_ydata()[-1] == pytest.approx(member.log_evidence_)
