"""Bochner's theorem: k(x, z) = variance · E cos(ωᵀ(x − z)) over the sampled frequencies."""

import numpy as np
import pytest

from errorband.kernels import (
    KERNELS,
    Additive,
    BSpline,
    Laplacian,
    Matern,
    Periodic,
    PoweredExponential,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)
from errorband.parameters import Parameter

DRAWS = 40_000
LAGS = np.array([[0.05, -0.1], [0.3, 0.2], [-0.7, 0.9], [1.6, 0.4], [2.5, -3.0]])

# name -> kernel of these length-scales
KINDS = {
    "SquaredExponential": SquaredExponential,
    **{f"Matern {nu}": lambda ell, nu=nu: Matern(ell, nu=nu) for nu in (0.5, 1.5, 2.5)},
    **{f"RationalQuadratic {a}": lambda ell, a=a: RationalQuadratic(ell, alpha=a) for a in (0.4, 3.0)},
    **{f"PoweredExponential {p}": lambda ell, p=p: PoweredExponential(ell, power=p) for p in (0.5, 1.0, 1.6, 2.0)},
    "Laplacian": Laplacian,
    "Additive": Additive,
    **{f"BSpline {p}": lambda ell, p=p: BSpline(ell, degree=p) for p in (1, 3, 5, 7)},
    "Periodic": lambda ell: Periodic(ell, period=2.2),
    "Periodic rough": lambda ell: Periodic(0.1 * np.asarray(ell), period=[1.3, 2.1][: np.size(ell)]),
}


def test_every_stationary_kernel_is_here():
    assert {kind.split()[0] for kind in KINDS} == {n for n, cls in KERNELS.items() if issubclass(cls, Stationary)}


@pytest.mark.parametrize("ell", [0.8, [0.7, 1.6]], ids=["1-D", "2-D ARD"])
@pytest.mark.parametrize("kind", KINDS)
def test_frequencies_give_the_correlation(kind, ell):
    kernel, d = KINDS[kind](ell), np.size(ell)
    omega = kernel.sample_spectrum(11, DRAWS, d)
    assert omega.shape == (DRAWS, d)
    assert np.isfinite(omega).all()
    waves = np.cos(omega @ LAGS[:, :d].T)
    error = waves.std(axis=0) / np.sqrt(DRAWS)
    correlation = kernel(LAGS[:, :d], np.zeros((1, d)))[:, 0] / kernel.diag(np.zeros((1, d)))
    assert (np.abs(waves.mean(axis=0) - correlation) < 4 * error).all()
    signs = np.sin(omega @ LAGS[:, :d].T)  # the density is even
    assert (np.abs(signs.mean(axis=0)) < 4 * signs.std(axis=0) / np.sqrt(DRAWS)).all()


def test_draws_are_reproducible_and_follow_the_generator():
    k = Matern(0.7)
    np.testing.assert_array_equal(k.sample_spectrum(3, 10, 2), k.sample_spectrum(3, 10, 2))
    rng = np.random.default_rng(3)
    assert (k.sample_spectrum(rng, 10, 2) != k.sample_spectrum(rng, 10, 2)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_values_may_be_missing_or_wrapped(kind):
    bare = type(KINDS[kind](1.0))()
    assert np.isfinite(bare.sample_spectrum(0, 7, 3)).all()
    wrapped = type(bare)(lengthscale=Parameter(2.0, fixed=True))
    if not isinstance(bare, Periodic):
        np.testing.assert_allclose(wrapped.sample_spectrum(0, 7, 3), bare.sample_spectrum(0, 7, 3) / 2, rtol=1e-12)
    assert wrapped.sample_spectrum(0, 0, 3).shape == (0, 3)


def test_a_very_rough_periodic_kernel_does_not_need_much_memory():
    omega = Periodic(1e-4, period=1.0).sample_spectrum(0, 1000, 1)
    assert np.std(omega) == pytest.approx(2 * np.pi * 1e4, rel=0.1)
