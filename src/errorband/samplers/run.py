"""Chains in parallel, in blocks of transitions that are compiled once; Ctrl-C keeps the draws so far."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband import interrupts
from errorband.precision import in_double_precision
from errorband.samplers.chains import Chains

BLOCK = 50  # transitions between two looks at the clock and the keyboard


def blackjax() -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        import blackjax
    except ImportError as missing:
        raise ImportError('Sampling needs BlackJAX: pip install "errorband[mcmc]".') from missing
    return blackjax


@in_double_precision
def elliptical_slices(
    log_likelihood: Callable[[Any], Any],
    starts: np.ndarray,
    *,
    warmup: int,
    draws: int,
    thin: int = 1,
    seed: int = 0,
    keep: Callable[[Any], Any] = lambda x: x,
) -> Chains:
    """Sample from N(x; 0, I) times a likelihood (Murray, Adams & MacKay 2010).

    Parameters
    ----------
    log_likelihood : callable
        Of a vector (P,), traceable.
    starts : array (C, P)
        Where each chain begins.
    warmup, draws, thin : int
        Transitions to forget; draws to keep; transitions for each.
    seed : int
    keep : callable
        What is kept of a vector, as a vector. Traceable.
    """
    bj = blackjax()
    P = starts.shape[1]
    sampler = bj.elliptical_slice(log_likelihood, mean=jnp.zeros(P), cov=jnp.ones(P))
    state = jax.jit(jax.vmap(sampler.init))(jnp.asarray(starts))
    key = jax.random.key(seed)

    def one(state, key):
        return sampler.step(key, state)[0]

    advance = _blocks(one, thin, lambda state: keep(state.position))
    return _run(advance, state, key, warmup, draws, thin)


@in_double_precision
def no_u_turns(
    log_density: Callable[[Any], Any],
    starts: np.ndarray,
    *,
    warmup: int,
    draws: int,
    seed: int = 0,
    keep: Callable[[Any], Any] = lambda x: x,
    names: tuple[str, ...] = (),
    seconds: float = np.inf,
) -> Chains:
    """The no-U-turn sampler (Hoffman & Gelman 2014), its step and metric learned during the warm-up.

    Parameters
    ----------
    log_density : callable
        Of a vector (P,), traceable and differentiable.
    starts, warmup, draws, seed, keep
        As in :func:`elliptical_slices`.
    names : tuple of str
        Of what is kept.
    seconds : float
        Begin no further block of draws after this time.
    """
    bj, began = blackjax(), time.perf_counter()
    keys = jax.random.split(jax.random.key(seed), len(starts) + 1)
    # One warm-up for all chains, by the first; the others start where they are told and get the same step and metric.
    adapt = bj.window_adaptation(bj.nuts, log_density)
    with interrupts.deferred():
        (state, settings), _ = jax.jit(adapt.run, static_argnums=2)(keys[0], jnp.asarray(starts[0]), warmup)
    sampler = bj.nuts(log_density, **settings)
    states = jax.jit(jax.vmap(sampler.init))(jnp.concatenate([state.position[None], jnp.asarray(starts[1:])]))

    def one(state, key):
        state, info = sampler.step(key, state)
        return state, info.is_divergent

    advance = _blocks(one, 1, lambda state: keep(state.position), has_info=True)
    return _run(advance, states, keys[-1], warmup // 2, draws, 1, names, began + seconds)


def _blocks(one: Callable, thin: int, keep: Callable, has_info: bool = False) -> Callable:
    """A function of states and keys (C, B) that makes B draws in each chain: states, draws (C, B, P), divergences."""

    def chain(state, keys):
        def draw(state, key):
            info = jnp.zeros((), bool)
            for k in jax.random.split(key, thin) if thin > 1 else [key]:
                state = one(state, k)
                if has_info:
                    state, info = state
            return state, (keep(state), info)

        return jax.lax.scan(draw, state, keys)

    return jax.jit(jax.vmap(chain))


def _run(
    advance: Callable,
    state: Any,
    key: Any,
    warmup: int,
    draws: int,
    thin: int,
    names: tuple[str, ...] = (),
    deadline: float = np.inf,
) -> Chains:
    C = jax.tree.leaves(state)[0].shape[0]
    found, divergent, interrupted = [], 0, False
    blocks = functools.partial(_keys, key, C)
    forget = -(-warmup // (BLOCK * thin))
    with interrupts.deferred():
        try:
            for i in range(forget):
                state, _ = jax.block_until_ready(advance(state, blocks(i)))
            for i in range(-(-draws // BLOCK)):
                state, (kept, info) = jax.block_until_ready(advance(state, blocks(forget + i)))
                found.append(np.asarray(kept))
                divergent += int(np.sum(info))
                if time.perf_counter() > deadline:
                    break
        except KeyboardInterrupt:
            interrupted = True
            if not found:
                raise
    return Chains(np.concatenate(found, axis=1)[:, :draws], names, divergent, interrupted)


def _keys(key: Any, C: int, block: int) -> Any:
    return jax.random.split(jax.random.fold_in(key, block), (C, BLOCK))
