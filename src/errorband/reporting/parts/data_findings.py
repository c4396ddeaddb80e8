"""Findings about the data of a report: its inputs, its rows, and what of it gives the target away."""

from collections.abc import Sequence

import numpy as np
from sklearn.neighbors import NearestNeighbors

from errorband.effects import PartialDependence
from errorband.inputs import Input
from errorband.reporting.parts.data import LEAST_RELEVANCE, RowNames
from errorband.reporting.parts.findings import Finding
from errorband.reporting.text import count, listing, percent

MAX_NEIGHBOUR_ROWS = 20_000
SIGNIFICANT = 2.0  # standard deviations from no effect
STRAIGHT = 0.02  # of the variance of an effect, which a straight line leaves
LEAK_ROWS, LEAK = 30, 0.995  # an input that alone explains so much of the target, with so many values, is suspicious


def input_findings(
    columns: Sequence[Input], relevance: np.ndarray, significance: np.ndarray | None = None
) -> list[Finding]:
    """Return which inputs have no effect on predictions, or none that stands out from what the model is unsure of.

    A long length-scale alone does not say so: it means a straight line, steep or level, for the prior variance grows
    with it. So an input is without effect where predictions do not follow it, whatever the length-scale.
    """
    least = LEAST_RELEVANCE * max(relevance.max(), 1e-300)
    slight = relevance < least
    doubtful = np.zeros(len(slight), bool) if significance is None else (significance < SIGNIFICANT) & ~slight
    names = np.array([c.name for c in columns], dtype=object)
    if not (slight | doubtful).any() or (slight | doubtful).all():
        return []
    parts = []
    if slight.any():
        parts.append(
            f"Predictions hardly change with {listing(names[slight].tolist())}: by less than "
            f"{percent(LEAST_RELEVANCE)} of what the most relevant input does."
        )
    if doubtful.any():
        parts.append(
            f"What {listing(names[doubtful].tolist())} {'does' if doubtful.sum() == 1 else 'do'} to predictions is "
            "within two standard deviations of nothing."
        )
    it = "it" if (slight | doubtful).sum() == 1 else "them"
    parts.append(f"Leaving {it} out should do no harm.")
    return [Finding("note", "Inputs without effect", " ".join(parts), tuple(names[slight | doubtful]))]


def straight_findings(effects: Sequence[PartialDependence], idle: Sequence[str] = ()) -> list[Finding]:
    """Return which inputs act as straight lines: a line through the average prediction leaves next to nothing.

    Those that are ``idle``, whose effect is none, are left out.
    """
    straight = []
    for e in effects:
        if e.input.name not in idle and not e.discrete and np.ptp(e.curve.mean) > 0:
            line = np.polynomial.Polynomial.fit(e.grid, e.curve.mean, 1)
            left = np.var(e.curve.mean - line(e.grid)) / np.var(e.curve.mean)
            if left < STRAIGHT:
                straight.append(e.input.name)
    if not straight:
        return []
    acts = "acts as a straight line" if len(straight) == 1 else "act as straight lines"
    text = (
        f"{listing(straight)} {acts}, which leaves less than {percent(STRAIGHT)} of the average effect unexplained. "
        "Length-scales far beyond the data say that, and not that the input does not matter."
    )
    return [Finding("note", "Straight lines", text, tuple(straight))]


def row_findings(
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray,
    names: RowNames,
    incomplete: Sequence[object] = (),
) -> list[Finding]:
    """Repeated rows, rows in both parts, and held-out rows beyond the training data.

    Rows that are ``incomplete`` have values that were filled in, which may be those of others.
    """
    found: list[Finding] = []
    spread = np.std(X, axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    if (whole := ~names.among(incomplete)).any():
        X, y, names = X[whole], y[whole], RowNames(names.names[whole], names.told)
    _, member, times = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    repeated = times[member.ravel()] > 1
    whole = np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1]
    copies = np.setdiff1d(np.arange(len(X)), whole)
    if len(copies):
        text = (
            f"{count(len(copies), 'training row')} repeat another one, target and all ({names.listed(copies)}). Copies "
            "are no new information: they make the noise look smaller and bands too narrow. Remove them unless they "
            "were measured anew."
        )
        found.append(Finding("warning", "Repeated rows", text, tuple(names.names[copies])))
    elif repeated.any():
        n = count(int(repeated.sum()), "training row")
        text = f"{n} share all their inputs with another. With noise that is harmless."
        found.append(Finding("note", "Duplicate inputs", text))
    elif 2 <= len(X) <= MAX_NEIGHBOUR_ROWS:
        nearest = NearestNeighbors(n_neighbors=2).fit(X / scale).kneighbors()[0][:, 0]
        close = int(np.sum(nearest < 1e-6))
        if close:
            text = f"{count(close, 'training row')} differ from another by less than a millionth of the inputs' spread."
            found.append(Finding("note", "Near-duplicate inputs", text))
    training = set(_keys(X, scale))
    shared = sum(key in training for key in _keys(X_test, scale))
    if shared:
        text = (
            f"{count(shared, 'held-out row')} {'has' if shared == 1 else 'have'} exactly the inputs of a training row; "
            "the held-out metrics may be better than they would be on new data."
        )
        found.append(Finding("warning", "Training rows among the held-out rows", text))
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    beyond = float(np.mean(np.any((X_test < low - margin) | (X_test > high + margin), axis=1)))
    if beyond > 0.05:
        text = f"{percent(beyond)} of the held-out rows have an input outside the range of the training data."
        found.append(Finding("note", "Extrapolation", text))
    return found


def missing_findings(incomplete: Sequence[object], X_test: np.ndarray, told: str) -> list[Finding]:
    """Which rows of the table have missing cells, and how many of them are among those held out."""
    if not len(incomplete):
        return []
    names, held = [str(v) for v in incomplete], int(np.isnan(X_test).any(axis=1).sum())
    text = (
        f"{count(len(names), 'row')} with missing cells: {listing(names, most=20)}. Their predictions are averaged "
        f"over what the cells may be, so their bands are wider; {count(held, 'of them is', 'of them are')} held out. "
        f"{told}"
    )
    return [Finding("note", "Missing cells", text, tuple(names))]


def leak_findings(X: np.ndarray, y: np.ndarray, columns: Sequence[Input], classes: bool) -> list[Finding]:
    """Return the inputs, of several, that alone give the target away: a copy of it, or something known only later.

    With rows sorted by the input, neighbours have nearly the same target. For numbers, half the mean squared difference
    of neighbours estimates what the input does not explain; for classes, the share of rows whose two neighbours are of
    another class does.
    """
    if len(columns) < 2 or len(y) < LEAK_ROWS:
        return []
    suspects = []
    for column in columns:
        x = column.values(X)
        if len(np.unique(x)) >= LEAK_ROWS and _explained_alone(x, y, classes) > LEAK:
            suspects.append(column.name)
    if not suspects:
        return []
    they = "it" if len(suspects) == 1 else "they"
    text = (
        f"{listing(suspects)} alone tells nearly all of the target. Is {they} computed from the target, or known only "
        f"after it? Then leave {'it' if len(suspects) == 1 else 'them'} out: new rows will not have {they}."
    )
    return [Finding("warning", "An input that gives the target away", text, tuple(suspects))]


def _explained_alone(x: np.ndarray, y: np.ndarray, classes: bool) -> float:
    order = np.argsort(x, kind="stable")
    apart = y[order][1:] != y[order][:-1] if classes else np.diff(y[order]) ** 2
    if classes:
        # A class change between neighbours costs one row at most; frequencies alone would leave `chance` of them.
        share = np.bincount(y) / len(y)
        chance = 1 - float(np.sum(share**2))
        return 1 - float(np.mean(apart)) / chance / 2 if chance > 0.1 else 0.0
    spread = float(np.var(y))
    return 1 - 0.5 * float(np.mean(apart)) / spread if spread > 0 else 0.0


def _keys(X: np.ndarray, scale: np.ndarray) -> list[bytes]:
    """The rows as keys that survive rounding: a model gives its training inputs back only to the last digits."""
    return [row.tobytes() for row in np.ascontiguousarray(np.round(X / scale, 9) + 0.0)]
