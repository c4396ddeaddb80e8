"""The parts of a fitted model in words: what they are, without the values of their hyperparameters."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from errorband.effects import input_names, process
from errorband.kernels import Kernel, Product, Scaled, Sum
from errorband.reporting.text import listing, number


def describe(model: Any, automatic: str = "") -> dict[str, str]:
    """Return kernel, likelihood, mean, method and shape of the bands of a fitted model in words, by title.

    If the method was chosen automatically, "Automatic" says why: ``automatic`` if the caller made that choice, else
    the estimator's own words.
    """
    if (inside := process(model)) is not model:  # an estimator of another kind, or made of several
        parts = {} if inside is None else describe(inside, automatic)
        whole = {k: v for k, v in parts.items() if k not in ("Method", "Automatic")}  # these are of one member
        return {"Model": " ".join(repr(model).split()), **whole}
    members = model.members_
    if len(members) > 1:
        told = {"Models": f"{len(members)}, one for each class against the others", **describe(members[0], automatic)}
        return {**told, **_power(model)}
    reason = automatic or automatic_choice(model)
    names, latents = input_names(model), model.latents_
    kernels = {_titled("Kernel", key, latents): describe_kernel(l.kernel, names) for key, l in latents.items()}
    if getattr(getattr(model, "candidates_", None), "share", ()):
        kernels = {"Kernel": _mixture(model, names)}
    return {
        **kernels,
        "Likelihood": _with_options(model.likelihood_),
        **{_titled("Mean", key, latents): _describe_mean(l.mean) for key, l in latents.items()},
        "Method": _method(model),
        **({"Bands": str(model.bands_)} if hasattr(model, "bands_") else {}),
        **_power(model),
        **({"Automatic": reason} if reason else {}),
    }


def _mixture(model: Any, names: Sequence[str] | None) -> str:
    """The kernels of a mixture of candidates with their shares, the one whose values are shown first."""
    each = zip(getattr(model, "mixture_members_", [model]), getattr(model.posterior_, "weights", [1.0]), strict=True)
    told = [f"{describe_kernel(next(iter(m.latents_.values())).kernel, names)} ({100 * w:.0f} %)" for m, w in each]
    return told[0] if len(told) == 1 else f"mixture of {listing(told)}; values shown are of the first"


def _power(model: Any) -> dict[str, str]:
    """What was learned of how sure probabilities should be."""
    if not hasattr(model, "sharpness_"):
        return {}
    return {"Probabilities": f"raised to the power {model.sharpness_:.2f}, as labels of rows left out ask for"}


def _method(model: Any) -> str:
    """How the covariance is kept and the posterior found, in words."""
    approximation, rule = model.approximation_, type(model.inference_).__name__
    inducing = getattr(approximation, "inducing_inputs", None)
    how = repr(approximation)
    if type(approximation).__name__ == "Exact":
        how = "exact" if rule == "Conjugate" else "the whole covariance"
    elif inducing is not None:
        how = f"{type(approximation).__name__} with {len(inducing)} inducing inputs"
    return how if rule == "Conjugate" else f"{how}, posterior by {rule}"


def _titled(what: str, name: str, latents: Any) -> str:
    """The part of the model, with the name of the latent function if there are several."""
    return what if len(latents) == 1 else f"{what} of {name}"


def _describe_mean(mean: Any) -> str:
    return type(mean).__name__.lower() + (", integrated out" if mean.marginalize else "")


def automatic_choice(model: Any) -> str:
    """Return why a fitted estimator chose its approximation or their number, or how near it is to the exact model."""
    if isinstance(model.approximation, str) and model.approximation == "auto":
        return model.approximation_reason_ or ""
    sweep = getattr(model, "inducing_sweep_", None)
    if sweep is not None:
        return sweep.certificate
    certificate = getattr(model, "certificate_", None)
    return "" if certificate is None else str(certificate)


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
