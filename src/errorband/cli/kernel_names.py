"""Short names of kernels, as given on the command line."""

import difflib
from collections.abc import Callable

from errorband.kernels import Kernel, Linear, Matern, RationalQuadratic, SquaredExponential

NAMED_KERNELS: dict[str, Callable[[], Kernel]] = {
    "se": SquaredExponential,
    "matern12": lambda: Matern(nu=0.5),
    "matern32": lambda: Matern(nu=1.5),
    "matern52": lambda: Matern(nu=2.5),
    "rq": RationalQuadratic,
    "linear": Linear,
}


def kernel_named(text: str) -> Kernel:
    """A kernel from its short name; ``+`` adds kernels.

    Examples
    --------
    >>> type(kernel_named("se+linear")).__name__
    'Sum'
    >>> kernel_named("mattern32")
    Traceback (most recent call last):
    ValueError: There is no kernel 'mattern32' (closest: 'matern32'), so choose from se, ... or join some with +.
    """
    parts = []
    for name in (part.strip().lower() for part in text.split("+")):
        if name not in NAMED_KERNELS:
            near = difflib.get_close_matches(name, NAMED_KERNELS, n=1)
            hint = f" (closest: {near[0]!r})" if near else ""
            known = ", ".join(NAMED_KERNELS)
            raise ValueError(f"There is no kernel {name!r}{hint}, so choose from {known} or join some with +.")
        parts.append(NAMED_KERNELS[name]())
    kernel = parts[0]
    for part in parts[1:]:
        kernel = kernel + part
    return kernel
