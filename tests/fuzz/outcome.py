"""What became of a draw: fitted, refused or given up in a sentence of ours, or a failure."""

import re
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import errorband

OURS = str(Path(errorband.__file__).parent)
VALIDATION = ("sklearn",)  # its checks of X and y speak for us


class Wrong(Exception):
    """A result that cannot be right."""


def outcome(draw: Callable[[], str]) -> tuple[str, str]:
    """How a draw went, in a word, and what is to be told of a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, module="errorband")  # overflow that nobody expected
        try:
            return draw(), ""
        except (ValueError, TypeError, AttributeError, np.linalg.LinAlgError) as error:
            if told := not_a_sentence_of_ours(error):
                return "failure", told
            return "given up" if isinstance(error, np.linalg.LinAlgError) else "refused", ""
        except Exception as error:
            return "failure", described(error)


def not_a_sentence_of_ours(error: BaseException) -> str:
    """Empty if the error was raised by us (or by scikit-learn's validation), in a sentence, with advice."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error)
    # Python's own complaint about a line of ours comes from the same file, but nobody wrote it.
    ours = last.filename.startswith(OURS) and (last.line or "").startswith("raise ")
    ours = ours or any(f"/{name}/" in last.filename for name in VALIDATION)
    if not ours or not text:
        return described(error)
    advice = re.search(r"\. [A-Z]|, so |; |: | or ", text)
    if isinstance(error, np.linalg.LinAlgError) and not advice:
        return f"no advice: {described(error)}"
    return ""


def described(error: BaseException) -> str:
    """Type, text and the place in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith(OURS)]
    place = ours[-1] if ours else frames[-1]
    return f"{type(error).__name__}: {str(error)[:200]!r} at {Path(place.filename).name}:{place.lineno}"
