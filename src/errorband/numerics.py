"""The switches of the numerical engine: double precision, compiled-code cache, padded sizes.

Everything here is local: nothing changes what JAX does in the user's own code. Double precision is entered with a
context manager, and the on-disk cache of compiled code is only switched on while our own functions compile.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

# Chunked work keeps its temporary arrays below this many bytes.
MEMORY_BUDGET = 256 * 2**20


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Run JAX code in float64, with compiled code cached on disk, and leave the user's settings as they were."""
    with jax.enable_x64(True), _compile_cache():
        yield


def cache_directory() -> Path | None:
    """Folder of the compiled-code cache: ``ERRORBAND_CACHE_DIR``, else the user's cache folder; None if set empty."""
    configured = os.environ.get("ERRORBAND_CACHE_DIR")
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "errorband" / "compiled"


@contextlib.contextmanager
def _compile_cache() -> Iterator[None]:
    """Point JAX's persistent cache at ours, unless the user has one already, for the time of the block."""
    directory = cache_directory()
    if directory is None or jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        yield
        return
    ours = {
        "jax_compilation_cache_dir": str(directory),
        "jax_persistent_cache_min_compile_time_secs": 0.0,  # ours are many and small: keep them all
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    before = {name: getattr(jax.config, name) for name in ours}
    for name, value in ours.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def in_double_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a host function so that all JAX code under it runs in float64."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with double_precision():
            return function(*args, **kwargs)

    return wrapped


def padded_size(n: int) -> int:
    """Round a number of rows up to one of 16 sizes per octave, so that folds of unequal size share compiled code.

    The rows added are at most a sixteenth of the whole.

    Examples
    --------
    >>> [padded_size(n) for n in (5, 100, 401, 402, 2000)]
    [16, 104, 416, 416, 2048]
    """
    if n <= 16:
        return 16
    step = max(8, 2 ** ((n - 1).bit_length() - 5))
    return -(-n // step) * step


def pad_rows(array: np.ndarray, n: int) -> np.ndarray:
    """Append copies of the first row until there are ``n`` rows (copies are always valid inputs for a kernel)."""
    missing = n - len(array)
    return array if missing == 0 else np.concatenate([array, np.broadcast_to(array[:1], (missing, *array.shape[1:]))])
