"""A disk that is full or cannot be written: one sentence, a code of its own, and no work lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.sentences import check_one_sentence
from errorband.files import CannotWrite
from errorband.table_model import TableModel

resource = pytest.importorskip("resource", reason="needs limits of processes")
ARGUMENTS = ("--target", "progression", "--ignore", "patient,clinic,visit,sex", "--time-budget", "1")


def refuse(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_full_disk_is_found_before_the_search(run, fitted, tmp_path, monkeypatch, option):
    monkeypatch.setattr("errorband.files.os.fsync", refuse)
    monkeypatch.setattr("errorband.cli.fitting.fit", lambda *_: pytest.fail("the search was begun"))
    result = run("fit", fitted / "data.csv", *ARGUMENTS, option, tmp_path / "out")
    check_one_sentence(result, 6)
    assert "No space left on device" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_found_before_a_prediction(run, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("errorband.files.os.fsync", refuse)
    check_one_sentence(run("predict", fitted / "model.eb", fitted / "data.csv", "-o", tmp_path / "o.csv"), 6)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_meanwhile_costs_no_model(run, fitted, tmp_path, monkeypatch):
    place, elsewhere = tmp_path / "m.eb", tmp_path / "elsewhere"
    elsewhere.mkdir()
    save = TableModel.save

    def full(self, path):
        if Path(path) == place:
            raise CannotWrite(f"Cannot write {path} (No space left on device), so free the disk.")
        save(self, path)

    monkeypatch.setattr(TableModel, "save", full)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(elsewhere))
    result = run("fit", fitted / "data.csv", *ARGUMENTS, "-o", place, "--quiet")
    check_one_sentence(result, 6)
    (kept,) = elsewhere.glob("*/m.eb")
    assert str(kept) in result.stderr
    assert TableModel.load(kept).encoder.target == "progression"


def test_predictions_into_a_full_pipe_or_disk(run, fitted, monkeypatch):
    monkeypatch.setattr("errorband.tables.write_table", refuse)
    check_one_sentence(run("predict", fitted / "model.eb", fitted / "data.csv"), 6)


LIMITED = """
import resource
from errorband.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (66_000, 66_000))
main()
"""


def test_a_real_limit_on_the_size_of_files(fitted, tmp_path):
    """As ``ulimit -f`` sets it: the probe passes, the model does not; it goes nowhere, and the sentence says why."""
    command = [sys.executable, "-c", LIMITED, "fit", str(fitted / "data.csv"), *ARGUMENTS, "-o", str(tmp_path / "m.eb")]
    environment = os.environ | {"ERRORBAND_CACHE_DIR": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 6
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert not list(tmp_path.iterdir())
