"""Ctrl-C raises where it can be caught."""

import gc
import signal
import threading
import time

import pytest

from errorband import interrupts
from errorband.precision import double_precision

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


def test_an_interrupt_in_what_a_finaliser_calls_is_raised_afterwards():
    class Closed:
        def __del__(self):
            press()

    def drop_and_wait():
        closed = Closed()
        del closed
        for _ in range(500):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        drop_and_wait()


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


def press():
    signal.raise_signal(signal.SIGINT)


def test_within_a_computation_a_press_waits_for_a_safe_point():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.held():  # noqa: PT012
        press()
        done.append("what was being computed")
        interrupts.safe_point()
        done.append("what comes next")
    assert done == ["what was being computed"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_end_of_the_outermost_computation_is_a_safe_point():
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with interrupts.held():
            with interrupts.held():
                press()
            done.append("the inner one ended")
        done.append("the outer one ended")
    assert done == ["the inner one ended"]
    with interrupts.held():  # nothing is left of it
        interrupts.safe_point()


def test_a_second_press_is_raised_at_once():
    with pytest.raises(KeyboardInterrupt), interrupts.held():  # noqa: PT012
        press()
        press()
        pytest.fail("not raised")


def test_what_follows_an_interrupt_that_was_caught_knows_of_it():
    with interrupts.held():
        press()
        with pytest.raises(KeyboardInterrupt):
            interrupts.safe_point()
        assert interrupts.happened()
    assert not interrupts.happened()
    with interrupts.held():
        assert not interrupts.happened()


def test_double_precision_is_such_a_computation():
    done = []
    with pytest.raises(KeyboardInterrupt), double_precision():  # noqa: PT012
        press()
        done.append("what was being computed")
    assert done
