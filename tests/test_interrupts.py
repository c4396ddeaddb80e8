"""Ctrl-C raises where it can be caught."""

import gc
import signal
import threading
import time

import pytest

from errorband import interrupts

pytestmark = pytest.mark.usefixtures("interruptible")


def test_an_interrupt_inside_a_collector_callback_is_raised_afterwards():
    def a_gc_callback(phase, info):
        if phase == "start":
            gc.callbacks.remove(a_gc_callback)
            signal.raise_signal(signal.SIGINT)

    def collect_and_wait():
        gc.callbacks.append(a_gc_callback)
        gc.collect()
        for _ in range(500):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        collect_and_wait()


def test_an_interrupt_elsewhere_is_raised_at_once():
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_applications_own_handler_and_other_threads_are_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]

    def elsewhere():
        with interrupts.deferred():
            seen.append("thread")

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen[-1] == "thread"
