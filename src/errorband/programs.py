"""Functions compiled by XLA, each with the effort that its data deserve.

A first fit of a small table is nearly all compilation. Optimised code gains nothing there: what takes time in it is
LAPACK, which is the same. So programs with few numbers to work on are compiled quickly, and the others well.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

# Options for programs whose arguments hold at most so many numbers. Without fusion emitters ours compile in two thirds
# of the time, but a large covariance takes a fifth longer. Level 0 halves the rest; the code takes up to twice as long.
_SMALL = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
MIDDLE = 200_000
EFFORTS: dict[float, dict[str, Any] | None] = {
    35_000: {"xla_backend_optimization_level": 0, **_SMALL},
    MIDDLE: {"xla_backend_optimization_level": 1, **_SMALL},
    float("inf"): None,
}


def program(
    function: Callable[..., Any] | None = None,
    *,
    numbers: Callable[..., int] | None = None,
    lapack: bool = False,
    **options: Any,
) -> Any:
    """``jax.jit``, which compiles the quicker the fewer numbers there are. Takes the options of ``jax.jit``.

    These are the numbers that the arguments hold, unless ``numbers``, a function of the arguments, says otherwise. A
    program that does little but call LAPACK (``lapack``) is never worth the greatest effort: that takes twice as long
    to compile and no less to run.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from errorband.programs import program
    >>> @program
    ... def total(x):
    ...     return jnp.sum(x)
    >>> float(total(jnp.ones(3)))
    3.0
    """
    if function is None:
        return functools.partial(program, numbers=numbers, lapack=lapack, **options)
    inner = jax.jit(function, **options)

    @functools.cache
    def compiled_for(size: float) -> Any:
        return jax.jit(function, compiler_options=_understood(size), **options)

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        leaves = jax.tree.leaves(args)
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return inner(*args)  # part of a larger program, which decides
        many = numbers(*args) if numbers is not None else sum(getattr(leaf, "size", 1) for leaf in leaves)
        many = min(many, MIDDLE) if lapack else many
        return compiled_for(next(size for size in EFFORTS if many <= size))(*args)

    return run


@functools.cache
def _understood(size: float) -> dict[str, Any] | None:
    """The options for this size; None if ``XLA_FLAGS`` decides, or with a version of XLA that does not know them."""
    if "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", ""):
        return None
    try:
        jax.jit(lambda x: x, compiler_options=EFFORTS[size])(jnp.zeros(()))
    except Exception:  # whatever type the version at hand raises
        return None
    return EFFORTS[size]
