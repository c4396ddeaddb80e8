"""The exception of the table layer, and helpers that build its messages."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["TableError", "closest_names", "count_of", "refuse_repeats", "show_cell", "show_names"]


class TableError(ValueError):
    """A table that cannot be used as it is.

    The message is always one sentence that says what was found and what to do about it, so a command-line
    tool can print it as it stands.

    Examples
    --------
    >>> raise TableError("The table 'a.csv' is empty, so write a header line and at least one row to it.")
    Traceback (most recent call last):
    ...
    errorband.tables.errors.TableError: The table 'a.csv' is empty, so write a header line and at least one row to it.
    """


def show_cell(value: object, width: int = 40) -> str:
    """Return a cell or a name in quotes, cut to `width` characters.

    Examples
    --------
    >>> show_cell("oak"), show_cell("x" * 100, width=5)
    ("'oak'", "'xxxxx…'")
    """
    text = str(value)
    return repr(text if len(text) <= width else text[:width] + "…")


def show_names(names: Iterable[object], limit: int = 8) -> str:
    """Return names in quotes as a list that stays short however many there are.

    Examples
    --------
    >>> show_names(["a", "b"]), show_names("abcdef", limit=2)
    ("'a' and 'b'", "'a', 'b' and 4 more")
    """
    shown = [show_cell(name) for name in names]
    if len(shown) > limit:
        return f"{', '.join(shown[:limit])} and {len(shown) - limit} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it needs to be.

    Examples
    --------
    >>> count_of(1, "row"), count_of(12000, "cell")
    ('1 row', '12,000 cells')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def closest_names(name: str, available: Sequence[str], limit: int = 3) -> list[str]:
    """Return the available names that look most like `name`, ignoring case and surrounding blanks.

    Examples
    --------
    >>> closest_names("temprature", ["Temperature", "pressure"])
    ['Temperature']
    """
    folded: dict[str, str] = {}
    for candidate in available:
        folded.setdefault(candidate.strip().casefold(), candidate)
    found = difflib.get_close_matches(name.strip().casefold(), list(folded), n=limit, cutoff=0.6)
    return [folded[match] for match in found]


def refuse_repeats(names: Sequence[str], where: str) -> None:
    """Raise an error if a name occurs twice.

    Examples
    --------
    >>> refuse_repeats(["a", "b", "a"], "The table")
    Traceback (most recent call last):
    ...
    errorband.tables.errors.TableError: The table repeats the name 'a', so give each column its own name.
    """
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        noun = "name" if len(repeated) == 1 else "names"
        raise TableError(f"{where} repeats the {noun} {show_names(repeated)}, so give each column its own name.")
