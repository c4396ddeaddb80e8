"""Features of several kinds in one model."""

from typing import Any

import equinox as eqx
import numpy as np

from errorband.features.base import Features
from errorband.features.windows import Windowed, Windows, joined


class Mixed(Windowed):
    """Features of several kinds side by side, such as points and waves, for the squared exponential.

    All are integrals of one function under windows, so that the covariance between kinds is known too.

    Parameters
    ----------
    parts : sequence of Features
        ``Points``, ``MultiScale``, ``WindowedFourier``, ``TimeFrequency``: each has an equal share of the number of
        features asked for, but those whose values are given.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import VFE
    >>> from errorband.features import Points, WindowedFourier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> both = Mixed([Points(), WindowedFourier()])
    >>> model = GPRegressor(approximation=VFE(16, features=both), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    parts: tuple[Features, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        strange = [p for p in self.parts if not hasattr(p, "windows")]
        if strange or not self.parts:
            got = type(strange[0]).__name__ if strange else "nothing"
            raise ValueError(
                f"Mixed takes Points, MultiScale, WindowedFourier and TimeFrequency, in a list; got {got}."
            )

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        kinds = len(self.parts)
        numbers = [None] * kinds if n is None else [len(share) for share in np.array_split(np.arange(n), kinds)]
        if 0 in numbers:
            raise ValueError(f"Mixed has {kinds} kinds of features: ask for at least as many; got {n}.")
        ready = [p.initialised(kernel, X, m, classes, random_state) for p, m in zip(self.parts, numbers, strict=True)]
        return Mixed(ready)

    def windows(self, kernel: Any) -> Windows:
        return joined([part.windows(kernel) for part in self.parts])  # pyright: ignore[reportAttributeAccessIssue]
