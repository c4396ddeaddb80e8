"""Relevance vectors in reports and plots."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from errorband import RVMRegressor
from errorband.plots import plot_band
from errorband.reporting import report
from errorband.reporting.parts.relevance_vectors import relevance_vectors, relevance_vectors_section

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def machine():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    return RVMRegressor().fit(X[:40], y[:40]), X[40:], y[40:]


def test_the_report_lists_them_by_weight(machine):
    model, X, y = machine
    (content,) = relevance_vectors(model, 40)
    assert len(content.vectors) == model.n_relevance_vectors_
    assert np.all(np.diff(content.weight) <= 0)
    assert np.isin(np.round(content.vectors, 9), np.round(model.training_data()[0], 9)).all()
    page = report(model, X, y, target="level", baselines=False).html
    assert "The relevance vectors" in page
    assert f"{model.n_relevance_vectors_} relevance vectors of 40 rows" in page


def test_the_plot_marks_them(machine):
    ax = plot_band(machine[0])
    marks = next(line for line in ax.lines if line.get_label() == "relevance vectors")
    np.testing.assert_allclose(np.sort(marks.get_xdata()), np.sort(machine[0].relevance_vectors_[:, 0]))


def test_a_machine_for_each_class_and_other_models():
    vectors, precision = [np.zeros((2, 8)), np.ones((15, 8))], [np.array([4.0, 1.0]), np.ones(15)]
    model = SimpleNamespace(relevance_vectors_=vectors, precision_=precision, members_=[None, None])
    first, second = relevance_vectors(model, 30, ["cat", "dog"])
    np.testing.assert_allclose(first.weight, [1.0, 0.5])
    section = relevance_vectors_section((first, second), [f"x{i}" for i in range(8)])
    assert "Class cat: 2 relevance vectors of 30 rows; the first 6 of 8 inputs" in section.blocks[0]
    assert "the 12 of the largest weights" in section.blocks[1]
    assert relevance_vectors(None, 30) == ()
    assert relevance_vectors_section((), ["x"]) is None
