"""The shape of the house: contracts stay small, and nobody asks which concrete class an object has."""

import ast
import dataclasses
import inspect
from pathlib import Path

import errorband
from errorband.approximations import APPROXIMATIONS, Approximation
from errorband.features import FEATURES, Features
from errorband.inference import INFERENCES, Inference
from errorband.likelihoods import LIKELIHOODS

SOURCE = Path(errorband.__file__).parent
CONCRETE = {
    **dict.fromkeys([*APPROXIMATIONS, "Inducing", "LowRankApproximation"], "approximations"),
    **dict.fromkeys(LIKELIHOODS, "likelihoods"),
    **dict.fromkeys(INFERENCES, "inference"),
    **dict.fromkeys(FEATURES, "features"),
}


def asked_for(tree):
    """Line and name of each class in an ``isinstance`` or ``issubclass`` call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            for name in ast.walk(node.args[1]):
                if isinstance(name, ast.Name | ast.Attribute):
                    yield node.lineno, getattr(name, "id", getattr(name, "attr", ""))


def test_nothing_private_of_other_packages_is_used():
    """What a release of theirs may change without a word: names and modules that begin with an underscore."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("errorband")
        for name in [*node.module.split("."), *(alias.name for alias in node.names)]
        if name.startswith("_") and not name.startswith("__")
    ]
    assert found == []


def test_no_isinstance_on_a_concrete_part_outside_its_package():
    found = []
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0]
        for line, name in asked_for(ast.parse(path.read_text())):
            if CONCRETE.get(name, package) != package:
                found.append(f"{path.relative_to(SOURCE)}:{line} {name}")
    assert found == [], "declare what you need on the class instead"


def test_the_search_finds_such_a_question():
    tree = ast.parse("if isinstance(model.approximation, (FITC, approximations.VFE)): pass")
    assert {name for _, name in asked_for(tree)} >= {"FITC", "VFE"}


def members(contract):
    return [name for name, value in vars(contract).items() if not name.startswith("_") and not isinstance(value, str)]


def test_contracts_stay_small():
    assert len(members(Approximation)) <= 7, members(Approximation)
    assert len(members(Features)) <= 10, members(Features)
    assert len(members(Inference)) <= 6, members(Inference)


def test_approximations_have_nothing_to_learn():
    """What is learned belongs to kernel, mean, features and likelihood, for which every engine has derivatives."""
    for cls in APPROXIMATIONS.values():
        assert not any("constraint" in field.metadata for field in dataclasses.fields(cls)), cls


def test_a_newcomer_writes_little():
    """The abstract methods are what must be written; all others have a default."""
    abstract = {contract: set(contract.__abstractmethods__) for contract in (Approximation, Features)}
    assert abstract[Approximation] == {"engine", "structure"}
    assert abstract[Features] == {"size", "K_fu"}
    assert all(not inspect.isabstract(cls) for cls in (*APPROXIMATIONS.values(), *FEATURES.values()))
