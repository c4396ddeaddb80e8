"""Mixtures of models from several seeds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone, is_classifier, is_regressor

import dense_reference as dense
import errorband
from errorband import GPClassifier, GPRegressor, Mixture
from errorband.features import Network, SparseSpectrum
from errorband.precision import double_precision
from errorband.training import LBFGS

X, Y, X_NEW = dense.formula_data()
BRIEF = {"optimizer": LBFGS(max_iter=6)}
pytestmark = pytest.mark.filterwarnings("ignore:The search for hyper")


@pytest.fixture(scope="module")
def mixture():
    return Mixture(GPRegressor(approximation=Network(6), **BRIEF), n=3, random_state=0).fit(X, Y)


def test_the_density_is_the_average_of_the_members(mixture):
    members = [m.predictive(X_NEW) for m in mixture.members_of_mixture_]
    found, y = mixture.predictive(X_NEW), np.zeros(len(X_NEW))
    density = np.mean([norm.pdf(y, p.mean, p.std) for p in members], axis=0)
    assert_allclose(found.log_density(y), np.log(density), rtol=1e-9)
    mean = np.mean([p.mean for p in members], axis=0)
    assert_allclose(found.mean, mean)
    assert_allclose(found.variance, np.mean([p.variance + p.mean**2 for p in members], axis=0) - mean**2)
    assert_allclose(found.cdf(found.quantile(0.3)), 0.3, atol=1e-8)
    assert_allclose(mixture.predict(X_NEW), mean)


def test_the_joint_process_has_the_marginals_of_the_mixture(mixture):
    """S26: Σ_k of weights stacked, K·blockdiag(σ²A⁻¹ + bbᵀ) − bbᵀ, over K²."""
    mean, cov = mixture.predict(X_NEW, return_cov=True, latent=True)
    assert_allclose(np.sqrt(np.diag(cov)), mixture.predict(X_NEW, return_std=True, latent=True)[1])
    members, K = mixture.members_of_mixture_, 3
    scale, shift = mixture.scaling_.y_scale, mixture.scaling_.y_shift
    blocks, phi, b = [], [], []
    for m in members:
        predictor, latent = m.posterior_.predictor, m._model.latent
        with double_precision():
            phi.append(np.asarray(latent.features.K_fu(latent.kernel, m.scaling_.inputs(X_NEW))))
        b.append(np.asarray(predictor.gamma[0]))
        blocks.append(np.asarray(predictor.inverse).T @ np.asarray(predictor.inverse) + np.outer(b[-1], b[-1]))
    whole, stacked = np.hstack(phi), np.concatenate(b)
    S = -np.outer(stacked, stacked)
    for k, block in enumerate(blocks):
        S[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] += K * block
    assert_allclose(mean, scale * whole @ stacked / K + shift, rtol=1e-8)
    assert_allclose(cov, scale**2 * whole @ S @ whole.T / K**2, rtol=1e-7, atol=1e-9)
    assert mixture.sample_posterior(X_NEW, 3, 0).shape == (3, len(X_NEW))


def test_conditioning_knows_weights(mixture):
    weight = np.where(np.arange(len(Y)) % 2 == 0, 2.0, 1.0)
    weighted = mixture.model_.condition_on(X, Y, sample_weight=weight)
    rows = np.repeat(np.arange(len(Y)), weight.astype(int))
    assert_allclose(weighted.predict(X_NEW), mixture.model_.condition_on(X[rows], Y[rows]).predict(X_NEW), rtol=1e-6)


def test_files_and_leave_one_out(mixture, tmp_path):
    mixture.save(tmp_path / "mixture.eb")
    again = errorband.load(tmp_path / "mixture.eb")
    assert_allclose(
        again.predictive(X_NEW).log_density(np.zeros(5)), mixture.predictive(X_NEW).log_density(np.zeros(5))
    )
    members = [m.loo().predictive.mean for m in mixture.members_of_mixture_]
    assert_allclose(mixture.loo().predictive.mean, np.mean(members, axis=0))
    assert_allclose(again.loo().predictive.mean, np.mean(members, axis=0))
    other = mixture.condition_on(X[:30], Y[:30])
    means = [m.condition_on(X[:30], Y[:30]).predict(X_NEW) for m in mixture.members_of_mixture_]
    assert_allclose(other.predict(X_NEW), np.mean(means, axis=0))


def test_seeds_and_threads(mixture):
    again = clone(mixture).set_params(n_jobs=2).fit(X, Y)
    assert_allclose(again.predict(X_NEW), mixture.predict(X_NEW), rtol=1e-10)
    assert is_regressor(mixture)
    assert not is_classifier(mixture)
    one = Mixture(GPRegressor(approximation=Network(6), **BRIEF), n=1, random_state=0).fit(X, Y)
    assert_allclose(one.predict(X_NEW), one.members_of_mixture_[0].predict(X_NEW))


def test_the_choice_is_by_held_out_density():
    model = GPRegressor(approximation=SparseSpectrum(4, learn=True), **BRIEF)
    found = Mixture(model, n=2, kind="auto", random_state=0).fit(X, Y)
    best = max(found.choice_, key=found.choice_.get)
    assert set(found.choice_) == {"plain", "bounded", "mixed"}
    assert len(found.members_of_mixture_) == (2 if best == "mixed" else 1)
    assert f"{found.choice_[best]:.3f}" in found.reason_
    assert "12 rows held out" in found.reason_
    alone = clone(found).set_params(kind="mixed").fit(X, Y)  # what was compared is what is taken: seeds are the same
    seeds = [[m.random_state for m in f.members_of_mixture_] for f in (found, alone)]
    assert seeds[0] == seeds[1][: len(seeds[0])]


def test_classifiers_can_be_mixed():
    labels = np.where(Y > 0.1, "up", "down")
    found = Mixture(GPClassifier(approximation=Network(6), **BRIEF), n=2, random_state=0).fit(X, labels)
    each = [m.predict_proba(X_NEW) for m in found.members_of_mixture_]
    assert_allclose(found.predict_proba(X_NEW), np.mean(each, axis=0), rtol=1e-8)
    assert found.score(X, labels) > 0.6


def test_arguments():
    with pytest.raises(ValueError, match=r"Mixture\(n=0\)"):
        Mixture(GPRegressor(), n=0).fit(X, Y)
    with pytest.raises(ValueError, match="'mixed' or 'auto'"):
        Mixture(GPRegressor(), kind="best").fit(X, Y)
    with pytest.raises(ValueError, match="Noise bounding needs features"):
        Mixture(GPRegressor(**BRIEF), n=1, kind="auto", random_state=0).fit(X, Y)
    with pytest.raises(AttributeError, match="fit it first"):
        _ = Mixture(GPRegressor()).kernel_
