"""Arguments of kernels and the like, by the names scikit-learn gives them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from errorband import GPRegressor, Parameter
from errorband.approximations import FITC, PIC
from errorband.features import SparseSpectrum
from errorband.kernels import Diffusion, Linear, Matern, Periodic, Projection, SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Softmax
from errorband.means import Constant as ConstantMean

MADE = [
    Linear(2.0) + Matern(1.0),
    3.0 * Projection(Linear(1.0), 2, active_dims=[0, 1]),
    Diffusion(np.ones((3, 3)) - np.eye(3), 1.0),
    Gaussian(0.5, min_noise_variance=0.1),
    Bernoulli("logit", bias=0.1),
    ConstantMean(marginalize=True),
    FITC(30, init="random"),
    PIC(30, block_size=50),
    SparseSpectrum(10),
]


@pytest.mark.parametrize("module", MADE, ids=lambda m: type(m).__name__)
def test_what_was_given_makes_the_same_again(module):
    assert repr(type(module)(**module.get_params(deep=False))) == repr(module)
    assert clone(module) is module


def test_nested_names_reach_every_part():
    kernel = Linear(2.0) + Periodic(1.0, period=3.0) * SquaredExponential(Parameter(5.0, fixed=True))
    assert kernel.get_params()["right__left__period"] == 3.0
    other = kernel.set_params(left__variance=[1.0, 2.0], right__right__lengthscale=7.0)
    assert repr(other.right.right) == "SquaredExponential(lengthscale=7)"
    assert other.left.variance.tolist() == [1.0, 2.0]
    assert kernel.left.variance == 2.0  # frozen
    assert Softmax(3).set_params(n_classes=4).n_latents == 4
    graph = Diffusion(np.ones((3, 3)) - np.eye(3), 1.0).set_params(time=2.0)
    assert graph.time == 2.0
    with pytest.raises(ValueError, match="Linear has no argument 'period'; it has 'variance', 'active_dims'"):
        kernel.set_params(left__period=1.0)


def test_estimators_get_new_parts():
    kernel = Matern(1.0)
    model = GPRegressor(kernel, approximation=FITC(20))
    model.set_params(kernel__lengthscale=2.0, kernel__nu=2.5, approximation__n_inducing=30, n_restarts=2)
    assert (float(model.kernel.lengthscale), model.kernel.nu, model.approximation.n_inducing) == (2.0, 2.5, 30)
    assert kernel.lengthscale == 1.0
    assert model.n_restarts == 2
    model.set_params(kernel=Linear(1.0), kernel__variance=3.0)
    assert model.kernel.variance == 3.0
    assert set(clone(model).get_params()) == set(model.get_params())
    with pytest.raises(ValueError, match="kernel=None has no argument 'lengthscale': give kernel as an object"):
        GPRegressor().set_params(kernel__lengthscale=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        GPRegressor().set_params(colour__x=1.0)
    with pytest.raises(ValueError, match="Matern has no argument 'period'"):
        GPRegressor(kernel).set_params(kernel__period=1.0)


def test_kernels_by_latent_function():
    model = GPRegressor({"mean": Matern(1.0), "log_noise": Matern(2.0)}, likelihood=HeteroscedasticGaussian())
    assert model.get_params()["kernel__log_noise__lengthscale"] == 2.0
    model.set_params(kernel__log_noise__lengthscale=5.0, kernel__mean=Linear(1.0))
    assert repr(model.kernel) == "{'mean': Linear(variance=1), 'log_noise': Matern(lengthscale=5)}"
    with pytest.raises(ValueError, match="kernel has no entry 'noise'; it has 'mean', 'log_noise'"):
        model.set_params(kernel__noise__lengthscale=1.0)


def test_grid_search_over_a_kernel():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (40, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    model = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(0.01), optimizer=None)
    grid = {"gpregressor__kernel__lengthscale": [0.01, 0.5, 100.0]}
    found = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3).fit(X, y)
    assert found.best_params_ == {"gpregressor__kernel__lengthscale": 0.5}
    assert found.best_estimator_[-1].kernel_.lengthscale == pytest.approx(0.5)
