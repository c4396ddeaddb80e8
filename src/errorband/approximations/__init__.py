"""Approximations of the prior. A new one is one file and one line in :data:`APPROXIMATIONS`."""

from errorband.approximations.base import Approximation
from errorband.approximations.exact import Exact

APPROXIMATIONS: dict[str, type[Approximation]] = {cls.__name__: cls for cls in (Exact,)}

__all__ = [*APPROXIMATIONS, "APPROXIMATIONS", "Approximation"]
