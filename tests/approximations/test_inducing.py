"""Inducing points: against the dense GP under the effective prior, in their limits, and against GPML."""

import json
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
from errorband import GPRegressor
from errorband.approximations import DTC, FITC, VFE, Exact, PowerEP, SoR
from errorband.approximations.base import sum_of_products
from errorband.approximations.inducing import UNIT
from errorband.estimators import search
from errorband.inference import EP, Sparse, passes
from errorband.kernels import Diffusion, Linear, Matern, Projection, SquaredExponential
from errorband.likelihoods import Bernoulli, StudentT
from errorband.linalg import INDUCING_JITTER
from errorband.numerics import double_precision
from errorband.parameters import Parameter
from errorband.structures import rows
from sparse_reference import KERNEL, NOISE, fixed, q_matrix

FAMILY = {"SoR": SoR, "DTC": DTC, "VFE": VFE, "PowerEP": PowerEP, "FITC": FITC}
SHARE = {"SoR": 0.0, "DTC": 0.0, "VFE": 0.0, "PowerEP": 0.5, "FITC": 1.0}
GPML = json.loads((Path(__file__).parents[1] / "references" / "gpml_formula.json").read_text())


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], X_test


# ------------------------------------------------------------------------------- the dense GP of the effective prior
@pytest.mark.parametrize("noise_per_row", [False, True], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("name", FAMILY)
def test_agrees_with_the_dense_gp_under_the_effective_prior(name, noise_per_row, data):
    X, y, X_test = data
    Z = X[::5]
    known = 0.1 * np.abs(np.sin(np.arange(len(y)))) if noise_per_row else None
    noise = np.full(len(y), NOISE) + (0.0 if known is None else known)
    Q, left = q_matrix(KERNEL, Z, X, X), KERNEL.diag(X) - np.diagonal(q_matrix(KERNEL, Z, X, X))
    share = SHARE[name]
    K = Q + share * np.diag(left)
    term = {
        "VFE": -0.5 * np.sum(left / noise),
        "PowerEP": -0.5 * np.sum(np.log1p(0.5 * left / noise)),
    }.get(name, 0.0)
    new = q_matrix(KERNEL, Z, X_test, X_test) if name == "SoR" else KERNEL(X_test)
    mean, cov = dense.predict(K, q_matrix(KERNEL, Z, X, X_test), new, noise, y)

    model = fixed(FAMILY[name](inducing_inputs=Z)).fit(X, y, known)
    assert isinstance(model.inference_, Sparse)
    assert_allclose(model.log_evidence_, dense.evidence(K, noise, y) + term, rtol=1e-8)
    assert_allclose(model.predict(X_test), mean, rtol=1e-7, atol=1e-9)
    got_mean, got_std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(got_mean, mean, rtol=1e-7, atol=1e-9)
    assert_allclose(got_std**2, np.diagonal(cov), rtol=1e-6, atol=1e-9)
    assert_allclose(model.predict(X_test, return_cov=True, latent=True)[1], cov, rtol=1e-6, atol=1e-8)

    loo_mean, loo_variance = dense.leave_one_out(K, noise, y)
    open_part = 0.0 if name == "SoR" else (1 - share) * left
    loo = model.loo().predictive
    assert_allclose(loo.mean, loo_mean, rtol=1e-6, atol=1e-8)
    assert_allclose(loo.variance, loo_variance + open_part, rtol=1e-6)


@pytest.mark.parametrize("name", FAMILY)
def test_structure_and_cross_agree(name, data):
    X, _, _ = data
    approximation = FAMILY[name](inducing_inputs=X[::5])
    with double_precision():
        structure = approximation.structure(KERNEL, X, 2)
        anchors = approximation.anchors(KERNEL, X)
        cross = approximation.cross(KERNEL, anchors, X, 2)
        K = np.asarray(structure.dense())[::2, ::2]
        weights = np.sin(np.arange(2.0 * cross.shape[2])).reshape(2, -1)
        product = approximation.cross_times(KERNEL, anchors, X, weights)
    Q = q_matrix(KERNEL, X[::5], X, X)
    assert_allclose(np.broadcast_to(structure.basis, cross.shape), cross)
    left_out = KERNEL.diag(X) - np.diagonal(Q)
    kept = float(name == "FITC") * left_out  # PowerEP's share is in the likelihood
    assert_allclose(K, Q + np.diag(kept), rtol=1e-8, atol=1e-9)
    assert_allclose(product, np.einsum("lsm,lm->sl", cross, weights), rtol=1e-7, atol=1e-9)


# ----------------------------------------------------------------------------------------------------- gradients
GRADIENT_KERNELS = {
    "ARD": KERNEL,
    "sum": Matern(0.9, 1.2, nu=2.5) + Linear(0.4, active_dims=[0]),  # k(x, x) varies
    "projection": Projection(SquaredExponential(0.8, 1.2), 2, [[1.6, 0.3], [-0.4, 1.2]]),
}


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("kernel", GRADIENT_KERNELS)
def test_gradient_against_finite_differences(name, kernel, data):
    X, y, _ = data
    known = 0.1 * np.abs(np.sin(np.arange(len(y))))
    model = fixed(FAMILY[name](inducing_inputs=X[::7]), GRADIENT_KERNELS[kernel], mean="linear")
    objective = model.objective(X, y, known)
    theta = objective.theta0 + 0.05 * np.sin(np.arange(len(objective.theta0)))
    _, gradient = objective.value_and_gradient(theta)
    assert len(gradient) > 12  # the inducing inputs are among them
    assert_allclose(gradient, dense.finite_differences(objective, theta, 1e-5), rtol=1e-6, atol=1e-6)


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
    assert_allclose(gradient[-Z.size :] / UNIT, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", FAMILY)
def test_chunks_agree_with_the_whole(name, data, monkeypatch):
    X, y, _ = dense.formula_data()
    X, y = np.tile(X, (9, 1)) + 0.01 * np.arange(540)[:, None], np.tile(y, 9)
    objective = fixed(FAMILY[name](inducing_inputs=X[::90]), mean="constant").objective(X, y)
    value, gradient = objective.value_and_gradient(objective.theta0)
    monkeypatch.setattr(passes, "CHUNK", 1)  # at least 256 rows: three chunks of 180
    monkeypatch.setattr(passes, "MEMORY_BUDGET", 0)  # and nothing kept from the first pass
    assert passes.chunk_rows(540, 6) < 200
    chunked, chunked_gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(chunked, value, rtol=1e-12)
    assert_allclose(chunked_gradient, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())


@pytest.mark.parametrize("name", FAMILY)
def test_derivatives_taken_back_in_pieces_of_rows_agree_with_the_whole(name, data, monkeypatch):
    """For two latents, in all that the structure and the residual depend on. The last of three pieces overlaps."""
    X, _, _ = data
    monkeypatch.setattr(rows, "LEAST", 16)
    monkeypatch.setattr(rows, "NUMBERS", 1)
    made = FAMILY[name](inducing_inputs=X[::5])

    def at(model):
        kernel, approximation = model
        return approximation.structure(kernel, X, 2), approximation.residual(kernel, X, 2)

    with double_precision():
        shapes = jax.eval_shape(at, (KERNEL, made))
        bars = jax.tree.map(lambda a: np.cos(np.arange(np.prod(a.shape))).reshape(a.shape), shapes)
        got = jax.grad(lambda model: model[1].inner(model[0], X, 2, *bars))((KERNEL, made))
        expected = jax.grad(lambda model: sum_of_products(bars, at(model)))((KERNEL, made))
    jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max()), got, expected)
    assert np.abs(got[1].inducing_inputs).min() > 0


# ---------------------------------------------------------------------------------------------------- identities
@pytest.mark.parametrize("name", FAMILY)
def test_inducing_inputs_at_the_data_give_the_exact_model(name, data):
    X, y, X_test = data
    rough = Matern([0.8, 1.3], 1.44, nu=1.5)
    exact = fixed(Exact(), rough).fit(X, y)
    model = fixed(FAMILY[name](inducing_inputs=X), rough).fit(X, y)
    # To 1e-6, as K_uu has 1e-8 more on its diagonal.
    assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-6)
    assert_allclose(model.predict(X_test), exact.predict(X_test), atol=1e-6)
    if name != "SoR":
        got, expected = (m.predict(X_test, return_std=True)[1] for m in (model, exact))
        assert_allclose(got, expected, rtol=1e-6)


def test_vfe_is_a_bound_that_rises_with_every_point(data):
    X, y, _ = data
    exact = fixed(Exact()).fit(X, y).log_evidence_
    values = [fixed(VFE(inducing_inputs=X[:m])).fit(X, y).log_evidence_ for m in (5, 10, 20)]
    assert np.all(np.diff(values) >= 0)
    assert values[-1] <= exact
    assert values[0] < exact - 10  # so that there is something to gain


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


# ------------------------------------------------------------------------------------------------ other likelihoods
@pytest.mark.parametrize("rule", ["ep", "laplace", "kl"])
@pytest.mark.parametrize("name", ["FITC", "DTC"])
def test_site_rules_with_a_gaussian_likelihood_give_the_closed_form(rule, name, data):
    X, y, X_test = data
    closed = fixed(FAMILY[name](inducing_inputs=X[::5]))
    sites = fixed(FAMILY[name](inducing_inputs=X[::5]), inference=rule)
    values = []
    for model in (closed, sites):
        objective = model.objective(X, y)
        values.append(objective.value_and_gradient(objective.theta0))
        model.fit(X, y)
    assert_allclose(values[1][0], values[0][0], rtol=1e-8)
    assert_allclose(values[1][1], values[0][1], rtol=1e-6, atol=1e-7)
    assert_allclose(sites.predict(X_test), closed.predict(X_test), rtol=1e-6, atol=1e-8)
    got, expected = (m.predict(X_test, return_std=True)[1] for m in (sites, closed))
    assert_allclose(got, expected, rtol=1e-6)


def test_fitc_ep_with_inducing_inputs_at_the_data_is_dense_ep(data):
    X, y, X_test = data
    labels = np.where(y > 0.1, 1.0, -1.0)
    options = {"kernel": Matern([0.8, 1.3], 1.44, nu=1.5), "likelihood": Bernoulli(), "inference": "ep"}
    exact = fixed("exact", **options).fit(X, labels)
    model = fixed(FITC(inducing_inputs=X), **options).fit(X, labels)
    assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-6)
    got, expected = (m.predict(X_test, return_std=True, latent=True) for m in (model, exact))
    assert_allclose(got, expected, atol=1e-6)


def test_fitc_ep_gradient_against_finite_differences(data):
    X, y, _ = data
    labels = np.where(y > 0.1, 1.0, -1.0)
    model = fixed(FITC(inducing_inputs=X[::7]), likelihood=Bernoulli(), inference=EP(tolerance=1e-10))
    objective = model.objective(X, labels)
    _, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(gradient, dense.precise_differences(objective, objective.theta0), rtol=1e-6, atol=1e-7)


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
    assert_allclose(2 * gradient[3], -expected["dlik"][0], rtol=1e-4)
    by_inputs = gradient[4:].reshape(-1, 2).T.ravel() / UNIT
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


# ---------------------------------------------------------------------------------------------- inputs of all kinds
def test_starting_places(data):
    X, _, _ = data
    for init in ("kmeans", "random", "pivoted"):
        ready = FITC(7, init=init).initialised(KERNEL, X, random_state=0)
        again = FITC(7, init=init).initialised(KERNEL, X, random_state=0)
        assert ready.inducing_inputs.shape == (7, 2)
        assert np.array_equal(ready.inducing_inputs, again.inducing_inputs)
    first = FITC(1, init="pivoted").initialised(KERNEL, X, random_state=0).inducing_inputs
    second = FITC(2, init="pivoted").initialised(KERNEL, X, random_state=0).inducing_inputs
    assert np.array_equal(first, second[:1])
    left = KERNEL.diag(X) - np.diagonal(q_matrix(KERNEL, first, X, X))
    assert_allclose(second[1], np.unique(X, axis=0)[np.argmax(left[np.lexsort(X.T[::-1])])])


def test_every_class_gets_its_share_of_clusters(data):
    X, _, _ = data
    X = np.concatenate([X, 100 + X[:4]])  # the rare class, far away
    classes = np.repeat([0.0, 1.0], [40, 4])
    for n, expected in [(2, 1), (11, 1), (22, 2)]:
        Z = FITC(n).initialised(KERNEL, X, classes, 0).inducing_inputs
        assert len(Z) == n
        assert np.sum(Z[:, 0] > 50) >= expected
    assert len(FITC(1).initialised(KERNEL, X, classes, 0).inducing_inputs) == 1


def test_more_points_than_rows_or_distinct_rows(data):
    X, y, _ = data
    model = fixed(VFE(100)).fit(X, y)
    assert len(model.approximation_.inducing_inputs) == len(X)
    assert_allclose(model.log_evidence_, fixed(Exact()).fit(X, y).log_evidence_, rtol=1e-6)
    twice = fixed(VFE(60)).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert len(twice.approximation_.inducing_inputs) == len(X)


def test_repeated_inducing_inputs_change_nothing(data):
    X, y, X_test = data
    once, twice = (fixed(FITC(inducing_inputs=np.tile(X[::5], (k, 1)))).fit(X, y) for k in (1, 2))
    assert_allclose(twice.log_evidence_, once.log_evidence_, rtol=1e-6)
    assert_allclose(twice.predict(X_test), once.predict(X_test), atol=1e-6)


def test_inducing_inputs_far_from_the_data_leave_the_prior(data):
    X, y, X_test = data
    model = fixed(FITC(inducing_inputs=X[:3] + 100)).fit(X, y)
    assert_allclose(model.predict(X_test), 0.0, atol=1e-12)
    assert_allclose(model.log_evidence_, dense.evidence(1.44 * np.eye(len(y)), np.full(len(y), NOISE), y), rtol=1e-10)


def test_constant_column(data):
    X, y, _ = data
    X = np.column_stack([X, np.ones(len(y))])
    model = GPRegressor(approximation=VFE(6), random_state=0, optimizer=None).fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    assert_allclose(model.approximation_.inducing_inputs[:, 2], 0.0)


@pytest.mark.parametrize("init", ["kmeans", "pivoted"])
def test_labels_are_taken_from_the_rows_and_not_learned(init):
    ring = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
    nodes = np.arange(36.0)[:, None] % 12
    model = GPRegressor(Diffusion(ring), approximation=FITC(5, init=init), random_state=0)
    objective = model.objective(nodes, np.sin(nodes[:, 0]))
    Z = objective.model.approximation.inducing_inputs
    assert Z.fixed
    assert np.isin(Z.value, np.arange(12.0)).all()
    assert len(objective.theta0) < 5


@pytest.mark.filterwarnings("ignore:The search")
@pytest.mark.parametrize("name", ["VFE", "FITC"])
def test_targets_without_noise(name):
    X = np.linspace(0, 10, 100)[:, None]
    model = GPRegressor(approximation=FAMILY[name](20), random_state=0, optimizer=errorband.LBFGS(max_iter=40))
    mean, std = model.fit(X, np.sin(X[:, 0])).predict(X, return_std=True)
    assert_allclose(mean, np.sin(X[:, 0]), atol=1e-3)
    assert std.max() < 1e-2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: FITC(0), "whole number, one or more"),
        (lambda: FITC(2.5), "whole number, one or more"),
        (lambda: FITC(init="grid"), "'kmeans', 'random', 'pivoted'"),
        (lambda: PowerEP(power=1.5), "from 0 \\(VFE\\) to 1 \\(FITC\\)"),
        (lambda: FITC(inducing_inputs=np.zeros((3, 4))), "shape \\(M, 2\\)"),
        (lambda: FITC(inducing_inputs=np.zeros(3)), "shape \\(M, 2\\)"),
        (lambda: FITC(inducing_inputs=np.zeros((0, 2))), "shape \\(M, 2\\)"),
        (lambda: FITC(inducing_inputs=np.full((3, 2), np.nan)), "must be finite"),
    ],
)
def test_mistakes_are_explained(make, sentence, data):
    X, y, _ = data
    with pytest.raises(ValueError, match=sentence):
        fixed(make()).fit(X, y)


def test_combinations_that_make_no_sense_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="FITC goes with every rule"):
        fixed(VFE(5), likelihood=StudentT(4.0, 0.2), inference="laplace").fit(X, y)
    with pytest.raises(ValueError, match="inducing points, such as FITC"):
        fixed("exact", inference="sparse").fit(X, y)
    with pytest.raises(ValueError, match="marginalize=False"):
        fixed(FITC(5), mean=errorband.means.Constant(marginalize=True)).fit(X, y)


# ------------------------------------------------------------------------------------------------------- estimator
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


def test_clone_save_and_load(data, tmp_path):
    X, y, X_test = data
    model = GPRegressor(approximation=FITC(6), optimizer=None, random_state=0)
    fitted = clone(model).fit(X, y)
    assert fitted.predict(X_test)[0] == model.fit(X, y).predict(X_test)[0]
    fitted.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    for a, b in zip(again.predict(X_test, return_std=True), fitted.predict(X_test, return_std=True), strict=True):
        assert np.array_equal(a, b)
    assert again.posterior_.anchors.shape == (6, 6)  # prediction keeps nothing of the size of the data


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
    assert isinstance(large.inference_, Sparse)
    assert "40 rows are more than 30" in large.approximation_reason_
    assert large.approximation_reason_ in capsys.readouterr().err
    flat = GPRegressor(mean=errorband.means.Constant(marginalize=True), optimizer=None).fit(X, y)
    assert isinstance(flat.approximation_, Exact)
    assert "marginalised mean" in flat.approximation_reason_


@pytest.mark.filterwarnings("ignore:The search")
def test_many_rows_begin_with_a_sample(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(search, "WARM_START_ROWS", 10)
    monkeypatch.setattr(search, "WARM_START_EACH", 1)
    sizes = []
    evaluate = Sparse.evaluate
    monkeypatch.setattr(
        Sparse, "evaluate", lambda self, p, d, *rest: sizes.append(len(d.y)) or evaluate(self, p, d, *rest)
    )
    model = fixed(VFE(inducing_inputs=X[::8]), optimizer=errorband.LBFGS(max_iter=4), random_state=0)
    model.fit(X, y, np.full(len(y), 0.01))
    assert sizes[0] == 10
    assert sizes[-1] == 40
    assert sizes == sorted(sizes)  # the sample first, then all rows
    sizes.clear()
    model.set_params(optimizer=errorband.LBFGS(max_seconds=0.0)).fit(X, y)
    assert sizes == [10, 40, 40]  # one evaluation each, and the last for the posterior


def test_classifier_with_an_inducing_point_at_every_row_is_exact(data):
    X, y, X_test = data
    labels = np.where(y > 0.1, "high", "low")
    kernel = Matern(1.0, 1.0, nu=1.5)
    models = [
        errorband.GPClassifier(kernel, approximation=a, optimizer=None).fit(X, labels) for a in ("exact", FITC(50))
    ]
    assert isinstance(models[1].inference_, EP)
    assert_allclose(models[1].predict_proba(X_test), models[0].predict_proba(X_test), atol=1e-6)


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
    model = GPRegressor(approximation=approximation, normalize=False, optimizer=errorband.LBFGS(max_iter=5))
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
    start = model.objective(X, y).model.approximation.inducing_inputs.value
    with pytest.warns(ConvergenceWarning):
        Z = model.fit(X, y).approximation_.inducing_inputs
    np.testing.assert_array_equal(Z[:, 0], start[:, 0])
    assert np.all(Z[:, 1] != start[:, 1])


def test_pivots_are_filled_up():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 1))  # about ten pivots say all there is
    Z = FITC(50, init="pivoted").initialised(SquaredExponential(2.0, 1.0), X, random_state=0).inducing_inputs
    assert len(np.unique(Z)) == 50


@pytest.mark.parametrize("failure", [np.linalg.LinAlgError("no"), KeyboardInterrupt()])
def test_moving_the_dead_cannot_lose_the_model(failure, data, monkeypatch):
    X, y, _ = data
    calls = []
    maximise = errorband.LBFGS.maximise

    def second_fails(self, *args, **settings):
        calls.append(settings["label"])
        if "moved" in settings["label"]:
            raise failure
        return maximise(self, *args, **settings)

    monkeypatch.setattr(errorband.LBFGS, "maximise", second_fails)
    monkeypatch.setattr(search, "move_dead", lambda kernel, Z, X: (Z, 1))
    model = GPRegressor(approximation=FITC(inducing_inputs=X[:4]), optimizer=errorband.LBFGS(max_iter=3))
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert len(calls) == 2
    assert model.moved_inducing_ == 0


def test_an_interrupt_before_all_rows_were_seen_keeps_the_first_look(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(search, "WARM_START_ROWS", 10)
    monkeypatch.setattr(search, "WARM_START_EACH", 1)
    maximise = errorband.LBFGS.maximise

    def second_is_interrupted(self, *args, **settings):
        if "first on" in settings["label"]:
            return maximise(self, *args, **settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(errorband.LBFGS, "maximise", second_is_interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = GPRegressor(approximation=VFE(inducing_inputs=X[::8]), random_state=0).fit(X, y)
    assert model.fit_result_.interrupted
    assert np.all(np.isfinite(model.predict(X)))
