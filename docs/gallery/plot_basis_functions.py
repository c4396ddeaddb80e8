"""Five localised basis functions against infinitely many: the same model class, very different error bars.

A linear model f(x) = Σ_m w_m φ_m(x) with w_m ~ N(0, λ) is a Gaussian process with covariance λ Σ_m φ_m(x) φ_m(z), here
written as a kernel of our own. Bumps of width w on an ever finer grid tend to the squared exponential with ℓ = √2·w.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from style import BLACK, BLUE, GREY, VERMILION, band, plt, save

from errorband import GPRegressor
from errorband.kernels import Kernel, SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.parameters import POSITIVE, hyperparameter

WIDTH, NOISE_SD = 0.8, 0.15
FIVE = (-3.0, -1.5, 0.0, 1.5, 3.0)


class Bumps(Kernel):
    """k(x, z) = weight_variance · Σ_m φ_m(x) φ_m(z), φ_m(x) = exp(−½ (x − c_m)²/width²), for one input."""

    centres: tuple[float, ...] = eqx.field(static=True)
    width: Any = hyperparameter(POSITIVE, ndim=0)
    weight_variance: Any = hyperparameter(POSITIVE, ndim=0)

    def features(self, X):
        """φ_m(x): one row per input, one column per basis function."""
        return jnp.exp(-0.5 * ((X - jnp.asarray(self.centres)) / self.width) ** 2)

    def evaluate(self, X, Z):
        return self.weight_variance * self.features(X) @ self.features(Z).T

    def evaluate_diag(self, X):
        return self.weight_variance * jnp.sum(self.features(X) ** 2, axis=1)

    def defaults(self, X, y_variance):
        return {"width": np.ptp(X) / len(self.centres), "weight_variance": y_variance}


def bumps(centres):
    """Bumps whose weight variance falls with their density, so that the prior variance tends to 1."""
    spacing = centres[1] - centres[0]
    return Bumps(tuple(float(c) for c in centres), WIDTH, spacing / (np.sqrt(np.pi) * WIDTH))


def weight_space(kernel, X, y, x):
    """The same posterior found through the M weights instead of the N data: O(NM²) instead of O(N³)."""

    def phi(x):
        return np.exp(-0.5 * ((x - np.array(kernel.centres)) / float(kernel.width)) ** 2)

    precision = phi(X).T @ phi(X) / NOISE_SD**2 + np.eye(len(kernel.centres)) / float(kernel.weight_variance)
    mean = phi(x) @ np.linalg.solve(precision, phi(X).T @ y) / NOISE_SD**2
    return mean, np.sqrt(np.sum(phi(x) * np.linalg.solve(precision, phi(x).T).T, axis=1))


def main():
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(-2.5, 2.0, 14))[:, None]
    y = np.sin(1.6 * X[:, 0]) + NOISE_SD * rng.standard_normal(14)
    x = np.linspace(-7, 7, 351)[:, None]
    five, infinite = bumps(FIVE), SquaredExponential(np.sqrt(2) * WIDTH, 1.0)
    models = {
        name: GPRegressor(kernel, likelihood=Gaussian(NOISE_SD**2), optimizer=None, normalize=False).fit(X, y)
        for name, kernel in (("5 bumps", five), ("infinitely many", infinite))
    }

    places = np.array([[-6.0], [-0.75], [0.0], [0.75], [4.5], [6.0]])
    print("standard deviation of the function at x =" + "".join(f"{p:8.2f}" for p in places[:, 0]))
    for name, model in models.items():
        prior, std = model.kernel_.diag(places) ** 0.5, model.predict(places, return_std=True, latent=True)[1]
        print(f"{name + ', before the data':41}" + "".join(f"{s:8.4f}" for s in prior))
        print(f"{name + ', after':41}" + "".join(f"{s:8.4f}" for s in std))
    for name, model in models.items():
        print(f"log evidence, {name}: {model.log_evidence_:.3f}")

    mean, std = models["5 bumps"].predict(x, return_std=True, latent=True)
    other_mean, other_std = weight_space(five, X, y, x)
    print(
        f"function space against weight space: means differ by at most {np.abs(mean - other_mean).max():.0e}, "
        f"standard deviations by {np.abs(std - other_std).max():.0e}"
    )

    print("bumps from -10 to 10 against the squared exponential, largest difference on [-5, 5]:")
    inner = np.linspace(-5, 5, 101)[:, None]
    for number in (6, 11, 16, 21, 26):
        error = np.abs(bumps(np.linspace(-10, 10, number))(inner) - infinite(inner)).max()
        print(f"  {number:3d} bumps, {20 / (number - 1) / WIDTH:4.2f} widths apart: {error:.1e}")

    figure, axes = plt.subplots(2, 2, figsize=(10, 5.6), sharex=True, sharey="row")
    for column, (kernel, colour, title) in enumerate(
        ((five, VERMILION, "5 localised basis functions"), (infinite, BLUE, "infinitely many (squared exponential)"))
    ):
        top, bottom = axes[:, column]
        prior = kernel.diag(x) ** 0.5
        values, vectors = np.linalg.eigh(kernel(x))
        draws = vectors * np.sqrt(np.maximum(values, 0)) @ np.random.default_rng(5).standard_normal((len(x), 4))
        band(top, x[:, 0], 0 * prior, prior, colour)
        top.plot(x[:, 0], draws, color=colour, linewidth=0.9, alpha=0.8)
        if kernel is five:
            heights = np.exp(-0.5 * ((x - np.array(FIVE)) / WIDTH) ** 2)
            top.plot(x[:, 0], heights - 3.4, color=GREY, linewidth=1)
            top.text(-6.9, -3.15, "the bumps", color=GREY, fontsize=9)
        top.set_title(title)
        top.set_ylim(-3.6, 3.1)
        model = list(models.values())[column]
        mean, std = model.predict(x, return_std=True, latent=True)
        band(bottom, x[:, 0], mean, std, colour)
        bottom.plot(X[:, 0], y, "o", color=BLACK, markersize=4)
        bottom.plot(x[:, 0], np.sin(1.6 * x[:, 0]), "--", color=GREY, linewidth=1, label="truth")
        bottom.set_xlabel("input x")
        bottom.set_ylim(-3.1, 2.6)
        bottom.legend(loc="lower left")
    axes[0, 0].set_ylabel("prior: ±2 sd and draws")
    axes[1, 0].set_ylabel("posterior: mean, ±2 sd")
    arrow = {"arrowstyle": "->", "color": VERMILION}
    axes[1, 0].annotate("certain, and wrong", (5.6, 0.03), (3.4, 1.7), color=VERMILION, arrowprops=arrow)
    save(figure, "basis_functions.png")


if __name__ == "__main__":
    main()
