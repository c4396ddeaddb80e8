"""HTML elements from strings, escaped unless they are markup already."""

import html
from collections.abc import Iterable
from typing import Any


class Html(str):
    """Text that is markup already; every other string is escaped."""


def el(tag: str, *children: Any, **attributes: Any) -> Html:
    """An element. Attribute names lose a trailing underscore, and other underscores become hyphens.

    Examples
    --------
    >>> el("p", "a < b", el("b", "!"), class_="lead")
    '<p class="lead">a &lt; b<b>!</b></p>'
    """
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key}="{html.escape(str(value))}"' for key, value in named.items())
    return Html(f"<{tag}{written}>{join(children)}</{tag}>")


def join(children: Iterable[Any]) -> Html:
    """Children one after the other: markup as it is, everything else escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def escape(value: Any) -> str:
    """Text as it may stand in a page, with a thin space before the per cent sign that does not break."""
    return html.escape(str(value), quote=False).replace(" %", "\u202f%")
