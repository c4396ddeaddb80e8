"""What sparse models do with strange input: every member decides, and none fails or predicts nonsense."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import DTC, FITC, PIC, PITC, VFE, Exact, Nystrom, PowerEP, SoR
from errorband.kernels import Matern
from errorband.likelihoods import Gaussian

FAMILY = {cls.__name__: cls for cls in (SoR, DTC, FITC, VFE, PowerEP, PITC, PIC, Nystrom)}
KERNEL = Matern([0.8, 1.3], 1.44, nu=1.5)


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:30], y[:30], X_test


def fixed(approximation, **options):
    options = {"optimizer": None, "normalize": False, "random_state": 0, **options}
    return GPRegressor(KERNEL, likelihood=Gaussian(0.0625), approximation=approximation, **options)


@pytest.mark.parametrize("name", FAMILY)
def test_more_than_rows_or_distinct_rows_is_one_for_each(name, data):
    X, y, X_test = data
    many = fixed(FAMILY[name](100)).fit(X, y)
    assert len(many.approximation_.inducing_inputs) == 30
    assert_allclose(many.predict(X_test), fixed(Exact()).fit(X, y).predict(X_test), atol=1e-5)
    twice = fixed(FAMILY[name](50)).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert len(twice.approximation_.inducing_inputs) == 30
    assert_allclose(
        twice.predict(X_test), fixed(Exact()).fit(np.tile(X, (2, 1)), np.tile(y, 2)).predict(X_test), atol=1e-5
    )


@pytest.mark.filterwarnings("ignore:The search", "ignore:.*below zero")
@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("case", ["outside", "duplicates", "constant column"])
def test_strange_places_and_columns_give_finite_predictions(name, case, data):
    X, y, X_test = data
    Z = {"outside": X[:5] + 1e3, "duplicates": np.repeat(X[:2], 3, axis=0)}.get(case)
    if case == "constant column":
        X, X_test = (np.column_stack([a, np.full(len(a), 7.0)]) for a in (X, X_test))
    approximation = FAMILY[name](5, inducing_inputs=Z)
    model = GPRegressor(approximation=approximation, optimizer=LBFGS(max_iter=3), random_state=0).fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    assert np.isfinite(model.log_evidence_)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std) & (std > 0))
    assert np.ptp(model.approximation_.inducing_inputs[:, -1]) == 0 or case != "constant column"


def test_a_block_or_cluster_of_one_class():
    """Inducing inputs of one class only, and a class of a single row, are nothing special; Nyström is for numbers."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), 8 + rng.normal(size=(20, 2)), [[20.0, 20.0]]])
    labels = np.repeat(["a", "b", "c"], [20, 20, 1])
    options = {"optimizer": None, "random_state": 0}
    one_block = GPClassifier(KERNEL, approximation=FITC(inducing_inputs=X[:4]), **options)
    share = one_block.fit(X[:40], labels[:40]).predict_proba(X[:40])
    assert np.all(np.isfinite(share))
    assert np.all(share[:20, 0] > 0.5)
    alone = GPClassifier(KERNEL, approximation=FITC(4), **options).fit(X[1:], labels[1:] == "c")
    assert alone.predict(X[-1:])
    with pytest.raises(ValueError, match="FITC goes with every likelihood"):
        GPClassifier(KERNEL, approximation=Nystrom(4), **options).fit(X, labels)
    with pytest.raises(ValueError, match="two classes or more"):
        GPClassifier(KERNEL, approximation=FITC(4), **options).fit(X[:20], labels[:20])


def test_flags_of_inducing_inputs_must_fit():
    X = np.linspace(0, 1, 20).reshape(10, 2)
    model = GPRegressor(approximation=FITC(4, optimize_inputs=[True, False, True]))
    with pytest.raises(ValueError, match=r"\(2,\) for columns"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="flags for columns"):
        FITC("auto", optimize_inputs=[[True], [False]])
