"""The search for the basis functions of a model among many candidates, most of which are never looked at closely."""

from typing import NamedTuple

import numpy as np

from errorband.training.columns import Columns, Products
from errorband.training.sequential import LEAST, SequentialBayes
from errorband.training.thinned import thinned
from errorband.training.together import together

FINE = 1e-5  # nats that a change must bring where all candidates can be looked at together
TOLERANCE = 1e-3  # the same where they cannot
ROUGH = 1e-2  # the same where many are needed
ASKING = 0.1  # the same of a candidate that has to be asked for, and of all that were asked for together
BETWEEN = 10  # single changes between two searches for all precisions together, or a third of these if that is more
STEPS = 8  # of such a search
FIRST = 200  # candidates that are looked at together, at first
SOME, MANY = 0.06, 0.2  # shares of these in the model beyond which it is worth trying too many, and many times
ASKED = 100  # candidates that are looked at together with those in the model, later
LESS = 2.0, 2.0, 2.0, 2.0, 1.5, 1.2  # by what the noise is divided in rounds of too many
WORTH_A_ROUND = 1.0  # nats
STRONG = 0.1  # times the precision that would be best for one alone: what is put in has to show that it is not needed


class Settled(NamedTuple):
    """Noise (as that of the columns), precisions of all candidates and log evidence; and how steep it still is."""

    columns: Columns
    precision: np.ndarray
    log_evidence: float
    slope: float


Among = tuple[Products, np.ndarray, float]  # with the noise that was found, precisions, log evidence


def settled(columns: Columns, precision: np.ndarray, learns_noise: bool) -> Settled:
    """Noise, precisions and log evidence where neither a single change nor all precisions together bring more.

    Few of many candidates are worth a look at a time: those in the model and some others have their products computed
    once, and among them changes cost nothing that grows with the rows. Then all candidates are asked, and those that
    would bring most take the place of the others, until none would bring what is worth asking for. Where many are
    needed too many are put in first (:func:`_from_too_many`). A candidate that vanishes at every row with a site takes
    no part.
    """
    precision = np.where(columns.power > 0, precision, np.inf)
    M, begun = len(precision), bool(np.any(np.isfinite(precision)))
    which = _spread(columns, precision)
    tolerance, most = (TOLERANCE, MANY * len(which)) if len(which) < M else (FINE, np.inf)
    found = _settled_among(columns.among(which), precision[which], learns_noise, tolerance, np.inf if begun else most)
    columns, precision = _of_all(columns, which, found)
    in_model = int(np.sum(np.isfinite(precision)))
    if in_model > most:
        tolerance = ROUGH
    if in_model > SOME * FIRST and len(which) < M and not begun:
        quieter = LESS if in_model > most else LESS[:1]
        columns, precision = _from_too_many(columns, precision, learns_noise, quieter)
        which = np.flatnonzero(np.isfinite(precision))
    before = -np.inf
    while len(which) < M:
        asked = _worth_asking(columns, precision, which)
        if len(asked) == 0:
            break
        which = np.union1d(np.flatnonzero(np.isfinite(precision)), asked)
        found = _settled_among(columns.among(which), precision[which], learns_noise, tolerance)
        columns, precision = _of_all(columns, which, found)
        if found[2] < before + ASKING:
            break
        before = found[2]
    if not np.any(np.isfinite(precision)):
        return Settled(columns, precision, found[2], 0.0)
    which = np.flatnonzero(np.isfinite(precision))
    machine = SequentialBayes(columns.among(which), precision[which])
    machine.drop(tolerance)
    few, part, value, slope = together(machine.columns, machine.precision, learns_noise)
    return Settled(*_of_all(columns, which, (few, part)), value, slope)


def _spread(columns: Columns, precision: np.ndarray) -> np.ndarray:
    """Candidates to look at first: those in the model, and some of each kind, whatever the order of the rows.

    A kind is what a candidate has in common with the targets, φᵀb/√(φᵀWφ).
    """
    M = len(precision)
    if M <= FIRST:
        return np.arange(M)
    kind = columns.target / np.sqrt(np.maximum(columns.power, np.finfo(float).tiny))
    even = np.linspace(0, M - 1, FIRST).astype(int)
    return np.union1d(np.flatnonzero(np.isfinite(precision)), np.argsort(kind, kind="stable")[even])


def _of_all(
    columns: Columns, which: np.ndarray, found: Among | tuple[Products, np.ndarray]
) -> tuple[Columns, np.ndarray]:
    """All candidates, with the noise and the precisions that were found among some."""
    precision = np.full(len(columns.power), np.inf)
    precision[which] = found[1]
    return columns.scaled(found[0].sites.scale / columns.sites.scale), precision


def _from_too_many(
    columns: Columns, precision: np.ndarray, learns_noise: bool, less: tuple[float, ...]
) -> tuple[Columns, np.ndarray]:
    """A better start where more than a few are needed: those that would bring most are all put in, and thinned.

    The evidence has many optima, and one that is reached from above is higher than one to which basis functions are
    added one by one. With less noise in the first rounds more stays for the later ones to choose from.
    """
    given, before = columns.sites.scale, -np.inf
    for by in (*less, *(1.0 for _ in less), 1.0, 1.0):
        machine = SequentialBayes(columns, precision)
        value = machine.log_evidence()
        if before > value - WORTH_A_ROUND:
            break
        before = value if by == 1.0 else -np.inf
        gain, best = machine.gains()
        gain[np.isfinite(precision)] = 0.0
        new = np.argsort(-gain, kind="stable")[:ASKED]
        new = new[gain[new] > 0]
        start = precision.copy()
        start[new] = np.maximum(STRONG * best[new], LEAST)
        which = np.flatnonzero(np.isfinite(start))
        columns, precision = _of_all(columns, which, thinned(columns.among(which), start[which], learns_noise, by))
        if not learns_noise:
            columns = columns.scaled(given / columns.sites.scale)
    return columns, precision


def _worth_asking(columns: Columns, precision: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Candidates that would bring most, alone or each in the place of one of the model, but for those looked at."""
    machine = SequentialBayes(columns, precision)
    gains = np.column_stack([machine.gains()[0], machine.exchanges()[0]])
    gains[which] = -np.inf
    if np.max(gains) <= ASKING:
        return np.zeros(0, int)
    some = 1 + ASKED // gains.shape[1]  # for each place: those for one alone are much alike
    best = np.argpartition(-gains, some, axis=0)[:some]
    return np.unique(best[np.take_along_axis(gains, best, axis=0) > 0])


@np.errstate(over="ignore", invalid="ignore")
def _settled_among(
    columns: Products, precision: np.ndarray, learns_noise: bool, tolerance: float, most: float = np.inf
) -> Among:
    """Single changes and searches for all precisions in turn, until neither brings more or the model has too many."""
    value, known = -np.inf, not learns_noise
    while True:
        machine = SequentialBayes(columns, precision)
        changes = machine.run(max(BETWEEN, len(machine.active) // 3), tolerance)
        before, precision, value = value, machine.precision, machine.log_evidence()
        if (changes == 0 and known) or len(machine.active) == 0:
            return columns, precision, value
        columns, precision, value, _ = together(columns, precision, learns_noise, 0.1 * tolerance, STEPS)
        if value < before + 0.1 * tolerance or np.sum(np.isfinite(precision)) > most:
            return columns, precision, value
        known = True
