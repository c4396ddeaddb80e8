"""Two things an error band should know about: how noisy each row is, and how little is known of the trend."""

import numpy as np
from style import BLACK, BLUE, GREEN, GREY, VERMILION, band, plt, save

from errorband import GPRegressor, Parameter, means
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian


def function(x):
    return np.sin(1.5 * x) + 0.4 * np.cos(4 * x)


def two_instruments(seed):
    """Forty rows, of which a third come from a good instrument (sd 0.05) and the rest from a poor one (sd 0.8)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (40, 1))
    sd = np.where(rng.random(40) < 1 / 3, 0.05, 0.8)
    return X, function(X[:, 0]) + sd * rng.standard_normal(40), sd


def compare_noise(x):
    """Root mean square error and coverage of the latent function, with and without the known noise."""
    scores = {"learned": [], "known": []}
    for seed in range(10):
        X, y, sd = two_instruments(seed)
        models = {
            "learned": GPRegressor(n_restarts=3, random_state=0).fit(X, y),
            "known": GPRegressor(n_restarts=3, random_state=0).fit(X, y, noise_variance=sd**2),
        }
        for name, model in models.items():
            mean, std = model.predict(x[:, None], return_std=True, latent=True)
            error = mean - function(x)
            inside = np.mean(np.abs(error) < 2 * std)
            scores[name].append((np.sqrt(np.mean(error**2)), inside, np.mean(std), model.log_evidence_))
        if seed == 0:
            shown = (X, y, sd), models
    print("noise: one variance learned for all rows, against a known variance for each (10 data sets, medians)")
    print("            rms error   inside ±2 sd   mean sd   log evidence")
    for name, rows in scores.items():
        rms, inside, width, evidence = np.median(rows, axis=0)
        print(f"  {name:8} {rms:10.3f} {100 * inside:13.0f}% {width:10.3f} {evidence:13.2f}")
    return shown


def compare_means():
    """Extrapolation of a trend with three treatments of the mean, everything else held at the same values."""
    rng = np.random.default_rng(2)
    X = np.sort(rng.uniform(0, 4, 25))[:, None]
    trend = 1.0 + 0.8 * X[:, 0]
    y = trend + 0.5 * np.sin(2.5 * X[:, 0]) + 0.15 * rng.standard_normal(25)
    kernel = SquaredExponential(Parameter(0.8, fixed=True), Parameter(0.25, fixed=True))
    noise = Gaussian(Parameter(0.15**2, fixed=True))
    treatments = {
        "zero": ("zero", VERMILION),
        "linear, learned": ("linear", BLUE),
        "linear, integrated out": (means.Linear(marginalize=True), GREEN),
    }
    models = {}
    print("mean: prediction of the function beyond the data, which end at x = 4 (mean ± sd)")
    print("                            x = 2            x = 6            x = 10           (truth at 10: 8.93)")
    for name, (mean, colour) in treatments.items():
        model = GPRegressor(kernel, mean=mean, likelihood=noise, normalize=False).fit(X, y)
        m, s = model.predict([[2.0], [6.0], [10.0]], return_std=True, latent=True)
        print(f"  {name:24}" + "".join(f"{a:6.2f} ± {b:5.3f}   " for a, b in zip(m, s, strict=True)).rstrip())
        models[name] = model, colour
    learned = models["linear, learned"][0].mean_.coefficients
    flat = models["linear, integrated out"][0].posterior_.coefficients
    print(f"  coefficients: learned {np.round(learned, 3)}, integrated out (their posterior mean) {np.round(flat, 3)}")
    for name, (model, _) in models.items():
        print(f"  log evidence, {name}: {model.log_evidence_:.2f}")
    print("  (the last is a density of n - 2 numbers: compare it only with models that integrate the same trend out)")
    return X, y, models


def main():
    x = np.linspace(-3, 3, 300)
    ((X, y, sd), models) = compare_noise(x)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    titles = {"learned": "one noise variance, learned", "known": "noise variance given per row"}
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        mean, std = model.predict(x[:, None], return_std=True, latent=True)
        band(ax, x, mean, std, BLUE, "mean and ±2 sd of the function")
        ax.plot(x, function(x), "--", color=GREY, linewidth=1.2, label="truth")
        good = sd < 0.1
        ax.plot(X[~good, 0], y[~good], "o", mfc="none", color=VERMILION, markersize=5, label="poor instrument")
        ax.plot(X[good, 0], y[good], "D", color=BLACK, markersize=4, label="good instrument")
        ax.set(title=titles[name], xlabel="input x", ylim=(-3.4, 3.2))
    axes[0].set_ylabel("target")
    axes[1].legend(loc="lower right", ncols=2)
    save(figure, "known_noise.png")

    print()
    X, y, models = compare_means()
    x = np.linspace(-0.5, 10, 300)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
    for ax, (name, (model, colour)) in zip(axes, models.items(), strict=True):
        mean, std = model.predict(x[:, None], return_std=True, latent=True)
        band(ax, x, mean, std, colour)
        ax.plot(x, 1 + 0.8 * x + 0.5 * np.sin(2.5 * x), "--", color=GREY, linewidth=1.2, label="truth")
        ax.plot(X[:, 0], y, "o", color=BLACK, markersize=3.5)
        ax.set(title=f"mean: {name}", xlabel="input x")
    axes[0].set_ylabel("function, ±2 sd")
    axes[0].legend(loc="upper left")
    save(figure, "means.png")


if __name__ == "__main__":
    main()
