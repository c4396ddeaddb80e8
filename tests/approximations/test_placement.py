"""Where inducing inputs and blocks start, and mistakes in asking for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband import GPRegressor
from errorband.approximations import FITC, PIC, PITC, PowerEP
from errorband.approximations.blocks import nearest
from errorband.features import Points
from errorband.kernels import Diffusion, SquaredExponential
from errorband.latents import Latent
from errorband.likelihoods import Gaussian
from errorband.means import Zero
from sparse_reference import KERNEL, fixed, q_matrix

CENTRES = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [50.0, 50.0]])  # the last has no rows


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], X_test


def test_starting_places(data):
    X, _, _ = data
    for init in ("kmeans", "random", "pivoted"):
        ready = Points(init=init).initialised(KERNEL, X, 7, random_state=0)
        again = Points(init=init).initialised(KERNEL, X, 7, random_state=0)
        assert ready.inducing_inputs.shape == (7, 2)
        assert np.array_equal(ready.inducing_inputs, again.inducing_inputs)
    first = Points(init="pivoted").initialised(KERNEL, X, 1, random_state=0).inducing_inputs
    second = Points(init="pivoted").initialised(KERNEL, X, 2, random_state=0).inducing_inputs
    assert np.array_equal(first, second[:1])
    left = KERNEL.diag(X) - np.diagonal(q_matrix(KERNEL, first, X, X))
    assert_allclose(second[1], np.unique(X, axis=0)[np.argmax(left[np.lexsort(X.T[::-1])])])


def test_every_class_gets_its_share_of_clusters(data):
    X, _, _ = data
    X = np.concatenate([X, 100 + X[:4]])  # the rare class, far away
    classes = np.repeat([0.0, 1.0], [40, 4])
    for n, expected in [(2, 1), (11, 1), (22, 2)]:
        Z = Points().initialised(KERNEL, X, n, classes, 0).inducing_inputs
        assert len(Z) == n
        assert np.sum(Z[:, 0] > 50) >= expected
    assert len(Points().initialised(KERNEL, X, 1, classes, 0).inducing_inputs) == 1


def test_repeated_rows_are_one_inducing_input_each(data):
    X, y, _ = data
    model = fixed(FITC(30)).fit(np.tile(X[:20], (2, 1)), np.tile(y[:20], 2))
    assert_allclose(model.approximation_.inducing_inputs, np.unique(X[:20], axis=0))


@pytest.mark.parametrize("init", ["kmeans", "pivoted"])
def test_labels_are_taken_from_the_rows_and_not_learned(init):
    ring = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
    nodes = np.arange(36.0)[:, None] % 12
    model = GPRegressor(Diffusion(ring), approximation=FITC(5, init=init), random_state=0)
    objective = model.objective(nodes, np.sin(nodes[:, 0]))
    Z = objective.model.latent.features.inducing_inputs
    assert Z.fixed
    assert np.isin(Z.value, np.arange(12.0)).all()
    assert len(objective.theta0) < 5


def test_pivots_are_filled_up():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 1))  # about ten pivots say all there is
    Z = Points(init="pivoted").initialised(SquaredExponential(2.0, 1.0), X, 50, random_state=0).inducing_inputs
    assert len(np.unique(Z)) == 50


def test_large_clusters_are_split_where_rows_differ():
    """Of 500 rows 400 are crowded and 60 are equal: no block but that of the equal ones is above twice its size."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.01 * rng.normal(size=(400, 2)), np.full((60, 2), 5.0), rng.uniform(-20, 20, (40, 2))])
    latents = (Latent(KERNEL, Zero()),)
    approximation, _ = PITC(inducing_inputs=X[::100], block_size=25).initialised(latents, X, random_state=0)
    labels = nearest(X, approximation.centres)
    sizes = np.bincount(labels)
    assert np.all(np.delete(sizes, labels[400]) <= 50)
    assert sizes[labels[400]] >= 60
    given, _ = PITC(inducing_inputs=X[::100], block_size=25, centres=X[:1]).initialised(latents, X, random_state=0)
    assert len(given.centres) == 1


def test_jitter_of_a_block_is_reported(data):
    """Equal rows without noise: their block is singular."""
    X, y, _ = data
    twice, targets = np.concatenate([X, X[:8]]), np.concatenate([y, y[:8]])
    with pytest.warns(RuntimeWarning, match="jitter_"):
        model = fixed(PIC(inducing_inputs=X[::5], centres=CENTRES), likelihood=Gaussian(1e-18)).fit(twice, targets)
    assert model.jitter_ > 0


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
        (lambda: PIC(block_size=0), "whole number"),
        (lambda: PIC(centres=np.zeros((3, 5))), "shape \\(B, 2\\)"),
    ],
)
def test_mistakes_are_explained(make, sentence, data):
    X, y, _ = data
    with pytest.raises(ValueError, match=sentence):
        fixed(make()).fit(X, y)


def test_flags_of_inducing_inputs_must_fit():
    X = np.linspace(0, 1, 20).reshape(10, 2)
    model = GPRegressor(approximation=FITC(4, optimize_inputs=[True, False, True]))
    with pytest.raises(ValueError, match=r"\(2,\) for columns"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="flags for columns"):
        FITC("auto", optimize_inputs=[[True], [False]])
