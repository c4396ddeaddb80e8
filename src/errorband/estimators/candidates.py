"""``kernel="auto"`` and ``likelihood="auto"``: a short list of candidates, each fitted to some rows; the best is kept.

Kernels come first, with the likelihood that was given or the first of the list; then likelihoods, with the kernel that
won. Of the likelihoods only those are fitted that the leave-one-out residuals of the first ask for. A search on all
rows, or with a kernel of the form of one before it, starts from what was found there. On all rows, if they are many
more, the winner meets the first of the list again: many rows tell what few do not, and a search on them may fail.

Classifiers mix the candidates: labels say so little that several kernels go with them, and each is right somewhere. The
winner is what the mixture shows.
"""

import contextlib
import copy
import dataclasses
import functools
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from errorband import interrupts
from errorband.estimators.stacking import stacked
from errorband.linalg import single_blas_thread
from errorband.training.lbfgs import LBFGS, SETTLE, warn_if_not_converged

AUTO = "auto"
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)  # of a fit

# Rows, drawn at random, that candidates are fitted to.
ROWS = 300

# With so many rows at most it takes longer to compile a search on all of them than to do it; members of a mixture are
# all fitted to all rows then.
FEW = 600

# Iterations with all rows for members of a mixture that learned from fewer: most of what these know comes first.
FURTHER = 8

# With more than twice the rows that candidates saw, and at most so many, the winner meets the first candidate on all of
# them, which takes the time of another fit.
MOST = 2000
ON_ALL = "all rows"  # in the place of an argument, for these two

# Scores that differ by less, in nats, are the same.
SAME = 0.1


# Of a rough kernel two smoother ones, the smoothest first.
SMOOTHER = {"matern12+linear": ("matern52+linear", "matern32+linear")}


@dataclasses.dataclass(frozen=True)
class Candidates:
    """What ``"auto"`` chose from. ``print(model.candidates_)`` shows it as a table.

    Attributes
    ----------
    argument, name : tuples of str
        What each candidate was for ("kernel", "likelihood"), and its name, in the order they were tried. For "all rows"
        the first candidate and the winner, if they met there.
    log_evidence : tuple of float
        Log evidence of each; −∞ for one that could not be fitted.
    score : tuple of float
        Log evidence less ½ log n for each learned number, with what learned bands add to it: by this they are compared.
    loo : tuple of float
        Mean leave-one-out log density.
    n_rows : tuple of int
        How many rows each was fitted to; those for one argument saw the same ones.
    seconds : tuple of float
    chosen : tuple of bool
        Whether it is what the model has, or shows where it is a mixture.
    share : tuple of float
        Of each in a mixture, which classifiers have; empty if the one chosen is all.
    """

    argument: tuple[str, ...]
    name: tuple[str, ...]
    log_evidence: tuple[float, ...]
    score: tuple[float, ...]
    loo: tuple[float, ...]
    n_rows: tuple[int, ...]
    seconds: tuple[float, ...]
    chosen: tuple[bool, ...]
    share: tuple[float, ...] = ()

    def winners(self) -> dict[str, str]:
        """The name that was chosen for each argument."""
        columns = zip(self.argument, self.name, self.chosen, strict=True)
        return {argument: name for argument, name, kept in columns if kept and argument != ON_ALL}

    def __str__(self) -> str:
        names = [f"{argument} {name}" for argument, name in zip(self.argument, self.name, strict=True)]
        width = max(map(len, names))
        head = f"  {'candidate':{width}} {'rows':>5} {'log evidence':>13} {'score':>10} {'LOO':>8} {'seconds':>8}"
        lines = [head + f" {'share':>6}" * bool(self.share)]
        columns = zip(
            names, self.n_rows, self.log_evidence, self.score, self.loo, self.seconds, self.chosen, strict=True
        )
        for i, (name, n, evidence, score, loo, seconds, kept) in enumerate(columns):
            mark, share = "*" if kept else " ", f" {self.share[i]:6.2f}" if self.share else ""
            told = f"{n:5d} {evidence:13.2f} {score:10.2f} {loo:8.3f} {seconds:8.1f}{share}"
            lines.append(f"{mark} {name:{width}} {told}")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True, eq=False)
class _Fit:
    """A candidate, fitted; ``model`` is None if that failed."""

    argument: str
    name: str
    model: Any
    log_evidence: float
    score: float
    loo: np.ndarray
    seconds: float


def is_auto(argument: Any) -> bool:
    """Whether an argument is left to a choice among candidates."""
    return isinstance(argument, str) and argument == AUTO


def fit_best(
    estimator: Any, X: Any, y: Any, stages: dict[str, tuple[str, ...]], given: dict[str, Any]
) -> tuple[Any, Candidates]:
    """A copy of the estimator with the best candidate in the place of each "auto", fitted to all rows; and the table.

    Parameters
    ----------
    estimator : GPRegressor or GPClassifier
    X, y : arrays
        All rows.
    stages : dict
        For each argument that is "auto" the names of the candidates, the one to begin with first.
    given : dict
        Further arguments of ``fit``: an array with an entry for each row, or None.
    """
    y = np.asarray(y)
    n = len(y) if len(y) <= (FEW if estimator._mixes_candidates else ROWS) else ROWS
    some, few = _drawn(estimator, n, y, given)
    best = {argument: names[0] for argument, names in stages.items()}
    bands = bool(getattr(estimator, "calibrate", False))
    rest = [_with(estimator, best | {"kernel": name}, []) for name in stages.get("kernel", ())[1:]]
    ahead = [functools.partial(_evaluate, model, _rows(X, some), y[some], few) for model in rest]
    if n < len(y) <= FEW:
        ahead.append(functools.partial(_evaluate, _with(estimator, best, []), X, y, given))
    fits, kept = [], []

    def fitted(argument: str, name: str, stage: list[_Fit]) -> _Fit:
        model = _with(estimator, best | {argument: name}, [*fits, *stage], whole=n == len(y))
        return _fitted(model, argument, name, _rows(X, some), y[some], few, bands)

    with compiled_ahead(ahead):
        for argument, names in stages.items():
            # The first has been fitted with what won before.
            known = [dataclasses.replace(f, argument=argument, name=names[0], seconds=0.0) for f in kept[-1:]]
            worth = functools.partial(estimator._worth_trying, argument)
            stage = _in_turn(names[len(known) :], known, worth, functools.partial(fitted, argument))
            kept.append(chosen(stage))
            best[argument] = kept[-1].name
            fits += stage
    whole, finals, heard, shares = kept[-1].model, [], [], ()
    mixing = estimator._mixes_candidates and len(y) <= MOST and whole is not None and is_plain(whole)
    if n < len(y) or whole is None:
        first = {argument: names[0] for argument, names in stages.items()}
        rivals = [(best, kept[-1:])]
        if best != first and 2 * n < len(y) <= MOST:
            rivals.insert(0, (first, []))  # searched afresh: few rows may lead away from what all of them know
        try:
            if whole is None or not interrupts.happened():
                whole, best, finals = _on_all_rows(estimator, rivals[:1] if mixing else rivals, X, y, given, bands)
                heard = [] if finals else [m.fit_result_ for m in whole.members_]
        except KeyboardInterrupt:
            if whole is None:
                raise
            interrupts.caught()
        if whole is kept[-1].model:
            whole = whole.condition_on(X, y, **given)
    if mixing and not interrupts.happened():
        try:
            whole, shares = _stacked(whole, fits, tuple(stages), n, X, y, given)
        except KeyboardInterrupt:
            interrupts.caught()
    _tell(whole, heard)
    return whole, dataclasses.replace(_table([*fits, *finals], best, n, len(y)), share=shares)


def _in_turn(
    names: Sequence[str],
    stage: list[_Fit],
    worth: Callable[[str, Any], bool],
    fitted: Callable[[str, list[_Fit]], _Fit],
) -> list[_Fit]:
    """A stage with a fit of each of these that is worth one, until Ctrl-C."""
    try:
        for name in names:
            if stage and interrupts.happened():
                break
            if too_rough(name, stage):
                continue
            if not stage or stage[0].model is None or worth(name, stage[0].model):
                stage.append(fitted(name, stage))
    except KeyboardInterrupt:
        if not stage:
            raise
        interrupts.caught()
    return stage


def _tell(model: Any, heard: list[Any]) -> None:
    """Warn of searches that did not converge, but for results of which that was ``heard``, or that Ctrl-C cut short."""
    for member in (m for m in model.members_ if m.fit_result_ is not None):
        if interrupts.happened():
            member.fit_result_ = member.fit_result_.cut_short()
        if all(member.fit_result_ is not result for result in heard):
            warn_if_not_converged(member.fit_result_)


def is_plain(model: Any) -> bool:
    """Whether a model has all rows and one Gaussian posterior, so that it can be mixed and rows left out cheaply."""
    sampled = getattr(model.fit_result_, "draws", None) is not None
    approximated = model._model.approximation.strategies or any(l.features is not None for l in model._model.latents)
    return not sampled and not approximated


def _stacked(
    whole: Any, tried: list[_Fit], arguments: tuple[str, ...], n: int, X: Any, y: np.ndarray, given: dict[str, Any]
) -> tuple[Any, tuple[float, ...]]:
    """A model mixed with all others that help to predict rows left out; and the share of each that was tried.

    Those that were fitted to n of the rows are conditioned on all, as the model sees them; who has a share then goes on
    with its search, and shares are found again.
    """

    def choice(model: Any) -> tuple[str, ...]:
        return tuple(getattr(model, argument) for argument in arguments)

    members = {choice(whole): whole}
    for model in (copy.copy(f.model) for f in tried if f.model is not None and choice(f.model) not in members):
        model.scaling_ = whole.scaling_  # members see the same inputs
        with warnings.catch_warnings(), contextlib.suppress(*FAILURES):
            warnings.simplefilter("ignore")  # a member that did not converge is judged by how it predicts
            members[choice(model)] = model if n == len(y) else model.condition_on(X, y, **given)
    weights = given.get("sample_weight")
    weights = None if weights is None else np.asarray(weights)[np.asarray(weights) > 0]
    mixture, shares = stacked(list(members.values()), weights)
    if n < len(y) and np.any(shares[1:]):
        for name, share in zip(list(members), shares, strict=True):
            if share > 0 and name != choice(whole) and not interrupts.happened():
                with contextlib.suppress(*FAILURES):
                    members[name] = _gone_on(members[name], len(y) / n, X, y, given)
        mixture, shares = stacked(list(members.values()), weights)
    last = {choice(f.model): i for i, f in enumerate(tried) if f.model is not None}  # where its share is told
    told = {last[name]: float(share) for name, share in zip(members, shares, strict=True) if name in last}
    return mixture, tuple(told.get(i, 0.0) for i in range(len(tried)))


def _gone_on(model: Any, times: float, X: Any, y: np.ndarray, given: dict[str, Any]) -> Any:
    """A member that learned from few rows, and has been conditioned on so many times as many, after a search on these.

    Whether length-scales differ is not asked again.
    """
    if not isinstance(model.optimizer, LBFGS):  # nothing was searched for
        return model
    again: Any = clone(model)
    most = min(model.optimizer.max_iter, FURTHER)
    again.set_params(optimizer=dataclasses.replace(model.optimizer, max_iter=most))
    again._fitted_before, again._goes_on = [model], True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again.fit(X, y, **given)
    again.fit_result_ = again.fit_result_.alike_as(model.fit_result_, times)
    again.scaling_ = model.scaling_  # the same, of the same rows: members share it
    return again


def _on_all_rows(
    estimator: Any, rivals: list[tuple[dict[str, str], list[_Fit]]], X: Any, y: np.ndarray, given: dict, bands: bool
) -> tuple[Any, dict[str, str], list[_Fit]]:
    """The best of some choices of names on all rows, fitted; its names; and if there are several the fits of all."""
    fits: list[_Fit] = []
    try:
        for names, before in rivals if len(rivals) > 1 else ():
            if not fits or not interrupts.happened():
                model = _with(estimator, names, before)
                fits.append(_fitted(model, ON_ALL, ", ".join(names.values()), X, y, given, bands))
    except KeyboardInterrupt:
        if not fits:
            raise
        interrupts.caught()
    best = fits.index(chosen(fits)) if fits else 0
    names, before = rivals[best]
    if fits and fits[best].model is not None:
        return fits[best].model, names, fits
    return _learned(_with(estimator, names, before), X, y, given), names, fits


def _table(fits: list[_Fit], best: dict[str, str], n: int, n_all: int) -> Candidates:
    """The table of these candidates, of which those named ``best`` were taken."""
    taken = best | {ON_ALL: ", ".join(best.values())}
    return Candidates(
        argument=tuple(f.argument for f in fits),
        name=tuple(f.name for f in fits),
        log_evidence=tuple(f.log_evidence for f in fits),
        score=tuple(f.score for f in fits),
        loo=tuple(float(np.mean(f.loo)) for f in fits),
        n_rows=tuple(n_all if f.argument == ON_ALL else n for f in fits),
        seconds=tuple(f.seconds for f in fits),
        chosen=tuple(f.name == taken[f.argument] for f in fits),
    )


@contextlib.contextmanager
def compiled_ahead(tasks: Sequence[Callable[[], Any]]) -> Iterator[None]:
    """Do these, so that JAX compiles what they need, while something else is searched for: in a thread of its own.

    Two threads must not both tell BLAS how many threads it has, so there is one throughout.
    """
    over = threading.Event()

    def do() -> None:
        for task in tasks:
            with contextlib.suppress(Exception):  # whatever is wrong with one is said when it is fitted
                if not over.is_set():
                    task()

    thread = threading.Thread(target=do)
    with single_blas_thread():
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _evaluate(model: Any, X: Any, y: np.ndarray, given: dict[str, Any]) -> None:
    objective = model.objective(X, y, **given)
    objective.evaluate(objective.theta0)


def concluded_ahead(model: Any, X: Any, y: np.ndarray, given: dict[str, Any]) -> AbstractContextManager[None]:
    """Let JAX compile what a model needs to be conditioned on these rows while it is fitted to others.

    The programs of posteriors and of sweeps are those of any kernel, so they serve whatever "auto" chooses. With many
    rows the time is in the sweeps themselves, and nothing is done.
    """
    if len(y) > FEW or not hasattr(model, "objective"):
        return contextlib.nullcontext()

    def conclude() -> None:
        fresh: Any = clone(model)
        objective = fresh.objective(X, y, **given)
        objective.conclude(objective.theta0)

    return compiled_ahead([conclude])


def _with(estimator: Any, arguments: dict[str, str], before: list[_Fit], whole: bool = True) -> Any:
    """The estimator with these arguments, to be searched from what those before found; for all rows, or for some."""
    model: Any = clone(estimator)
    model.set_params(**arguments)
    if not whole:  # it is compared, does not predict, and its search is gone on with
        trainer = model._trainer()
        brief = dataclasses.replace(trainer, settle=SETTLE) if isinstance(trainer, LBFGS) else trainer
        model.set_params(optimizer=brief)
    if not whole or model._mixes_candidates:  # a mixture is calibrated as a whole
        model.calibrate = False
    if found := [f.model for f in before if hasattr(f.model, "_model")]:
        model._fitted_before = found
    return model


def _learned(model: Any, X: Any, y: np.ndarray, given: dict[str, Any]) -> Any:
    """The model, fitted; with hyperparameters of some rows where those of all would take minutes."""
    n = model._rows_to_search(len(y))
    if n == len(y):
        return model.fit(X, y, **given)
    some, few = _drawn(model, n, y, given)
    return model.fit(_rows(X, some), y[some], **few).condition_on(X, y, **given)


def _drawn(estimator: Any, n: int, y: np.ndarray, given: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Positions of n rows, drawn at random, and what was given of them."""
    some = np.sort(check_random_state(estimator.random_state).permutation(len(y))[:n])
    return some, {name: None if values is None else np.asarray(values)[some] for name, values in given.items()}


def _fitted(model: Any, argument: str, name: str, X: Any, y: np.ndarray, given: dict[str, Any], bands: bool) -> _Fit:
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate that did not converge is judged by where it got to
            model = _learned(model, X, y, given)
            loo, added = model._judged_by_rows_left_out(bands)
    except FAILURES:
        return _Fit(argument, name, None, -np.inf, -np.inf, np.full(len(y), -np.inf), 0.0)
    evidence = float(model.log_evidence_)
    score = evidence + added - sum(m.fit_result_.spent(len(y)) for m in model.members_ if m.fit_result_ is not None)
    return _Fit(argument, name, model, evidence, score, loo, time.perf_counter() - began)


def too_rough(name: str, stage: list[_Fit]) -> bool:
    """Whether a kernel is rougher than one that was itself too rough: that lost evidence, and left rows out worse."""
    tried = {f.name: f for f in stage}
    if not all(other in tried for other in SMOOTHER.get(name, (name,))):
        return False
    smooth, rough = (tried[other] for other in SMOOTHER[name])
    return rough.log_evidence < smooth.log_evidence - SAME and float(np.mean(rough.loo)) < float(np.mean(smooth.loo))


def _rows(X: Any, which: np.ndarray) -> Any:
    """Some rows of a table: a frame stays one."""
    if hasattr(X, "iloc"):
        return X.iloc[which]
    return X[which] if hasattr(X, "shape") else np.asarray(X)[which]


def chosen(stage: list[_Fit]) -> _Fit:
    """The best score, unless another is better by leave-one-out log density, by more than two standard errors.

    Only what predicts rows left out as well as the first, the default, is in question. The first of those with the same
    score, to what a search leaves open.
    """
    first = stage[0]
    rivals = [f for f in stage if f is first or not np.mean(f.loo) < np.mean(first.loo)]
    highest = max(f.score for f in rivals)
    best = next(f for f in rivals if f.score >= highest - SAME)
    if best.model is None:
        return first
    for other in sorted((f for f in rivals if f.model is not None), key=lambda f: -f.score):
        gain = other.loo - best.loo
        if np.mean(gain) > 2 * np.std(gain) / np.sqrt(len(gain)):
            best = other
    return best
