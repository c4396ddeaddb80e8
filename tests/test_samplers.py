"""Samplers: densities whose answer is known, chains that say what they are worth, models against other rules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest, multivariate_normal
from sklearn.base import clone

import dense_reference as dense
import errorband
from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, VFE, PowerEP
from errorband.inference import EP, MCMC
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian, Poisson, StudentT, Twinned
from errorband.precision import double_precision
from errorband.samplers import Chains, anneal, elliptical_slices, no_u_turns
from errorband.samplers.run import _run
from errorband.training import FullBayes
from errorband.training.full_bayes import log_target

pytest.importorskip("blackjax")
TARGET, NOISE = np.array([1.0, -0.5, 2.0]), 0.5


def log_likelihood(x):
    """Of three independent measurements: the posterior is N(target/(1 + noise), noise/(1 + noise))."""
    return -0.5 * jnp.sum((TARGET - x) ** 2) / NOISE


def test_elliptical_slices():
    chains = elliptical_slices(log_likelihood, np.zeros((4, 3)), warmup=100, draws=1000, thin=2, seed=1)
    assert chains.draws.shape == (4, 1000, 3)
    assert chains.mixed, chains.message
    error = 5 * np.sqrt(NOISE / (1 + NOISE) / chains.effective)
    assert np.all(np.abs(chains.draws.mean(axis=(0, 1)) - TARGET / (1 + NOISE)) < error)
    assert_allclose(chains.draws.var(axis=(0, 1)), NOISE / (1 + NOISE), rtol=0.15)
    again = elliptical_slices(log_likelihood, np.zeros((4, 3)), warmup=100, draws=1000, thin=2, seed=1)
    assert_array_equal(again.draws, chains.draws)


def test_no_u_turns():
    precision = np.array([[2.0, 0.9], [0.9, 1.0]])
    chains = no_u_turns(lambda x: -0.5 * x @ precision @ x, np.zeros((4, 2)), warmup=200, draws=500, names=("a", "b"))
    assert chains.mixed, chains.message
    assert chains.divergences == 0
    assert_allclose(np.cov(chains.draws.reshape(-1, 2).T), np.linalg.inv(precision), atol=0.35)
    again = no_u_turns(lambda x: -0.5 * x @ precision @ x, np.zeros((4, 2)), warmup=200, draws=500)
    assert_array_equal(again.draws, chains.draws)


def test_chains_that_have_not_mixed_say_so():
    rng = np.random.default_rng(0)
    walk = Chains(np.cumsum(rng.normal(size=(4, 400, 1)), axis=1))
    assert not walk.mixed
    assert "have not mixed" in walk.message
    independent = Chains(rng.normal(size=(4, 400, 2)))
    assert independent.mixed
    assert np.all(independent.effective > 1000)
    assert independent.thinned(100).shape == (100, 2)
    sticky = np.repeat(rng.normal(size=(4, 80, 1)), 5, axis=1)  # each value five times
    assert_allclose(Chains(sticky).effective, 320, rtol=0.35)


def test_arviz_gets_the_draws_and_finds_the_same_effective_number():
    arviz = pytest.importorskip("arviz")
    draws = np.random.default_rng(0).normal(size=(4, 300, 2)).cumsum(axis=1)
    draws = 0.5 * draws[:, 1:] + np.diff(draws, axis=1)  # correlated, and chains that differ
    chains = Chains(draws, names=("a", "b"))
    given = chains.to_arviz()
    assert_array_equal(given["posterior"]["b"], draws[:, :, 1])
    for name, ours in zip(chains.names, zip(chains.rhat, chains.effective, strict=True), strict=True):
        theirs = [float(f(given)[name]) for f in (arviz.rhat, arviz.ess)]
        assert_allclose(ours, theirs, rtol=0.05)


def test_an_interrupt_keeps_the_draws_so_far():
    calls = []

    def advance(state, keys):
        calls.append(keys)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return state, (np.zeros((2, 50, 1)), np.zeros((2, 50), bool))

    chains = _run(advance, np.zeros((2, 1)), jax.random.key(0), 50, 500, 1)
    assert chains.interrupted
    assert chains.draws.shape == (2, 100, 1)
    assert "Interrupted" in chains.message


def test_annealed_evidence_against_the_closed_form():
    found = anneal(lambda x: log_likelihood(x) - 1.5 * jnp.log(2 * jnp.pi * NOISE), 3, runs=200, temperatures=100)
    exact = multivariate_normal(cov=(1 + NOISE) * np.eye(3)).logpdf(TARGET)
    assert abs(found.log_evidence - exact) < 4 * found.error
    assert found.error < 0.1
    assert found.trustworthy


# -------------------------------------------------------------------------------------------------------- models
DATA_X, DATA_Y, X_NEW = dense.formula_data()
X, Y = DATA_X[:20], np.where(DATA_Y[:20] > 0.1, 1, -1)
GIVEN = {"optimizer": None, "normalize": False}
KERNEL = SquaredExponential([0.8, 1.3], 1.44)


@pytest.fixture(scope="module")
def sampled():
    return GPClassifier(KERNEL, inference=MCMC(draws=1000, thin=3, keep=2000), **GIVEN).fit(X, Y)


def test_probit_against_ep(sampled):
    """EP is nearly exact for probit: probabilities, marginals and evidence agree within the sampler's error."""
    ep = GPClassifier(KERNEL, inference=EP(), **GIVEN).fit(X, Y)
    assert sampled.inference_status_.converged, sampled.inference_status_.message
    assert_allclose(sampled.predict_proba(X_NEW), ep.predict_proba(X_NEW), atol=0.03)
    posterior = sampled.posterior_
    assert np.max(posterior.rhat) < 1.05
    assert posterior.effective.shape == (20, 1)
    annealed = sampled.annealed_evidence(runs=100, temperatures=200, random_state=0)
    assert abs(annealed.log_evidence - ep.log_evidence_) < 4 * annealed.error + 0.02


def test_annealing_is_shorter_from_the_posterior_than_from_the_prior():
    """Two latents, a burst of wrong targets: from the prior few of the runs count."""
    x = np.linspace(-2, 2, 12)[:, None]
    y = np.sin(2 * x[:, 0])
    y[[7, 8]] += 3.0
    kernels = {"mean": SquaredExponential(0.8, 1.0), "gate": SquaredExponential(0.5, 1.0)}
    model = GPRegressor(kernels, likelihood=Twinned(0.05, 60.0, 1.0), **GIVEN).fit(x, y)
    near, far = (model.annealed_evidence(runs=100, temperatures=50, start=start) for start in ("posterior", "prior"))
    assert near.trustworthy
    assert not far.trustworthy
    assert abs(near.log_evidence - model.log_evidence_) < 4 * near.error + 0.3  # EP's own error
    with pytest.raises(ValueError, match="start='here': choose 'posterior' or 'prior'"):
        model.annealed_evidence(start="here")
    for wrong in ({"runs": 1}, {"temperatures": 0}):
        with pytest.raises(ValueError, match=f"annealed_evidence.*{next(iter(wrong))}"):
            model.annealed_evidence(**wrong)


def test_exposures_are_known_to_samplers():
    """The log of the exposure is beside the function, not part of it: draws, their evidence, and that of FullBayes."""
    people = np.linspace(5.0, 50.0, 20)
    table = np.column_stack([X, people])
    counts = np.round(people * np.exp(0.5 * np.sin(X[:, 0]) - 1))
    ep = GPRegressor(KERNEL, likelihood=Poisson(), exposure=2, inference=EP(), **GIVEN).fit(table, counts)
    drawn = clone(ep).set_params(inference=MCMC(draws=1000, thin=3)).fit(table, counts)
    assert_allclose(drawn.predict(table), ep.predict(table), rtol=0.05)
    annealed = ep.annealed_evidence(runs=100, temperatures=200, random_state=0)
    assert abs(annealed.log_evidence - ep.log_evidence_) < 4 * annealed.error + 0.02
    objective = clone(ep).objective(table, counts)
    with double_precision():
        value = log_target(objective, objective.theta0, 1.0)(objective.theta0)
    assert_allclose(value, objective.evaluate(objective.theta0).value, rtol=1e-9)


def test_annealed_evidence_is_of_targets_as_given():
    """With weights, standardised and transformed, as ``log_evidence_`` is."""
    weight = np.where(np.arange(20) % 3 == 0, 2.0, 1.0)
    noise = {"likelihood": StudentT(4.0, 0.3), "inference": EP(), "optimizer": None}
    for y, transform in ((100 * DATA_Y[:20], None), (np.exp(DATA_Y[:20]), "log")):
        model = GPRegressor(KERNEL, target_transform=transform, **noise).fit(X, y, sample_weight=weight)
        annealed = model.annealed_evidence(runs=100, temperatures=200, random_state=0)
        assert abs(annealed.log_evidence - model.log_evidence_) < 4 * annealed.error + 0.1


def test_sampled_models_are_kept_and_repeatable(sampled, tmp_path):
    sampled.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert_array_equal(again.predict_proba(X_NEW), sampled.predict_proba(X_NEW))
    with pytest.raises(ValueError, match="MCMC needs the whole covariance"):
        GPClassifier(KERNEL, inference=MCMC(), approximation=FITC(5), **GIVEN).fit(X, Y)


def test_full_bayes(tmp_path):
    """Evidence times prior on a grid says what the draws of two hyperparameters should look like."""
    x = np.linspace(0, 5, 16)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * np.cos(9 * x[:, 0])
    fixed = errorband.Parameter(1.0, fixed=True)
    settings = {"kernel": SquaredExponential(1.0, fixed), "likelihood": Gaussian(0.05), "normalize": False}
    trainer = FullBayes(chains=2, warmup=200, draws=300, members=10, spread=1.0)
    model = GPRegressor(optimizer=trainer, **settings).fit(x, y)
    chains = model.fit_result_.chains
    assert chains.names == ("latents.0.kernel.lengthscale", "likelihood.noise_variance")
    objective = GPRegressor(**settings).objective(x, y)
    grid = np.stack(np.meshgrid(np.linspace(-1.5, 1.5, 25), np.linspace(-7.0, 0.0, 25), indexing="ij"), -1)
    theta = grid.reshape(-1, 2)
    log_p = [objective.evaluate(t).value - 0.5 * np.sum((t - objective.theta0) ** 2) for t in theta]
    p = np.exp(log_p - np.max(log_p))
    mean = p @ theta / p.sum()
    std = np.sqrt(p @ (theta - mean) ** 2 / p.sum())
    drawn = chains.draws.reshape(-1, 2)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * std / np.sqrt(chains.effective) + 0.1 * std)
    assert_allclose(drawn.std(axis=0), std, rtol=0.3)
    assert model.fit_result_.draws.shape == (10, 2)
    assert len(model.posterior_.members) == 10
    model.save(tmp_path / "model.eb")
    assert_array_equal(errorband.load(tmp_path / "model.eb").predict(x), model.predict(x))


@pytest.mark.parametrize("approximation", ["exact", FITC(5), VFE(5), PowerEP(5, 0.5)], ids=str)
def test_the_density_of_full_bayes_for_gaussian_noise_is_the_evidence_with_its_gradient(approximation):
    weight = np.where(np.arange(len(DATA_Y)) % 3 == 0, 2.0, 1.0)
    model = GPRegressor(KERNEL, likelihood=Gaussian(0.05), approximation=approximation, normalize=False)
    objective = model.objective(DATA_X, DATA_Y, sample_weight=weight)
    if isinstance(approximation, PowerEP):
        with pytest.raises(ValueError, match="FullBayes cannot sample PowerEP with sample_weight"):
            log_target(objective, objective.theta0, 1.0)
        objective = model.objective(DATA_X, DATA_Y)
    point = objective.evaluate(objective.theta0)
    with double_precision():
        value, slope = jax.value_and_grad(log_target(objective, objective.theta0, 1.0))(objective.theta0)
    assert_allclose(value, point.value, rtol=1e-9)
    assert_allclose(slope, point.gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_simulation_based_calibration():
    """Ranks of true values among draws of their posterior are uniform (Talts et al. 2018)."""
    rng, ranks = np.random.default_rng(0), {"elliptical": [], "nuts": []}
    for i in range(100):
        truth = rng.normal(size=3)
        target = truth + np.sqrt(NOISE) * rng.normal(size=3)
        likelihood = lambda x, target=target: -0.5 * jnp.sum((target - x) ** 2) / NOISE  # noqa: E731
        slices = elliptical_slices(likelihood, np.zeros((2, 3)), warmup=50, draws=100, thin=3, seed=i)
        density = lambda x, likelihood=likelihood: likelihood(x) - 0.5 * jnp.sum(x**2)  # noqa: E731
        turns = no_u_turns(density, np.zeros((2, 3)), warmup=100, draws=100, seed=i)
        for name, chains in (("elliptical", slices), ("nuts", turns)):
            ranks[name].append(np.mean(chains.draws.reshape(-1, 3) < truth, axis=0))
    for name, found in ranks.items():
        assert kstest(np.ravel(found), "uniform").pvalue > 0.001, name


def test_gibbs_on_the_indicators_and_slices_agree():
    """Two samplers that share nothing, on a twinned model with wrong targets."""
    x = np.linspace(-2, 2, 20)[:, None]
    y = np.sin(2 * x[:, 0])
    y[[4, 12, 13]] += 3.0
    kernels = {"mean": SquaredExponential(0.8, 1.0), "gate": SquaredExponential(0.5, 1.0)}
    settings = {"likelihood": Twinned(0.05, 60.0, 1.0), **GIVEN}
    gibbs, slices = (
        GPRegressor(kernels, inference=MCMC(sampler, draws=draws, keep=1000), **settings).fit(x, y)
        for sampler, draws in (("gibbs", 400), ("elliptical", 1500))
    )
    for latent in ("mean", "gate"):
        (m1, s1), (m2, s2) = (model.predict(x, return_std=True, latent=latent) for model in (gibbs, slices))
        assert np.max(np.abs(m1 - m2) / s2) < 0.35
        assert_allclose(s1, s2, rtol=0.35)
    with pytest.raises(ValueError, match="is for likelihood=Twinned"):
        GPRegressor(kernels["mean"], likelihood=Gaussian(0.1), inference=MCMC("gibbs"), **GIVEN).fit(x, y)
