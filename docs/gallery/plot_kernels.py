"""Functions drawn from the prior of every kernel, and how rough they are."""

import numpy as np
from style import BLUE, GREEN, ORANGE, plt, save

from errorband.kernels import (
    KERNELS,
    ArcSine,
    BSpline,
    Constant,
    Diffusion,
    HalfSpace,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    PoweredExponential,
    Projection,
    RationalQuadratic,
    SquaredExponential,
)

ON_A_LINE = {
    "SquaredExponential": SquaredExponential(1.0, 1.0),
    "Matern, ν = 5/2": Matern(1.0, 1.0, nu=2.5),
    "Matern, ν = 3/2": Matern(1.0, 1.0, nu=1.5),
    "Matern, ν = 1/2": Matern(1.0, 1.0, nu=0.5),
    "RationalQuadratic, α = 0.3": RationalQuadratic(1.0, 1.0, 0.3),
    "PoweredExponential, 1.5": PoweredExponential(1.0, 1.0, 1.5),
    "Laplacian": Laplacian(1.0, 1.0),
    "BSpline, degree 1": BSpline(2.0, 1.0, degree=1),
    "BSpline, degree 3": BSpline(1.0, 1.0, degree=3),
    "Periodic": Periodic(1.0, 1.0, 2.5),
    "ArcSine": ArcSine(0.5, 1.0, 1.0),
    "HalfSpace": HalfSpace(5.0, 1.0),
    "Constant": Constant(1.0),
    "Linear": Linear(0.15),
    "Polynomial, degree 3": Polynomial(0.001, 1.0, degree=3),
    "Sum: Linear + Periodic": Linear(0.15) + Periodic(1.0, 0.3, 2.5),
    "Product: Periodic × SE": Periodic(1.0, 1.0, 2.5) * SquaredExponential(3.0, 1.0),
    "Scaled: 0.1 × Matern": 0.1 * Matern(1.0, 1.0),
}


def grid_graph(side):
    """Adjacency of a square lattice, with a wall across the middle that has one gap."""
    node = np.arange(side * side).reshape(side, side)
    C = np.zeros((side * side, side * side))
    for a, b in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:])):
        C[a.ravel(), b.ravel()] = 1
    above, below = node[side // 2 - 1], node[side // 2]
    C[above[2:], below[2:]] = 0
    return C + C.T


def one_input(i):
    """A squared exponential that looks at one of the inputs."""
    return SquaredExponential(1.0, 0.5, active_dims=i)


def draws(kernel, X, n, seed=0):
    """Functions from the prior, also where the covariance is singular, as it is for linear models."""
    values, vectors = np.linalg.eigh(kernel(X))
    return vectors * np.sqrt(np.maximum(values, 0)) @ np.random.default_rng(seed).standard_normal((len(X), n))


def roughness(kernel, at=1.0):
    """The exponent h of E(f(x + t) − f(x))² ∝ t^2h for small t: 1 for smooth functions, ½ for a random walk."""
    t = np.array([1e-3, 1e-2])
    k = kernel(np.array([at, *(at + t)])[:, None])
    variogram = np.diagonal(k)[1:] + k[0, 0] - 2 * k[0, 1:]
    if not variogram.all():
        return "no change"
    return f"{0.5 * np.diff(np.log(variogram))[0] / np.diff(np.log(t))[0]:.2f}"


def main():
    x = np.linspace(-4, 4, 321)[:, None]
    print("                                               correlation of f(0) with f(x), x =    exponent of")
    print("kernel                        sd at 0  sd at 3       0.5       1       2     2.5    roughness")
    figure, axes = plt.subplots(6, 3, figsize=(9.6, 11), sharex=True)
    for ax, (name, kernel) in zip(axes.flat, ON_A_LINE.items(), strict=True):
        sd = kernel.diag(np.array([[0.0], [3.0]])) ** 0.5
        k = kernel(np.array([[0.0], [0.5], [1.0], [2.0], [2.5]]))
        size = np.sqrt(k[0, 0] * np.diagonal(k)[1:])
        cells = zip(k[0, 1:], size, strict=True)
        correlation = "".join(f"{c / s:8.3f}" if s else "       –" for c, s in cells)
        print(f"{name:28} {sd[0]:8.3f} {sd[1]:8.3f}   {correlation} {roughness(kernel):>12}")
        functions = draws(kernel, x, 3, seed=11)
        for f, colour in zip(functions.T, (BLUE, ORANGE, GREEN), strict=True):
            ax.plot(x[:, 0], f, color=colour, linewidth=1.2)
        ax.set_title(name)
        ax.set_ylim(-3.4, 3.4)
        ax.set_yticks([-2, 0, 2])
    for ax in axes[-1]:
        ax.set_xlabel("input x")
    save(figure, "kernels_line.png")

    side = 36
    ticks = np.linspace(-3, 3, side)
    X = np.array([[a, b] for b in ticks for a in ticks])
    nodes = np.arange(side * side, dtype=float)[:, None]
    planes = {
        "SquaredExponential": (SquaredExponential(1.0, 1.0), X),
        "with ℓ = (0.6, 3)": (SquaredExponential([0.6, 3.0], 1.0), X),
        "Laplacian": (Laplacian(1.0, 1.0), X),
        "Sum over the inputs": (one_input(0) + one_input(1), X),
        "Projection to x₁ + x₂": (Projection(SquaredExponential(1.0, 1.0), 1, [[0.8], [0.8]]), X),
        "Diffusion, wall with a gap": (Diffusion(grid_graph(side), 20.0, 70.0), nodes),
    }
    print()
    print("two inputs: rank of the covariance of 1296 points (eigenvalues above 1e-8 of the largest)")
    figure, axes = plt.subplots(2, 3, figsize=(8.4, 5.6))
    for ax, (name, (kernel, inputs)) in zip(axes.flat, planes.items(), strict=True):
        values = np.linalg.eigvalsh(kernel(inputs))
        print(f"  {name:28} {np.sum(values > 1e-8 * values[-1]):4d}")
        f = draws(kernel, inputs, 1, seed=5).reshape(side, side)
        ax.imshow(f, cmap="cividis", origin="lower", interpolation="nearest")
        if "wall" in name:
            ax.plot([1.5, side - 0.5], [side / 2 - 0.5] * 2, color="white", linewidth=2)
        ax.set_title(name)
        ax.set_xticks([])
        ax.set_yticks([])
    save(figure, "kernels_plane.png")

    shown = {type(k).__name__ for k in ON_A_LINE.values()} | {type(k).__name__ for k, _ in planes.values()}
    print(f"kernels in the registry and not shown here: {sorted(set(KERNELS) - shown) or 'none'}")


if __name__ == "__main__":
    main()
