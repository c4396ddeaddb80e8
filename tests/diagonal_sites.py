"""Sites to try structures with."""

import jax.numpy as jnp

from errorband.structures import Sites


def diagonal_sites(shift, precision):
    """Sites of a model with one latent per datum, from two vectors of length N."""
    return Sites(jnp.asarray(shift)[:, None], jnp.asarray(precision)[:, None, None])
