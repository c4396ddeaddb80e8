"""Ctrl-C that is never lost."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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


def _interrupt(number: int, frame: FrameType | None) -> None:
    if frame is not None and _forgets_exceptions(frame.f_code.co_name):
        threading.Timer(0.01, signal.raise_signal, [number]).start()
        return
    raise KeyboardInterrupt


def _forgets_exceptions(function: str) -> bool:
    return function == "__del__" or function.endswith("gc_callback")
