"""The parts of a fitted model in words: what they are, without the values of their hyperparameters."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from errorband.effects import input_names
from errorband.estimators.base import ASKED_FOR
from errorband.kernels import Kernel, Product, Scaled, Sum
from errorband.reporting.text import listing, number


def describe(model: Any) -> dict[str, str]:
    """Kernel, likelihood, mean and method of a fitted model, and how the method was chosen if that was automatic."""
    if hasattr(model, "estimators_"):
        return {"Models": f"{len(model.estimators_)}, one for each class against the others", **describe(first(model))}
    approximation, inference = type(model.approximation_).__name__, type(model.inference_).__name__
    method = "exact" if approximation == inference == "Exact" else f"{model.approximation_!r}, {inference} inference"
    reason = model.approximation_reason_.removeprefix(ASKED_FOR).strip()
    integrated = ", integrated out" if model.mean_.marginalize else ""
    return {
        "Kernel": describe_kernel(model.kernel_, input_names(model)),
        "Likelihood": _with_options(model.likelihood_),
        "Mean": type(model.mean_).__name__.lower() + integrated,
        "Method": method,
    } | ({"Automatic": reason} if reason else {})


def first(model: Any) -> Any:
    """The first of several models that make up one, which differ in values only; or the model itself."""
    return getattr(model, "estimators_", [model])[0]


def describe_kernel(kernel: Kernel, names: Sequence[str] | None) -> str:
    """A kernel's structure.

    Examples
    --------
    >>> from errorband.kernels import Linear, Matern, SquaredExponential
    >>> describe_kernel((SquaredExponential() + Linear(active_dims=[1])) * Matern(nu=2.5), ["a", "b"])
    '(SquaredExponential + Linear on b) × Matern(nu=2.5)'
    """
    if kernel.active_dims is not None and names is not None:
        names = [names[int(d)] for d in kernel.active_dims]
        where = f" on {listing(names)}"
    else:
        where = ""
    inner = [(child, describe_kernel(child, names)) for child in kernel.children().values()]
    if isinstance(kernel, Sum):
        text = " + ".join(t for _, t in inner)
    elif isinstance(kernel, Product):
        text = " × ".join(f"({t})" if isinstance(child, Sum) else t for child, t in inner)
    elif isinstance(kernel, Scaled):
        child, t = inner[0]
        text = f"{number(kernel.factor)} × " + (f"({t})" if isinstance(child, Sum) else t)
    else:
        text = _with_options(kernel, *(describe_kernel(child, None) for child, _ in inner))
    return f"({text}){where}" if where and isinstance(kernel, Sum | Product) else text + where


def _with_options(module: Any, *inside: str) -> str:
    """Class name with its settings that are not learned and not at their default."""
    options = list(inside)
    for field in dataclasses.fields(module):
        value = getattr(module, field.name, None)
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        always = field.name in ("nu", "degree", "rank")
        if field.name == "link":
            options.append(str(value))
        if plain and field.metadata.get("constraint") is None and (always or value != field.default):
            options.append(f"{field.name}={value:g}")
    return type(module).__name__ + (f"({', '.join(options)})" if options else "")
