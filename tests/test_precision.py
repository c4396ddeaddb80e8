"""Double precision and the compiled-code cache are ours for the time of a block, and only ours."""

import functools
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.experimental.compilation_cache import compilation_cache

from errorband import precision
from errorband.precision import cache_directory, double_precision, in_double_precision
from errorband.rows import pad_rows, padded_size


def _dtype():
    return jnp.ones(1).dtype


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setenv("ERRORBAND_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def users_folder(tmp_path):
    """A call by which the user gives JAX a cache."""
    yield lambda: jax.config.update("jax_compilation_cache_dir", str(tmp_path / "user"))
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()


@pytest.fixture
def keep_all():
    """The user wants quick compilations in the cache too, as ours are."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    jax.config.update(name, 0.0)
    yield
    jax.config.update(name, before)


def _compile_something_new():
    shift = float(np.random.default_rng().random())  # a constant no cache has seen
    jax.jit(lambda x: x * 2 + shift)(np.ones(3)).block_until_ready()


def _files(folder: Path) -> int:
    return len(list(folder.glob("*"))) if folder.exists() else 0


# ------------------------------------------------------------------------------------------------ double precision
def test_double_precision_lasts_for_the_block():
    before = dict(jax.config.values)
    assert _dtype() == jnp.float32
    with double_precision():
        assert _dtype() == jnp.float64
        with double_precision():
            assert _dtype() == jnp.float64
        assert _dtype() == jnp.float64
    assert _dtype() == jnp.float32
    assert jax.config.values == before


def test_settings_come_back_after_an_exception(folder):
    before = dict(jax.config.values)
    with pytest.raises(RuntimeError, match="oops"), double_precision():
        raise RuntimeError("oops")
    assert jax.config.values == before
    assert _dtype() == jnp.float32


def test_a_block_inside_another_is_in_double_precision_whatever_lies_between():
    with double_precision():
        with double_precision():
            assert _dtype() == np.float64
        with jax.enable_x64(False), double_precision():
            assert _dtype() == np.float64
        assert _dtype() == np.float64
    assert _dtype() == np.float32


def test_threads_that_begin_together_start_jax_once(monkeypatch):
    calls = []
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setattr(precision.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(precision.jax.monitoring, "register_event_duration_secs_listener", lambda listener: None)
    monkeypatch.setattr(precision.jax, "devices", lambda: (calls.append(os.environ["NPROC"]), time.sleep(0.05)))
    monkeypatch.setattr(precision, "_started", functools.cache(precision._started.__wrapped__))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: precision.start_backend(), range(4)))
    assert calls == [str(precision.POOL)]
    assert "NPROC" not in os.environ


def test_a_user_in_double_precision_stays_there():
    with jax.enable_x64(True):
        with double_precision():
            pass
        assert _dtype() == jnp.float64


def test_decorator():
    @in_double_precision
    def half(x, *, times=1):
        """Halve."""
        return jnp.asarray(x) / 2 * times

    assert half(3.0, times=2).dtype == jnp.float64
    assert half.__doc__ == "Halve."
    assert _dtype() == jnp.float32


# ------------------------------------------------------------------------------------------------------- the cache
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of POSIX")
def test_a_folder_that_others_can_write_to_is_no_cache(folder):
    """Machine code is loaded from it."""
    folder.mkdir()
    folder.chmod(0o777)
    with double_precision():
        _compile_something_new()
    assert _files(folder) == 0


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of POSIX")
def test_a_new_cache_is_private(folder):
    with double_precision():
        _compile_something_new()
    assert _files(folder) > 0
    assert folder.stat().st_mode & 0o077 == 0


def test_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("ERRORBAND_CACHE_DIR", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.setenv("ERRORBAND_CACHE_DIR", "")
    assert cache_directory() is None
    monkeypatch.delenv("ERRORBAND_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "errorband" / "compiled"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache_directory() == Path.home() / ".cache" / "errorband" / "compiled"


def test_what_compiles_in_the_block_is_kept(folder):
    before = dict(jax.config.values)
    with double_precision():
        assert jax.config.jax_compilation_cache_dir == str(folder)
        _compile_something_new()
    assert _files(folder) > 0
    assert jax.config.values == before


def test_what_the_user_compiles_is_not_kept(folder, keep_all):
    with double_precision():
        _compile_something_new()
    ours = _files(folder)
    _compile_something_new()
    assert _files(folder) == ours > 0


def test_a_cache_of_the_users_own_wins(folder, users_folder, keep_all):
    users_folder()
    with double_precision():
        assert jax.config.jax_compilation_cache_dir.endswith("user")
        _compile_something_new()
    assert _files(folder) == 0
    assert _files(folder.parent / "user") > 0


def test_a_cache_the_user_sets_up_after_ours_works(folder, users_folder, keep_all):
    with double_precision():
        _compile_something_new()
    ours = _files(folder)
    users_folder()
    _compile_something_new()
    assert _files(folder.parent / "user") > 0
    assert _files(folder) == ours


def test_an_empty_name_switches_the_cache_off(monkeypatch):
    monkeypatch.setenv("ERRORBAND_CACHE_DIR", "")
    with double_precision():
        assert jax.config.jax_compilation_cache_dir is None
        _compile_something_new()


def test_a_folder_that_cannot_be_made_is_done_without(monkeypatch, tmp_path, recwarn):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ERRORBAND_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with double_precision():
        assert jax.config.jax_compilation_cache_dir is None
        _compile_something_new()
    assert not recwarn.list


def test_blocks_of_several_threads_may_overlap(folder):
    before = dict(jax.config.values)
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def first():
        with double_precision():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with double_precision():
            second_in.set()
            first_out.wait(10)
            seen.append((jax.config.jax_compilation_cache_dir, _dtype()))

    threads = [threading.Thread(target=f) for f in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [(str(folder), jnp.float64)]
    assert jax.config.values == before
    assert precision._cache_blocks == 0


# ----------------------------------------------------------------------------------------------------------- sizes
@given(st.integers(1, 10**7))
def test_padded_size_is_little_more(n):
    size = padded_size(n)
    assert n <= size <= (max(n * 9 / 8, n + 15) if n <= 256 else n * 25 / 24)
    assert padded_size(size) == size
    assert padded_size(n + 1) >= size


def test_padded_sizes_are_few():
    assert len({padded_size(n) for n in range(1, 257)}) == 16
    assert len({padded_size(n) for n in range(265, 2**14 + 1)}) == 32 * 6 - 1  # from 272 on


def test_no_padded_size_is_a_power_of_two():
    """Beyond the sizes at which it does not matter."""
    assert not {padded_size(n) for n in range(1, 5000)} & {256, 512, 1024, 2048, 4096}


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_pad_rows_repeats_the_first_row(shape):
    array = np.arange(np.prod(shape), dtype=float).reshape(shape)
    padded = pad_rows(array, 5)
    np.testing.assert_array_equal(padded[:3], array)
    np.testing.assert_array_equal(padded[3:], array[[0, 0]])
    assert pad_rows(array, 3) is array


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_jax_starts_with_enough_threads():
    """Else its factorisations can wait for each other for ever; asked in a new process, since it is settled once."""
    code = (
        "import os; from errorband.precision import POOL, double_precision\n"
        "import jax.numpy as jnp\n"
        "with double_precision():\n"
        "    jnp.linalg.cholesky(jnp.eye(3)).block_until_ready()\n"
        "names = [open(f'/proc/self/task/{t}/comm').read() for t in os.listdir('/proc/self/task')]\n"
        "print(sum('XLAEigen' in n for n in names) >= POOL, 'NPROC' in os.environ)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NPROC"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.split() == ["True", "False"], done.stderr


# ------------------------------------------------------------------------------------------------ many programs
def test_programs_are_forgotten_when_there_are_very_many(monkeypatch):
    """A process that fits tables of many sizes for weeks does not collect compiled code without end."""
    forgotten = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(precision._programs))
    monkeypatch.setattr(precision, "PROGRAMS", 5)
    monkeypatch.setattr(precision, "_programs", 0)
    for _ in range(12):
        with double_precision():
            _compile_something_new()
    assert forgotten == [6, 6]


def test_programs_of_the_user_are_not_counted(monkeypatch):
    monkeypatch.setattr(precision, "_programs", 0)
    _compile_something_new()
    assert precision._programs == 0
