"""Predictions of rows with missing inputs: averaged over what these may be, and calibrated."""

import json

import numpy as np
import pandas as pd
import pytest

from errorband import GPClassifier, GPRegressor, missing
from errorband.kernels import Linear
from errorband.missing import N_DRAWS, Donors
from errorband.predictive import GaussianMixturePredictive, GaussianPredictive
from errorband.table_model import TableModel, as_frame
from errorband.tables import TableEncoder


def _houses(n, seed):
    """A strong input, one that is known from it, words, and noise of standard deviation 25."""
    rng = np.random.default_rng(seed)
    area = 20 + rng.gamma(6, 14, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.6, n)), 1, 8)
    city = rng.choice(["Basel", "Bern", "Genf", "Uri"], n, p=[0.2, 0.2, 0.2, 0.4])
    place = pd.Series(city).map({"Basel": 0.0, "Bern": 20.0, "Genf": 90.0, "Uri": 120.0}).to_numpy()
    price = 4 * area + 15 * rooms + place + 25 * rng.normal(size=n)
    return pd.DataFrame({"area": area, "rooms": rooms, "city": city, "price": price})


@pytest.fixture(scope="module")
def houses():
    """A table model of 300 complete rows."""
    frame = _houses(300, 0)
    encoder = TableEncoder.fit(frame, target="price", missing="impute")
    X, y = as_frame(encoder.transform(frame))
    model = GPRegressor(Linear()).fit(X, y)
    donors = Donors.among(X.to_numpy(), [column.columns for column in encoder.inputs])
    return TableModel(encoder, model, {}, donors)


@pytest.fixture(scope="module")
def new():
    return _houses(1500, 1)


@pytest.mark.parametrize("gone", [[], ["area"], ["rooms"], ["city"], ["area", "city"]], ids=str)
def test_bands_hold_95_percent_whatever_is_missing(houses, new, gone):
    table = new.astype({"city": object})
    table.loc[1:, gone] = np.nan
    found, _ = houses.predict(table)
    inside = (found["lower"] <= new["price"]) & (new["price"] <= found["upper"])
    assert 0.93 <= inside[1:].mean() <= 0.97
    assert found["imputed"].tolist() == [""] + [", ".join(gone)] * (len(new) - 1)


def test_bands_widen_by_what_the_missing_input_matters(houses, new):
    def std(gone):
        table = new.astype({"city": object})
        table.loc[1:, gone] = np.nan
        return houses.predict(table)[0]["std"][1:].mean()

    assert std([]) < std(["rooms"]) < 1.5 * std([])
    assert 2 * std([]) < std(["area"]) < std(["area", "rooms"])  # rooms say much of the area


def test_an_unseen_level_widens_the_band_too(houses, new):
    known = houses.predict(new)[0]
    found, notices = houses.predict(new.assign(city=["Bern"] + ["Lugano"] * (len(new) - 1)))
    assert (found["std"][1:] > 1.5 * known["std"][1:].mean()).all()
    assert set(found["imputed"][1:]) == {"city"}
    assert "'Lugano' where training had" in notices[-1]
    inside = (found["lower"] <= new["price"]) & (new["price"] <= found["upper"])
    assert inside[1:].mean() > 0.93


def test_complete_rows_are_predicted_as_by_the_estimator(houses, new):
    table = new.copy()
    table.loc[5, "area"] = np.nan
    X = as_frame(houses.encoder.transform(new))[0]
    mean, std = houses.estimator.predict(X, return_std=True)
    found = houses.predict(table)[0].drop(index=5)
    np.testing.assert_allclose(found["mean"], np.delete(mean, 5))
    np.testing.assert_allclose(found["std"], np.delete(std, 5))


def test_a_mixture_has_the_moments_of_its_draws(houses, new):
    X = houses.encoder.transform(new.head(4)).X.copy()
    X[2, 0] = np.nan
    drawn = houses.donors.completed(X)[2]
    each = houses.estimator.predictive(pd.DataFrame(drawn, columns=houses.encoder.feature_names))
    mixed = missing.predictive(houses.estimator, X, houses.donors)
    assert mixed.mean[2] == pytest.approx(each.mean.mean())
    assert mixed.variance[2] == pytest.approx(each.variance.mean() + each.mean.var())
    np.testing.assert_allclose(mixed.cdf(mixed.quantile(0.9)), 0.9, atol=1e-6)
    assert mixed.quantile([0.1, 0.9]).shape == (4, 2)
    assert mixed.sample(3, random_state=0).shape == (3, 4)
    assert np.exp(mixed.log_density(mixed.mean))[2] == pytest.approx(np.mean(np.exp(each.log_density(mixed.mean[2]))))


def test_donors_are_whole_rows_and_go_through_json(houses):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=50), np.eye(3)[rng.integers(0, 3, 50)]])
    rows[:5, 0] = np.nan
    donors = Donors(rows, [(0,), (1, 2, 3)])
    gone = np.array([[np.nan, np.nan, np.nan, np.nan], [0.3, np.nan, np.nan, np.nan]])
    drawn = donors.completed(gone)
    assert drawn.shape == (2, N_DRAWS, 4)
    assert set(map(tuple, drawn[0])) <= set(map(tuple, rows[5:]))
    assert np.all(drawn[1, :, 0] == 0.3)
    np.testing.assert_array_equal(drawn[1, :, 1:].sum(axis=1), 1)
    again = Donors.from_dict(json.loads(json.dumps(donors.to_dict())))
    np.testing.assert_array_equal(again.completed(gone), drawn)
    np.testing.assert_array_equal(again.rows, rows)


def test_columns_that_no_row_has_together_are_drawn_one_by_one():
    rows = np.array([[1.0, np.nan, 5.0], [np.nan, 2.0, 6.0]])
    drawn = Donors(rows, [(0,), (1,), (2,)]).completed(np.array([[np.nan, np.nan, 5.0]]))
    np.testing.assert_array_equal(drawn[0], np.tile([1.0, 2.0, 5.0], (N_DRAWS, 1)))


def test_without_donors_missing_cells_are_refused(houses):
    with pytest.raises(ValueError, match="no training rows to draw them from"):
        missing.predictive(houses.estimator, np.full((1, 6), np.nan), None)


def test_probabilities_are_averages_over_draws():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = GPClassifier(optimizer=None).fit(X, X[:, 0] > 0)
    donors = Donors(X, [(0,), (1,)])
    asked = np.array([[1.0, 0.0], [np.nan, 0.0]])
    share = missing.probabilities(model, asked, donors)
    np.testing.assert_allclose(share[0], model.predict_proba(asked[:1])[0])
    np.testing.assert_allclose(share[1], model.predict_proba(donors.completed(asked)[1]).mean(axis=0))


def test_rows_of_different_kinds_together():
    parts = GaussianPredictive([0.0, 2.0], [1.0, 1.0]), GaussianMixturePredictive([[0.5, 0.5]], [[0, 1]], [[0.1, 0.1]])
    p = missing.RowsPredictive([([0, 2], parts[0]), ([1], parts[1])])
    np.testing.assert_allclose(p.mean, [0.0, 0.5, 2.0])
    np.testing.assert_allclose(p.cdf([0.0, 0.5, 2.0]), 0.5)
    with pytest.raises(ValueError, match="One y per input"):
        p.cdf([0.0, 1.0])
