"""Numbers and counts as people write them."""

import math
from collections.abc import Sequence
from typing import Any

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MISSING = "–"


def number(value: Any, digits: int = 3, decimals: int | None = None) -> str:
    """A number with so many significant digits, a true minus sign and no computer notation.

    ``decimals`` asks for so many places after the point instead.

    Examples
    --------
    >>> number(1234567.0), number(-0.012345), number(55.99), number(56.0), number(3.2e-9), number(None)
    ('1,234,567', '−0.0123', '56.0', '56', '3.2×10⁻⁹', '–')
    >>> number(-0.0016, decimals=3)
    '−0.002'
    """
    if value is None or not math.isfinite(value := float(value)):
        return MISSING
    if decimals is not None:
        return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if -4 <= exponent < 9:
        places = 0 if value == int(value) else max(0, digits - 1 - exponent)
        text = f"{value:,.{places}f}"
    else:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}×10{str(int(power)).translate(_SUPERSCRIPTS)}"
    return text.replace("-", "−")


def brief(value: float) -> str:
    """A value of the data: four digits at most, no zeros at the end.

    Examples
    --------
    >>> brief(26.9), brief(0.12345), brief(1200.0)
    ('26.9', '0.1235', '1,200')
    """
    text = number(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text and "×" not in text else text


def places_for(scale: float, digits: int = 3) -> int | None:
    """Places after the point that show so many digits of a number of this size; None if it needs a power of ten.

    Examples
    --------
    >>> places_for(208.0), places_for(0.45), places_for(1e-7)
    (0, 3, None)
    """
    if not (math.isfinite(scale) and 1e-4 <= abs(scale) < 1e9):
        return None
    return max(0, digits - 1 - math.floor(math.log10(abs(scale))))


def percent(share: float | None) -> str:
    """A share as a percentage; whole numbers unless it is small or very near to all.

    Examples
    --------
    >>> percent(0.5), percent(0.948), percent(0.9964), percent(0.025), percent(0.03), percent(0.99999)
    ('50 %', '95 %', '99.6 %', '2.5 %', '3 %', 'more than 99.9 %')
    """
    if share is None or not math.isfinite(share):
        return MISSING
    value = 100 * share
    if 99.95 <= value < 100:
        return "more than 99.9 %"
    fine = 0 < abs(value) < 10 or 99 < value < 100
    text = f"{value:.1f}".removesuffix(".0") if fine and abs(value) >= 0.05 else f"{value:.{1 if fine else 0}f}"
    return f"{text} %".replace("-", "−")


def count(n: int, noun: str, plural: str = "") -> str:
    """A count with its noun.

    Examples
    --------
    >>> count(1, "row"), count(1200, "row"), count(0, "iteration")
    ('1 row', '1,200 rows', 'no iterations')
    """
    word = noun if n == 1 else plural or noun + "s"
    return f"{n:,} {word}" if n else f"no {word}"


def duration(seconds: float | None) -> str:
    """A time span in the unit that suits it.

    Examples
    --------
    >>> duration(0.0421), duration(3.21), duration(184)
    ('42 ms', '3.2 s', '3 min 4 s')
    """
    if seconds is None:
        return MISSING
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def listing(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence, the rest counted.

    Examples
    --------
    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c", "d"], most=2)
    ('a', 'a and b', 'a, b and 2 more')
    """
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def shorten(name: str, most: int = 28) -> str:
    """A long name cut in the middle.

    Examples
    --------
    >>> shorten("abcdefghij", most=7)
    'abc…hij'
    """
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"
