"""What can go wrong, as exit codes and single sentences. Nothing heavy is imported here."""

import atexit
import contextlib
import enum
import errno
import functools
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import typer

from errorband import interrupts

EXIT_CODES = """0 all is well; a search that stopped early is a warning, not an error.

1 something unexpected; --debug shows where.

2 the command was called in a wrong way.

3 the table cannot be used as it is.

4 the model file cannot be read.

5 the model cannot be fitted to these numbers.

6 the disk is full or cannot be written.

130 interrupted before there was a model to keep."""


class ExitCode(enum.IntEnum):
    """Exit codes of the tool, listed in ``errorband --help``."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    TABLE = 3
    MODEL_FILE = 4
    FIT = 5
    DISK = 6
    INTERRUPTED = 130


class Problem(Exception):
    """A sentence for the user, and the exit code that goes with it."""

    def __init__(self, sentence: str, code: ExitCode):
        super().__init__(sentence)
        self.code = code


# By name, because importing the classes would import the numerical libraries.
_CODES = {"TableError": ExitCode.TABLE, "ModelFileError": ExitCode.MODEL_FILE, "CannotWrite": ExitCode.DISK}


# What an operating system says of a disk that takes no more.
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that every failure is one sentence and an exit code; ``debug=True`` adds the traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with plain_warnings(bool(kwargs.get("quiet"))):
                command(*args, **kwargs)
        except (KeyboardInterrupt, Exception) as error:
            if _belongs_to_typer(error) or isinstance(error, BrokenPipeError):
                raise
            if kwargs.get("debug"):
                traceback.print_exc()
            sentence, code = explain(error)
            say_error(sentence)
            raise typer.Exit(int(code)) from None

    return run


@contextlib.contextmanager
def plain_warnings(quiet: bool) -> Iterator[None]:
    """Within this context a warning that nobody collects is a sentence on standard error: no path, no line of code."""

    def show(message: Warning | str, *where: Any) -> None:
        if not quiet:
            typer.echo(f"Warning: {one_sentence(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def explain(error: BaseException) -> tuple[str, ExitCode]:
    """The sentence and the exit code for an exception."""
    if isinstance(error, Problem):
        return str(error), error.code
    for cls in type(error).__mro__:
        if cls.__name__ in _CODES:
            return str(error), _CODES[cls.__name__]
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "Interrupted before there was a model, so nothing was written.", ExitCode.INTERRUPTED
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("errorband"):
        return f"The package {error.name} is missing, so run: pip install {error.name}.", ExitCode.USAGE
    if isinstance(error, MemoryError):
        return "There is not enough memory for so many rows, so lower --max-rows.", ExitCode.FIT
    if isinstance(error, OSError) and error.errno in _DISK:
        return f"The disk cannot be written ({error.strerror}), so free or mount it.", ExitCode.DISK
    told = one_sentence(str(error)).rstrip(".") or "no details"
    return (
        f"Something unexpected happened ({type(error).__name__}: {told}), so run again with --debug and report it.",
        ExitCode.UNEXPECTED,
    )


def one_sentence(text: str) -> str:
    """Several sentences or lines as one.

    Examples
    --------
    >>> one_sentence("X is too large. Rescale it.")
    'X is too large; rescale it.'
    """
    text = " ".join(text.split())
    return re.sub(r"(?<=[^.!?\s])[.!?] ([A-Z])([a-z ])", lambda m: f"; {_lowered(m[1], m[2])}", text)


def _lowered(first: str, second: str) -> str:
    return (first if second == " " and first != "A" else first.lower()) + second


def say_error(sentence: str) -> None:
    """One line on standard error."""
    typer.echo(f"Error: {one_sentence(sentence)}", err=True)


def _belongs_to_typer(error: BaseException) -> bool:
    return isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message")


class OneSentenceGroup(typer.core.TyperGroup):  # pyright: ignore[reportAttributeAccessIssue]
    """Reports a wrong call of the command in one sentence too, instead of a box."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the arguments."""
        with _aborted():
            return super().make_context(*args, **extra)

    def invoke(self, *args: Any, **extra: Any) -> Any:
        """Read the arguments of the command asked for, and run it."""
        with _aborted():
            return super().invoke(*args, **extra)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command line and leave with its exit code."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            with interrupts.deferred():
                code = super().main(*args, standalone_mode=False, **extra)
        except (typer.Abort, KeyboardInterrupt):
            say_error("Interrupted before there was a model, so nothing was written.")
            code = ExitCode.INTERRUPTED
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            if type(error).__name__ != "NoArgsIsHelpError":
                told = error.format_message().strip().rstrip(".")  # pyright: ignore[reportAttributeAccessIssue]
                told = re.sub(r"[.;]? *[Dd]id you mean (.*?)\?$", r" (perhaps \1)", told)
                say_error(f"{told}, so see '{_asked_for_help(error)}'.")
            code = ExitCode.USAGE
        # Nothing is left to be interrupted: what comes now is the interpreter's own end.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        sys.exit(int(code) if isinstance(code, int) else 0)


@contextlib.contextmanager
def _aborted() -> Iterator[None]:
    """Let Ctrl-C before or after a command reach :meth:`OneSentenceGroup.main`; Typer ends in silence."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Abort from None


def _asked_for_help(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else 'errorband'} --help"
