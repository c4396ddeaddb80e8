"""Files are there as a whole or not at all, and stay what they were otherwise."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from errorband.files import CannotWrite, atomic_write, check_writable

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions, links and locks")


def write(path, content=b"new"):
    with atomic_write(path) as file:
        file.write(content)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@posix
def test_permissions_and_links_survive(tmp_path):
    path, link = tmp_path / "model.eb", tmp_path / "link.eb"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["link.eb", "model.eb"]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "a"
    write(path, b"old")
    with pytest.raises(RuntimeError), atomic_write(path) as file:  # noqa: PT012
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


WRITE_AND_WAIT = """
import sys
from errorband.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"part")
    print("ready", flush=True)
    sys.stdin.read()
"""


@posix
def test_what_killed_writers_left_is_removed_and_what_living_ones_write_is_not(tmp_path):
    path = tmp_path / "model [1].eb"
    living, killed = (
        subprocess.Popen(
            [sys.executable, "-c", WRITE_AND_WAIT, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    )
    for process in (living, killed):
        assert process.stdout.readline() == "ready\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(names(tmp_path)) == 2
    (tmp_path / ".other.eb.123.tmp").touch()  # of another file
    write(path)
    assert len(names(tmp_path)) == 3  # the file, that of the living writer, and the other's
    living.communicate("")
    assert living.returncode == 0
    assert path.read_bytes() == b"part"  # it came last
    assert names(tmp_path) == [".other.eb.123.tmp", "model [1].eb"]


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path):
    for action in (write, check_writable):
        with pytest.raises(CannotWrite, match=r"Cannot write .*nowhere.*No such file.*, so "):
            action(tmp_path / "nowhere" / "a")


def test_trying_to_write_leaves_nothing(tmp_path):
    check_writable(tmp_path / "a")
    write(tmp_path / "b", b"old")
    check_writable(tmp_path / "b")
    assert names(tmp_path) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"old"


@pytest.mark.parametrize("when", ["opened", "written"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, when):
    path = tmp_path / "a"
    write(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"errorband.files.{'_opened' if when == 'opened' else 'os.fsync'}", full)
    with pytest.raises(CannotWrite, match="No space left on device"):
        write(path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]
