"""Tables that stay in a file while a model learns from them."""

import numpy as np
import pytest

from errorband import GPClassifier, GPRegressor, load
from errorband.approximations import FITC, PIC, VFE
from errorband.estimators import scaling
from errorband.estimators.scaling import ScaledRows, Scaling
from errorband.kernels import Linear, SquaredExponential


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Inputs and targets, in memory and mapped to files."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 5, (400, 2)) * [1.0, 100.0]
    y = np.sin(X[:, 0]) + 0.01 * X[:, 1] + 0.1 * rng.normal(size=len(X))
    folder = tmp_path_factory.mktemp("table")
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return X, y, np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")


@pytest.mark.parametrize(
    ("approximation", "stays"), [(VFE(8), True), (FITC(8), True), (PIC(8, block_size=150), False), ("exact", False)]
)
def test_a_file_gives_the_model_of_its_array(table, approximation, stays):
    X, y, X_file, y_file = table
    kernel = SquaredExponential() + Linear(active_dims=[1])
    settings = {"approximation": approximation, "optimizer": None, "random_state": 0}
    expected = GPRegressor(kernel, mean="linear", **settings).fit(X, y)
    model = GPRegressor(kernel, mean="linear", **settings).fit(X_file, y_file)
    assert isinstance(model._training_data.X, ScaledRows) == stays
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-10)
    for found, wanted in zip(model.predict(X_file, return_std=True), expected.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8)
    np.testing.assert_allclose(model.loo().log_density, expected.loo().log_density, rtol=1e-8)


def test_a_classifier_reads_files(table):
    X, y, X_file, _ = table
    labels = np.where(y > np.median(y), "high", "low")
    settings = {"approximation": FITC(5), "optimizer": None, "random_state": 0}
    expected = GPClassifier(**settings).fit(X, labels).predict_proba(X)
    np.testing.assert_allclose(GPClassifier(**settings).fit(X_file, labels).predict_proba(X_file), expected, rtol=1e-8)


def test_moments_by_chunks_are_those_of_the_whole(table, monkeypatch):
    X, y, _, _ = table
    monkeypatch.setattr(scaling, "CHUNK", 64)
    found = Scaling.standardise(X, y, np.zeros(2, bool))
    np.testing.assert_allclose(found.x_shift, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.x_scale, X.std(axis=0), rtol=1e-12)
    assert (found.y_shift, found.y_scale) == pytest.approx((y.mean(), y.std()), rel=1e-12)


def test_rows_of_a_file_are_scaled_where_they_are_read(table):
    _, _, X_file, _ = table
    wanted = (X_file - X_file.mean(axis=0)) / X_file.std(axis=0)
    rows = ScaledRows(X_file, Scaling(X_file.mean(axis=0), X_file.std(axis=0), 0.0, 1.0))
    assert rows.shape == (400, 2)
    assert len(rows) == 400
    np.testing.assert_allclose(rows[10:20], wanted[10:20])
    np.testing.assert_allclose(rows[[3, 1]], wanted[[3, 1]])
    np.testing.assert_allclose(np.asarray(rows), wanted)
    with pytest.raises(ValueError, match="always a copy"):
        np.asarray(rows, copy=False)


def test_a_saved_model_leaves_the_rows_in_their_file(table, tmp_path):
    X, y, X_file, y_file = table
    model = GPRegressor(approximation=VFE(8), optimizer=None, random_state=0).fit(X, y)
    model.save(tmp_path / "whole.eb")
    model.fit(X_file, y_file).save(tmp_path / "model.eb")
    assert (tmp_path / "model.eb").stat().st_size < (tmp_path / "whole.eb").stat().st_size - X.nbytes
    loaded = load(tmp_path / "model.eb")
    for found, wanted in zip(loaded.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="fit it again"):
        loaded.loo()


def test_a_file_of_single_precision_stays_there_too(table, tmp_path):
    X, y, _, _ = table
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    X_file = np.load(tmp_path / "X.npy", mmap_mode="r")
    settings = {"approximation": VFE(8), "optimizer": None, "random_state": 0}
    model = GPRegressor(**settings).fit(X_file, y)
    assert isinstance(model._training_data.X, ScaledRows)
    assert model._training_data.X[:3].dtype == np.float64
    expected = GPRegressor(**settings).fit(np.array(X_file, dtype=float), y)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-12)
