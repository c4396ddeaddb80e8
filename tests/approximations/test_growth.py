"""How many inducing inputs ("auto"), and where the dead ones go."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dense_reference as dense
import errorband
import sparse_reference
from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import DTC, FITC, PITC, VFE, Exact, PowerEP, SoR
from errorband.data import TrainingData
from errorband.features import Points, placement
from errorband.features.placement import add_places, dead, move_dead
from errorband.kernels import Linear, Matern, SquaredExponential
from errorband.latents import Latent
from errorband.likelihoods import Gaussian
from errorband.means import Zero
from errorband.model import Model
from errorband.parameters import Parameter
from errorband.training import certificate, grow
from errorband.training.gap import evidence_gap
from sparse_reference import KERNEL, NOISE, q_matrix


def fixed(approximation, kernel=KERNEL, **options):
    return sparse_reference.fixed(approximation, kernel, **{"random_state": 0, **options})


def variance_left(kernel, Z, X):
    return kernel.diag(X) - np.diagonal(q_matrix(kernel, Z, X, X))


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 1))
    return X, 5 + 3 * (np.sin(X[:, 0]) + 0.1 * rng.normal(size=300))


# ---------------------------------------------------------------------------------------------------- the certificate
@pytest.mark.parametrize("known", [False, True], ids=["one noise", "noise per row"])
def test_gap_is_between_the_bound_and_an_upper_bound_of_the_exact_evidence(known):
    X, y, _ = dense.formula_data()
    noise = np.full(60, NOISE) + (0.1 * np.abs(np.sin(np.arange(60))) if known else 0.0)
    data = TrainingData(X, y, noise - NOISE if known else None)
    exact = dense.evidence(KERNEL(X), noise, y)
    gaps = []
    for Z in (X[::12], X[::3], X):
        Q, left = q_matrix(KERNEL, Z, X, X), variance_left(KERNEL, Z, X)
        bound = dense.evidence(Q, noise, y) - 0.5 * np.sum(left / noise)
        upper = y @ np.linalg.solve(Q + np.diag(noise + left.sum()), y)
        lower = y @ np.linalg.solve(Q + np.diag(noise), y)
        gap = evidence_gap(Model((Latent(KERNEL, Zero(), Points(Z)),), Gaussian(NOISE), FITC()), data)
        assert_allclose(gap, 0.5 * (np.sum(left / noise) + lower - upper), rtol=1e-6, atol=1e-6)
        assert bound <= exact + 1e-6
        assert exact <= bound + gap + 1e-6
        gaps.append(gap)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-3


def test_sweep_stops_when_more_would_not_help(waves):
    X, y = waves
    model = GPRegressor(approximation=VFE("auto"), random_state=0, optimizer=LBFGS(max_iter=40)).fit(X, y)
    sweep = model.inducing_sweep_
    assert sweep.n_inducing == (25, 50, 100)
    assert (sweep.stopped, sweep.chosen, model.approximation_.n_inducing) == ("certified", 25, 25)
    assert model.approximation_.inducing_inputs.shape == (25, 1)
    assert (sweep.n_rows, sweep.n_held_out) == (225, 75)
    assert sweep.gap[-1] < 0.01
    assert "exact" in sweep.certificate
    assert sweep.certificate in str(sweep)
    # In the units of the data: that of a model of all rows, and of its predictions.
    assert_allclose(sweep.log_evidence[0], model.log_evidence_ / 300, atol=0.05)
    assert_allclose(sweep.nlpd[0], -np.mean(model.loo().log_density), atol=0.15)
    assert len(model._training_data.y) == 300  # the last search has all rows
    again = clone(model).fit(X, y)
    assert (again.inducing_sweep_.log_evidence, again.log_evidence_) == (sweep.log_evidence, model.log_evidence_)


def test_sweep_goes_on_while_evidence_or_predictions_gain():
    """A function with more turns than 50 inducing inputs can follow, hyperparameters given."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 60, (600, 1))
    y = np.sin(3 * X[:, 0]) + 0.25 * rng.normal(size=600)
    model = fixed(FITC("auto"), SquaredExponential(0.6, 1.0)).fit(X, y)
    sweep = model.inducing_sweep_
    assert sweep.n_inducing[:3] == (25, 50, 100)
    assert sweep.nlpd[1] > sweep.nlpd[2] + 0.1
    assert sweep.chosen >= 100
    assert sweep.stopped == "certified"
    best = min(sweep.nlpd)
    smaller = [nlpd for M, nlpd in zip(sweep.n_inducing, sweep.nlpd, strict=True) if sweep.chosen > M]
    assert sweep.nlpd[sweep.n_inducing.index(sweep.chosen)] <= best + certificate.TOLERANCE
    assert min(smaller) > best + certificate.TOLERANCE


def test_sweep_goes_further_while_it_has_seen_no_pattern(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.uniform(0, 10, (400, 1)), rng.normal(size=400)
    model = fixed(FITC("auto"), SquaredExponential(1.0, 1e-6))
    sweep = model.fit(X, y).inducing_sweep_
    assert sweep.n_inducing == (25, 100, 300)  # all that are not held out; not 100
    assert "No pattern was seen" in sweep.certificate
    monkeypatch.setattr(certificate, "LEAST_BLIND", 100)
    assert model.fit(X, y).inducing_sweep_.n_inducing[-1] == 100


def test_budgets(waves):
    X, y = waves
    early = fixed(FITC("auto", budget=0.0), SquaredExponential(1.0, 5.0)).fit(X, y).inducing_sweep_
    assert (early.n_inducing, early.stopped) == ((25,), "time budget")
    assert "more might help" in early.certificate
    short = GPRegressor(approximation=FITC("auto"), optimizer=LBFGS(max_seconds=0.0), random_state=0)
    with pytest.warns(ConvergenceWarning):
        assert short.fit(X, y).inducing_sweep_.stopped == "time budget"
    memory = 80 * 60**2 / 2**30
    small = fixed(FITC("auto", memory=memory), SquaredExponential(1.0, 5.0)).fit(X, y).inducing_sweep_
    assert (small.n_inducing, small.stopped) == ((25, 50), "memory budget")
    assert "more might help" in small.certificate


def test_every_distinct_row_is_the_exact_model(monkeypatch):
    X, y, X_test = dense.formula_data()
    rough = Matern([0.4, 0.4], 1.44, nu=1.5)
    monkeypatch.setattr(grow, "choice", lambda steps: steps[-1])
    model = fixed(DTC("auto"), rough).fit(X, y)
    sweep = model.inducing_sweep_
    assert (sweep.n_inducing, sweep.stopped) == ((25, 45), "all distinct rows")
    assert sweep.chosen == model.approximation_.n_inducing == 60  # the rows held out are rows too
    exact = fixed(Exact(), rough).fit(X, y)
    assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-6)
    assert_allclose(model.predict(X_test), exact.predict(X_test), atol=1e-6)
    few = fixed(SoR("auto")).fit(np.repeat(X[:7], 5, axis=0), np.repeat(y[:7], 5)).inducing_sweep_
    assert (few.n_inducing, few.stopped) == ((7,), "all distinct rows")
    assert fixed(FITC("auto")).fit(X[:3], y[:3]).inducing_sweep_.chosen == 3


@pytest.mark.parametrize("approximation", [PowerEP("auto"), PITC("auto", block_size=30)], ids=["PowerEP", "PITC"])
def test_the_other_members(approximation, waves):
    X, y = waves
    model = fixed(approximation, SquaredExponential(1.0, 9.0)).fit(X, y - y.mean())
    assert model.inducing_sweep_.stopped == "certified"
    assert isinstance(model.approximation_.n_inducing, int)
    assert model.inducing_sweep_.gap[0] >= 0  # of the inducing inputs, whatever becomes of what they leave out


@pytest.mark.slow
def test_classes_in_a_pipeline_and_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(certificate, "LEAST", 50)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 2))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=240) > 0, "yes", "no")
    model = GPClassifier(SquaredExponential(1.5, 4.0), approximation=FITC("auto"), optimizer=None, random_state=0)
    assert model.get_params()["approximation"].n_inducing == "auto"
    fitted = make_pipeline(StandardScaler(), clone(model)).fit(X, labels)[-1]
    sweep = fitted.inducing_sweep_
    assert sweep.stopped == "certified"
    assert sweep.gap == (None, None)
    assert sweep.chosen == len(fitted.approximation_.inducing_inputs)
    assert 0 < sweep.nlpd[-1] < np.log(2)
    fitted.save(tmp_path / "model.eb")
    assert errorband.load(tmp_path / "model.eb").inducing_sweep_ == sweep
    fitted.set_params(approximation=FITC(5)).fit(X, labels)
    assert not hasattr(fitted, "inducing_sweep_")


def test_given_inducing_inputs_are_where_the_sweep_begins(waves):
    X, y = waves
    Z = np.linspace(0, 10, 6)[:, None]
    kernel = SquaredExponential(1.0, 9.0)
    model = fixed(FITC("auto", inducing_inputs=Z, optimize_inputs=False), kernel).fit(X, y - y.mean())
    assert model.inducing_sweep_.n_inducing[:2] == (6, 12)
    assert_allclose(model.approximation_.inducing_inputs[:6], Z)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: FITC("many"), "or 'auto'"),
        (lambda: FITC("auto", budget=-1.0), "seconds"),
        (lambda: FITC("auto", memory=-1.0), "GiB"),
    ],
)
def test_mistakes_are_explained(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


# ------------------------------------------------------------------------------------------------------- new places
def test_new_places_are_where_most_variance_is_left_out():
    X, _, _ = dense.formula_data()
    Z = X[:4] + 0.1
    grown = add_places(KERNEL, Z, X, 3, 0)
    assert np.array_equal(grown[:4], Z)
    for m in (4, 5, 6):
        assert_allclose(grown[m], X[np.argmax(variance_left(KERNEL, grown[:m], X))])
    flat = add_places(Linear(1.0), X[:1], X[:, :2], 5, 0)  # of rank two: the rest is drawn at random
    assert len(np.unique(flat, axis=0)) == 6


# ------------------------------------------------------------------------------------------------ dead inducing inputs
def dead_by_removal(kernel, Z, X):
    """Slow: inducing inputs put in one after the other, the best first, until none explains a thing."""
    few, alive = placement.DEAD * kernel.diag(X).max(), []
    left = kernel.diag(X)
    while len(alive) < len(Z):
        rest = [m for m in range(len(Z)) if m not in alive]
        gains = [np.max(left - variance_left(kernel, Z[[*alive, m]], X)) for m in rest]
        if max(gains) < few:
            break
        alive.append(rest[int(np.argmax(gains))])
        left = variance_left(kernel, Z[alive], X)
    return ~np.isin(np.arange(len(Z)), alive)


def test_dead_are_duplicates_and_those_far_away():
    X, _, _ = dense.formula_data()
    Z = np.concatenate([X[:4], X[1:3], X[1:2] + 1e-7, [[40.0, 40.0]]])
    found = dead(KERNEL, Z, X)
    assert found.sum() == 4
    assert found[-1]
    assert not found[[0, 3]].any()
    assert (~found[[1, 4, 6]]).sum() == (~found[[2, 5]]).sum() == 1  # of each group one stays
    assert found.sum() == dead_by_removal(KERNEL, Z, X).sum()
    assert not dead(KERNEL, X[:6], X).any()
    assert dead(KERNEL, X[:3] + 100, X).all()


def test_dead_are_moved_to_where_most_is_left_out():
    X, _, _ = dense.formula_data()
    Z = np.concatenate([X[:3], X[:1], [[40.0, 40.0]]])
    moved, count = move_dead(KERNEL, Z, X)
    assert count == 2
    kept = ~dead(KERNEL, Z, X)
    assert np.array_equal(moved[kept], Z[kept])
    assert_allclose(moved[~kept][0], X[np.argmax(variance_left(KERNEL, Z[kept], X))])
    assert not dead(KERNEL, moved, X).any()
    smooth = SquaredExponential(50.0, 1.0)  # three points explain everything: the others are of no use anywhere
    still, count = move_dead(smooth, X[:9], X)
    assert count == 0
    assert np.array_equal(still, X[:9])


@pytest.mark.filterwarnings("ignore:The search")
def test_duplicates_part_or_are_moved(waves):
    X, y = waves
    kernel = SquaredExponential(Parameter(1.0, fixed=True), Parameter(9.0, fixed=True))
    twice = fixed(VFE(inducing_inputs=np.tile(X[:5], (2, 1))), kernel, optimizer="lbfgs").fit(X, y - y.mean())
    once = fixed(VFE(inducing_inputs=X[:10]), kernel, optimizer="lbfgs").fit(X, y - y.mean())
    assert not dead(twice.kernel_, twice.approximation_.inducing_inputs, X).any()
    assert twice.log_evidence_ == pytest.approx(once.log_evidence_, abs=1.0)


@pytest.mark.filterwarnings("ignore:The search")
def test_fit_moves_the_dead_and_is_better_for_it(waves, monkeypatch):
    X, y = waves
    Z = np.concatenate([X[:4], X[:6] + 1000])
    kernel = SquaredExponential(Parameter(1.0, fixed=True), Parameter(9.0, fixed=True))
    options = {"optimizer": LBFGS(max_iter=25), "kernel": kernel}
    model = fixed(VFE(inducing_inputs=Z), **options).fit(X, y - y.mean())
    assert model.moved_inducing_ >= 4
    assert f"{model.moved_inducing_} inducing inputs" in model.fit_result_.message
    assert not dead(model.kernel_, model.approximation_.inducing_inputs, X).any()
    held = fixed(VFE(inducing_inputs=Z, optimize_inputs=False), **options).fit(X, y - y.mean())
    assert held.moved_inducing_ == 0
    assert np.array_equal(held.approximation_.inducing_inputs, Z)
    monkeypatch.setattr(placement, "WORTH_MOVING", np.inf)
    left = fixed(VFE(inducing_inputs=Z), **options).fit(X, y - y.mean())
    assert left.moved_inducing_ == 0
    assert model.log_evidence_ > left.log_evidence_ + 10


def test_no_time_is_left_to_move_them(waves):
    X, y = waves
    model = fixed(FITC(inducing_inputs=X[:4] + 1000), SquaredExponential(1.0, 9.0), optimizer=LBFGS(max_seconds=0.0))
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y - y.mean()).moved_inducing_ == 0


@pytest.mark.parametrize("init", ["kmeans", "random", "pivoted"])
def test_every_way_to_place_them_can_grow(init, waves, monkeypatch):
    monkeypatch.setattr(certificate, "LEAST", 30)
    X, y = waves[:2]
    model = GPRegressor(approximation=VFE("auto", init=init), optimizer=LBFGS(max_iter=5), random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert len(model.inducing_sweep_.n_inducing) > 1
