"""Environments and processes: each peer is installed into one of its own and answers requests over a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
RAW = HERE / ".raw"
OURS, MACHINE = "errorband", "machine"
PEERS = (OURS, "scikit_learn", "gpy", "gpflow", "gpytorch", "gpboost")  # a module in peers/ each
LABELS = {
    "scikit_learn": "scikit-learn",
    "gpy": "GPy",
    "gpflow": "GPflow",
    "gpytorch": "GPyTorch",
    "gpboost": "GPBoost",
}
THREAD_SETTINGS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB", "NUMEXPR")  # *_NUM_THREADS: unset for everyone


class PeerError(Exception):
    """A peer could not be installed, started, or answered with an error. The message is fit for a table."""


def label(peer: str) -> str:
    return LABELS.get(peer, peer)


def environment(peer: str) -> str:
    """The interpreter of the peer's environment, made first if it is not there or its requirements have changed.

    The paragraphs of the requirements file are installed one after the other. A peer without such a file, as errorband,
    lives in the environment that runs the harness.
    """
    requirements = HERE / "peers" / f"{peer}.txt"
    if not requirements.exists():
        return sys.executable
    folder = HERE / ".venvs" / peer
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = folder / "installed.txt", requirements.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    print(f"installing {label(peer)} ...", flush=True)
    log_path = RAW / f"install-{peer}.log"
    with log_path.open("w") as log:
        steps = [[sys.executable, "-m", "venv", "--clear", str(folder)]]
        for paragraph in wanted.split("\n\n"):
            lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
            steps.append([str(python), "-m", "pip", "install", *lines])
        for step in steps:
            if subprocess.run(step, stdout=log, stderr=subprocess.STDOUT).returncode:
                raise PeerError(f"could not be installed (see benchmarks/.raw/{log_path.name})")
    stamp.write_text(wanted)
    return str(python)


class Worker:
    """A peer's process. It does nothing but wait between two questions."""

    def __init__(self, peer: str, variables: Mapping[str, str] | None = None, patience: float = 3600.0) -> None:
        python = environment(peer)
        clean = {k: v for k, v in os.environ.items() if k.removesuffix("_NUM_THREADS") not in THREAD_SETTINGS}
        self.peer, self.patience = peer, patience
        self._log: TextIO = (RAW / f"{peer}.log").open("a")
        self._process = subprocess.Popen(
            [python, "-m", "peers.worker", peer],
            cwd=HERE,
            env=clean | dict(variables or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def ask(self, task: str, **request: Any) -> dict[str, Any]:
        """Send one request and wait for the answer; a worker that is silent for too long is ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        alarm = threading.Timer(self.patience, self._process.kill)
        alarm.start()
        try:
            self._process.stdin.write(json.dumps({"task": task, **request}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            alarm.cancel()
        if not line:
            raise PeerError(f"ended without an answer to '{task}' (see benchmarks/.raw/{self.peer}.log)")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class Team:
    """The workers of one suite. One that fails is out, with its reason kept, and the others go on."""

    def __init__(self, peers: Iterable[str], variables: Mapping[str, str] | None = None) -> None:
        self.workers: dict[str, Worker] = {}
        self.failures: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}
        for peer in peers:
            try:
                self.workers[peer] = Worker(peer, variables)
            except PeerError as error:
                self.failures[peer] = str(error)
            else:
                if answer := self.ask(peer, "hello"):
                    self.versions[peer] = answer["versions"]

    def ask(self, peer: str, task: str, **request: Any) -> dict[str, Any] | None:
        """The answer, or None from a worker that is out or goes out now."""
        if peer not in self.workers:
            return None
        try:
            return self.workers[peer].ask(task, **request)
        except PeerError as error:
            print(f"  {label(peer)}: {error}", flush=True)
            self.failures[peer] = str(error)
            self.workers.pop(peer).__exit__()
            return None

    def turns(self, rounds: int) -> list[tuple[int, str]]:
        """(round, peer) in turn, each round beginning with another peer."""
        peers = list(self.workers)
        return [(r, peers[(i + r) % len(peers)]) for r in range(rounds) for i in range(len(peers))]

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self.workers.values():
            worker.__exit__()


def settle(seconds: float = 0.1) -> None:
    """Let the threads of the worker that answered last stop spinning."""
    time.sleep(seconds)
