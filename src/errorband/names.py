"""Short names: text such as ``"matern52+linear"`` or ``"vfe(200)"`` becomes the object it stands for.

A class has its name from its line in a registry: ``StudentT`` is "student-t". Capitals, hyphens and underscores do not
matter, so "studentt" will do. A class may declare ``short_names`` instead, with the arguments that each stands for.

    sum      = product {"+" product}
    product  = factor {"*" factor}
    factor   = number | name ["(" [argument {"," argument}] ")"] | "(" sum ")"
    argument = [name "="] value
    value    = number | word | 'text' | true | false | none | "[" [value {"," value}] "]" | name "(" … ")"

Text is read, not evaluated: it can make objects of the registries, and nothing else.
"""

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

LONGEST = 1000  # characters; nobody types more, and what is nested deeply ends in a RecursionError

TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<word>[^\W\d](?:[\w.]|-(?=[^\W\d]))*)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<mark>[-+*(),=\[\]]))"
)
WORDS = {"true": True, "false": False, "none": None}


def spelled(class_name: str) -> str:
    """Return the name of a class as people type it.

    Examples
    --------
    >>> spelled("StudentT"), spelled("FITC"), spelled("SubsetOfData"), spelled("BaggedRegressor")
    ('student-t', 'fitc', 'subset-of-data', 'bagged')
    """
    stem = re.sub(r"(?<=.)(Regressor|Classifier)$", "", class_name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", stem).lower()


def folded(name: str) -> str:
    """Return what is compared: no capitals, hyphens or underscores."""
    return re.sub(r"[-_\s]", "", name).lower()


def short_names(class_name: str, cls: type) -> Mapping[str, Mapping[str, Any]]:
    """Return names of a class and the arguments they stand for: those it declares itself, else its own name."""
    declared = vars(cls).get("short_names")
    return {spelled(class_name): {}} if declared is None else declared


@dataclasses.dataclass(frozen=True)
class Names:
    """The names of the classes in one or more registries; called with text it makes the object.

    Parameters
    ----------
    what : str
        What the objects are, for messages.
    registries : tuple of dict
        Classes by class name; read anew each time, so that a class added later has a name.
    accepts : callable
        Which of these classes may be named.
    nested : tuple of dict
        Registries of objects that may be arguments.
    renamed : dict
        Other names of arguments.
    also : tuple of str
        Names that others give a meaning to, for messages.
    supplied : dict
        Values of arguments that must be given, where they are not.
    converted : dict
        Functions of the values of arguments, by name.

    Examples
    --------
    >>> from errorband.kernels import KERNELS
    >>> kernels = Names("kernel", (KERNELS,), renamed={"column": "active_dims"})
    >>> kernels("matern52 + 2 * periodic(period=1, column=date)")
    Matern(nu=2.5) + 2 * Periodic(active_dims=('date',), period=1)
    >>> kernels("periodic(perod=1)")
    Traceback (most recent call last):
    ...
    ValueError: periodic has no argument 'perod', so choose from lengthscale, variance, period, column and ard.
    """

    what: str
    registries: tuple[Mapping[str, type], ...]
    accepts: Callable[[type], bool] = lambda cls: True
    nested: tuple[Mapping[str, type], ...] = ()
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    also: tuple[str, ...] = ()
    supplied: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    converted: Mapping[str, Callable[[Any], Any]] = dataclasses.field(default_factory=dict)

    def __call__(self, text: str) -> Any:
        """Make the object that the text stands for."""
        if len(text) > LONGEST:
            raise ValueError(f"The {self.what} has {len(text):,} characters, so write it in at most {LONGEST:,}.")
        try:
            return _Reader(text, self).read()
        except RecursionError:
            raise ValueError(f"The {self.what} is nested too deeply, so cannot be read.") from None

    def choices(self) -> list[str]:
        """Return all names; the arguments that must be given stand in brackets."""
        found = [
            name + (f"({', '.join(needed)})" if (needed := _required(cls, {**given, **self.supplied})) else "")
            for class_name, cls in self._classes()
            for name, given in short_names(class_name, cls).items()
        ]
        return [*self.also, *(name for name in dict.fromkeys(found) if name not in self.also)]

    def find(self, name: str, anywhere: bool = False) -> tuple[type, Mapping[str, Any]]:
        """Return the class of a name and the arguments it stands for; ``anywhere``: among nested registries too."""
        known = {}
        for class_name, cls in self._classes(anywhere):
            declared = short_names(class_name, cls)
            names = {folded(short): (cls, given) for short, given in declared.items()}
            known |= names | ({folded(class_name): (cls, {})} if declared else {})
        if folded(name) in known:
            return known[folded(name)]
        near = difflib.get_close_matches(folded(name), known, n=1, cutoff=0.7)
        listed = {folded(choice.split("(")[0]): choice for choice in self.choices()}
        hint = f" (closest: {listed.get(near[0], near[0])!r})" if near else ""
        raise ValueError(f"There is no {self.what} {name!r}{hint}, so choose from {self.listed()}.")

    def listed(self) -> str:
        """The choices as one phrase."""
        return ", ".join(self.choices())

    def _classes(self, anywhere: bool = False) -> list[tuple[str, type]]:
        own = [item for registry in self.registries for item in registry.items() if self.accepts(item[1])]
        return own + [item for registry in self.nested for item in registry.items()] if anywhere else own


class _Token(NamedTuple):
    kind: str
    text: str


class _Reader:
    """Reads one text by recursive descent; see the grammar at the top."""

    def __init__(self, text: str, names: Names):
        self.text, self.names, self.tokens, at = text, names, [], 0
        while at < len(text.rstrip()):
            found = TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise self.wrong(f"'{text[at:].strip()[0]}' has no meaning there")
            self.tokens.append(_Token(found.lastgroup, found[found.lastgroup]))
            at = found.end()

    def wrong(self, told: str) -> ValueError:
        example = "matern52+linear or periodic(period=1)" if self.names.what == "kernel" else "name(argument=1)"
        return ValueError(
            f"The {self.names.what} {self.text!r} cannot be read ({told}), so write one like {example}, with names "
            "that hold blanks or signs in quotes."
        )

    def next_is(self, *marks: str) -> bool:
        return bool(self.tokens) and self.tokens[0].kind == "mark" and self.tokens[0].text in marks

    def take(self, mark: str | None = None) -> _Token:
        if not self.tokens:
            raise self.wrong(f"it ends where {mark or 'a name'!r} should be")
        token = self.tokens.pop(0)
        if mark is not None and token != ("mark", mark):
            raise self.wrong(f"there is {token.text!r} where {mark!r} should be")
        return token

    def read(self) -> Any:
        result = self.sum()
        if self.tokens:
            raise self.wrong(f"{self.tokens[0].text!r} is not expected there")
        if isinstance(result, float):
            raise self.wrong(f"{result:g} is a number")
        return result

    def sum(self) -> Any:
        result = self.product()
        while self.next_is("+"):
            self.take()
            result = self.joined(result, self.product(), lambda a, b: a + b, "added")
        return result

    def product(self) -> Any:
        result = self.factor()
        while self.next_is("*"):
            self.take()
            result = self.joined(result, self.factor(), lambda a, b: a * b, "multiplied")
        return result

    def joined(self, left: Any, right: Any, join: Callable[[Any, Any], Any], told: str) -> Any:
        try:
            return join(left, right)
        except TypeError:
            raise self.wrong(f"these cannot be {told}") from None

    def factor(self) -> Any:
        if self.next_is("("):
            self.take()
            result = self.sum()
            self.take(")")
            return result
        token = self.take()
        if token.kind == "number":
            return float(token.text)
        if token.kind != "word":
            raise self.wrong(f"there is {token.text!r} where a name should be")
        return self.made(token.text, anywhere=False)

    def made(self, name: str, anywhere: bool) -> Any:
        cls, given = self.names.find(name, anywhere)
        arguments = dict(given)
        position = iter(_parameters(cls))
        if self.next_is("("):
            self.take()
            while not self.next_is(")"):
                self.argument(name, cls, position, arguments)
                if not self.next_is(")"):
                    self.take(",")
            self.take(")")
        needed = _required(cls, arguments)
        arguments |= {n: self.names.supplied[n] for n in needed if n in self.names.supplied}
        if missing := _required(cls, arguments):
            told = ", ".join(f"{n}=..." for n in missing)
            raise ValueError(f"{name} needs more to be said, so write {name}({told}).")
        try:
            return cls(**arguments)
        except TypeError as error:
            raise self.wrong(str(error).rstrip(".")) from error

    def argument(self, name: str, cls: type, position: Any, arguments: dict[str, Any]) -> None:
        """Read one argument; without a name it is the next that the class takes."""
        if self.tokens and self.tokens[0].kind == "word" and self.tokens[1:2] == [("mark", "=")]:
            given = self.take().text
            self.take("=")
            key = self.names.renamed.get(given, given)
        else:
            given = key = next(position, "")
        if key not in _parameters(cls):
            other = {new: old for old, new in self.names.renamed.items()}
            known = [other.get(n, n) for n in _parameters(cls)]
            told = f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else "".join(known) or "none"
            raise ValueError(f"{name} has no argument {given!r}, so choose from {told}.")
        arguments[key] = self.names.converted.get(key, lambda value: value)(self.value())

    def value(self) -> Any:
        if self.next_is("["):
            self.take()
            items = []
            while not self.next_is("]"):
                items.append(self.value())
                if not self.next_is("]"):
                    self.take(",")
            self.take("]")
            return items
        token = self.take()
        if token.kind == "number":
            return int(token.text) if re.fullmatch(r"-?\d+", token.text) else float(token.text)
        if token.kind == "text":
            return token.text[1:-1]
        if token.kind != "word":
            raise self.wrong(f"there is {token.text!r} where a value should be")
        return self.made(token.text, anywhere=True) if self.next_is("(") else WORDS.get(token.text.lower(), token.text)


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def _required(cls: type, given: Mapping[str, Any]) -> list[str]:
    """Names of the arguments that have no default and are not given."""
    return [n for n, p in _parameters(cls).items() if p.default is p.empty and n not in given]
