"""Choice of the approximation and of the rows for a fit, from the number of rows, the time budget and the options.

Nothing here depends on how fast the machine is, so that a seed gives the same model on every one.
"""

import dataclasses
from typing import Any

import numpy as np

from errorband.approximations import APPROXIMATIONS, FITC, WeightSpace
from errorband.cli.failures import ExitCode, Problem
from errorband.estimators import GPClassifier, GPRegressor
from errorband.estimators.spec import EXACT_ROWS
from errorband.features import FEATURES
from errorband.tables import TableEncoder
from errorband.training.grow import SITE_BYTES

# Seconds of one evaluation with inducing points, for each row, latent function and pair of inducing inputs: in closed
# form, and where sites are found by sweeps. The search on all rows has half of the time, for about so many evaluations.
CLOSED_FORM, BY_SWEEPS, EVALUATIONS = 1.4e-10, 3e-9, 30

LEAST_INDUCING, MOST_INDUCING = 10, 200


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of ``errorband fit``."""

    kernel: Any = None
    kernel_name: str = "se"
    model: str = "auto"
    inducing: str | None = None
    test_size: float = 0.2
    seed: int = 0
    time_budget: float = 60.0
    max_rows: int | None = None
    verbose: int = 0


@dataclasses.dataclass(frozen=True)
class Plan:
    """The approximation and the rows of a fit.

    Attributes
    ----------
    approximation : "auto", "exact" or Approximation
        As the estimators take it.
    reason : str
        Why this one, where the estimators do not say it themselves; else empty.
    searched, judged, final : arrays of int
        Positions of the rows on which hyperparameters are searched, of those that the judged model has, and of those
        that the written one has.
    notes, cuts : list of str
        What to say about it, and a warning where rows are left out though nobody asked for that.
    """

    approximation: Any
    reason: str
    searched: np.ndarray
    judged: np.ndarray
    final: np.ndarray
    notes: list[str]
    cuts: list[str]


def plan(y: np.ndarray, train: np.ndarray, encoder: TableEncoder, settings: Settings) -> Plan:
    """The approximation and the rows, for all targets y and the positions of those to learn from.

    A model without approximation costs the cube of the number of rows. "auto" takes it while it can hold all of them,
    and inducing points with all of them beyond; "exact" takes as many as it can hold. Hyperparameters are then searched
    on as many as the time allows. ``max_rows`` holds for every model, and instead of these limits.
    """
    n, rng = len(y), np.random.default_rng(settings.seed)
    labels = y if encoder.task == "classification" else np.zeros(n, int)
    approximation, reason = approximation_named(settings.model, settings.inducing), ""
    most_searched = most_kept = settings.max_rows or n
    if approximation == "auto":
        approximation, reason = automatic(min(n, most_kept), encoder, settings.time_budget)
    if isinstance(approximation, str) and settings.max_rows is None:
        most_searched, most_kept = rows_to_search(encoder, settings.time_budget), exact_rows(encoder)
    searched = subset(train, most_searched, rng, labels)
    judged = train if len(train) <= most_kept else searched
    if len(searched) < most_kept < len(train):
        judged = subset(train, most_kept, rng, labels)
    final = subset(np.arange(n), most_kept, rng, labels)
    notes, cuts = [reason] if reason else [], []
    if len(searched) < len(train):
        time = f", drawn at random, as --time-budget {settings.time_budget:g} allows"
        told = f"Hyperparameters were learned from {len(searched):,} of {len(train):,} training rows"
        notes.append(told + (" (--max-rows)." if settings.max_rows else f"{time}."))
    if len(final) < n:
        told = f"The model keeps {len(final):,} of {n:,} rows"
        if settings.max_rows:
            notes.append(f"{told} (--max-rows).")
        else:
            cuts.append(f"{told}, drawn at random: --model exact can hold no more, --model auto uses all.")
    return Plan(approximation, reason, searched, judged, final, notes, cuts)


def automatic(n: int, encoder: TableEncoder, seconds: float) -> tuple[Any, str]:
    """Return the approximation that --model auto means for n rows, and the reason if it is not the estimators' own."""
    limit = exact_rows(encoder)
    if n <= limit:
        return "auto", ""
    number = inducing_for(n, seconds, encoder)
    fewer = f" For more inducing inputs --time-budget {seconds:g} is too short." if number < MOST_INDUCING else ""
    return FITC(number), (
        f"FITC with {number} inducing inputs, to use every row: {n:,} are more than the {limit:,} that a model without "
        f"approximation takes.{fewer}"
    )


def rows_to_search(encoder: TableEncoder, seconds: float) -> int:
    """Return how many rows a search without approximation can use in this time."""
    return min(rows_for(seconds / effort(encoder)), exact_rows(encoder))


def rows_for(seconds: float) -> int:
    """Rows on which an exact search takes about so long: its cost grows with their cube.

    Examples
    --------
    >>> rows_for(60), rows_for(5), rows_for(3600)
    (2500, 1100, 5000)
    """
    rows = 2_000 * (seconds / 30) ** (1 / 3)
    return int(min(max(100 * round(rows / 100), 500), EXACT_ROWS))


def inducing_for(n: int, seconds: float, encoder: TableEncoder) -> int:
    """Inducing inputs with which a search on n rows fits the time and the memory; at most what FITC has by default.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> [inducing_for(n, 60, Stub(labels=[])) for n in (5_000, 100_000, 1_000_000)]
    [200, 200, 84]
    >>> [inducing_for(n, 60, Stub(labels=["no", "yes"])) for n in (5_000, 100_000, 1_000_000)]
    [200, 57, 18]
    """
    n_classes = len(encoder.labels)
    work = n * (n_classes if n_classes > 2 else 1)
    number = np.sqrt(seconds / 2 / EVALUATIONS / ((BY_SWEEPS if n_classes else CLOSED_FORM) * work))
    if n_classes:
        number = min(number, FITC().memory * 2**30 / (SITE_BYTES * work))
    return int(np.clip(number, LEAST_INDUCING, MOST_INDUCING))


def effort(encoder: TableEncoder) -> float:
    """Return the cost of a search relative to a regression with as many rows; it grows with the number of classes.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> effort(Stub(labels=[])), effort(Stub(labels=["no", "yes"])), effort(Stub(labels=["a", "b", "c"]))
    (1.0, 20.0, 30.0)
    """
    n_classes = len(encoder.labels)
    return 1.0 if n_classes == 0 else 10.0 * max(n_classes, 2)


def exact_rows(encoder: TableEncoder) -> int:
    """Return up to how many rows the estimators keep the whole covariance when that is left to them."""
    if encoder.task == "classification":
        return GPClassifier().exact_limit(max(len(encoder.labels), 2))
    return GPRegressor().exact_limit()


def approximation_named(name: str, inducing: str | None = None) -> Any:
    """Return the ``approximation`` argument of the estimators for the values of --model and --inducing."""
    known: dict[str, Any] = {key.lower(): cls for key, cls in APPROXIMATIONS.items() if cls is not WeightSpace}
    known |= {key.lower(): cls for key, cls in FEATURES.items() if cls.weight_space}
    if name.lower() in ("auto", "exact"):
        if inducing is not None:
            raise Problem(
                f"--inducing {inducing} needs a model with inducing points, so add --model fitc or --model vfe.",
                ExitCode.USAGE,
            )
        return name.lower()
    if name.lower() not in known:
        choices = ", ".join(dict.fromkeys(["auto", "exact", *known]))
        raise Problem(f"There is no model {name!r}, so choose one of {choices}.", ExitCode.USAGE)
    cls: Any = known[name.lower()]
    if inducing is None:
        return cls()
    finds_number = hasattr(cls(), "inducing_inputs")  # only the number of inducing inputs can be left to the search
    if inducing == "auto" and finds_number:
        return cls("auto")
    if not (inducing.isdecimal() and int(inducing) > 0):
        choice = " or auto" if finds_number else ""
        raise Problem(f"--inducing {inducing} is not a number above 0{choice}, so give one.", ExitCode.USAGE)
    return cls(int(inducing))


def subset(rows: np.ndarray, most: int, rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Draw at most ``most`` of the rows at random, with at least one of each label if there is room."""
    if len(rows) <= most:
        return rows
    order = rng.permutation(rows)
    _, firsts = np.unique(labels[order], return_index=True)
    order = np.concatenate([order[firsts], np.delete(order, firsts)]) if len(firsts) > 1 else order
    return np.sort(order[:most])
