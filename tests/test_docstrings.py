"""Whatever a registry offers explains itself: a runnable example, and a word about each argument.

The examples themselves are run by ``--doctest-modules``.
"""

import doctest
import inspect
import re

import pytest

from errorband.approximations import APPROXIMATIONS
from errorband.estimators import ESTIMATORS
from errorband.inference import INFERENCES
from errorband.kernels import KERNELS, heat
from errorband.likelihoods import LIKELIHOODS
from errorband.means import MEANS
from errorband.parameters import Parameter
from errorband.persistence import load, save
from errorband.priors import PRIORS
from errorband.training import LBFGS
from errorband.transforms import TRANSFORMS

REGISTRIES = (KERNELS, LIKELIHOODS, MEANS, PRIORS, APPROXIMATIONS, INFERENCES, ESTIMATORS, TRANSFORMS)
OFFERED = [*(item for registry in REGISTRIES for item in registry.values()), LBFGS, Parameter, heat, load, save]
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)
ELSEWHERE = re.compile(r"Parameters are\s+those of\s+:class:`(\w+)`")

every_one = pytest.mark.parametrize("item", OFFERED, ids=lambda item: f"{item.__module__}.{item.__qualname__}")


def own_text(item):
    """The docstring that was written for this one, not for a base class."""
    return inspect.cleandoc(vars(item).get("__doc__") or "") if inspect.isclass(item) else inspect.getdoc(item)


def explained(text):
    """Names of the arguments that a docstring says something about."""
    if found := ELSEWHERE.search(text):
        return explained(own_text(APPROXIMATIONS[found[1]]))
    heads = [line for part in SECTION.findall(text) for line in part.splitlines() if re.match(r"\w", line)]
    return {name.strip() for head in heads for name in head.split(" : ")[0].split(",")}


@every_one
def test_there_is_a_runnable_example(item):
    assert doctest.DocTestParser().get_examples(own_text(item)), "no line begins with >>>"


@every_one
def test_every_argument_is_explained(item):
    missing = set(inspect.signature(item).parameters) - explained(own_text(item))
    assert not missing, f"not under Parameters: {', '.join(sorted(missing))}"


def test_names_are_found_in_a_docstring():
    text = "Summary.\n\nParameters\n----------\na, b : float\n    Two.\nc\n    One.\n\nNotes\n-----\nd : no argument.\n"
    assert explained(text) == {"a", "b", "c"}
    assert explained("Parameters are those of :class:`PITC`.") == explained(own_text(APPROXIMATIONS["PITC"]))
