"""The informative vector machine: selection against slow dense references, and the estimators that use it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone

import dense_reference as dense
import errorband
from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, IVM
from errorband.data import TrainingData
from errorband.inference import EP
from errorband.inference.ep import log_tilted, tilted_derivatives
from errorband.kernels import Matern, SquaredExponential
from errorband.latents import Latent
from errorband.likelihoods import Bernoulli, Gaussian, Softmax
from errorband.means import Zero
from errorband.model import Model
from errorband.structures import Dense, Sites
from errorband.training import FitResult, Problem, Settings, Stop, Trained, turns
from errorband.training.informative import informative_rows
from errorband.training.strategy import Maximise

KERNEL = SquaredExponential([0.8, 1.3], 1.44)


def exact_model(kernel, likelihood, approximation=None):
    mean = Zero().initialised(np.zeros((1, 2)), np.zeros(1))
    return Model((Latent(kernel, mean),), likelihood, IVM() if approximation is None else approximation)


class Search:
    """A trainer that goes where a function of the objective says."""

    seconds = np.inf

    def __init__(self, function):
        self.function = function

    def within(self, seconds):
        return self

    def train(self, objective, theta0, **options):
        return Trained(FitResult(0.0, self.function(objective), 0.0, 1, 1, Stop.CONVERGED, None, 0.0, (), ()), None)


def take_turns(model, rule, data, search):
    return turns.TakeTurns(Maximise()).run(Problem(model, rule, data), Settings(Search(search), random_state=0))


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:30], y[:30], X_test


def probit_filtered(K, y, n_rows):
    """Rows in the order of the entropy they take away, and their sites; the whole posterior after each."""
    h, A = np.zeros(len(y)), K.copy()
    order, shifts, precisions = [], [], []
    for _ in range(n_rows):
        v = np.diag(A)
        z = y * h / np.sqrt(1 + v)
        alpha = y * norm.pdf(z) / (norm.cdf(z) * np.sqrt(1 + v))
        nu = alpha * (alpha + h / (1 + v))
        score = -0.5 * np.log(1 - nu * v)
        score[order] = -np.inf
        n = int(np.argmax(score))
        precision = nu[n] / (1 - nu[n] * v[n])
        shift = alpha[n] + precision * (h[n] + v[n] * alpha[n])
        order.append(n)
        shifts.append(shift)
        precisions.append(precision)
        site = np.zeros(len(y)), np.zeros(len(y))
        site[0][order], site[1][order] = shifts, precisions
        A = np.linalg.inv(np.linalg.inv(K) + np.diag(site[1]))
        h = A @ site[0]
    return np.array(order), np.array(shifts), np.array(precisions)


@pytest.mark.parametrize("n_rows", [9, 30])
def test_two_classes_against_a_dense_reference(n_rows, data):
    X, y, _ = data
    labels, rough = np.where(y > 0.1, 1.0, -1.0), Matern([0.8, 1.3], 1.44, nu=1.5)
    order, shift, precision = probit_filtered(rough(X), labels, n_rows)
    found, sites = informative_rows(exact_model(rough, Bernoulli()), TrainingData(X, labels), n_rows)
    assert found.tolist() == order.tolist()
    assert_allclose(sites.shift[:, 0], shift, rtol=1e-7)
    assert_allclose(sites.precision[:, 0, 0], precision, rtol=1e-7)


def test_three_classes_against_conditioning_afresh(data, x64):
    X, y, _ = data
    X, labels, likelihood = X[:8], np.digitize(y[:8], [-0.3, 0.4]).astype(float), Softmax(3)
    structure = Dense(jnp.stack([KERNEL(X)] * 3))
    found, sites = informative_rows(exact_model(KERNEL, likelihood), TrainingData(X, labels), 4)
    tilted = log_tilted(likelihood, None, labels)

    @jax.jit
    def look(sites):
        h, A = structure.condition(sites).marginals()
        return h, A, *tilted_derivatives(tilted, h, A)[1:]

    now, taken = Sites.zeros(8, 3), []
    for i, n in enumerate(found):
        h, A, alpha, nu = (np.asarray(a) for a in look(now))
        score = -0.5 * np.linalg.slogdet(np.eye(3) - nu @ A)[1]
        score[taken] = -np.inf
        assert n == np.flatnonzero(score > score.max() - 1e-9)[0]
        taken.append(n)
        target = A[n] - A[n] @ nu[n] @ A[n]
        precision = np.linalg.inv(target) - np.linalg.inv(A[n])
        shift = np.linalg.solve(target, h[n] + A[n] @ alpha[n]) - np.linalg.solve(A[n], h[n])
        assert_allclose(sites.precision[i], precision, rtol=1e-6, atol=1e-9)
        assert_allclose(sites.shift[i], shift, rtol=1e-6, atol=1e-9)
        now = Sites(now.shift.at[n].set(shift), now.precision.at[n].set(precision))


def test_with_gaussian_noise_the_sites_are_the_likelihood_and_the_score_is_the_variance(data):
    X, y, X_test = data
    order, sites = informative_rows(exact_model(KERNEL, Gaussian(0.0625)), TrainingData(X, y), 30)
    assert_allclose(sites.precision[:, 0, 0], 16.0, rtol=1e-9)
    assert_allclose(sites.shift[:, 0], 16.0 * y[order], rtol=1e-7, atol=1e-9)
    left = KERNEL.diag(X)
    for i, n in enumerate(order[:6]):  # each the row of largest variance given those before
        assert n == np.argmax(left)
        K = KERNEL(X)[:, order[: i + 1]]
        left = KERNEL.diag(X) - np.sum(K * np.linalg.solve(K[order[: i + 1]] + 0.0625 * np.eye(i + 1), K.T).T, axis=1)
    given = {"likelihood": Gaussian(0.0625), "optimizer": None, "normalize": False}
    searches = []
    everything = exact_model(KERNEL, Gaussian(0.0625), IVM(99))

    def search(objective):
        searches.append(len(objective.data.y))
        return objective.theta0

    assert take_turns(everything, EP(), TrainingData(X, y), search).active_rows.size == 30
    assert searches == [30]  # all rows are kept: there is nothing to take turns for
    exact, all_rows = (GPRegressor(KERNEL, approximation=a, **given).fit(X, y) for a in ("exact", IVM(99)))
    assert all_rows.active_rows_.tolist() == list(range(30))
    assert_allclose(all_rows.log_evidence_, exact.log_evidence_, rtol=1e-12)
    assert_allclose(*(m.predict(X_test, return_std=True) for m in (all_rows, exact)), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:The search")
def test_classifier_takes_turns_and_the_hybrid_learns_from_all_rows(data, tmp_path):
    X, y, X_test = data
    labels = np.where(y > 0.1, "high", "low")
    brief = errorband.LBFGS(max_iter=3)
    given, again = (
        GPClassifier(approximation=IVM(16), optimizer=o, random_state=0).fit(X, labels) for o in (None, brief)
    )
    assert len(given.active_rows_) == len(again.active_rows_) == 16
    assert again.active_rows_.tolist() != given.active_rows_.tolist()  # chosen at other hyperparameters
    found = {"kernel": again.kernel_, "likelihood": again.likelihood_, "optimizer": None}
    alone = GPClassifier(**found, normalize=False)
    alone.fit(X[again.active_rows_], labels[again.active_rows_])
    assert_allclose(again.log_evidence_, alone.log_evidence_, rtol=1e-6)
    assert_allclose(again.predict_proba(X_test), alone.predict_proba(X_test), atol=1e-5)
    again.save(tmp_path / "model.eb")
    assert np.array_equal(errorband.load(tmp_path / "model.eb").predict_proba(X_test), again.predict_proba(X_test))
    inputs = FITC(inducing_inputs=X[again.active_rows_], optimize_inputs=False)
    hybrid = GPClassifier(**found, approximation=inputs, inference=EP()).fit(X, labels)
    whole = GPClassifier(**found).fit(X, labels)
    errors = [np.abs(m.predict_proba(X_test) - whole.predict_proba(X_test)).mean() for m in (hybrid, again)]
    assert errors[0] < errors[1]


def wide_and_narrow(rng, n, n_inputs=10):
    """One class around the other (Breiman's ring): its rows lie far from all others and say most, at first."""
    y = rng.choice([-1, 1], n)
    X = rng.standard_normal((n, n_inputs))
    return np.where(y[:, None] > 0, 2 * X, X + 2 / np.sqrt(n_inputs)), y


@pytest.mark.filterwarnings("ignore:The search")
def test_a_choice_at_poor_values_is_no_trap():
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = (wide_and_narrow(rng, n) for n in (120, 1000))
    model = GPClassifier(SquaredExponential(4.0, 1.0, ard=False), approximation=IVM(40), random_state=0)
    at_first = clone(model).set_params(optimizer=None).fit(X, y)
    assert np.mean(y[at_first.active_rows_] > 0) > 0.7  # hardly anything but the wide class
    model.set_params(optimizer=errorband.LBFGS(max_iter=12)).fit(X, y)
    assert np.mean(model.predict(X_test) != y_test) < 0.15
    assert 0.3 < np.mean(y[model.active_rows_] > 0) < 0.7


def test_the_turn_counts_that_accounts_best_for_all_rows(data):
    X, y, _ = data
    targets = TrainingData(X, np.where(y > 0.1, 1.0, -1.0))
    found = []
    model = exact_model(KERNEL, Bernoulli(bias=0.0), IVM(10, rounds=9))

    def search(objective):
        """A search that finds good values at first, and then that all is noise."""
        found.append(len(objective.data.y))
        return objective.theta0 - (0.0 if len(found) == 1 else 20.0) * np.array([0.0, 0.0, 1.0, 0.0])  # log variance

    best = take_turns(model, EP(), targets, search)
    assert found == [10, 10, 10]  # the second round did not help
    assert_allclose(best.theta, best.objective.theta0)
    rows = best.active_rows
    fitted = GPClassifier(KERNEL, likelihood=Bernoulli(), normalize=False, optimizer=None)
    fitted.fit(X[rows], targets.y[rows])
    p = fitted.predict_proba(X)[:, 1]
    log_p = np.log(np.where(targets.y > 0, p, 1 - p))
    score = fitted.log_evidence_ + np.delete(log_p, rows).sum()
    assert_allclose(turns._score(best, rows, targets), score, rtol=1e-6)


def test_mistakes_are_explained():
    for make in (lambda: IVM(0), lambda: IVM(2.5), lambda: IVM(5, rounds=0)):
        with pytest.raises(ValueError, match="whole number, one or more"):
            make()
