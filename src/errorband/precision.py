"""The switches of the numerical engine: double precision and the compiled-code cache.

Everything here is local: nothing changes what JAX does in the user's own code. Double precision is entered with a
context manager, and the on-disk cache of compiled code is only switched on while our own functions compile.
"""

import contextlib
import functools
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from errorband import interrupts

# Threads that JAX is given at least: more than there are factorisations that a program can do at the same time.
POOL = 16

# Programs that JAX has compiled for us are forgotten when there are more: each takes memory and several pieces of the
# address space, of which Linux allows a process 65,530, and a process that fits tables of many sizes for weeks would
# collect them without end. Those still needed come back from the disk.
PROGRAMS = 1000


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Run JAX code in float64, with compiled code cached on disk, and leave the user's settings as they were.

    Ctrl-C waits for a safe point meanwhile (:mod:`errorband.interrupts`).
    """
    if _here.inside and jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        yield  # the block around this one does it all
        return
    with interrupts.held():
        start_backend()
        with jax.enable_x64(True), _compile_cache():
            before, _here.inside = _here.inside, True
            try:
                yield
            finally:
                _here.inside = before


class _Here(threading.local):
    """Of each thread."""

    inside = False  # a block of `double_precision`


_here = _Here()


_start_lock = threading.Lock()


def start_backend() -> None:
    """Start JAX as it should be, once, whichever thread is the first."""
    with _start_lock:
        _started()


@functools.cache
def _started() -> None:
    """Let JAX start with enough threads, if it has not started yet, and count the programs it compiles.

    JAX's factorisations and triangular solves hand parts of their work to the pool of threads that they themselves run
    on, and wait. When all threads wait, the program never ends: seen with jaxlib 0.10.2 on two cores, where the pool
    has two threads, for several large matrices or many small ones at once. The pool takes its size from NPROC, once.
    """
    jax.monitoring.register_event_duration_secs_listener(_count_programs)
    if "NPROC" in os.environ or (os.cpu_count() or 1) >= POOL:
        return
    os.environ["NPROC"] = str(POOL)
    try:
        jax.devices()
    finally:
        del os.environ["NPROC"]


def cache_directory() -> Path | None:
    """Folder of the compiled-code cache: ``ERRORBAND_CACHE_DIR``, else the user's cache folder; None if set empty."""
    configured = os.environ.get("ERRORBAND_CACHE_DIR")
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "errorband" / "compiled"


_cache_lock = threading.Lock()
_cache_blocks = 0  # how many blocks are open, in all threads
_cache_before: dict[str, Any] = {}  # the user's settings, while one is
_programs = 0  # compiled or read in such blocks since they were last forgotten


@contextlib.contextmanager
def _compile_cache() -> Iterator[None]:
    """Point JAX's persistent cache at ours, unless the user has one already, for the time of the block.

    The settings belong to the whole process: the first block to open makes them, the last to close puts them back.
    """
    global _cache_blocks, _cache_before, _programs
    with _cache_lock:
        if _cache_blocks == 0:
            ours = _cache_settings()
            _cache_before = {name: getattr(jax.config, name) for name in ours}
            _configure_cache(ours)
        _cache_blocks += 1
    try:
        yield
    finally:
        with _cache_lock:
            _cache_blocks -= 1
            if _cache_blocks == 0:
                _configure_cache(_cache_before)
                if _programs > PROGRAMS:
                    jax.clear_caches()
                    _programs = 0


def _count_programs(event: str, duration_secs: float, **_: Any) -> None:
    """Called by JAX after each compilation."""
    global _programs
    if _cache_blocks > 0 and event.endswith("backend_compile_duration"):
        _programs += 1


def _cache_settings() -> dict[str, Any]:
    """What to tell JAX: nothing if the user has a cache of their own, or if ours is off, not writable or shared."""
    directory = cache_directory()
    if directory is None or jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return {}
    if not _made(directory):
        return {}
    return {
        "jax_compilation_cache_dir": str(directory),
        "jax_persistent_cache_min_compile_time_secs": 0.0,  # ours are many and small: keep them all
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }


@functools.cache
def _made(directory: Path) -> bool:
    """Whether the folder is there and ours: machine code is loaded from it, so others must not write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # Windows
        return True
    return found.st_uid in (0, os.getuid()) and not found.st_mode & stat.S_IWOTH


def _configure_cache(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    if settings:
        compilation_cache.reset_cache()  # else JAX keeps the folder it opened first


def in_double_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a host function so that all JAX code under it runs in float64."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with double_precision():
            return function(*args, **kwargs)

    return wrapped
