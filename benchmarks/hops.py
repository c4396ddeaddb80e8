"""How far a fit of the exact model travels through the source: functions entered and files touched.

    python benchmarks/hops.py

Counts each named function of errorband once, in the order of its first entry, for ``GPRegressor().fit(X, y)`` with code
already compiled and parts already imported; lambdas, comprehensions and decorators are left out.
"""

import sys
from pathlib import Path

import numpy as np

import errorband
from errorband import GPRegressor

LEFT_OUT = ("wrapped", "double_precision", "_compile_cache")
SOURCE = str(Path(errorband.__file__).parent)


def entered(call) -> list[tuple[str, str]]:
    """File and function, in the order of first entry."""
    seen: dict[tuple[str, str], None] = {}

    def trace(frame, event, _):
        code = frame.f_code
        ours = event == "call" and code.co_filename.startswith(SOURCE)
        if ours and "<" not in code.co_name and code.co_name not in LEFT_OUT:
            seen.setdefault((code.co_filename[len(SOURCE) + 1 :], code.co_qualname))

    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(seen)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    GPRegressor().fit(X, y)
    found = entered(lambda: GPRegressor().fit(X, y))
    for file, function in found:
        print(f"{file:32} {function}")
    print(f"{len(found)} functions in {len({file for file, _ in found})} files")
