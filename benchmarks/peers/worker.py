"""Runs one peer: reads a JSON request per line, answers with one JSON line, blocks in between.

`python -m peers.worker gpy`, in the peer's own environment and in this folder's parent. Requests:

    {"task": "hello"}                                     → versions, seconds that the import took
    {"task": "exact", "N": 100, "D": 8, "seed": 0}        → evidence and gradient of that model (a name in MODELS)
    {"task": "vfe", "N": 100, "D": 8, "seed": 0, "M": 10} → the same of a sparse model, derivatives in Z last
    {"task": "time", "repeats": 5}                        → seconds of each further evaluation of that model
    {"task": "fit", "model": "exact", "N": ..., ...}      → seconds, parameters and evidence path, test predictions
    {"task": "fit", "model": "vfe", "file": ..., "M": 500, "seed": 0} → the same for a table and a sparse model
    {"task": "reach", "evidence": -12.3, "model": ...}    → seconds until that evidence, from a library without a path
    {"task": "memory", "model": "exact", "N": ..., ...}   → peak bytes above the baseline
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from typing import Any

Request = dict[str, Any]


class Worker:
    """The state behind the requests: the peer's module and the model that was set up last."""

    def __init__(self, name: str) -> None:
        begin = time.perf_counter()
        self.peer = importlib.import_module(f"peers.{name}")
        self.import_seconds = time.perf_counter() - begin
        self.model: Any = None
        self.evaluations = 0

    def answer(self, request: Request) -> dict[str, Any]:
        task = request["task"]
        if task in self.peer.MODELS:
            return self.setup(request)
        if not hasattr(self, task):
            raise LookupError(f"no model {task!r} here")
        return getattr(self, task)(request)

    def hello(self, request: Request) -> dict[str, Any]:
        from importlib.metadata import version

        packages = [p for model in self.peer.MODELS.values() for p in model.packages]
        versions = {p: version(p) for p in dict.fromkeys([*packages, "numpy", "scipy"])}
        return {"versions": versions | {"python": sys.version.split()[0]}, "import": self.import_seconds}

    def setup(self, request: Request) -> dict[str, Any]:
        import problems

        X, y, _, _ = problems.data(request["N"], request["D"], request["seed"])
        theta = problems.parameters(request["D"])
        if "M" in request:
            theta = problems.with_inducing_inputs(theta, X, request["M"])
        self.model = None  # let go of the last one first
        self.model = self.peer.MODELS[request["task"]](X, y, theta)
        value, gradient = self.model.value_and_gradient(theta)
        return {"evidence": float(value), "gradient": [float(g) for g in gradient]}

    def time(self, request: Request) -> dict[str, Any]:
        import problems

        seconds = []
        for _ in range(request["repeats"]):
            self.evaluations += 1
            seconds.append(self.model.seconds(problems.perturbed(self.model.theta, self.evaluations)))
        return {"seconds": seconds}

    def fit(self, request: Request) -> dict[str, Any]:
        import numpy as np

        import problems

        if "file" in request:
            X, y, X_test, _ = problems.table(request["file"])
        else:
            X, y, X_test, _ = problems.data(request["N"], request["D"], request["seed"], request["N_test"])
        theta = problems.start(X.shape[1])
        if "M" in request:
            chosen = np.random.default_rng(request["seed"]).choice(len(X), request["M"], replace=False)
            theta = problems.with_inducing_inputs(theta, X[chosen], request["M"])
        path: list[tuple[float, list[float]]] = []
        begin = time.perf_counter()
        self.model = self.peer.MODELS[request["model"]](X, y, theta)
        theta = self.model.fit(lambda theta: path.append((time.perf_counter() - begin, [float(t) for t in theta])))
        fitted = time.perf_counter()
        mean, variance = self.model.predict(X_test)
        predicted = time.perf_counter()
        return {
            "import": self.import_seconds,
            "fit": fitted - begin,
            "predict": predicted - fitted,
            "theta": [float(t) for t in theta],
            "path": path,
            "mean": [float(m) for m in mean],
            "variance": [float(v) for v in variance],
        }

    def reach(self, request: Request) -> dict[str, Any]:
        return {"seconds": self.model.reach(request["evidence"])}

    def memory(self, request: Request) -> dict[str, Any]:
        import problems

        build, d = self.peer.MODELS[request["model"]], request["D"]
        theta = problems.parameters(d)
        build(*problems.data(50, d, request["seed"])[:2], theta).value_and_gradient(theta)  # one-time initialisation
        X, y, _, _ = problems.data(request["N"], d, request["seed"])
        before = resident_bytes(reset=True)
        model = build(X, y, theta)
        for i in range(2):
            model.seconds(problems.perturbed(theta, i))
        return {"bytes": resident_bytes() - before}


def resident_bytes(reset: bool = False) -> int:
    """Highest resident size so far; with `reset`, the size now, from which the highest is counted anew.

    Linux keeps that mark per process in /proc. `ru_maxrss`, used elsewhere, can only grow, so that there an import that
    needed more than the evaluation hides it.
    """
    if sys.platform == "linux":
        if reset:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            worker = worker or Worker(sys.argv[1])
            reply = worker.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
