"""What all tests share: compiled code kept between runs, and double precision on request."""

import os

import pytest

from errorband.numerics import double_precision


def pytest_configure(config):
    """Keep compiled code in pytest's cache folder, unless the caller chose a place, so that a second run is fast."""
    if (cache := getattr(config, "cache", None)) is not None:
        os.environ.setdefault("ERRORBAND_CACHE_DIR", str(cache.mkdir("errorband-compiled")))


@pytest.fixture
def x64():
    """Run the test in double precision, as library code does."""
    with double_precision():
        yield
