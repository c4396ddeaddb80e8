"""A process that dies at any moment leaves the model file as it was."""

import random
import signal
import subprocess
import sys
import time

import pytest

from errorband.pipeline import TableModel

SAVE_AGAIN_AND_AGAIN = """
import sys
from errorband.pipeline import TableModel
model = TableModel.load(sys.argv[1])
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")


def _die(process, seconds):
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def _during_save(fitted, tmp_path, trial):
    path = tmp_path / "model.eb"
    path.write_bytes((fitted / "model.eb").read_bytes())
    process = subprocess.Popen([sys.executable, "-c", SAVE_AGAIN_AND_AGAIN, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    process.stdout.close()
    _die(process, random.Random(trial).uniform(0.0, 0.1))
    assert TableModel.load(path).encoder == TableModel.load(fitted / "model.eb").encoder


def _during_fit(fitted, tmp_path, trial):
    path = tmp_path / "model.eb"
    before = (fitted / "model.eb").read_bytes()
    path.write_bytes(before)
    args = ("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic", "-o", path)
    command = [sys.executable, "-m", "errorband.cli", *map(str, args), "--time-budget", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _die(process, random.Random(trial).uniform(0.2, 8.0))
    after = path.read_bytes()
    assert after == before or TableModel.load(path).encoder.id_column is None


@pytest.mark.parametrize("trial", range(7))
def test_killed_while_saving(fitted, tmp_path, trial):
    _during_save(fitted, tmp_path, trial)


@pytest.mark.parametrize("trial", range(3))
def test_killed_while_fitting(fitted, tmp_path, trial):
    _during_fit(fitted, tmp_path, trial)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(100, 125))
@pytest.mark.parametrize("moment", [_during_save, _during_fit])
def test_killed_often(fitted, tmp_path, trial, moment):
    moment(fitted, tmp_path, trial)
