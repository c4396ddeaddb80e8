"""Files that are there as a whole or not at all."""

import contextlib
import io
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# Without locks a temporary file that nobody has written to for so many seconds is taken to be left behind.
ABANDONED = 24 * 3600.0


class CannotWrite(OSError):
    """A file that could not be written; what was there before is still there."""


@contextlib.contextmanager
def _explained(path: str | os.PathLike) -> Iterator[None]:
    """Say which file an OSError is about, and what to do."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        sentence = f"Cannot write {path} ({why}), so free or mount the disk, or name a file elsewhere."
        raise CannotWrite(sentence) from error


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[io.BufferedWriter]:
    """Write to a temporary file beside ``path`` and put it in place only when complete and on disk.

    A file that is replaced keeps its permissions, and a link still leads to it. What killed writers of the same file
    left behind is removed.

    Raises
    ------
    CannotWrite
        If the disk is full, or the place cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/a.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     print(os.listdir(folder), open(f"{folder}/a.txt").read())
    ['a.txt'] all of it
    """
    target = Path(os.path.realpath(path))
    with _explained(path), _temporary(target) as (file, temporary):
        yield file
        file.flush()
        os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        if fcntl is None:
            file.close()  # Windows moves no open file
        os.replace(temporary, target)


def check_writable(path: str | os.PathLike, size: int = 2**16) -> None:
    """Raise :class:`CannotWrite` unless ``size`` bytes can be written where :func:`atomic_write` would put them."""
    with _explained(path), _temporary(Path(os.path.realpath(path))) as (file, _):
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[io.BufferedWriter, Path]]:
    """A file beside the target, which is removed at the end if it is still there."""
    remove_abandoned(target)
    file, temporary = _opened(target)
    try:
        with file:
            yield file, temporary
    finally:
        with contextlib.suppress(OSError):  # a disk that cannot be written says so once
            temporary.unlink(missing_ok=True)


def remove_abandoned(target: Path) -> None:
    """Remove temporary files of writers of ``target`` that are no longer alive."""
    for left in target.parent.glob(f".{_escaped(target.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            if _abandoned(left):
                left.unlink(missing_ok=True)


def _opened(target: Path) -> tuple[io.BufferedWriter, Path]:
    """A new temporary file beside the target, locked as long as it is open."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        file = open(temporary, "xb")  # noqa: SIM115
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            return file, temporary
        if temporary.exists():
            return file, temporary
        file.close()  # taken for abandoned before it was locked


def _abandoned(temporary: Path) -> bool:
    if fcntl is None:
        return time.time() - temporary.stat().st_mtime > ABANDONED
    with open(temporary, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _escaped(name: str) -> str:
    """A name in which no character has a meaning for glob."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
