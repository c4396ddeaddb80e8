"""Quadrature over the latent values of one datum: log ∫ exp(log g(f)) N(f; mean, cov) df and E log g(f).

One dimension: composite Gauss–Legendre rules on panels whose widths shrink geometrically towards each point at which
the integrand is narrow, so that a feature a million times narrower than the rest needs only a few more panels. Several
dimensions: a product rule up to three, quasi-Monte-Carlo for more, centred and scaled to the mean and covariance of the
integrand (Naylor & Smith 1982). Nodes are constants in differentiation and only the integrand is differentiated, so the
derivatives are those of the integral.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband.special import LOG_2PI

REACH = 8.5  # standard deviations at which a normal density is 2e-16 of its maximum
PANELS, ORDER = 20, 8  # panels per anchor (narrow point), nodes per panel
STEPS = 2.0 ** -np.arange(25.0)  # step sizes tried at once in the search for a mode
NEWTON_STEPS = 40  # largest number of steps of that search
LOG2_POINTS = 11  # log₂ of the number of quasi-Monte-Carlo points


# ------------------------------------------------------------------------------------------------------------- rules
@functools.cache
def gauss_hermite(order: int, n_latents: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (points, L) and log weights (points,) such that E g(ε) ≈ Σ exp(log w) g(node), ε ~ N(0, I_L).

    Examples
    --------
    >>> nodes, log_weights = gauss_hermite(20)
    >>> float((np.exp(log_weights) * nodes[:, 0] ** 4).sum().round(10))
    3.0
    """
    x, w = np.polynomial.hermite_e.hermegauss(order)
    log_w = np.log(w) - np.log(w.sum())
    nodes = np.array(list(itertools.product(x, repeat=n_latents)))
    return nodes, np.array([sum(c) for c in itertools.product(log_w, repeat=n_latents)])


_gauss_legendre = functools.cache(np.polynomial.legendre.leggauss)


@functools.cache
def quasi_monte_carlo(n_latents: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal Sobol' points and their antithetics, of mean 0 and covariance I exactly; equal log weights."""
    from scipy.special import ndtri
    from scipy.stats import qmc  # slow to import, rarely needed

    points = ndtri(qmc.Sobol(n_latents, rng=np.random.default_rng(0)).random_base2(LOG2_POINTS - 1))
    points = np.concatenate([points, -points])
    root = np.linalg.cholesky(points.T @ points / len(points))
    return np.linalg.solve(root, points.T).T, np.full(len(points), -np.log(len(points)))


@functools.cache
def stretched_trapezoid(order: int, n_latents: int, reach: float = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """Product of trapezoid rules in u, ε = 2 sinh(u/2): like :func:`gauss_hermite`, better for non-polynomials."""
    u = np.linspace(-reach, reach, order)
    x = 2 * np.sinh(0.5 * u)
    log_w = np.log(np.cosh(0.5 * u)) - 0.5 * x**2
    log_w -= np.log(np.exp(log_w).sum())
    nodes = np.array(list(itertools.product(x, repeat=n_latents)))
    return nodes, np.array([sum(c) for c in itertools.product(log_w, repeat=n_latents)])


@functools.cache
def centred_lattice(step: float, n_latents: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for N(0, I_L): a grid and its copy at the centres of its cells, up to a distance from 0.

    The trapezoid rule, whose error falls exponentially with the step for functions without poles nearby; a centred
    lattice does with fewer points what a grid does.

    Examples
    --------
    >>> nodes, weights = centred_lattice(0.5, 2, 6.5)
    >>> round(float(weights @ nodes[:, 0] ** 4), 6)
    3.0
    """
    grid = step * np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1)
    corners = np.array(list(itertools.product(grid, repeat=n_latents)))
    nodes = np.concatenate([corners, corners + 0.5 * step])
    distance = np.sum(nodes**2, axis=1)
    nodes, distance = nodes[distance <= reach**2], distance[distance <= reach**2]
    weights = np.exp(-0.5 * distance)
    return nodes, weights / weights.sum()


def normal_rule(n_latents: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and log weights for N(0, I_L): a product rule up to three dimensions, quasi-Monte-Carlo for more."""
    if n_latents > 3:
        return quasi_monte_carlo(n_latents)
    order, reach = {1: (64, 6.0), 2: (48, 6.0), 3: (16, 4.4)}[n_latents]
    return stretched_trapezoid(order, n_latents, reach)


def panel_rule(
    centres: Any, widths: Any, lower: Any, upper: Any, panels: int = PANELS, order: int = ORDER, xp: Any = jnp
):
    """Nodes and weights on [lower, upper], with panels that grow like sinh away from each of K anchors.

    Parameters
    ----------
    centres, widths : arrays (..., K)
        Points at which the integrand is narrow, and its width there.
    lower, upper : arrays (...)
    xp : module
        ``jax.numpy`` or ``numpy``.

    Returns
    -------
    nodes, weights : arrays (..., K·(panels + 1) − 1 panels × order nodes)

    Examples
    --------
    >>> x, w = panel_rule(np.array([3.0]), np.array([1e-3]), 0.0, 5.0, xp=np)
    >>> float((w * np.exp(-0.5 * ((x - 3) / 1e-3) ** 2)).sum().round(9))
    0.002506628
    """
    lower, upper = xp.asarray(lower)[..., None], xp.asarray(upper)[..., None]
    start, stop = xp.arcsinh((lower - centres) / widths), xp.arcsinh((upper - centres) / widths)
    fraction = np.linspace(0.0, 1.0, panels + 1)
    edges = centres[..., None] + widths[..., None] * xp.sinh(
        start[..., None] * (1 - fraction) + stop[..., None] * fraction
    )
    edges = xp.clip(edges.reshape(*edges.shape[:-2], -1), lower, upper)
    if centres.shape[-1] > 1:
        edges = xp.sort(edges, axis=-1)
    x, w = _gauss_legendre(order)
    half = 0.5 * (edges[..., 1:] - edges[..., :-1])[..., None]
    nodes = 0.5 * (edges[..., 1:] + edges[..., :-1])[..., None] + half * x
    return nodes.reshape(*nodes.shape[:-2], -1), (half * w).reshape(*nodes.shape[:-2], -1)


# ----------------------------------------------------------------------------------------------------- one dimension
def log_integral(
    log_g: Callable[[Any], Any],
    mean: Any,
    variance: Any,
    *,
    frozen: Callable[[Any], Any],
    concave: bool,
    feature: Any = None,
) -> Any:
    """Log ∫ exp(log g(f)) N(f; mean, variance) df over scalar f.

    Parameters
    ----------
    log_g : callable
        Logarithm of g as a function of a scalar.
    mean, variance : scalars
    frozen : callable
        The same function with constant parameters (``stop_gradient``), used to place the nodes.
    concave : bool
        Whether log g is concave. Then the integrand is at most exp(−½(f − mode)²/variance) times its maximum, and no
        part is missed. Otherwise the mode is searched for from the best point of a scan, and the mean is an anchor too.
    feature : (scalar, scalar), optional
        Centre and width of a narrow part of g; or vectors, for several.
    """
    m, s = jax.lax.stop_gradient((mean, jnp.sqrt(variance)))
    z, w = _nodes(lambda z: frozen(m + s * z), m, s, concave, feature)
    f = m + s * z
    off = s * z + (m - mean)  # f − mean: exact for any variance, and differentiable in the mean
    log_density = -0.5 * (off**2 / variance + jnp.log(variance) + LOG_2PI)
    return jax.nn.logsumexp(jax.vmap(log_g)(f) + log_density, b=s * w)


def expectation(
    log_g: Callable[[Any], Any],
    mean: Any,
    variance: Any,
    *,
    frozen: Callable[[Any], Any],
    concave: bool,
    feature: Any = None,
) -> Any:
    """∫ log g(f) N(f; mean, variance) df over scalar f; arguments as in :func:`log_integral`."""
    m, s = jax.lax.stop_gradient((mean, jnp.sqrt(variance)))
    mode, width = _mode(lambda z: frozen(m + s * z), concave)
    centres, widths = _anchors(jnp.clip(mode, -REACH, REACH), width, m, s, feature, with_prior=True)
    z, w = panel_rule(centres, widths, -REACH, REACH)
    return jnp.sum(w * jnp.exp(-0.5 * (z**2 + LOG_2PI)) * jax.vmap(log_g)(mean + jnp.sqrt(variance) * z))


def _nodes(log_g: Callable[[Any], Any], m: Any, s: Any, concave: bool, feature: Any) -> tuple[Any, Any]:
    """Rule in z = (f − mean)/std for the integrand exp(log g − ½z²)."""
    mode, width = _mode(log_g, concave)
    centres, widths = _anchors(mode, width, m, s, feature, with_prior=not concave)
    lower, upper, reach = mode, mode, REACH
    if not concave:  # where log g is convex, the integrand is wider than the normal
        lower, upper, reach = jnp.minimum(mode, 0.0), jnp.maximum(mode, 0.0), 1.6 * REACH
    nodes, weights = panel_rule(centres, widths, lower - reach, upper + reach)
    return jax.lax.stop_gradient((nodes, weights))


def _mode(log_g: Callable[[Any], Any], concave: bool) -> tuple[Any, Any]:
    """Mode of exp(log g − ½z²), by scans on finer and finer grids, and the half width at half a nat below it.

    Uses no derivatives, so log g may have kinks.
    """

    def objective(z):
        value = jax.vmap(log_g)(z) - 0.5 * z**2
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def closer(_, state):
        low, high = state
        z = low + (high - low) * np.linspace(0.0, 1.0, 17)
        best = jnp.argmax(objective(z))
        return z[jnp.maximum(best - 1, 0)], z[jnp.minimum(best + 1, 16)]

    scan = np.sinh(np.linspace(-14.0, 14.0, 57))
    if not concave:  # there may be several modes: scan more finely around the mean
        scan = np.unique(np.concatenate([scan, np.linspace(-REACH, REACH, 57)]))
    last, scan = len(scan) - 1, jnp.asarray(scan)
    best = jnp.argmax(objective(scan))
    low, high = jax.lax.fori_loop(0, 9, closer, (scan[jnp.maximum(best - 1, 0)], scan[jnp.minimum(best + 1, last)]))
    mode = 0.5 * (low + high)
    steps = 2.0 ** -np.arange(30.0)
    values = objective(mode + np.concatenate([[0.0], steps, -steps]))
    fallen = values[0] - 0.5 * (values[1:31] + values[31:]) > 0.5
    return mode, jnp.asarray(steps)[jnp.minimum(jnp.sum(fallen), 29)]


def _anchors(mode: Any, width: Any, m: Any, s: Any, feature: Any, with_prior: bool) -> tuple[Any, Any]:
    centres, widths = [mode], [width]
    if with_prior:
        centres, widths = [*centres, 0.0 * mode], [*widths, jnp.ones_like(width)]
    if feature is not None:
        centre, size = (jnp.atleast_1d(x) for x in jax.lax.stop_gradient(feature))
        centres, widths = [*centres, *((centre - m) / s)], [*widths, *jnp.minimum(size / s, 1.0)]
    return jax.lax.stop_gradient((jnp.stack(centres), jnp.stack(widths)))


# ------------------------------------------------------------------------------------------------ several dimensions
def find_mode(objective: Callable[[Any], Any], start: Any) -> tuple[Any, Any]:
    """Mode of a concave function of a vector, and minus its Hessian there.

    Newton's method with the best of 25 step sizes, so that the objective always rises.
    """

    def curvature(x):
        H = -jax.hessian(objective)(x)
        return jnp.where(jnp.isfinite(H), H, 0.0) + 1e-12 * jnp.eye(len(start))

    def direction(x):
        return jnp.linalg.solve(curvature(x), jax.grad(objective)(x))

    def advance(state):
        x, _, n = state
        dx = direction(x)
        trials = jnp.concatenate([x[None], x + STEPS[:, None] * dx])
        values = jax.vmap(objective)(trials)
        new = trials[jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values))]
        return new, jnp.max(jnp.abs(new - x)), n + 1

    def going(state):
        _, moved, n = state
        return (moved > 1e-6) & (n < NEWTON_STEPS)

    x, _, _ = jax.lax.while_loop(going, advance, (start, jnp.inf, 0))
    return x, curvature(x)


def log_integral_nd(
    log_g: Callable[[Any], Any], mean: Any, cov: Any, *, frozen: Callable[[Any], Any], concave: bool, rule: Any = None
) -> Any:
    """Log ∫ exp(log g(f)) N(f; mean, cov) df over vectors f; arguments as in :func:`log_integral`.

    ``rule``: nodes and log weights for N(0, I), if not those of :func:`normal_rule`.
    """
    d = mean.shape[0]
    nodes, log_weights = normal_rule(d) if rule is None else rule
    log_lebesgue = log_weights + 0.5 * np.sum(nodes**2, axis=1)  # up to a constant
    m, root = jax.lax.stop_gradient((mean, _root(cov)))

    def objective(x):  # in whitened coordinates, f = m + root x
        return frozen(m + root @ x) - 0.5 * jnp.sum(x**2)

    def log_ratios(centre, scale):  # log of the ratio of the integrand to the normal density of the rule
        x = centre + nodes @ scale.T
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diagonal(scale))))
        return x, log_lebesgue + log_det, jax.vmap(objective)(x)

    centre, scale = jnp.zeros(d), jnp.eye(d)
    if concave:
        centre, H = find_mode(objective, centre)
        scale = _root(jnp.linalg.inv(H))
    for _ in range(2):
        x, base, value = log_ratios(centre, scale)
        p = jax.nn.softmax(base + value)
        centre = p @ x
        scale = _root((x - centre).T @ (p[:, None] * (x - centre)))
    x, base, _ = jax.lax.stop_gradient(log_ratios(centre, scale))
    off = x @ root.T + (m - mean)
    chol = _root(cov)
    white = jax.scipy.linalg.solve_triangular(chol, off.T, lower=True)
    log_det = jnp.sum(jnp.log(jnp.diagonal(chol))) - jnp.sum(jnp.log(jnp.diagonal(root)))
    log_density = -0.5 * jnp.sum(white**2, 0) - log_det
    return jax.nn.logsumexp(jax.vmap(log_g)(m + x @ root.T) + log_density + base)


def expectation_nd(log_g: Callable[[Any], Any], mean: Any, cov: Any, rule: Any = None) -> Any:
    """∫ log g(f) N(f; mean, cov) df over vectors f; ``rule`` as in :func:`log_integral_nd`."""
    nodes, log_weights = normal_rule(mean.shape[0]) if rule is None else rule
    return jnp.sum(np.exp(log_weights) * jax.vmap(log_g)(mean + nodes @ _root(cov).T))


def _root(cov: Any) -> Any:
    """Lower Cholesky factor; the matrix may be singular."""
    d = cov.shape[0]
    return jnp.linalg.cholesky(cov + (1e-13 * jnp.trace(cov) / d + 1e-300) * jnp.eye(d))
