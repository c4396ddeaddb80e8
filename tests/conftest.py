"""What all tests share: compiled code kept between runs, and double precision on request."""

import gc
import os
import signal
from pathlib import Path

import jax
import pytest

from errorband.precision import double_precision, start_backend

MAPS = Path("/proc/self/maps")
TOO_MANY = 20_000  # Linux allows a process 65,530 pieces of memory; each compiled function takes several


def pytest_configure(config):
    """Keep compiled code in pytest's cache folder, unless the caller chose a place, so that a second run is fast."""
    if (cache := getattr(config, "cache", None)) is not None:
        os.environ.setdefault("ERRORBAND_CACHE_DIR", str(cache.mkdir("errorband-compiled")))
    start_backend()  # before a test uses JAX by itself


def pytest_collection_finish(session):
    """Let the garbage collector look less often, and not at all that was imported: traces are many small objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_code():
    """Let go of compiled functions when there are very many: thousands of tests compile in one process."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > TOO_MANY:
        jax.clear_caches()


@pytest.fixture
def x64():
    """Run the test in double precision, as library code does."""
    with double_precision():
        yield


@pytest.fixture
def interruptible():
    """Let Ctrl-C mean what it does on a terminal: a shell that starts us in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
