"""Ctrl-C that is never lost, and that never strikes compiled code.

Python raises KeyboardInterrupt between any two instructions: in the middle of a compilation, which can crash the
interpreter later, or between a function that used an array up and the line that stores its successor. So while our
own computations run, a press is noted and raised at the next *safe point*: where :func:`safe_point` is called, between
two evaluations or two chunks of rows, or where the computation ends.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class _Presses:
    """What is known of Ctrl-C in the main thread, the only one that gets signals."""

    blocks = 0  # of `held` that are open, one inside the other
    waiting = False  # pressed, and not raised yet
    raised = False  # since the outermost block was opened; what had been found was kept


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Within this context Ctrl-C raises KeyboardInterrupt where it can be caught.

    Python prints and forgets an exception that is raised inside a finaliser or a callback of the garbage collector,
    and JAX has one that runs often; an interrupt that falls there is raised again a moment later. A handler that an
    application has installed is left alone, as are threads, which get no signals.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Within this context Ctrl-C waits for a safe point, and the end of the outermost such context is one.

    A second press while the first waits is raised at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with deferred():
        outer = _Presses.blocks
        if outer == 0:
            _Presses.waiting = _Presses.raised = False
        _Presses.blocks = outer + 1
        try:
            yield
        finally:
            _Presses.blocks = outer
            if outer == 0:
                safe_point()


def safe_point() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since the last safe point; nothing is half done here."""
    if _Presses.waiting and threading.current_thread() is threading.main_thread():
        _Presses.waiting, _Presses.raised = False, True
        raise KeyboardInterrupt


def caught() -> None:
    """Say that a KeyboardInterrupt was caught: what follows should be brief, and say what it is."""
    _Presses.raised = True


def happened() -> bool:
    """Whether Ctrl-C was raised within the outermost :func:`held` that is open."""
    return _Presses.raised and _Presses.blocks > 0 and threading.current_thread() is threading.main_thread()


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _Presses.blocks > 0 and not _Presses.waiting:
        _Presses.waiting = True
        return
    if _forgets_exceptions(frame):
        threading.Timer(0.01, signal.raise_signal, [number]).start()
        return
    _Presses.waiting = False
    raise KeyboardInterrupt


def _forgets_exceptions(frame: FrameType | None) -> bool:
    """Whether a finaliser or a callback of the collector runs here, or called what does."""
    while frame is not None:
        name = frame.f_code.co_name
        if name == "__del__" or name.endswith("gc_callback"):
            return True
        frame = frame.f_back
    return False
