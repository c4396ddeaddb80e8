"""Committees: one part is the Gaussian process, many query points make them exact, batches add up in any order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import errorband
from errorband import BayesianCommittee, GPClassifier, GPRegressor, ProductOfExperts
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 6, 60))[:, None]
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60)
NEW = np.linspace(0.2, 5.8, 9)[:, None]
FAR = [[60.0]]
GIVEN = {"likelihood": Gaussian(0.01), "optimizer": None, "normalize": False}
MEMBER = GPRegressor(SquaredExponential(1.0, 1.0), **GIVEN)
PARTS = [np.arange(60)[k::4] for k in range(4)]


@pytest.fixture(scope="module")
def exact():
    return MEMBER.fit(X, Y)


def streamed(model, parts=PARTS):
    for part in parts:
        model.partial_fit(X[part], Y[part])
    return model


@pytest.mark.parametrize(
    "model",
    [
        BayesianCommittee(MEMBER, n_members=1),
        BayesianCommittee(MEMBER, n_members=1, weights="none"),
        BayesianCommittee(MEMBER, n_members=1, query=X),
        ProductOfExperts(MEMBER, n_members=1),
    ],
)
def test_one_part_is_the_gaussian_process(model, exact):
    if getattr(model, "weights", None) == "entropy":
        model.set_params(weights="none")  # a single member counts once
    mean, std = model.fit(X, Y).predict(NEW, return_std=True)
    expected = exact.predict(NEW, return_std=True)
    assert_allclose(mean, expected[0], atol=1e-5)
    assert_allclose(std, expected[1], atol=1e-5)


def test_with_enough_query_points_it_is_exact(exact):
    errors = []
    for number in (5, 12, 25):
        query = np.concatenate([NEW[::2], np.linspace(0, 6, number)[:, None]])
        model = BayesianCommittee(MEMBER, n_members=4, query=query, partition="random", random_state=0).fit(X, Y)
        errors.append(np.max(np.abs(model.predict(NEW[::2]) - exact.predict(NEW[::2]))))
    assert errors[0] > 10 * errors[-1]
    assert errors[-1] < 1e-4


def test_the_joint_posterior_is_that_of_the_query_points():
    """Taken together at given inputs, by covariances or by what each adds: one and the same."""
    model = BayesianCommittee(MEMBER, n_members=4, weights="none", partition="random", random_state=0).fit(X, Y)
    at_points = BayesianCommittee(MEMBER, n_members=4, query=NEW, partition="random", random_state=0).fit(X, Y)
    mean, cov = model.predict(NEW, return_cov=True, latent=True)
    assert_allclose(mean, at_points.predict(NEW, latent=True), atol=1e-5)
    assert_allclose(np.sqrt(np.diag(cov)), at_points.predict(NEW, return_std=True, latent=True)[1], atol=1e-5)


def test_online_is_batch():
    query = np.linspace(0, 6, 12)[:, None]
    one, other = (
        streamed(BayesianCommittee(MEMBER, query=query), parts).predict(NEW, return_std=True)
        for parts in (PARTS, PARTS[:1] + PARTS[:0:-1])
    )
    assert_allclose(one, other, atol=1e-8)
    whole = BayesianCommittee(MEMBER, n_members=4, weights="none", partition="random", random_state=0).fit(X, Y)
    members = BayesianCommittee(MEMBER, weights="none", n_members=1)
    assert streamed(members).n_members_ == 4
    assert_allclose(members.predict(NEW), whole.predict(NEW), atol=0.1)
    rows, targets = members.training_data()
    assert_allclose(rows, X[np.concatenate(PARTS)])
    assert_allclose(targets, Y[np.concatenate(PARTS)])


def test_memory_is_constant():
    model = BayesianCommittee(MEMBER, query=np.linspace(0, 6, 12)[:, None])
    sizes = []
    for part in PARTS:
        model.partial_fit(X[part], Y[part])
        sizes.append(sum(np.size(a) for a in model._state))
    assert len(set(sizes)) == 1
    with pytest.raises(ValueError, match="forgot their rows"):
        model.training_data()


def labels():
    return np.where(np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=60) > 0, 1, 0)


def test_for_gaussian_noise_parts_are_quadratics_and_add_up_to_the_exact_model(exact):
    model = BayesianCommittee(MEMBER, n_members=3, query=X, iterations=1, partition="random", random_state=0).fit(X, Y)
    assert_allclose(model.predict(NEW, return_std=True), exact.predict(NEW, return_std=True), atol=1e-5)


@pytest.mark.slow
def test_members_that_hear_each_other_are_exact():
    """All rows are query points: what members say after hearing the others is the posterior of all rows."""
    member = GPClassifier(SquaredExponential(1.0, 4.0), inference="laplace", optimizer=None, normalize=False)
    y = labels()
    whole = member.fit(X, y).predict_proba(NEW)[:, 1]
    errors = []
    for iterations in (0, 2, 8):
        model = BayesianCommittee(
            member, n_members=3, query=X, iterations=iterations, partition="random", random_state=0
        )
        errors.append(np.max(np.abs(model.fit(X, y).predict_proba(NEW)[:, 1] - whole)))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 2e-3


@pytest.mark.parametrize(
    ("model", "back"),
    [
        (BayesianCommittee(MEMBER, n_members=4), True),
        (BayesianCommittee(MEMBER, n_members=4, weights="none"), True),
        (BayesianCommittee(MEMBER, n_members=4, communication=10, random_state=0), True),
        (BayesianCommittee(MEMBER, n_members=4, query=20, random_state=0), True),
        (ProductOfExperts(MEMBER, n_members=4), True),
        (ProductOfExperts(MEMBER, n_members=4, weights="none"), False),
    ],
)
def test_far_away_the_prior_is_back(model, back):
    std = model.fit(X, Y).predict(FAR, return_std=True, latent=True)[1]
    assert_allclose(std, 1.0 if back else 0.5, rtol=1e-6)
    assert np.mean((model.predict(NEW) - np.sin(2 * NEW[:, 0])) ** 2) < 0.02


@pytest.mark.parametrize(("committee", "weights"), [(BayesianCommittee, "none"), (ProductOfExperts, "normalised")])
def test_rows_that_all_see_help(committee, weights, exact):
    settings = {"n_members": 4, "partition": "clusters", "random_state": 0, "weights": weights}
    alone = committee(MEMBER, **settings).fit(X, Y)
    told = committee(MEMBER, communication=20, **settings).fit(X, Y)
    assert np.all(told.part_sizes_ >= 20)
    error = [np.max(np.abs(m.predict(NEW) - exact.predict(NEW))) for m in (alone, told)]
    assert error[1] < error[0]


@pytest.mark.slow
def test_several_classes():
    y = np.digitize(X[:, 0], [2.0, 4.0])
    member = GPClassifier(SquaredExponential(1.0, 9.0), optimizer=None, normalize=False)
    for committee in (BayesianCommittee, ProductOfExperts):
        model = committee(member, n_members=2, partition="random", random_state=0).fit(X, y)
        assert model.score(X, y) > 0.9
        assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)


@pytest.mark.parametrize("query", [None, 15])
def test_files(query, tmp_path):
    model = BayesianCommittee(MEMBER, n_members=3, query=query, random_state=0).fit(X[:50], Y[:50])
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert np.array_equal(model.predict(NEW, return_std=True), again.predict(NEW, return_std=True))
    for one in (model, again):
        one.partial_fit(X[50:], Y[50:])
    assert np.array_equal(model.predict(NEW), again.predict(NEW))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (BayesianCommittee(MEMBER, weights="some"), "choose 'entropy' or 'none'"),
        (ProductOfExperts(MEMBER, weights="some"), "choose one of 'none'"),
        (BayesianCommittee(MEMBER, partition="halves", n_members=2), "choose 'clusters' or 'random'"),
        (BayesianCommittee(MEMBER, n_members=0), "give a whole number, one or more"),
        (BayesianCommittee(MEMBER, iterations=2), "needs query points"),
        (ProductOfExperts(MEMBER, communication=-1), "give a whole number, zero or more"),
        (BayesianCommittee(MEMBER, query=0), "give a whole number, one or more, an array of inputs"),
    ],
)
def test_refusals(model, told):
    with pytest.raises(ValueError, match=told):
        model.fit(X, Y)


def test_members_must_be_gaussian_processes():
    from sklearn.linear_model import Ridge

    with pytest.raises(TypeError, match="Gaussian-process estimator"):
        BayesianCommittee(Ridge()).fit(X, Y)


@pytest.mark.slow
def test_in_parallel():
    one, two = (BayesianCommittee(MEMBER, n_members=4, n_jobs=n, random_state=0).fit(X, Y) for n in (1, 2))
    assert_allclose(one.predict(NEW), two.predict(NEW), rtol=1e-12)
