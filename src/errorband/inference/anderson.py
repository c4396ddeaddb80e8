"""Anderson's acceleration of sweeps over all sites: the next sites from several of the last, not from one."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from errorband.structures import Sites
from errorband.structures.sites import block_times

SIZE = 5  # sweeps remembered
RIDGE = 1e-12  # of the least-squares problem, relative to its size


class Memory(NamedTuple):
    """The last sites x, and the change f of each that a sweep asks for, in a ring (Anderson 1965).

    At the fixed point f = 0. Of all points x̄ = x + Σ γᵢ(xᵢ − x) the one is taken at which f, were it linear, would be
    least: f̄ = f + Σ γᵢ(fᵢ − f). A plain sweep goes on from x by f, an accelerated one from x̄ by f̄. The fixed point is
    the same; the linear convergence of plain sweeps becomes faster, as that of power iterations does by Krylov methods.

    f is measured in the units of the marginals: Π and b − Πh, h the mean, times powers of the standard deviations.
    """

    sites: Sites
    change: Sites
    count: Any  # of what was kept since it was empty

    @classmethod
    def empty(cls, like: Sites) -> "Memory":
        ring = jax.tree.map(lambda a: jnp.zeros((SIZE, *a.shape), a.dtype), like)
        return cls(ring, ring, 0)

    def kept(self, sites: Sites, change: Sites) -> "Memory":
        """With these as the last."""
        put = lambda ring, new: ring.at[self.count % SIZE].set(new)  # noqa: E731
        return Memory(jax.tree.map(put, self.sites, sites), jax.tree.map(put, self.change, change), self.count + 1)

    def mixed(self, sites: Sites, change: Sites, mean: Any, scale: Any) -> tuple[Sites, Sites]:
        """x̄ and f̄, given the sites, their change, and the means and standard deviations (N, L) of the marginals."""
        filled = jnp.arange(SIZE) < self.count
        blank = lambda a: filled.reshape(-1, *(1,) * (a.ndim - 1))  # noqa: E731
        from_ = lambda ring, now: jnp.where(blank(ring), ring - now, 0.0)  # noqa: E731
        dx, df = jax.tree.map(from_, self.sites, sites), jax.tree.map(from_, self.change, change)
        G = jax.vmap(lambda each: _in_units(each, mean, scale))(df)
        gram = G @ G.T
        ridge = RIDGE * jnp.trace(gram) + jnp.finfo(gram.dtype).tiny
        gamma = -jnp.linalg.solve(gram + ridge * jnp.eye(SIZE), G @ _in_units(change, mean, scale))
        moved = lambda now, each: now + jnp.tensordot(gamma, each, axes=1)  # noqa: E731
        return jax.tree.map(moved, sites, dx), jax.tree.map(moved, change, df)


def _in_units(change: Sites, mean: Any, scale: Any) -> Any:
    shift = (change.shift - block_times(change.precision, mean)) * scale
    precision = change.precision * scale[:, :, None] * scale[:, None, :]
    return jnp.concatenate([shift.ravel(), precision.ravel()])
