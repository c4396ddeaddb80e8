"""One-dimensional classes (Rasmussen & Williams, fig. 3.6): how sure Laplace and EP are of the latent function."""

import time

import matplotlib.pyplot as plt
import numpy as np
from common import picture, table, write_page

from errorband import GPClassifier
from errorband.inference import EP, Laplace
from errorband.kernels import SquaredExponential


def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """60 points in three clusters of standard deviation 0.8; the book does not list its own draw."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(centre, 0.8, n) for centre, n in ((-6, 20), (0, 30), (2, 10))])
    return x[:, None], np.repeat([1, -1, 1], [20, 30, 10])


def main() -> None:
    began, rows = time.perf_counter(), []
    grid = np.linspace(-9, 6, 200)[:, None]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for seed in range(8):
        X, y = draw(seed)
        for name, rule in (("Laplace", Laplace()), ("EP", EP())):
            model = GPClassifier(SquaredExponential(2.6, 49.0), inference=rule, optimizer=None, normalize=False).fit(
                X, y
            )
            mean, variance = (np.ravel(a) for a in model.predict_latent([[-6.0]]))
            low = mean[0] - 2 * np.sqrt(variance[0])
            p = model.predict_proba([[-6.0]])[0, 1]
            rows.append([seed, name, f"{p:.3f}", f"{mean[0]:.2f}", f"{low:.2f}", "yes" if low < 0 else "no"])
            if seed == 0:
                latent, spread = (np.ravel(a) for a in model.predict_latent(grid))
                axes[0].plot(grid, model.predict_proba(grid)[:, 1], label=name)
                (line,) = axes[1].plot(grid, latent, label=name)
                band = 2 * np.sqrt(spread)
                axes[1].fill_between(grid[:, 0], latent - band, latent + band, alpha=0.2, color=line.get_color())
    X, y = draw(0)
    axes[0].plot(X, (y + 1) / 2, "k|", markersize=4)
    axes[0].set_title("p(y = +1 | x)")
    axes[1].set_title("latent function ± 2 sd")
    axes[1].axhline(0, color="grey", lw=0.5)
    axes[1].legend()
    text = f"""# The one-dimensional toy

Clusters of 20 (+1), 30 (−1) and 10 (+1) points around −6, 0 and 2; squared exponential with ℓ = 2.6, σ = 7, probit.
The book's statement is that Laplace's band at x = −6 includes negative values and EP's does not. Eight draws:

{table(["draw", "rule", "p(+1) at −6", "latent mean", "mean − 2 sd", "band includes negative"], rows)}

{picture(figure, "toy-bands")}
"""
    write_page("toy-bands", "python benchmarks/reproduce/toy_bands.py", began, text)


if __name__ == "__main__":
    main()
