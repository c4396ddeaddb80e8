"""Predictions of rows with missing inputs: averaged over what these may be, and calibrated."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from errorband import GPClassifier, GPRegressor, missing
from errorband.cli import fitting
from errorband.cli.settings import Settings
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
    assert cdist(drawn[0], rows[5:]).min(axis=1).max() < 1e-12
    assert np.all(drawn[1, :, 0] == 0.3)
    np.testing.assert_array_equal(drawn[1, :, 1:].sum(axis=1), 1)
    again = Donors.from_dict(json.loads(json.dumps(donors.to_dict())))
    np.testing.assert_array_equal(again.completed(gone), drawn)
    np.testing.assert_array_equal(again.rows, rows)


@pytest.mark.parametrize(
    "related", [lambda x: 2 * x, np.square, lambda x: np.sin(2 * x), lambda x: 0 * x], ids=range(4)
)
def test_draws_scatter_as_the_column_does_given_the_others(related):
    rng = np.random.default_rng(0)
    x, other, new = rng.normal(size=300), rng.normal(size=300), rng.uniform(-1.5, 1.5, 40)
    rows = np.column_stack([x, related(x) + 0.1 * rng.normal(size=300), other])
    drawn = Donors(rows, [(0,), (1,), (2,)]).completed(np.column_stack([new, np.full(40, np.nan), new[::-1]]))[:, :, 1]
    assert 0.08 < np.sqrt(drawn.var(axis=1).mean()) < 0.14
    assert np.sqrt(np.mean((drawn.mean(axis=1) - related(new)) ** 2)) < 0.09


def test_counts_stay_counts_and_words_follow_the_numbers():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 400)
    rows = np.column_stack([x, np.round(2 * x + rng.normal(size=400)), np.eye(2)[(x > 5).astype(int)]])
    gone = np.full((2, 4), np.nan)
    gone[:, 0] = 2.0, 8.0
    drawn = Donors(rows, [(0,), (1,), (2, 3)]).completed(gone)
    assert set(drawn[:, :, 1].ravel()) <= set(rows[:, 1])
    np.testing.assert_allclose(drawn[:, :, 1].mean(axis=1), [4, 16], atol=0.5)
    np.testing.assert_array_equal(drawn[:, :, 3].mean(axis=1), [0, 1])


def _half_empty(n):
    """Two inputs that hang together, noise of variance 0.04, and a cell missing in two rows of three."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    b = a + 0.5 * rng.normal(size=n)
    table = pd.DataFrame({"a": a, "b": b, "y": a + b + 0.2 * rng.normal(size=n)})
    table.loc[rng.permutation(n)[: n // 3], "a"] = np.nan
    table.loc[table["a"].notna() & (rng.random(n) < 0.5), "b"] = np.nan
    return table


@pytest.mark.parametrize("n", [150, 36], ids=["some complete rows", "hardly any"])
def test_rows_with_missing_cells_are_learned_from_and_do_not_pass_for_noise(n):
    table = _half_empty(n)
    encoder = TableEncoder.fit(table, target="y", missing="impute")
    encoded, settings = encoder.transform(table), Settings(kernel="linear", test_size=0.1)
    X, y = as_frame(encoded, gaps=True)
    fitted = fitting.fit(X, y, encoder, settings, fitting.split(encoded, encoder, settings))
    assert fitted.final.n_training_rows_ == n
    assert "The model learns from them too" in fitted.notes[0]
    noise = fitted.final.likelihood_.noise_variance  # with cells filled in as if they were known, 0.2 and more
    assert 0.02 < noise < 0.08
    asked = pd.DataFrame([[1, 0], [0, 1]], columns=X.columns)
    np.testing.assert_allclose(fitted.final.predict(asked), 1.0, atol=0.25)


def test_draws_given_the_target_keep_its_relation_to_the_inputs():
    table = _half_empty(300)
    X, y = table[["a", "b"]].to_numpy(), table["y"].to_numpy()
    filled = missing.drawn_with_targets(X, y, np.arange(300), [(0,), (1,)], False, 0)
    slopes, left, *_ = np.linalg.lstsq(filled, y, rcond=None)
    np.testing.assert_allclose(slopes, 1.0, atol=0.1)
    assert left[0] / 300 == pytest.approx(0.04, rel=0.3)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


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
