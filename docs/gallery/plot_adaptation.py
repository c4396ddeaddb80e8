"""How well the evidence finds the noise and the relevant input from 5, 10, 20 and 50 points."""

import numpy as np
from style import BLACK, BLUE, GREY, VERMILION, band, plt, save

from errorband import GPRegressor, Parameter
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.priors import LogNormal

LENGTHSCALE, NOISE_SD = 1.0, 0.25
SIZES, REPEATS = (5, 10, 20, 50), 10
EXAMPLE = 0  # the data set that is shown


def make_data(seed):
    """Fifty rows: two inputs, of which the function (a draw from the prior) uses only the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.5, 2.5, (max(SIZES), 2))
    K = SquaredExponential(LENGTHSCALE, 1.0, active_dims=[0])(X) + 1e-9 * np.eye(len(X))
    f = np.linalg.cholesky(K) @ rng.standard_normal(len(X))
    return X, f + NOISE_SD * rng.standard_normal(len(X))


def model(seed, priors, restarts=6):
    """Evidence alone, or evidence times broad priors on all hyperparameters (a factor of e either way)."""
    kernel, noise = SquaredExponential([1.0, 1.0], 1.0), Gaussian(0.1)
    if priors:
        scale, size = LogNormal(np.log(1.5), 1.0), LogNormal(0.0, 1.0)
        kernel = SquaredExponential(Parameter([1.0, 1.0], prior=scale), Parameter(1.0, prior=size))
        noise = Gaussian(Parameter(0.1, prior=LogNormal(np.log(0.1), 1.0)))
    return GPRegressor(kernel, likelihood=noise, normalize=False, n_restarts=restarts, random_state=seed)


def summary(fitted):
    """Noise standard deviation, length-scale of the relevant input, share of the irrelevant one in the relevance."""
    ell = fitted.kernel_.lengthscale
    relevance = ell**-2.0
    return np.sqrt(float(fitted.likelihood_.noise_variance)), ell[0], ell[1], relevance[1] / relevance.sum()


def main():
    results = {}
    for priors in (False, True):
        for m in SIZES:
            rows = [summary(model(seed, priors).fit(*(a[:m] for a in make_data(seed)))) for seed in range(REPEATS)]
            results[priors, m] = np.array(rows)
    print(f"truth: noise sd {NOISE_SD}, length-scale {LENGTHSCALE} of the relevant input, the other has none (share 0)")
    print(f"median over {REPEATS} data sets (quartiles)")
    for priors in (False, True):
        print("evidence times broad priors" if priors else "evidence alone")
        print("     m   noise sd                length-scale            other length-scale      share of irrelevant")
        for m in SIZES:
            low, mid, high = np.quantile(results[priors, m], [0.25, 0.5, 0.75], axis=0)
            cells = [f"{q(mid[i])} ({q(low[i])} to {q(high[i])})" for i in range(4)]
            print(f"  {m:4d}   " + "".join(f"{c:24}" for c in cells).rstrip())

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6))
    jitter = np.random.default_rng(0).uniform(-0.07, 0.07, REPEATS)
    columns = (
        (0, "noise standard deviation", NOISE_SD),
        (1, "length-scale, relevant input", LENGTHSCALE),
        (3, "share of the irrelevant input", 0.0),
    )
    for ax, (column, label, truth) in zip(axes, columns, strict=True):
        for priors, colour, marker, shift in ((False, VERMILION, "o", -0.16), (True, BLUE, "s", 0.16)):
            for i, m in enumerate(SIZES):
                values = results[priors, m][:, column]
                name = None if i else ("evidence × priors" if priors else "evidence alone")
                if column == 1:
                    values = np.clip(values, 0.1, 20)
                if column == 0:
                    values = np.maximum(values, 0.003)
                ax.plot(i + shift + jitter, values, marker, color=colour, markersize=4, alpha=0.55, label=name, mew=0)
                ax.hlines(np.median(values), i + shift - 0.12, i + shift + 0.12, color=colour, linewidth=2.5)
        ax.axhline(truth, color=BLACK, linewidth=1, linestyle="--", label="truth")
        ax.set_xticks(range(len(SIZES)), [str(m) for m in SIZES])
        ax.set(xlabel="number of data points m", title=label)
    axes[0].set_yscale("log")
    axes[0].set_yticks([0.003, 0.01, 0.03, 0.1, 0.3, 1], ["<0.003", "0.01", "0.03", "0.1", "0.3", "1"])
    axes[1].set_yscale("log")
    axes[1].set_yticks([0.1, 0.3, 1, 3, 10, 20], ["0.1", "0.3", "1", "3", "10", ">20"])
    for ax in axes[:2]:
        ax.minorticks_off()
    axes[2].legend(loc="upper right")
    save(figure, "adaptation_spread.png")

    figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), sharey=True)
    X, y = make_data(EXAMPLE)
    x = np.column_stack([np.linspace(-2.7, 2.7, 200), np.zeros(200)])
    print(f"one of the data sets (seed {EXAMPLE}), evidence alone:")
    for ax, m in zip(axes, SIZES, strict=True):
        fitted = model(EXAMPLE, False).fit(X[:m], y[:m])
        mean, std = fitted.predict(x, return_std=True)
        latent = fitted.predict(x, return_std=True, latent=True)[1]
        ax.plot(x[:, 0], mean + 2 * std, ":", color=GREY, linewidth=1)
        ax.plot(x[:, 0], mean - 2 * std, ":", color=GREY, linewidth=1)
        band(ax, x[:, 0], mean, latent, BLUE)
        ax.plot(X[:m, 0], y[:m], "o", color=BLACK, markersize=3)
        noise, ell, other, _ = summary(fitted)
        title = f"m = {m}: noise sd {q(noise)}\nℓ₁ = {q(ell)}, ℓ₂ = {q(other)}".replace("= >", "> ")
        ax.set(title=title, xlabel="relevant input")
        found = f"noise sd {q(noise)}, length-scales {q(ell)} and {q(other)}"
        print(f"  m = {m:2d}: {found}, log evidence {fitted.log_evidence_:.2f}")
    axes[0].set_ylabel("target")
    save(figure, "adaptation_one.png")

    print("restarts, on the data set with seed 1, 50 points, with priors:")
    for restarts in (2, 6):
        fitted = model(1, True, restarts).fit(*make_data(1))
        print(f"  {restarts}: objective {fitted.fit_result_.value:.3f}, share of irrelevant {q(summary(fitted)[3])}")


def q(value):
    """Two digits, or a bound where the exact value means nothing."""
    return "<0.003" if value < 0.003 else ">100" if value > 100 else f"{value:.2g}" if value < 10 else f"{value:.0f}"


if __name__ == "__main__":
    main()
