"""Every registered approximation keeps the contract: it is the dense Gaussian process of its effective prior.

A newcomer adds itself to :data:`CASES`, with the effective prior written by hand in NumPy from its definition
(Quiñonero-Candela & Rasmussen 2005 for most), and is then tested with Gaussian noise in closed form, by sites, with
other likelihoods, with several latent functions, and on odd data.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import dense_reference as dense
import errorband
import site_reference as sites
from errorband import GPRegressor, means
from errorband.approximations import (
    APPROXIMATIONS,
    DTC,
    FITC,
    IVM,
    PIC,
    PITC,
    VFE,
    Approximation,
    Exact,
    Nystrom,
    PowerEP,
    SoR,
    SubsetOfData,
)
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Linear, Matern
from errorband.likelihoods import Bernoulli, HeteroscedasticGaussian, Softmax
from sparse_reference import NOISE, fixed, q_matrix

# One kernel, one mean, one number of rows and of inducing inputs, so that compiled code is shared.
KERNEL = Matern([0.8, 1.3], 1.44, nu=1.5)
VARYING = Matern(0.9, 1.2, nu=2.5) + Linear(0.4, active_dims=[0])  # k(x, x) is not constant
MEAN = means.Linear([0.2, -0.3, 0.4])
N = 20  # padded to 24
DATA_X, DATA_Y, DATA_NEW = dense.formula_data()
X, Y, X_NEW = DATA_X[:N], DATA_Y[:N], np.concatenate([DATA_NEW, [[49.0, 49.0]]])  # the last falls into an empty block
Z = X[::4] + 0.05
KNOWN = 0.1 * np.abs(np.sin(np.arange(60.0)))  # noise variances, all different
CENTRES = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [50.0, 50.0]])  # the last has no rows
SWEEPS, BOUND = EP(tolerance=1e-10), KL(tolerance=1e-10)
ANY_RULE = {"ep": SWEEPS, "laplace": Laplace()}
pytestmark = pytest.mark.filterwarnings("ignore:.*variances of the Nyström approximation")


# ------------------------------------------------------------------------------------------------- effective priors
class Prior(NamedTuple):
    """Covariance (n, n) of what the sites act on, cross covariance (n, s), covariance (s, s) at new inputs."""

    S: np.ndarray
    cross: np.ndarray
    new: np.ndarray


def Q(Z, A, B):
    return q_matrix(KERNEL, Z, A, B)


def left_out(Z, A):
    return KERNEL.diag(A) - np.diagonal(Q(Z, A, A))


def whole(Z, A, new):
    return Prior(KERNEL(A), KERNEL(A, new), KERNEL(new))


def basis_functions(Z, A, new):
    return Prior(Q(Z, A, A), Q(Z, A, new), Q(Z, new, new))


def projected(Z, A, new):
    return Prior(Q(Z, A, A), Q(Z, A, new), KERNEL(new))


def independent(Z, A, new):
    return Prior(Q(Z, A, A) + np.diag(left_out(Z, A)), Q(Z, A, new), KERNEL(new))


def block(A):
    return np.argmin(np.sum((A[:, None] - CENTRES) ** 2, axis=2), axis=1)


def by_blocks(Z, A, B):
    return np.where(block(A)[:, None] == block(B), KERNEL(A, B), Q(Z, A, B))


def partially_independent(Z, A, new):
    return Prior(by_blocks(Z, A, A), Q(Z, A, new), KERNEL(new))


def local(Z, A, new):
    return Prior(by_blocks(Z, A, A), by_blocks(Z, A, new), by_blocks(Z, new, new))


def no_process(Z, A, new):
    return Prior(Q(Z, A, A), KERNEL(A, new), KERNEL(new))


class Case(NamedTuple):
    """An approximation with given inducing inputs, and all there is to know about it.

    ``share`` is that of diag(K - Q) which counts as noise of the targets, None if the likelihood sees none of it:
    0 adds -½ Σ r/σ² to the evidence (Titsias 2009), α adds -(1 - α)/2α Σ log(1 + αr/σ²) (Bui, Yan & Turner 2017).
    """

    make: Callable[[np.ndarray], Approximation]
    prior: Callable[[Any, Any, Any], Prior]
    exact: dict[str, Approximation]  # what is the exact model of the N rows
    rules: dict[str, Any] = ANY_RULE  # with sites
    share: float | None = None
    kept: int | None = None  # rows to learn from

    def residual(self, Z, A):
        return np.zeros(len(A)) if self.share is None else left_out(Z, A)

    def extra(self, r, noise):
        if self.share is None:
            return 0.0
        if self.share == 0:
            return -0.5 * np.sum(r / noise)
        return -(1 - self.share) / (2 * self.share) * np.sum(np.log1p(self.share * r / noise))


def at_the_data(cls, **options):
    """Exact: an inducing input at each row, and so where there are fewer distinct rows than asked for."""
    return {"Z = X": cls(inducing_inputs=X, **options), "more than rows": cls(30, **options)}


CASES: dict[str, list[Case]] = {
    "Exact": [Case(lambda Z: Exact(), whole, {"itself": Exact()})],
    "SubsetOfData": [
        Case(lambda Z: SubsetOfData(18), whole, {"all rows": SubsetOfData(N), "more": SubsetOfData(30)}, kept=18)
    ],
    "IVM": [Case(lambda Z: IVM(18), whole, {"all rows": IVM(N), "more": IVM(30)}, kept=18)],
    "SoR": [Case(lambda Z: SoR(inducing_inputs=Z), basis_functions, at_the_data(SoR))],
    "DTC": [Case(lambda Z: DTC(inducing_inputs=Z), projected, at_the_data(DTC))],
    "FITC": [Case(lambda Z: FITC(inducing_inputs=Z), independent, at_the_data(FITC))],
    "VFE": [Case(lambda Z: VFE(inducing_inputs=Z), projected, at_the_data(VFE), {"kl": BOUND}, share=0.0)],
    "PowerEP": [
        Case(
            lambda Z: PowerEP(power=0.5, inducing_inputs=Z),
            projected,
            at_the_data(PowerEP, power=0.5),
            {"power": EP(power=0.5, tolerance=1e-10)},
            share=0.5,
        )
    ],
    "PITC": [
        Case(
            lambda Z: PITC(inducing_inputs=Z, centres=CENTRES),
            partially_independent,
            at_the_data(PITC, centres=CENTRES) | {"one block": PITC(inducing_inputs=X, block_size=N)},
        )
    ],
    "PIC": [
        Case(
            lambda Z: PIC(inducing_inputs=Z, centres=CENTRES),
            local,
            at_the_data(PIC, centres=CENTRES) | {"one block": PIC(inducing_inputs=Z, block_size=N)},
        )
    ],
    "Nystrom": [Case(lambda Z: Nystrom(inducing_inputs=Z), no_process, at_the_data(Nystrom), {})],
}
ALL = [
    pytest.param(case, id=name + (f"-{i}" if i else ""))
    for name, cases in CASES.items()
    for i, case in enumerate(cases)
]
every_case = pytest.mark.parametrize("case", ALL)
with_sites = pytest.mark.parametrize(
    ("case", "rule"), [pytest.param(p.values[0], rule, id=f"{p.id}-{rule}") for p in ALL for rule in p.values[0].rules]
)
with_one_rule = pytest.mark.parametrize(
    ("case", "rule"),
    [pytest.param(p.values[0], rule, id=f"{p.id}-{rule}") for p in ALL for rule in list(p.values[0].rules)[:1]],
)


def test_every_registered_approximation_has_a_case():
    # A prior in weight space is that of its features: tests/features/test_contract.py.
    assert set(CASES) == set(APPROXIMATIONS) - {"WeightSpace", "RelevanceVectors", "SparseGreedy"}, (
        "add the new approximation and its effective prior to CASES"
    )
    for name, cases in CASES.items():
        assert cases
        assert all(type(case.make(Z)) is APPROXIMATIONS[name] for case in cases)


# -------------------------------------------------------------------------------------------------- Gaussian noise
def model(approximation, likelihood=None, inference="auto", kernel=KERNEL, mean=MEAN):
    return fixed(approximation, kernel, likelihood, inference=inference, mean=mean, random_state=0)


def prior_mean(A):
    return np.column_stack([np.ones(len(A)), A]) @ MEAN.coefficients


@functools.cache
def fitted(case_id, inference="auto"):
    """The model of N rows; with noise per row if it is in closed form."""
    name, _, i = case_id.partition("-")
    case = CASES[name][int(i or 0)]
    known = KNOWN[:N] if inference == "auto" else None
    rule = "auto" if inference == "auto" else case.rules[inference]
    return model(case.make(Z), inference=rule).fit(X, Y, known)


def rows_of(case, found, *arrays):
    """Of each array the rows that the model has learned from."""
    if case.kept is None:
        return arrays
    assert len(np.unique(found.active_rows_)) == min(case.kept, len(arrays[0]))
    return tuple(a[found.active_rows_] for a in arrays)


def check_against_numpy(case, found, Z, A, y, noise):
    """Evidence and predictions of a fitted model against dense algebra."""
    A, y, noise = rows_of(case, found, A, y, noise)
    prior, r = case.prior(Z, A, X_NEW), case.residual(Z, A)
    seen, t = noise + (case.share or 0.0) * r, y - prior_mean(A)
    mean, cov = dense.predict(*prior, seen, t)
    mean = mean + prior_mean(X_NEW)
    assert_allclose(found.log_evidence_, dense.evidence(prior.S, seen, t) + case.extra(r, noise), rtol=1e-8)
    assert_allclose(found.predict(X_NEW), mean, rtol=1e-6, atol=1e-8)
    variance = np.maximum(np.diagonal(cov), 0.0)  # Nyström's may be below zero
    got_mean, got_std = found.predict(X_NEW, return_std=True, latent=True)
    assert_allclose(got_mean, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got_std**2, variance, rtol=1e-6, atol=1e-8)
    assert_allclose(found.predictive(X_NEW).variance, variance + NOISE, rtol=1e-6)
    got_mean, got_cov = found.predict(X_NEW, return_cov=True, latent=True)
    assert_allclose(got_mean, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got_cov, cov, rtol=1e-6, atol=1e-7)


def check_leave_one_out(case, found, Z, A, y, noise):
    """A row left out is predicted as a new one is, by the model of the others."""
    A, y, noise = rows_of(case, found, A, y, noise)
    seen, t, loo = noise + (case.share or 0.0) * case.residual(Z, A), y - prior_mean(A), found.loo()
    assert_allclose(loo.y, y)
    for n in range(len(y)):
        rest = np.arange(len(y)) != n
        mean, cov = dense.predict(*case.prior(Z, A[rest], A[[n]]), seen[rest], t[rest])
        assert_allclose(loo.predictive.mean[n], mean[0] + prior_mean(A[[n]])[0], rtol=1e-6, atol=1e-7)
        assert_allclose(loo.predictive.variance[n], max(cov[0, 0], 0.0) + noise[n], rtol=1e-6)


@every_case
def test_closed_form_is_the_dense_model_of_the_effective_prior(case, request):
    """With noise variances that are known for each row, on top of the learned one."""
    found = fitted(request.node.callspec.id)
    check_against_numpy(case, found, Z, X, Y, NOISE + KNOWN[:N])
    check_leave_one_out(case, found, Z, X, Y, NOISE + KNOWN[:N])


@with_one_rule
def test_leave_one_out_by_sites(case, rule, request):
    """The same rows, the same answer."""
    check_leave_one_out(case, fitted(*request.node.callspec.id.rsplit("-", 1)), Z, X, Y, np.full(N, NOISE))


@with_one_rule
def test_sites_give_the_closed_form(case, rule, request):
    """Whatever finds the sites of a Gaussian likelihood: evidence, predictions, gradient."""
    found = fitted(*request.node.callspec.id.rsplit("-", 1))
    assert found.inference_status_.converged
    check_against_numpy(case, found, Z, X, Y, np.full(N, NOISE))
    by_sites, closed = (model(case.make(Z), inference=i).objective(X, Y) for i in (case.rules[rule], "auto"))
    theta = closed.theta0 + 0.05 * np.sin(np.arange(len(closed.theta0)))
    value, gradient = by_sites.value_and_gradient(theta)
    expected, expected_gradient = closed.value_and_gradient(theta)
    assert_allclose(value, expected, rtol=1e-8)
    assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-6)


@every_case
def test_gradient_in_all_parameters(case):
    """Kernel, likelihood, mean and inducing inputs, against central differences; k(x, x) varies."""
    approximation = case.make(Z)
    objective = model(approximation, kernel=VARYING).objective(X, Y, KNOWN[:N])
    theta = objective.theta0 + 0.05 * np.sin(np.arange(len(objective.theta0)))
    learned = Z.size if hasattr(approximation, "inducing_inputs") else 0
    assert len(theta) >= 3 + 1 + 3 + learned
    _, gradient = objective.value_and_gradient(theta)
    assert np.all(gradient != 0)
    assert_allclose(gradient, dense.finite_differences(objective, theta, 1e-5), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("case", "limit"),
    [pytest.param(p.values[0], limit, id=f"{p.id}-{limit}") for p in ALL for limit in p.values[0].exact],
)
def test_exact_in_the_limit(case, limit):
    """To about 1e-6, as K_uu has 1e-8 more on its diagonal."""
    found = model(case.exact[limit]).fit(X, Y)
    if limit == "more than rows":
        assert_allclose(found.approximation_.inducing_inputs, np.unique(X, axis=0))
    noise, t = np.full(N, NOISE), Y - prior_mean(X)
    mean, cov = dense.predict(*whole(None, X, X_NEW), noise, t)
    assert_allclose(found.log_evidence_, dense.evidence(KERNEL(X), noise, t), rtol=1e-6)
    got, std = found.predict(X_NEW, return_std=True, latent=True)
    assert_allclose(got, mean + prior_mean(X_NEW), atol=1e-5)
    if case.prior is not basis_functions:  # whose bands close away from the inducing inputs
        assert_allclose(std**2, np.diagonal(cov), rtol=1e-5, atol=1e-5)
    loo_mean, loo_variance = dense.leave_one_out(KERNEL(X), noise, t)
    loo = found.loo().predictive
    assert_allclose(loo.mean, loo_mean + prior_mean(X), atol=1e-5)
    assert_allclose(loo.variance, loo_variance, rtol=1e-4)


@every_case
def test_files(case, request, tmp_path):
    """A loaded model predicts the same bits."""
    found = fitted(request.node.callspec.id)
    found.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert type(again.approximation_) is type(found.approximation_)
    assert again.log_evidence_ == found.log_evidence_
    assert np.array_equal(again.predict(X_NEW), found.predict(X_NEW))
    for options in ({"return_std": True}, {"return_cov": True, "latent": True}):
        for got, expected in zip(again.predict(X_NEW, **options), found.predict(X_NEW, **options), strict=True):
            assert np.array_equal(got, expected)
    assert np.array_equal(again.loo().predictive.mean, found.loo().predictive.mean)


@every_case
def test_order_of_rows_and_padding_do_not_matter(case):
    """Rows in another order and 16 of them, which are not padded, against NumPy."""
    order = np.random.default_rng(0).permutation(N)[:16]
    A, y, known = X[order], Y[order], KNOWN[:N][order]
    found = model(case.make(Z)).fit(A, y, known)
    check_against_numpy(case, found, Z, A, y, NOISE + known)
    check_leave_one_out(case, found, Z, A, y, NOISE + known)


# ----------------------------------------------------------------------------------------------- other likelihoods
REFERENCES = {
    "laplace": sites.laplace,
    "ep": sites.ep,
    "kl": sites.kl,
    "power": functools.partial(sites.ep, power=0.5),
}


@functools.cache
def classes(case_id, rule):
    """A model of two classes, in another order of rows, and those it has learned from: inputs and labels."""
    name, _, i = case_id.partition("-")
    case, order = CASES[name][int(i or 0)], np.random.default_rng(1).permutation(N)
    A, y = X[order], np.where(Y[order] > 0.1, 1.0, -1.0)
    found = model(case.make(Z), Bernoulli("logit"), case.rules[rule]).fit(A, y)
    A, y = rows_of(case, found, A, y)
    prior = case.prior(Z, A, X_NEW)
    return found, A, y, prior, REFERENCES[rule](prior.S, prior_mean(A), case.residual(Z, A), y)


@with_sites
def test_another_likelihood_is_that_of_the_dense_model(case, rule, request):
    """Logistic classes under the effective prior, with every kind of rule: evidence and latent values."""
    found, _, _, prior, want = classes(*request.node.callspec.id.rsplit("-", 1))
    assert found.inference_status_.converged
    assert_allclose(found.log_evidence_, want.log_evidence, rtol=1e-7)
    mean, cov = sites.predict(*prior, want.shift, want.precision)
    got_mean, got_cov = found.predict(X_NEW, return_cov=True, latent=True)
    assert_allclose(got_mean, mean + prior_mean(X_NEW), rtol=1e-6, atol=1e-6)
    assert_allclose(got_cov, cov, rtol=1e-6, atol=1e-6)


@with_sites
def test_leave_one_out_of_classes(case, rule, request):
    """Without its own site a row is predicted as a new one is."""
    found, A, y, _, want = classes(*request.node.callspec.id.rsplit("-", 1))
    got = found.loo().predictive.probabilities[:, 1]
    for n in range(len(y)):
        rest = np.arange(len(y)) != n
        mean, cov = sites.predict(*case.prior(Z, A[rest], A[[n]]), want.shift[rest], want.precision[rest])
        assert_allclose(got[n], sites.expectation(expit, mean + prior_mean(A[[n]]), cov[0])[0], rtol=1e-6)


@every_case
def test_several_latent_functions(case):
    """Three classes by Laplace's rule against NumPy; where another rule belongs to it, two latents in the limit."""
    if not case.rules:
        with pytest.raises(ValueError, match="goes with every likelihood"):
            model(case.make(Z), Softmax(3)).fit(X, np.digitize(Y, [-0.3, 0.4]).astype(float))
        return
    if "laplace" not in case.rules:
        (rule,) = case.rules.values()
        likelihood, rule = HeteroscedasticGaussian(0.1), type(rule)(**({"power": 0.5} if case.share else {}))
        sparse, exact = (model(a, likelihood, rule, mean="zero").fit(X, Y) for a in (case.exact["Z = X"], Exact()))
        assert_allclose(sparse.log_evidence_, exact.log_evidence_, rtol=1e-5)
        for got, expected in zip(*(m.predict(X_NEW, return_std=True) for m in (sparse, exact)), strict=True):
            assert_allclose(got, expected, atol=1e-3)
        return
    y = np.digitize(Y, [-0.3, 0.4]).astype(float)
    found = model(case.make(Z), Softmax(3), Laplace(tolerance=1e-9), mean="zero").fit(X, y)
    A, y = rows_of(case, found, X, y)
    prior = case.prior(Z, A, X_NEW)
    log_evidence, shift, precision = sites.softmax_laplace(prior.S, np.zeros(len(A)), y, 3)
    assert_allclose(found.log_evidence_, log_evidence, rtol=1e-7)
    mean, cov = sites.predict_latents(*prior, shift, precision)
    got_mean, got_cov = found.posterior_.marginals(X_NEW)
    assert_allclose(got_mean, mean, rtol=1e-6, atol=1e-6)
    assert_allclose(got_cov, cov, rtol=1e-6, atol=1e-6)


# ------------------------------------------------------------------------------------------------------ odd inputs
ODD = {
    "constant column": (np.column_stack([X[:, 0], np.full(N, 0.7)]), Z),
    "repeated rows": (np.tile(X[: N // 2], (2, 1)), Z),
    "repeated inducing inputs": (X, np.repeat(Z[:1], len(Z), axis=0)),
    "far inducing inputs": (X, Z + 1e3),
}


@pytest.mark.parametrize("odd", ODD)
@every_case
def test_odd_data(case, odd, request):
    """Every member has a model for them, and it is that of its effective prior."""
    A, places = ODD[odd]
    found = model(case.make(places)).fit(A, Y, KNOWN[:N])
    check_leave_one_out(case, found, places, A, Y, NOISE + KNOWN[:N])
    check_against_numpy(case, found, places, A, Y, NOISE + KNOWN[:N])
    if odd == "far inducing inputs" and case.prior in (projected, independent):  # they say nothing: the prior is left
        assert_allclose(found.predict(X_NEW), prior_mean(X_NEW), atol=1e-10)


@every_case
def test_odd_data_and_a_search(case):
    """From an approximation of default places, with few rows and a constant column, three steps of a search."""
    A = np.column_stack([X[:6, 0], np.full(6, 7.0)])
    approximation = next(iter(case.exact.values()))
    found = GPRegressor(KERNEL, approximation=type(approximation)(), optimizer=errorband.LBFGS(max_iter=3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, std = found.fit(A, Y[:6]).predict(A, return_std=True)
    assert np.isfinite(found.log_evidence_)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    if hasattr(found.approximation_, "inducing_inputs"):
        assert_allclose(found.approximation_.inducing_inputs[:, 1], 7.0)  # the constant
