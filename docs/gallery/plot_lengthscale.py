"""The evidence prefers the right length-scale, although a shorter one fits the data almost exactly."""

import numpy as np
from style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, plt, save

from errorband import GPRegressor, Parameter
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian

LENGTHSCALE, NOISE_SD = 1.0, 0.2


def make_data(seed=4, n=24):
    """A function drawn from the prior with unit length-scale and variance, seen through noise at n inputs."""
    rng = np.random.default_rng(seed)
    X = (np.linspace(-5, 5, n) + rng.uniform(-0.12, 0.12, n))[:, None]
    K = SquaredExponential(LENGTHSCALE, 1.0)(X) + NOISE_SD**2 * np.eye(n)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(n)


def terms(kernel, noise_variance, X, y):
    """The two terms of the log evidence: how well the data are fitted, and the penalty for flexibility."""
    A = kernel(X) + float(noise_variance) * np.eye(len(y))
    fit = -0.5 * y @ np.linalg.solve(A, y)
    penalty = -0.5 * np.linalg.slogdet(A)[1]
    return fit, penalty


def fit_with(lengthscale, X, y):
    """Hold the length-scale; let the evidence choose the variances of function and noise."""
    kernel = SquaredExponential(Parameter(lengthscale, fixed=True), 1.0)
    options = {"normalize": False, "n_restarts": 3, "random_state": 0}
    return GPRegressor(kernel, likelihood=Gaussian(0.05), **options).fit(X, y)


def main():
    X, y = make_data()
    best = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(0.05), normalize=False).fit(X, y)
    optimum = float(best.kernel_.lengthscale)
    models = {
        "too short": (fit_with(0.25 * optimum, X, y), VERMILION),
        "optimum": (best, GREEN),
        "too long": (fit_with(4.0 * optimum, X, y), BLUE),
    }
    print(f"{len(y)} points of a function with length-scale {LENGTHSCALE:g}, noise sd {NOISE_SD:g}")
    print("              length   sd of     sd of     rms        log        of which      of which")
    print("              scale    function  noise     residual   evidence   data fit      complexity")
    for name, (model, _) in models.items():
        k, noise = model.kernel_, float(model.likelihood_.noise_variance)
        fit, penalty = terms(k, noise, X, y)
        rms = np.sqrt(np.mean((y - model.predict(X)) ** 2))
        print(
            f"{name:12} {float(k.lengthscale):7.3f} {np.sqrt(float(k.variance)):9.3f} {np.sqrt(noise):9.5f} "
            f"{rms:9.5f} {model.log_evidence_:11.2f} {fit:11.2f} {penalty:13.2f}"
        )
    constant = -0.5 * len(y) * np.log(2 * np.pi)
    print(f"(log evidence = data fit + complexity - n/2 log 2 pi, the last being {constant:.2f})")

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9))
    x = np.linspace(-5.5, 5.5, 400)
    for name, (model, colour) in models.items():
        label = f"{name}: ℓ = {float(model.kernel_.lengthscale):.2f}"
        left.plot(x, model.predict(x[:, None]), color=colour, label=label)
    left.plot(X[:, 0], y, "o", color=BLACK, markersize=4.5, label="data")
    left.set(xlabel="input x", ylabel="posterior mean", title="Three length-scales, other values re-fitted")
    left.set_ylim(y.min() - 1.6, y.max() + 0.5)
    left.legend(loc="lower center", ncols=2)

    grid = np.geomspace(0.08, 12.0, 41)
    variance, noise = best.kernel_.variance, best.likelihood_.noise_variance
    fit, penalty = np.array([terms(SquaredExponential(ell, variance), noise, X, y) for ell in grid]).T
    profile = [fit_with(ell, X, y).log_evidence_ for ell in grid]
    right.plot(grid, fit, "--", color=ORANGE, label="data fit")
    right.plot(grid, penalty, ":", color=GREY, linewidth=2, label="complexity")
    right.plot(grid, fit + penalty + constant, color=BLACK, label="log evidence (sum, less n/2 log 2π)")
    right.plot(grid, profile, color=BLACK, alpha=0.35, linewidth=3, label="log evidence, variances re-fitted")
    for model, colour in models.values():
        right.plot(float(model.kernel_.lengthscale), model.log_evidence_, "o", color=colour, markersize=8)
    right.set_xscale("log")
    right.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    right.set_ylim(-60, 30)
    right.set(xlabel="length-scale ℓ", ylabel="nats", title="Occam's razor")
    right.legend(loc="lower left")
    save(figure, "lengthscale.png")
    print(f"largest log evidence on the grid: {max(profile):.2f} at length-scale {grid[int(np.argmax(profile))]:.2f}")


if __name__ == "__main__":
    main()
