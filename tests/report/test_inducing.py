"""Inducing inputs in the report."""

import dataclasses

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import FITC, VFE
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.reporting import report
from errorband.reporting.parts.inducing.content import inducing, inducing_of_each
from errorband.reporting.parts.inducing.sections import inducing_of_classes_section, inducing_section

KERNEL = SquaredExponential(0.4, 1.0)


@pytest.fixture(scope="module")
def grown():
    rng = np.random.default_rng(0)
    X = rng.uniform(100, 200, (300, 1))
    y = np.sin(X[:, 0] / 5) + 0.1 * rng.normal(size=300)
    options = {"likelihood": Gaussian(0.01), "optimizer": None, "random_state": 0}
    return (
        GPRegressor(SquaredExponential(11.0, 0.5), approximation=FITC("auto"), **options).fit(X[:250], y[:250]),
        X[250:],
        y[250:],
    )


def test_sweep_places_and_certificate_are_in_the_page(grown):
    model, X, y = grown
    content, sweep = inducing(model, model.training_data()[0]), model.inducing_sweep_
    assert content.places.shape == (sweep.chosen, 1)
    assert content.places.min() > 90  # in the units of the data
    assert np.isin(content.rows, model.training_data()[0]).all()
    section = inducing_section(content, ["hour"])
    assert sweep.certificate in section.lead
    assert "left where they were put" in section.lead
    (number, spent), table, places = section.blocks
    np.testing.assert_allclose(number.figure.data[0]["x"], sweep.n_inducing)
    np.testing.assert_allclose(number.figure.data[0]["y"], sweep.nlpd)
    np.testing.assert_allclose(spent.figure.data[0]["x"], np.cumsum(sweep.seconds))
    assert f"{sweep.chosen} (chosen)" in table
    np.testing.assert_allclose(places.figure.data[1]["x"], content.places[:, 0])
    page = report(model, X, y, target="level", baselines=False).html
    assert "The inducing inputs" in page
    assert sweep.certificate in page


def test_two_inputs_are_drawn_and_more_are_a_table(grown):
    rng = np.random.default_rng(1)
    two = dataclasses.replace(
        inducing(*grown[:2]), places=rng.normal(size=(9, 2)), rows=rng.normal(size=(30, 2)), sweep=None, moved=3
    )
    section = inducing_section(two, ["a", "b"])
    assert "3 inducing inputs had no part" in section.lead
    np.testing.assert_allclose(section.blocks[0].figure.data[1]["y"], two.places[:, 1])
    four = dataclasses.replace(two, places=10 + rng.normal(size=(9, 4)), rows=rng.normal(size=(30, 4)))
    (table,) = inducing_section(four, ["a", "<b>", "c", "d"]).blocks
    assert "&lt;b&gt;" in table
    assert table.count(">9<") == 4  # all of them are outside the rows


def test_classes_and_models_without():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2))
    options = {"optimizer": None, "random_state": 0}
    model = GPClassifier(KERNEL, approximation=FITC(5), **options).fit(X[:60], X[:60, 0] > 0)
    page = report(model, X[60:], X[60:, 0] > 0, baselines=False).html
    assert "FITC sees the function through 5 inducing inputs" in page
    exact = GPRegressor(KERNEL, **options).fit(X, X[:, 0])
    assert inducing(exact, X) is None
    assert inducing_section(None, ["a"]) is None
    learned = GPRegressor(KERNEL, approximation=VFE(4), random_state=0).fit(X, X[:, 0])
    assert inducing(learned, X).fate == "learned with the hyperparameters"
    part = VFE(4, optimize_inputs=[True, False])
    some = GPRegressor(KERNEL, approximation=part, optimizer=LBFGS(max_seconds=0.0), random_state=0)
    with pytest.warns(ConvergenceWarning):
        assert inducing(some.fit(X, X[:, 0]), X).fate == "in part learned with the hyperparameters"


@pytest.mark.slow
def test_a_model_for_each_class_says_so_of_each():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 2)) + 100
    labels = np.array(["low", "mid", "<high>"])[np.digitize(X[:, 0], [99.6, 100.4])]
    options = {"optimizer": None, "random_state": 0, "multi_class": "one_vs_rest"}
    model = GPClassifier(KERNEL, approximation=VFE(5), **options).fit(X[:70], labels[:70])
    made = report(model, X[70:], labels[70:], baselines=False)
    assert made.content.inducing is None
    assert [c.places.shape for c in made.content.inducing_of_each] == [(5, 2)] * 3
    for part, c in zip(model.estimators_, made.content.inducing_of_each, strict=True):
        np.testing.assert_allclose(c.places, part.approximation_.inducing_inputs)
        assert np.all(np.abs(c.places - 100) < 5)
    section = inducing_of_classes_section(made.content.inducing_of_each, ["low", "mid", "<high>"], ["a", "b"])
    table, pictures = section.blocks
    assert table.count(">5<") == 3
    assert "&lt;high&gt;" in table
    np.testing.assert_allclose(pictures[2].figure.data[1]["x"], made.content.inducing_of_each[2].places[:, 0])
    assert "The inducing inputs" in made.html
    exact = GPClassifier(KERNEL, **options).fit(X[:70], labels[:70])
    assert inducing_of_each(exact, X) == ()
    assert inducing_of_classes_section((), [], ["a", "b"]) is None
