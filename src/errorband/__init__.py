"""errorband: predictions with error bands you can trust.

Gaussian processes and their relatives as scikit-learn estimators, computed with JAX. Names are imported when first
used, so that ``import errorband`` itself is quick.
"""

import gc
import importlib
import os
from typing import TYPE_CHECKING

# OpenBLAS keeps its threads spinning for 30 ms after each call, on the cores that JAX needs next; a millisecond is
# enough. It reads this once, when SciPy loads it, and JAX has threads of its own: a process that has SciPy already is
# only slower.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

__version__ = "0.1.0"

_WHERE = {
    **dict.fromkeys(
        (
            "BayesianCommittee",
            "compare_evidence",
            "TransductiveGPClassifier",
            "GenerativeGaussianClassifier",
            "ProbabilisticNearestNeighbour",
            "PlattScaling",
            "LeastSquaresGPClassifier",
            "GPClassifier",
            "GPRegressor",
            "Mixture",
            "ProductOfExperts",
            "RVMClassifier",
            "RVMRegressor",
        ),
        "errorband.estimators",
    ),
    "Parameter": "errorband.parameters",
    "LBFGS": "errorband.training",
    "load": "errorband.persistence",
    "report": "errorband.reporting",
}
_MODULES = (
    "approximations",
    "effects",
    "features",
    "inference",
    "kernels",
    "likelihoods",
    "means",
    "metrics",
    "networks",
    "plots",
    "priors",
)

if TYPE_CHECKING:
    from errorband.estimators import (
        BayesianCommittee,
        GenerativeGaussianClassifier,
        GPClassifier,
        GPRegressor,
        LeastSquaresGPClassifier,
        Mixture,
        PlattScaling,
        ProbabilisticNearestNeighbour,
        ProductOfExperts,
        RVMClassifier,
        RVMRegressor,
        TransductiveGPClassifier,
        compare_evidence,
    )
    from errorband.parameters import Parameter
    from errorband.training import LBFGS


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(_import(_WHERE[name]), name)
    if name in _MODULES:
        return _import(f"errorband.{name}")
    raise AttributeError(f"module 'errorband' has no attribute {name!r}")


def _import(name: str):
    """Import without the garbage collector, which finds nothing in new modules and takes a tenth of the time."""
    if not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.unfreeze()  # the two together count all that is there as old, else all of it would be searched at once
        gc.enable()


def __dir__() -> list[str]:
    return sorted([*_WHERE, *_MODULES, "__version__"])


__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "LBFGS",
    "BayesianCommittee",
    "GPClassifier",
    "GPRegressor",
    "GenerativeGaussianClassifier",
    "LeastSquaresGPClassifier",
    "Mixture",
    "Parameter",
    "PlattScaling",
    "ProbabilisticNearestNeighbour",
    "ProductOfExperts",
    "RVMClassifier",
    "RVMRegressor",
    "TransductiveGPClassifier",
    "compare_evidence",
    "load",
    "report",
]
