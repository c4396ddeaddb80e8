"""A process that dies at any moment leaves the model file as it was."""

import random
import signal
import subprocess
import sys
import time

import pytest
import typer

from errorband.cli.failures import OneSentenceGroup
from errorband.table_model import TableModel

# One process loads the libraries, then forks: each child saves again and again until it is killed.
SAVE_AND_DIE = """
import os, random, signal, sys, time
from errorband.table_model import TableModel
path, trials = sys.argv[1], range(*map(int, sys.argv[2:]))
model = TableModel.load(path)
for trial in trials:
    child = os.fork()
    while not child:
        model.save(path)
    time.sleep(random.Random(trial).uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert TableModel.load(path).encoder == model.encoder
    print(trial, flush=True)
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")


def _killed_while_saving(fitted, tmp_path, trials):
    path = tmp_path / "model.eb"
    path.write_bytes((fitted / "model.eb").read_bytes())
    command = [sys.executable, "-W", "ignore", "-c", SAVE_AND_DIE, str(path), str(trials.start), str(trials.stop)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == list(trials)
    assert TableModel.load(path).encoder == TableModel.load(fitted / "model.eb").encoder


def _killed_while_fitting(fitted, tmp_path, trial):
    path = tmp_path / "model.eb"
    before = (fitted / "model.eb").read_bytes()
    path.write_bytes(before)
    args = ("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic", "-o", path)
    command = [sys.executable, "-m", "errorband", *map(str, args), "--time-budget", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(random.Random(trial).uniform(0.2, 8.0))
        process.send_signal(signal.SIGKILL)
    assert path.read_bytes() == before or TableModel.load(path).encoder.id_column is None


def test_killed_while_saving(fitted, tmp_path):
    _killed_while_saving(fitted, tmp_path, range(10))


@pytest.mark.parametrize("trial", range(2))
def test_killed_while_fitting(fitted, tmp_path, trial):
    _killed_while_fitting(fitted, tmp_path, trial)


@pytest.mark.slow
def test_killed_often_while_saving(fitted, tmp_path):
    _killed_while_saving(fitted, tmp_path, range(100, 150))


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(100, 125))
def test_killed_often_while_fitting(fitted, tmp_path, trial):
    _killed_while_fitting(fitted, tmp_path, trial)


# Says when the libraries are loaded: an interrupt inside their C++ start-up code ends the process.
FIT_WHEN_READY = """
import errorband.cli.fitting
from errorband.cli import main
print("ready", flush=True)
main()
"""


def _interrupted(fitted, tmp_path, seconds):
    """Ctrl-C at some moment: a whole model, or none, code 130 and a sentence; never a traceback."""
    path = tmp_path / "model.eb"
    args = ("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic", "-o", path)
    command = [sys.executable, "-c", FIT_WHEN_READY, *map(str, args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert "Traceback" not in told
    if path.exists():
        assert process.returncode == 0 or "was written" in told
        assert TableModel.load(path).encoder.id_column is None
    else:
        assert process.returncode == 130
        assert "so nothing was written" in told


@pytest.mark.usefixtures("interruptible")  # for the process that is started: it inherits what is ignored
def test_a_real_interrupt_keeps_a_model_or_writes_none(fitted, tmp_path):
    _interrupted(fitted, tmp_path, 1.0)


def test_an_interrupt_before_a_command_begins_is_a_sentence_too(capsys):
    app = typer.Typer(cls=OneSentenceGroup)

    @app.callback()
    def press():
        raise KeyboardInterrupt

    app.command("fit")(lambda: None)
    with pytest.raises(SystemExit) as left:
        app(["fit"])
    assert left.value.code == 130
    assert "so nothing was written" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("trial", range(200, 225))
def test_real_interrupts_at_random_moments(fitted, tmp_path, trial):
    _interrupted(fitted, tmp_path, random.Random(trial).uniform(0.0, 6.0))
