"""partial_fit: batches add up to the fit of all rows, points follow the data, memory is constant."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import errorband
from errorband import GPClassifier, GPRegressor
from errorband.approximations import DTC, FITC, VFE, PowerEP, SoR
from errorband.features import SparseSpectrum
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, 60)[:, None]
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60)
NEW = np.linspace(0, 6, 9)[:, None]
Z = np.linspace(0, 6, 8)[:, None]
PARTS = np.arange(60).reshape(3, 20)
GIVEN = {"likelihood": Gaussian(0.01), "optimizer": None, "normalize": False}
KERNEL = SquaredExponential(0.7, 1.0)


def streamed(model, parts=PARTS, y=Y, x=X):
    for part in parts:
        model.partial_fit(x[part], y[part])
    return model


@pytest.mark.parametrize(
    "approximation",
    [
        VFE(inducing_inputs=Z),
        FITC(inducing_inputs=Z),
        DTC(inducing_inputs=Z),
        SoR(inducing_inputs=Z),
        PowerEP(power=0.5, inducing_inputs=Z),
        SparseSpectrum(frequencies=RNG.normal(size=(7, 1))),
    ],
    ids=lambda a: type(a).__name__,
)
def test_batches_add_up_to_the_fit_of_all_rows(approximation):
    whole = GPRegressor(KERNEL, approximation=approximation, **GIVEN).fit(X, Y)
    online = streamed(GPRegressor(KERNEL, approximation=approximation, **GIVEN))
    assert_allclose(online.log_evidence_, whole.log_evidence_, rtol=1e-7)
    assert_allclose(online.predict(NEW, return_std=True), whole.predict(NEW, return_std=True), atol=1e-6)
    mean, cov = whole.predict(NEW, return_cov=True, latent=True)
    assert_allclose(online.predict(NEW, return_cov=True, latent=True)[1], cov, atol=1e-6)
    assert_allclose(online.predict(NEW, latent=True), mean, atol=1e-6)


def test_known_noise_and_units():
    noise = RNG.uniform(0.0, 0.1, 60)
    settings = {"approximation": VFE(inducing_inputs=Z), "likelihood": Gaussian(500.0), "optimizer": None}
    kernel = KERNEL.set_params(variance=1e4)
    online = GPRegressor(kernel, **settings).fit(X, 100 * Y + 7, noise)
    one = GPRegressor(kernel, **settings).fit(X[:30], 100 * Y[:30] + 7, noise[:30])
    both = one.condition_on(X, 100 * Y + 7, noise)
    one.partial_fit(X[30:], 100 * Y[30:] + 7, noise[30:])
    assert_allclose(one.log_evidence_, both.log_evidence_, rtol=1e-7)
    assert_allclose(one.predict(NEW), both.predict(NEW), rtol=1e-6)
    assert online.predict(NEW).shape == (9,)


def test_points_follow_the_data_and_nothing_is_forgotten():
    order = np.argsort(X[:, 0])  # each batch is somewhere else
    model = GPRegressor(KERNEL, approximation=VFE(14), **GIVEN)
    sizes = []
    for part in order.reshape(3, 20):
        model.partial_fit(X[part], Y[part])
        sizes.append(model.latents_["f"].features.size)
    assert max(sizes) <= 14
    exact = GPRegressor(KERNEL, **GIVEN).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True, latent=True)
    assert_allclose(mean, exact.predict(NEW), atol=0.05)
    assert_allclose(std, exact.predict(NEW, return_std=True, latent=True)[1], atol=0.05)


def test_beyond_their_number_the_points_that_matter_least_go():
    order = np.argsort(X[:, 0])
    model = streamed(GPRegressor(KERNEL, approximation=VFE(6), **GIVEN), order.reshape(3, 20))
    assert model.latents_["f"].features.size == 6
    assert np.all(np.isfinite(model.predict(NEW, return_std=True)))


def test_classes():
    y = np.where(np.sin(2 * X[:, 0]) > 0, "up", "down")
    settings = {"optimizer": None, "normalize": False, "approximation": FITC(inducing_inputs=Z)}
    whole = GPClassifier(SquaredExponential(0.7, 4.0), **settings).fit(X, y)
    online = GPClassifier(SquaredExponential(0.7, 4.0), **settings)
    for part in PARTS:
        online.partial_fit(X[part], y[part], classes=["down", "up"])
    assert_allclose(online.predict_proba(NEW), whole.predict_proba(NEW), atol=0.05)
    assert online.score(X, y) > 0.9
    assert_allclose(online.class_prior_, whole.class_prior_)  # of all batches


@pytest.mark.slow
def test_a_model_for_each_class():
    y = np.digitize(X[:, 0], [2.0, 4.0])
    model = GPClassifier(
        SquaredExponential(0.7, 4.0),
        optimizer=None,
        normalize=False,
        approximation=FITC(inducing_inputs=Z),
        multi_class="one_vs_rest",
    )
    assert streamed(model, y=y).score(X, y) > 0.9


def test_a_saved_model_goes_on(tmp_path):
    model = streamed(GPRegressor(KERNEL, approximation=VFE(8), **GIVEN), PARTS[:2])
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    for one in (model, again):
        one.partial_fit(X[PARTS[2]], Y[PARTS[2]])
    assert np.array_equal(model.predict(NEW, return_std=True), again.predict(NEW, return_std=True))


CHILD = """
import sys, pathlib, numpy as np, errorband
from errorband.approximations import VFE
folder, rng = pathlib.Path(sys.argv[1]), np.random.default_rng(0)
X = rng.uniform(0, 6, (400, 1))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=400)
seen = max((int(p.stem) for p in folder.glob("*.eb")), default=0)
model = errorband.GPRegressor(approximation=VFE(8), optimizer=None, random_state=0)
model = errorband.load(folder / f"{seen}.eb") if seen else model
for k in range(seen, 20):
    model.partial_fit(X[20 * k : 20 * k + 20], y[20 * k : 20 * k + 20])
    model.save(folder / f"{k + 1}.eb")
    print(k + 1, flush=True)
"""


@pytest.mark.slow
def test_a_stream_that_is_killed_again_and_again_loses_at_most_a_batch(tmp_path):
    """What it says at the end is what one that was left alone says."""
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    for folder, kills in ((alone, ()), (killed, (2, 7, 13))):
        folder.mkdir()
        for last in (*kills, 20):
            process = subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            seen = next(int(line) for line in process.stdout if int(line) >= last)
            process.kill() if last < 20 else None
            process.wait()
            assert max(int(p.stem) for p in folder.glob("*.eb") if errorband.load(p)) >= seen
    one, other = (errorband.load(folder / "20.eb").predict(NEW, return_std=True) for folder in (alone, killed))
    assert np.array_equal(one, other)


def test_refusals():
    assert not hasattr(GPRegressor(), "partial_fit")
    with pytest.raises(AttributeError):
        GPRegressor(approximation="exact").partial_fit(X, Y)
    y = np.digitize(X[:, 0], [2.0, 4.0])
    settings = {"optimizer": None, "multi_class": "joint", "inference": "laplace"}
    joint = GPClassifier(approximation=FITC(5), **settings).partial_fit(X, y)
    with pytest.raises(ValueError, match="one_vs_rest"):
        joint.partial_fit(X, y)
    with pytest.raises(ValueError, match="no row of 3"):
        GPClassifier(approximation=FITC(5)).partial_fit(X, y, classes=[0, 1, 2, 3])
