"""Ctrl-C at any moment: the best model so far, which says that it was interrupted, or a clean KeyboardInterrupt."""

import contextlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from errorband import LBFGS, GPClassifier, GPRegressor, LeastSquaresGPClassifier, Mixture, interrupts
from errorband.approximations import FITC, IVM
from errorband.estimators import candidates, least_squares_classifier
from errorband.training import few_first, objective, scout

pytestmark = [
    pytest.mark.usefixtures("interruptible"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (60, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)


@pytest.fixture
def press_at(monkeypatch):
    """Press Ctrl-C in the middle of the evaluation with this number."""

    def install(number):
        calls, original = [], objective._unpack

        def unpack(*args):
            calls.append(1)
            if len(calls) == number:
                signal.raise_signal(signal.SIGINT)
            return original(*args)

        monkeypatch.setattr(objective, "_unpack", unpack)
        return calls

    return install


def check_kept(model, data=X):
    assert model.fit_result_.interrupted
    assert not model.fit_result_.converged
    assert "Interrupted" in model.fit_result_.message
    assert np.all(np.isfinite(model.predict(data)))


@pytest.mark.parametrize("number", [2, 5])
def test_the_best_point_is_kept(press_at, number):
    calls = press_at(number)
    check_kept(GPRegressor().fit(X, Y))
    assert len(calls) <= number + 3  # what was in hand, the start that was scouted, and the model at the point kept


@pytest.fixture
def looks(monkeypatch):
    """The number of rows of each evaluation so far."""
    seen, evaluate = [], objective.Objective.evaluate
    monkeypatch.setattr(
        objective.Objective, "evaluate", lambda self, *given: seen.append(len(self.data.y)) or evaluate(self, *given)
    )
    return seen


def test_a_press_at_the_first_look_of_a_later_stage_keeps_what_was_found(press_at, looks, monkeypatch):
    """Of the scouts, after length-scales that are equal; and of the search on all rows, after the scouts."""
    some_rows = scout.some_rows
    monkeypatch.setattr(scout, "some_rows", lambda data, settings: some_rows(data, settings, 30))
    inputs = np.column_stack([X, rng.normal(size=(60, 2))])
    GPRegressor(random_state=0).fit(inputs, Y)
    assert looks[0] == 60  # with equal length-scales
    first_scout = looks.index(30)
    for number in (first_scout, first_scout + looks[first_scout:].index(60)):
        press_at(number + 1)
        check_kept(GPRegressor(random_state=0).fit(inputs, Y), inputs)


def test_a_press_at_the_first_look_after_few_rows_keeps_what_they_found(press_at, looks, monkeypatch):
    monkeypatch.setattr(few_first, "ROWS", 30)
    GPClassifier(random_state=0).fit(X, Y > 0)
    press_at(looks.index(60) + 1)
    model = GPClassifier(random_state=0).fit(X, Y > 0)
    assert model.fit_result_.interrupted
    assert model.score(X, Y > 0) > 0.9


def test_an_interrupt_before_there_is_a_point_is_raised(press_at):
    press_at(1)
    with pytest.raises(KeyboardInterrupt):
        GPRegressor().fit(X, Y)


def test_an_interrupt_after_the_winner_converged_is_told(press_at):
    """The first of several starts may have won; the interrupt ended a later one."""
    alone = GPRegressor().fit(X, Y)
    press_at(alone.fit_result_.evaluations + 3)
    model = GPRegressor(n_restarts=4, random_state=0).fit(X, Y)
    check_kept(model)
    assert len(model.fit_result_.starts) < 5
    assert model.log_evidence_ >= alone.log_evidence_ - 1e-6


def test_one_press_ends_the_search_of_every_class(press_at):
    labels = np.digitize(X[:, 0], [-1.0, 1.0])
    calls = press_at(3)
    model = GPClassifier(multi_class="one_vs_rest", n_restarts=2, random_state=0).fit(X, labels)
    assert len(model.estimators_) == 3
    assert all(result.interrupted for result in model.fit_result_)
    assert len(calls) < 15
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_one_press_ends_all_least_squares(monkeypatch):
    labels, calls, original = np.digitize(X[:, 0], [-1.0, 1.0]), [], least_squares_classifier._left_out

    def left_out(*args):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return original(*args)

    monkeypatch.setattr(least_squares_classifier, "_left_out", left_out)
    model = LeastSquaresGPClassifier().fit(X, labels)
    assert all(result.interrupted for result in model.fit_result_)
    assert len(calls) < 10
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("approximation", [FITC("auto"), IVM(20), FITC(10)])
@pytest.mark.parametrize("number", [4, 9])
def test_strategies_keep_what_they_have(press_at, approximation, number):
    press_at(number)
    check_kept(GPRegressor(approximation=approximation, random_state=0).fit(X, Y))


def test_one_press_ends_a_mixture(press_at):
    """The member in hand is kept as it is, and those that were to come are left out."""
    model = GPRegressor(approximation=FITC(10), optimizer=LBFGS(max_iter=3))
    calls = press_at(np.inf)
    Mixture(model, n=1, random_state=0).fit(X, Y)
    press_at(len(calls) + 4)
    mixture = Mixture(model, n=4, random_state=0).fit(X, Y)
    check_kept(mixture)
    assert len(mixture.members_of_mixture_) == 2
    assert not mixture.members_of_mixture_[0].fit_result_.interrupted


@pytest.mark.parametrize(("rows", "few"), [(300, 600), (30, 40)])
@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor])
def test_a_press_at_any_look_of_a_choice_keeps_what_was_found(press_at, looks, monkeypatch, kind, rows, few):
    """Of candidates on few rows or on all, of the winner on all rows, and of a mixture's members that go on."""
    monkeypatch.setattr(candidates, "ROWS", rows)
    monkeypatch.setattr(candidates, "FEW", few)
    monkeypatch.setattr(candidates, "compiled_ahead", lambda tasks: contextlib.nullcontext())
    targets = Y > 0 if kind is GPClassifier else Y
    model = kind("auto", random_state=0).fit(X, targets)
    total, tried = len(looks), len(model.candidates_.name)
    for number in np.linspace(2, total, 8).astype(int):
        press_at(number)
        with pytest.warns(ConvergenceWarning, match="Interrupted"):
            model = kind("auto", random_state=0).fit(X, targets)
        check_kept(model)
        assert len(model.candidates_.name) <= tried


def test_a_press_while_the_posterior_is_made_is_raised_with_the_model_fitted(press_at):
    model = GPRegressor(optimizer=None)
    press_at(1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert np.all(np.isfinite(model.predict(X)))
    assert not interrupts.happened()


# ------------------------------------------------------------------------------------------------ at random moments
# Fits of one family after the other until the process is told to stop; an interrupt each, at a random moment.
FAMILIES = """
import random, signal, sys, threading, time, warnings
import numpy as np
from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, IVM, PIC, VFE
from errorband.likelihoods import Poisson, StudentT
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)
seed, trials = int(sys.argv[1]), int(sys.argv[2])
rng, at = np.random.default_rng(seed), random.Random(seed)
FAMILIES = {
    "exact": lambda: GPRegressor(n_restarts=20, random_state=0),
    "FITC": lambda: GPRegressor(approximation=FITC(10), n_restarts=10, random_state=0),
    "auto": lambda: GPRegressor(approximation=VFE("auto"), n_restarts=3, random_state=0),
    "PIC": lambda: GPRegressor(approximation=PIC(8), random_state=0),
    "robust": lambda: GPRegressor(likelihood=StudentT(), random_state=0),
    "counts": lambda: GPRegressor(likelihood=Poisson(), random_state=0),
    "EP": lambda: GPClassifier(random_state=0),
    "one_vs_rest": lambda: GPClassifier(multi_class="one_vs_rest", random_state=0),
    "softmax": lambda: GPClassifier(random_state=0),
    "IVM": lambda: GPClassifier(approximation=IVM(10), random_state=0),
    "choice": lambda: GPClassifier("auto", random_state=0),
    "choices": lambda: GPRegressor("auto", likelihood="auto", random_state=0),
}
for trial in range(trials):
    name = at.choice(list(FAMILIES))
    n = at.choice([40, 70, 90]) if at.random() < 0.7 else at.randrange(30, 120)  # known programs, and new ones
    X = rng.uniform(-3, 3, (n, 1))
    f = np.sin(2 * X[:, 0])
    classes = np.digitize(X[:, 0], [-1.0, 1.0]) if name in ("one_vs_rest", "softmax") else (f > 0).astype(int)
    y = {"counts": rng.poisson(np.exp(f))}.get(name, f + 0.1 * rng.normal(size=n))
    model = FAMILIES[name]()
    y = classes if isinstance(model, GPClassifier) else y
    timer = threading.Timer(at.uniform(0.0, at.choice([0.1, 1.0, 4.0])), signal.raise_signal, [signal.SIGINT])
    outcome = "finished"
    try:
        timer.start()
        try:
            model.fit(X, y)
            results = model.fit_result_ if isinstance(model.fit_result_, list) else [model.fit_result_]
            outcome = "kept" if any(r.interrupted for r in results) else outcome
        finally:
            timer.cancel()
            timer.join()
    except KeyboardInterrupt:
        outcome = "raised"
    if outcome != "raised":
        assert np.all(np.isfinite(model.predict(X))), name
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print(name, outcome, flush=True)
"""


def interrupted_at_random(seed, trials, timeout):
    """Outcomes of so many fits in a process of their own, and that it ended well."""
    command = [sys.executable, "-c", FAMILIES, str(seed), str(trials)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    assert done.stderr == ""
    outcomes = [line.split() for line in done.stdout.splitlines()]
    assert len(outcomes) == trials
    return outcomes


def test_interrupts_at_random_moments():
    interrupted_at_random(0, 6, 180)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_interrupts_at_random_moments(seed):
    interrupted_at_random(seed, 50, 1200)
