"""Inducing points: identities, GPML's figures, digits, chunks of rows, and how a search learns their places.

That each is the dense model of its effective prior is in ``test_contract.py``.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import decimal_reference
import dense_reference as dense
import errorband
from errorband import GPRegressor, rows
from errorband.approximations import DTC, FITC, PITC, VFE, Exact, PowerEP, SoR
from errorband.features.points import UNIT, Points
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Diffusion, SquaredExponential
from errorband.likelihoods import Bernoulli, HeteroscedasticGaussian, StudentT
from errorband.linalg import INDUCING_JITTER
from errorband.parameters import Parameter
from errorband.precision import double_precision
from errorband.training import Objective, sample_first
from sparse_reference import NOISE, fixed

FAMILY = {"SoR": SoR, "DTC": DTC, "VFE": VFE, "PowerEP": PowerEP, "FITC": FITC}
GPML = json.loads((Path(__file__).parents[1] / "references" / "gpml_formula.json").read_text())
BOUND = KL(tolerance=1e-9)


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], X_test


# ------------------------------------------------------------------------------------------------ digits and chunks
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 0.0])
@pytest.mark.parametrize("name", ["VFE", "FITC"])
def test_gradient_with_close_inducing_inputs(name, gap, data):
    """Pairs of inducing inputs, cond(K_uu) from 1e6 to infinity, against sixty digits."""
    X, y = (a[:16] for a in data[:2])
    Z = np.concatenate([X[::5], X[::5] + gap])
    objective = fixed(FAMILY[name](inducing_inputs=Z)).objective(X, y)
    value, gradient = objective.value_and_gradient(objective.theta0)
    case = (X, y, Z, [0.8, 1.3], 1.44, NOISE, INDUCING_JITTER, name)
    expected = np.ravel(decimal_reference.gradient(*case))
    assert_allclose(value, float(decimal_reference.evidence(*case)), rtol=1e-8)
    assert_allclose(gradient[-1 - Z.size : -1] / UNIT, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["VFE", "FITC"])
def test_chunks_agree_with_the_whole(name, monkeypatch):
    X, y, _ = dense.formula_data()
    X, y = np.tile(X, (9, 1)) + 0.01 * np.arange(540)[:, None], np.tile(y, 9)
    objective = fixed(FAMILY[name](inducing_inputs=X[::90]), mean="constant").objective(X, y)
    value, gradient = objective.value_and_gradient(objective.theta0)
    patched = set()
    for module in [m for n, m in sys.modules.items() if n.startswith("errorband")]:  # wherever they are read
        for setting, least in (("CHUNK", 1), ("MEMORY_BUDGET", 0)):  # the fewest rows at once, and none of them kept
            if hasattr(module, setting):
                monkeypatch.setattr(module, setting, least)
                patched.add(setting)
    assert patched == {"CHUNK", "MEMORY_BUDGET"}
    chunked, chunked_gradient = objective.value_and_gradient(objective.theta0)
    assert chunked_gradient.tobytes() != gradient.tobytes()  # another order of sums
    assert_allclose(chunked, value, rtol=1e-12)
    assert_allclose(chunked_gradient, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())


# ---------------------------------------------------------------------------------------------------- identities
def test_vfe_is_a_bound_that_rises_with_every_point(data):
    X, y, _ = data
    exact = fixed(Exact()).fit(X, y).log_evidence_
    values = [fixed(VFE(inducing_inputs=X[:m])).fit(X, y).log_evidence_ for m in (5, 10, 20)]
    assert np.all(np.diff(values) >= 0)
    assert values[-1] <= exact
    assert values[0] < exact - 10  # so that there is something to gain


@pytest.mark.slow
def test_vfe_of_a_student_is_a_bound_of_the_dense_bound_that_rises_with_every_point(data):
    X, y, _ = data
    y = y + 3.0 * (np.arange(40) % 10 == 9)
    options = {"likelihood": StudentT(4.0, 0.2), "inference": BOUND}
    whole = fixed("exact", **options).fit(X, y).log_evidence_
    few, fewer = (
        fixed(VFE(inducing_inputs=Z), **options).fit(X, y).log_evidence_ for Z in (np.tile(X[::20], (4, 1)), X[::5])
    )
    more = fixed(VFE(inducing_inputs=X), **options).fit(X, y).log_evidence_
    assert few < fewer < more < whole + 1e-6
    assert fewer < whole - 10  # so that there is something to gain


def test_members_that_coincide(data):
    X, y, X_test = data
    Z = X[::5]
    value = {name: fixed(a).fit(X, y) for name, a in {
        "SoR": SoR(inducing_inputs=Z), "DTC": DTC(inducing_inputs=Z), "VFE": VFE(inducing_inputs=Z),
        "0": PowerEP(power=0.0, inducing_inputs=Z), "1": PowerEP(power=1.0, inducing_inputs=Z),
        "FITC": FITC(inducing_inputs=Z), "small": PowerEP(power=1e-6, inducing_inputs=Z),
    }.items()}  # fmt: skip
    for a, b in [("VFE", "0"), ("FITC", "1")]:
        assert value[a].log_evidence_ == value[b].log_evidence_
        assert_allclose(value[a].predict(X_test), value[b].predict(X_test), rtol=1e-12)
    assert_allclose(value["small"].log_evidence_, value["VFE"].log_evidence_, rtol=1e-4)
    assert value["SoR"].log_evidence_ == value["DTC"].log_evidence_
    assert_allclose(value["SoR"].predict(X_test), value["DTC"].predict(X_test), rtol=1e-12)
    assert_allclose(value["DTC"].predict(X_test), value["VFE"].predict(X_test), rtol=1e-12)
    narrow, wide = (value[n].predict(X_test, return_std=True, latent=True)[1] for n in ("SoR", "DTC"))
    assert np.all(narrow < wide)


def test_power_one_is_fitc_for_classes(data):
    """Sites on u with the residual in the likelihood, and sites on f with it in the prior: one fixed point."""
    X, y, X_test = data
    labels, options = np.where(y > 0.1, 1.0, -1.0), {"likelihood": Bernoulli(), "inference": EP(tolerance=1e-9)}
    powered, fitc = (
        fixed(a, **options) for a in (PowerEP(power=1.0, inducing_inputs=X[::5]), FITC(inducing_inputs=X[::5]))
    )
    ours, theirs = (m.objective(X, labels) for m in (powered, fitc))
    got, expected = (o.value_and_gradient(o.theta0) for o in (ours, theirs))
    assert_allclose(got[0], expected[0], rtol=1e-8)
    assert_allclose(got[1], expected[1], rtol=1e-6, atol=1e-7)
    for model in (powered, fitc):
        model.fit(X, labels)
    assert_allclose(*(m.predict(X_test, return_std=True, latent=True) for m in (powered, fitc)), rtol=1e-6)
    assert_allclose(powered.loo().log_density, fitc.loo().log_density, rtol=1e-6)


@pytest.mark.slow
def test_classes_with_inducing_inputs_far_from_the_data(data):
    """The sites then know nothing of the data, and their marginals have no variance at all: the prior is left."""
    X, y, X_test = data
    labels = np.where(y > 0.1, 1.0, -1.0)
    likelihood = Bernoulli("probit")
    for approximation in (PowerEP(power=0.5, inducing_inputs=X[::5] + 100), VFE(inducing_inputs=X[::5] + 100)):
        model = fixed(approximation, likelihood=likelihood).fit(X, labels)
        with double_precision():  # the same for both labels
            if isinstance(approximation, VFE):
                each = float(likelihood.expected_log_prob(1.0, 0.0, 1.44))
            else:
                each = float(likelihood.log_tilted_power(1.0, 0.0, 1.44, 0.5)) / 0.5
        assert_allclose(model.log_evidence_, len(labels) * each, rtol=1e-6)
        assert_allclose(model.predict(X_test, return_std=True, latent=True)[1], 1.2, rtol=1e-6)


def test_blocks_of_one_row_are_fitc(data):
    X, y, X_test = data
    blocks = fixed(PITC(inducing_inputs=X[::5], centres=X)).fit(X, y)
    fitc = fixed(FITC(inducing_inputs=X[::5])).fit(X, y)
    assert_allclose(blocks.log_evidence_, fitc.log_evidence_, rtol=1e-9)
    assert_allclose(blocks.predict(X_test), fitc.predict(X_test), rtol=1e-7, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- GPML
# Their K_uu has 1e-6 of its mean on the diagonal, ours 1e-8: the last digits differ.
@pytest.mark.parametrize("outliers", [False, True], ids=["clean", "outliers"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_agrees_with_gpml(power, outliers):
    X, y, X_test = dense.formula_data()
    if outliers:
        y = y + 3.0 * (np.arange(1, 61) % 10 == 0)
    expected = GPML[f"formula{'-outliers' if outliers else ''} sparse s={power:g}"]
    kernel = SquaredExponential([0.8, 0.8], 1.44)
    model = fixed(PowerEP(power=power, inducing_inputs=X[::6]), kernel).fit(X, y)
    assert_allclose(model.log_evidence_, -expected["nlZ"], rtol=3e-6)
    mean, std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(mean, expected["fmu"], rtol=1e-5, atol=1e-5)
    assert_allclose(std**2, expected["fs2"], rtol=2e-5)
    objective = model.objective(X, y)
    _, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(gradient[:3] * [1, 1, 2], -np.array(expected["dcov"]), rtol=2e-5, atol=2e-4)
    assert_allclose(2 * gradient[-1], -expected["dlik"][0], rtol=1e-4)
    by_inputs = gradient[3:-1].reshape(-1, 2).T.ravel() / UNIT
    assert_allclose(by_inputs[:6], -np.array(expected["dxu"]), rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize(("rule", "tolerance"), [("laplace", 1e-5), ("ep", 1e-3)])
def test_fitc_for_classes_agrees_with_gpml(rule, tolerance):
    X, y, X_test = dense.formula_data()
    labels = np.where(y > 0.1, 1.0, -1.0)
    expected = GPML[f"formula probit FITC {'EP' if rule == 'ep' else 'laplace'}"]
    kernel = SquaredExponential([0.8, 0.8], 4.0)
    model = fixed(FITC(inducing_inputs=X[::6]), kernel, likelihood=Bernoulli(), inference=rule).fit(X, labels)
    assert_allclose(model.log_evidence_, -expected["nlZ"], rtol=tolerance)
    mean, std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(mean, expected["fmu"], rtol=10 * tolerance, atol=10 * tolerance)
    assert_allclose(std**2, expected["fs2"], rtol=10 * tolerance)
    objective = model.objective(X, labels)
    _, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(gradient[:3] * [1, 1, 2], -np.array(expected["dcov"]), rtol=10 * tolerance, atol=10 * tolerance)
    if "dxu" in expected:  # with Laplace's approximation only
        by_inputs = gradient[3:].reshape(-1, 2).T.ravel() / UNIT
        assert_allclose(by_inputs[:6], -np.array(expected["dxu"]), rtol=2e-5, atol=2e-5)


# ------------------------------------------------------------------------------------------------------ the search
@pytest.mark.filterwarnings("ignore:The search")
@pytest.mark.parametrize("name", ["VFE", "FITC"])
def test_targets_without_noise(name):
    X = np.linspace(0, 10, 100)[:, None]
    settings = {"random_state": 0, "optimizer": errorband.LBFGS(max_iter=40)}
    model = GPRegressor(SquaredExponential(), approximation=FAMILY[name](20), **settings)
    mean, std = model.fit(X, np.sin(X[:, 0])).predict(X, return_std=True)
    assert_allclose(mean, np.sin(X[:, 0]), atol=1e-3)
    assert std.max() < 1e-2


@pytest.mark.filterwarnings("ignore:The search")  # three iterations are not enough, and it says so
def test_fit_moves_the_inputs_unless_they_are_fixed(data):
    X, y, _ = data
    Z = X[::5]
    options = {"optimizer": errorband.LBFGS(max_iter=3), "kernel": SquaredExponential(0.8, 1.44)}
    moved = fixed(VFE(inducing_inputs=Z), **options).fit(X, y)
    held = fixed(VFE(inducing_inputs=Z, optimize_inputs=False), **options).fit(X, y)
    wrapped = fixed(VFE(inducing_inputs=Parameter(Z, fixed=True)), **options).fit(X, y)
    assert not np.allclose(moved.approximation_.inducing_inputs, Z)
    assert np.array_equal(held.approximation_.inducing_inputs, Z)
    assert np.array_equal(wrapped.approximation_.inducing_inputs, Z)
    assert held.log_evidence_ == wrapped.log_evidence_


def test_clone_and_what_is_kept(data):
    X, y, X_test = data
    model = GPRegressor(approximation=FITC(6), optimizer=None, random_state=0)
    fitted = clone(model).fit(X, y)
    assert np.array_equal(fitted.predict(X_test), model.fit(X, y).predict(X_test))
    kept = [np.size(leaf) for leaf in jax.tree.leaves(fitted.posterior_)]
    assert max(kept) <= 6 * 6  # prediction keeps nothing of the size of the data


def test_auto_says_what_it_chose(data, monkeypatch, capsys):
    from errorband.estimators import base

    X, y, _ = data
    small = GPRegressor(optimizer=None, verbose=1).fit(X, y)
    assert isinstance(small.approximation_, Exact)
    assert "40 rows" in small.approximation_reason_
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(base, "EXACT_ROWS", 30)
    large = GPRegressor(optimizer=None, verbose=1, random_state=0).fit(X, y)
    assert isinstance(large.approximation_, FITC)
    assert "40 rows are more than 30" in large.approximation_reason_
    assert large.approximation_reason_ in capsys.readouterr().err
    flat = GPRegressor(mean=errorband.means.Constant(marginalize=True), optimizer=None).fit(X, y)
    assert isinstance(flat.approximation_, Exact)
    assert "marginalised mean" in flat.approximation_reason_


@pytest.mark.filterwarnings("ignore:The search")
def test_many_rows_begin_with_a_sample(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(sample_first, "ROWS", 10)
    monkeypatch.setattr(sample_first, "ROWS_EACH", 1)
    sizes = []
    evaluate = Objective.evaluate
    monkeypatch.setattr(
        Objective, "evaluate", lambda self, t, warm=None: sizes.append(len(self.data.y)) or evaluate(self, t, warm)
    )
    model = fixed(VFE(inducing_inputs=X[::8]), optimizer=errorband.LBFGS(max_iter=4), random_state=0)
    model.fit(X, y, np.full(len(y), 0.01))
    assert sizes[0] == 10
    assert sizes[-1] == 40
    assert sizes == sorted(sizes)  # the sample first, then all rows
    sizes.clear()
    model.set_params(optimizer=errorband.LBFGS(max_seconds=0.0)).fit(X, y)
    assert sizes == [10, 40]  # one evaluation each


@pytest.mark.parametrize("failure", [np.linalg.LinAlgError("no"), KeyboardInterrupt()])
def test_moving_the_dead_cannot_lose_the_model(failure, data, monkeypatch):
    X, y, _ = data
    calls = []
    maximise = errorband.LBFGS.maximise

    def second_fails(self, *args, **settings):
        if "starts" not in settings["label"]:  # those of a scout
            calls.append(settings["label"])
        if "moved" in settings["label"]:
            raise failure
        return maximise(self, *args, **settings)

    monkeypatch.setattr(errorband.LBFGS, "maximise", second_fails)
    monkeypatch.setattr(Points, "revived", lambda self, kernel, X: (self, 1))
    model = GPRegressor(approximation=FITC(inducing_inputs=X[:4]), optimizer=errorband.LBFGS(max_iter=3))
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert len(calls) == 2
    assert model.moved_inducing_ == 0


def test_an_interrupt_before_all_rows_were_seen_keeps_the_first_look(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(sample_first, "ROWS", 10)
    monkeypatch.setattr(sample_first, "ROWS_EACH", 1)
    maximise = errorband.LBFGS.maximise

    def second_is_interrupted(self, *args, **settings):
        if "first on" in settings["label"] or "starts" in settings["label"]:
            return maximise(self, *args, **settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(errorband.LBFGS, "maximise", second_is_interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = GPRegressor(approximation=VFE(inducing_inputs=X[::8]), random_state=0).fit(X, y)
    assert model.fit_result_.interrupted
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize(
    ("learned", "still"),
    [([False, True], np.s_[:, 0]), (np.arange(6)[:, None] < 3, np.s_[3:]), (np.eye(6, 2, dtype=bool), np.s_[2:])],
)
def test_some_of_the_inducing_inputs_are_learned(learned, still):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=60)
    start = X[:6]
    approximation = FITC(inducing_inputs=start, optimize_inputs=learned)
    settings = {"normalize": False, "optimizer": errorband.LBFGS(max_iter=5)}
    model = GPRegressor(SquaredExponential(), approximation=approximation, **settings)
    objective = model.objective(X, y)
    assert len(objective.theta0) == 4 + np.sum(np.broadcast_to(learned, start.shape))
    _, gradient = objective.value_and_gradient(objective.theta0)
    expected = dense.finite_differences(objective, objective.theta0, 1e-5)
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))
    with pytest.warns(ConvergenceWarning):
        Z = model.fit(X, y).approximation_.inducing_inputs
    np.testing.assert_array_equal(Z[still], start[still])
    assert np.all(Z[np.broadcast_to(learned, Z.shape)] != start[np.broadcast_to(learned, Z.shape)])


def test_columns_of_labels_stay_and_the_others_are_learned():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 60), rng.uniform(-2, 2, 60)]).astype(float)
    y = X[:, 0] * np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=60)
    adjacency = np.ones((3, 3)) - np.eye(3)
    kernel = Diffusion(adjacency, active_dims=[0]) * SquaredExponential(active_dims=[1])
    model = GPRegressor(kernel, approximation=FITC(8), optimizer=errorband.LBFGS(max_iter=3), random_state=0)
    start = model.objective(X, y).model.latent.features.inducing_inputs.value
    with pytest.warns(ConvergenceWarning):
        Z = model.fit(X, y).approximation_.inducing_inputs
    np.testing.assert_array_equal(Z[:, 0], start[:, 0])
    assert np.all(Z[:, 1] != start[:, 1])


# Last, as it forgets all that was compiled.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "rule"), [("FITC", Laplace()), ("VFE", BOUND)])
def test_derivatives_taken_back_in_pieces_of_rows_agree_with_the_whole(name, rule, data, monkeypatch):
    """For two latents, in all that structure and residual depend on. The last of three pieces overlaps."""
    X, y, _ = data
    model = fixed(FAMILY[name](inducing_inputs=X[::5]), likelihood=HeteroscedasticGaussian(0.1), inference=rule)
    whole = model.objective(X, y)
    value, gradient = whole.value_and_gradient(whole.theta0)
    monkeypatch.setattr(rows, "TRACED_ROWS", 16)
    monkeypatch.setattr(rows, "TRACED_ENTRIES", 1)
    assert rows.piece_size(40, 8) == 16
    jax.clear_caches()  # what was compiled knows the old sizes
    pieces = model.objective(X, y)
    found, found_gradient = pieces.value_and_gradient(whole.theta0)
    jax.clear_caches()
    assert_allclose(found, value, rtol=1e-10)
    assert_allclose(found_gradient, gradient, rtol=1e-7, atol=1e-8 * np.abs(gradient).max())
