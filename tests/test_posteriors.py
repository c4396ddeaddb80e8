"""Every registered posterior keeps the contract: marginals, joint covariance, chunks, files.

What they say is compared with NumPy in ``tests/approximations/test_contract.py``.
"""

import functools
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
from errorband import BayesianCommittee, GPClassifier, RVMRegressor, means
from errorband.approximations import FITC, PIC, Exact, Nystrom
from errorband.inference import EP, MCMC, Laplace
from errorband.likelihoods import Bernoulli, Gaussian, Softmax
from errorband.posterior import POSTERIORS, MixturePosterior
from errorband.training import FitResult, Stop, Trained
from sparse_reference import KERNEL, fixed

DATA_X, DATA_Y, _ = dense.formula_data()
X, Y, X_NEW = DATA_X[:16], DATA_Y[:16], 1.5 * DATA_X  # 60 rows, some outside the data
Z, CENTRES = X[::4] + 0.05, np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
FLAT = {"mean": means.Linear(marginalize=True)}
LOCAL = PIC(inducing_inputs=Z, centres=CENTRES)
pytestmark = pytest.mark.filterwarnings("ignore:.*variances of the Nyström approximation")


class Draws:
    """A trainer that returns three vectors in place of one: predictions are a mixture."""

    seconds = np.inf

    def within(self, seconds):
        return self

    def train(self, objective, theta0, **options):
        draws = theta0 + 0.2 * np.array([[-1.0], [0.0], [1.0]])
        result = FitResult(0.0, theta0, 0.0, 0, 3, Stop.CONVERGED, None, 0.0, (), (), draws=draws)
        return Trained(result, None)


# A newcomer adds a model that is predicted with it: approximation, likelihood, rule, other settings.
CASES = {
    "closed form, dense": (Exact(), Gaussian(0.0625), "auto", {"mean": "linear"}),
    "closed form, flat mean": (Exact(), Gaussian(0.0625), "auto", FLAT),
    "closed form, inducing": (FITC(inducing_inputs=Z), Gaussian(0.0625), "auto", {"mean": "linear"}),
    "closed form, local": (LOCAL, Gaussian(0.0625), "auto", {"mean": "linear"}),
    "closed form, Nyström": (Nystrom(inducing_inputs=Z), Gaussian(0.0625), "auto", {"mean": "linear"}),
    "mixture": (Exact(), Gaussian(0.0625), "auto", {"optimizer": Draws()}),
    "mixture of classes": (Exact(), Bernoulli(), EP(), {"optimizer": Draws()}),
    "draws": (Exact(), Bernoulli(), MCMC(draws=100, warmup=100), {}),
    "sites, dense": (Exact(), Bernoulli(), EP(), {}),
    "sites, inducing": (FITC(inducing_inputs=Z), Bernoulli(), EP(), {}),
    "sites, local": (LOCAL, Bernoulli(), EP(), {}),
    "three latents, inducing": (FITC(inducing_inputs=Z), Softmax(3), Laplace(), {}),
    "three latents, local": (LOCAL, Softmax(3), Laplace(), {}),
}
# Those of other estimators, fitted to X and Y.
OTHERS = {
    "augmented": lambda: RVMRegressor(KERNEL, healing="augmented", optimizer=None, normalize=False).fit(X, Y),
    "committee": lambda: BayesianCommittee(fixed(Exact()), n_members=2, random_state=0).fit(X, Y).committee_,
}
EVERY = [*CASES, *OTHERS]
every_case = pytest.mark.parametrize("case", EVERY)
one_latent = pytest.mark.parametrize("case", [case for case in CASES if "three" not in case])


@functools.cache
def fitted(case):
    if case in OTHERS:
        return OTHERS[case]()
    approximation, likelihood, rule, options = CASES[case]
    y = {"Bernoulli": np.where(Y > 0.1, 1.0, -1.0), "Softmax": np.digitize(Y, [-0.3, 0.4]).astype(float)}
    model = fixed(approximation, likelihood=likelihood, inference=rule, **options)
    # A trainer of one's own cannot be saved.
    return model.fit(X, y.get(type(likelihood).__name__, Y)).set_params(optimizer=None)


def test_every_registered_posterior_has_a_case():
    found = {type(fitted(case).posterior_) for case in EVERY}
    assert found == set(POSTERIORS.values()), "add a model that is predicted with the new posterior to CASES or OTHERS"


@every_case
def test_shapes_and_signs(case):
    posterior, L = fitted(case).posterior_, fitted(case).likelihood_.n_latents
    mean, cov = posterior.marginals(np.concatenate([X, X_NEW]))
    assert mean.shape == (76, L)
    assert cov.shape == (76, L, L)
    assert np.all(np.linalg.eigvalsh(cov) >= -1e-12)
    assert np.all(np.einsum("nll->nl", cov) >= 0)
    assert posterior.jitter >= 0


@every_case
def test_marginals_are_the_diagonal_of_the_joint(case):
    if case == "committee":
        pytest.skip("a committee asked for many inputs together knows more than one asked for each")
    posterior, L = fitted(case).posterior_, fitted(case).likelihood_.n_latents
    mean, cov = posterior.marginals(X_NEW)
    for l in range(L):
        joint_mean, joint = posterior.joint(X_NEW, l)
        assert_allclose(joint_mean, mean[:, l], rtol=1e-9, atol=1e-10)
        assert_allclose(np.maximum(np.diagonal(joint), 0.0), cov[:, l, l], rtol=1e-8, atol=1e-10)
        assert_allclose(joint, joint.T, atol=1e-12)
        if "Nyström" not in case:  # no process has its predictions
            assert np.linalg.eigvalsh(joint)[0] > -1e-8


@every_case
def test_means_alone(case):
    posterior = fitted(case).posterior_
    mean, nothing = posterior.marginals(X_NEW, variance=False)
    assert nothing is None
    assert_allclose(mean, posterior.marginals(X_NEW)[0], rtol=1e-10, atol=1e-12)


@every_case
def test_targets_with_known_noise_and_a_known_part_of_the_function(case):
    """As `predict` asks for them; a known part of nothing changes nothing."""
    model = fitted(case)
    likelihood, posterior, zero = model.likelihood_, model.posterior_, np.zeros(len(X_NEW))
    plain: Any = posterior.predictive(likelihood, X_NEW)
    same: Any = posterior.predictive(likelihood, X_NEW, noise_variance=zero, offset=zero)
    moved: Any = posterior.predictive(likelihood, X_NEW, offset=zero + 0.5)
    what = "mean" if hasattr(plain, "mean") else "probabilities"
    assert_allclose(getattr(same, what), getattr(plain, what), rtol=1e-12)
    assert np.all(np.abs(getattr(moved, what) - getattr(plain, what)) > 1e-6)


@every_case
def test_chunks_agree_with_the_whole(case, monkeypatch):
    posterior = fitted(case).posterior_
    mean, cov = posterior.marginals(X_NEW)
    patched = 0
    for name, module in list(sys.modules.items()):  # wherever the budget is read
        if name.startswith("errorband") and hasattr(module, "MEMORY_BUDGET"):
            monkeypatch.setattr(module, "MEMORY_BUDGET", 1)
            patched += 1
    assert patched
    chunked_mean, chunked_cov = posterior.marginals(X_NEW)
    assert_allclose(chunked_mean, mean, rtol=1e-10, atol=1e-12)
    assert_allclose(chunked_cov, cov, rtol=1e-9, atol=1e-11)
    assert_allclose(posterior.marginals(X_NEW, variance=False)[0], mean, rtol=1e-10, atol=1e-12)
    few = [posterior.marginals(X_NEW[part]) for part in (slice(0, 1), slice(1, 60))]
    assert_allclose(np.concatenate([c for _, c in few]), cov, rtol=1e-9, atol=1e-11)


@every_case
def test_files(case, tmp_path):
    fitted(case).save(tmp_path / "model.eb")
    again, posterior = errorband.load(tmp_path / "model.eb").posterior_, fitted(case).posterior_
    assert type(again) is type(posterior)
    for got, want in zip(again.marginals(X_NEW), posterior.marginals(X_NEW), strict=True):
        assert np.array_equal(got, want)


def test_no_variance_is_negative_where_all_is_known():
    """Hardly any noise: at the data the variance is rounding, and none of it below zero."""
    for approximation in (Exact(), FITC(inducing_inputs=X), PIC(inducing_inputs=Z, centres=CENTRES)):
        known = fixed(approximation, likelihood=Gaussian(1e-9)).fit(X, Y)
        variance = known.posterior_.marginals(X)[1][:, 0, 0]
        assert np.all((variance >= 0) & (variance < 1e-4))


@pytest.mark.parametrize("case", ["mixture", "mixture of classes"])
def test_a_mixture_is_that_of_its_members(case):
    model = fitted(case)
    posterior, likelihoods = model.posterior_, model.posterior_.likelihoods
    assert isinstance(posterior, MixturePosterior)
    members = [m.predictive(l, X_NEW) for m, l in zip(posterior.members, likelihoods, strict=True)]
    y = np.sign(np.sin(np.arange(60.0)))
    density = np.mean([np.exp(m.log_density(y)) for m in members], axis=0)
    found = model.predictive(X_NEW)
    assert_allclose(np.exp(found.log_density(y)), density, rtol=1e-9)
    assert_allclose(found.mean, np.mean([m.mean for m in members], axis=0), rtol=1e-9, atol=1e-12)
    spread = np.mean([m.variance + m.mean**2 for m in members], axis=0) - found.mean**2
    assert_allclose(found.variance, spread, rtol=1e-8)
    mean, cov = posterior.marginals(X_NEW)
    each = [m.marginals(X_NEW) for m in posterior.members]
    assert_allclose(mean, np.mean([m for m, _ in each], axis=0), rtol=1e-12)
    assert_allclose(cov[:, 0, 0], np.mean([c[:, 0, 0] + m[:, 0] ** 2 for m, c in each], axis=0) - mean[:, 0] ** 2)
    alone = [m.log_density(y) for m in members]
    assert not np.allclose(alone[0], alone[2])  # the draws differ


def test_a_mixture_in_a_classifier_and_in_reports(tmp_path):
    labels = np.where(Y > 0.1, "high", "low")
    model = GPClassifier(optimizer=Draws(), random_state=0).fit(X, labels).set_params(optimizer=None)
    posterior, scaled = model.posterior_, model.scaling_.inputs(X_NEW)
    each = [
        m.predictive(l, scaled).probabilities for m, l in zip(posterior.members, posterior.likelihoods, strict=True)
    ]
    assert_allclose(model.predict_proba(X_NEW), np.mean(each, axis=0), rtol=1e-9)
    model.save(tmp_path / "model.eb")
    assert np.array_equal(errorband.load(tmp_path / "model.eb").predict_proba(X_NEW), model.predict_proba(X_NEW))
    for name, fit, targets in (("classes", model, labels), ("numbers", fitted("mixture"), Y)):
        errorband.report(fit, X[:10], targets[:10], baselines=False).save(tmp_path / f"{name}.html")
        assert "</html>" in (tmp_path / f"{name}.html").read_text()
