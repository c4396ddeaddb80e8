"""Choice of the approximation and of the rows for a fit, from the number of rows, the time budget and the options.

Nothing here depends on how fast the machine is, so that a seed gives the same model on every one.
"""

import dataclasses
from typing import Any

import numpy as np

from errorband.approximations import FITC
from errorband.cli.models import model_named, unfitted
from errorband.cli.settings import Settings
from errorband.estimators import Mixture
from errorband.estimators.candidates import is_auto
from errorband.estimators.spec import EXACT_ROWS, as_likelihood
from errorband.tables import TableEncoder
from errorband.training import LBFGS
from errorband.training.grow import SITE_BYTES

# Seconds of one evaluation with inducing points, for each row, latent function and pair of inducing inputs: in closed
# form, and where sites are found by sweeps. The search on all rows has half of the time, for about so many evaluations.
CLOSED_FORM, BY_SWEEPS, EVALUATIONS = 1.4e-10, 3e-9, 30

LEAST_INDUCING, MOST_INDUCING = 10, 200

# Without approximation: rows of which an evaluation in closed form takes half a second. A search has so many at least.
HALF_A_SECOND, LEAST_ITERATIONS = 2000, 15
DEFAULT = Settings()
JOINT = "joint"  # of ``multi_class``


@dataclasses.dataclass(frozen=True)
class Plan:
    """The model and the rows of a fit.

    Attributes
    ----------
    model : "auto", "exact", Approximation, Features or estimator
        As :func:`errorband.cli.models.unfitted` takes it.
    reason : str
        Why this one, where the estimators do not say it themselves; else empty.
    searched, judged, final : arrays of int
        Positions of the rows on which hyperparameters are searched, of those that the judged model has, and of those
        that the written one has.
    notes, cuts : list of str
        What to say about it, and a warning where rows are left out though nobody asked for that.
    """

    model: Any
    reason: str
    searched: np.ndarray
    judged: np.ndarray
    final: np.ndarray
    notes: list[str]
    cuts: list[str]


def plan(
    y: np.ndarray, train: np.ndarray, encoder: TableEncoder, settings: Settings, rows: np.ndarray | None = None
) -> Plan:
    """The model and the rows, for all targets y and the positions of those to learn from.

    ``rows`` are the positions of all rows that the written model may learn from; by default it may from all.

    A model without approximation costs the cube of the number of rows. "auto" takes it while it can hold all of them,
    and inducing points with all of them beyond; "exact" takes as many as it can hold. Hyperparameters are then searched
    on as many as the time allows. ``max_rows`` holds for every model, and instead of these limits.
    """
    rows = np.arange(len(y)) if rows is None else rows
    n, rng = len(rows), np.random.default_rng(settings.seed)
    labels = y if encoder.task == "classification" else np.zeros(len(y), int)
    model, reason = model_named(settings.model, settings.inducing), ""
    most_searched = most_kept = settings.max_rows or n
    if isinstance(model, str) and model == "auto":
        model, reason = automatic(min(n, most_kept), encoder, settings)
    if isinstance(model, str) and settings.max_rows is None:
        most_searched, most_kept = rows_to_search(encoder, settings), exact_rows(encoder, settings)
    searched = subset(train, most_searched, rng, labels)
    judged = train if len(train) <= most_kept else searched
    if len(searched) < most_kept < len(train):
        judged = subset(train, most_kept, rng, labels)
    final = subset(rows, most_kept, rng, labels)
    notes, cuts = [reason] if reason else [], []
    if len(searched) < len(train):
        time = f", drawn at random, as --time-budget {settings.planned_seconds:g} allows"
        told = f"Hyperparameters were learned from {len(searched):,} of {len(train):,} training rows"
        notes.append(told + (" (--max-rows)." if settings.max_rows else f"{time}."))
    if len(final) < n:
        told = f"The model keeps {len(final):,} of {n:,} rows"
        if settings.max_rows:
            notes.append(f"{told} (--max-rows).")
        else:
            cuts.append(f"{told}, drawn at random: --model exact can hold no more, --model auto uses all.")
    return Plan(model, reason, searched, judged, final, notes, cuts)


def automatic(n: int, encoder: TableEncoder, settings: Settings) -> tuple[Any, str]:
    """Return the approximation that --model auto means for n rows, and the reason if it is not the estimators' own."""
    limit, seconds = exact_rows(encoder, settings), settings.planned_seconds
    if n <= limit:
        return "auto", ""
    number = inducing_for(n, seconds, encoder, settings)
    fewer = f" For more inducing inputs --time-budget {seconds:g} is too short." if number < MOST_INDUCING else ""
    return FITC(number), (
        f"FITC with {number} inducing inputs, to use every row: {n:,} are more than the {limit:,} that a model without "
        f"approximation takes.{fewer}"
    )


def rows_to_search(encoder: TableEncoder, settings: Settings) -> int:
    """Return how many rows a search without approximation can use in the time there is."""
    return min(rows_for(settings.planned_seconds / effort(encoder, settings)), exact_rows(encoder, settings))


def optimizer(model: Any, n: int, encoder: TableEncoder, settings: Settings) -> LBFGS:
    """How to search on n rows: for the seconds that were given, else for as many iterations as fit the plan.

    These are counted and not timed, so that a seed gives the same on a busy machine. Only where work cannot be told
    beforehand, as of estimators of their own and of inducing points of which the number is searched for, the clock ends
    what takes longer than planned.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> numbers, classes = Stub(labels=[]), Stub(labels=["no", "yes"])
    >>> [optimizer("auto", n, numbers, DEFAULT).max_iter for n in (500, 2500, 5000)]
    [200, 61, 15]
    >>> optimizer("auto", 900, classes, DEFAULT).max_iter, optimizer(FITC(200), 100_000, numbers, DEFAULT).max_iter
    (65, 107)
    >>> optimizer("auto", 900, Stub(labels=["a", "b", "c"]), Settings(time_budget=60)).max_seconds  # of each class
    20.0
    """
    members = 1
    if isinstance(model, Mixture):
        members, model = model.n * (2 if model.kind == "auto" else 1), model.model
    number = _basis_functions(model)
    known = isinstance(model, str) or isinstance(number, int)
    if settings.time_budget is not None or not known:
        return LBFGS(max_seconds=settings.planned_seconds / n_searches(encoder, settings))
    if isinstance(number, int):
        n_latents, sweeps = latents(encoder, settings)
        seconds = (BY_SWEEPS if sweeps else CLOSED_FORM) * members * n * n_latents * number**2
    else:
        seconds = 0.5 * effort(encoder, settings) * (n / HALF_A_SECOND) ** 3
    affordable = int(settings.planned_seconds / seconds)
    return LBFGS(max_iter=min(max(affordable, LEAST_ITERATIONS), LBFGS().max_iter))


def _basis_functions(model: Any) -> Any:
    """How many there are, in whatever a model calls them; "auto" or None if that is not known."""
    parts = (model, getattr(model, "features", None))
    names = ("n_inducing", "n_rows", "size")
    return next((k for part in parts for name in names if (k := getattr(part, name, None))), None)


def rows_for(seconds: float) -> int:
    """Rows on which an exact search takes about so long: its cost grows with their cube.

    Examples
    --------
    >>> rows_for(60), rows_for(5), rows_for(3600)
    (2500, 1100, 5000)
    """
    rows = 2_000 * (seconds / 30) ** (1 / 3)
    return int(min(max(100 * round(rows / 100), 500), EXACT_ROWS))


def inducing_for(n: int, seconds: float, encoder: TableEncoder, settings: Settings = DEFAULT) -> int:
    """Inducing inputs with which a search on n rows fits the time and the memory; at most what FITC has by default.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> [inducing_for(n, 60, Stub(labels=[])) for n in (5_000, 100_000, 1_000_000)]
    [200, 200, 84]
    >>> [inducing_for(n, 60, Stub(labels=["no", "yes"])) for n in (5_000, 100_000, 1_000_000)]
    [200, 57, 18]
    """
    n_latents, sweeps = latents(encoder, settings)
    work = n * n_latents
    number = np.sqrt(seconds / 2 / EVALUATIONS / ((BY_SWEEPS if sweeps else CLOSED_FORM) * work))
    if sweeps:
        number = min(number, FITC().memory * 2**30 / (SITE_BYTES * work))
    return int(np.clip(number, LEAST_INDUCING, MOST_INDUCING))


def latents(encoder: TableEncoder, settings: Settings = DEFAULT) -> tuple[int, bool]:
    """Return the number of latent functions, and whether their posterior is found by sweeps."""
    n_classes = len(encoder.labels)
    if n_classes:
        return (n_classes if n_classes > 2 else 1), True
    if is_auto(settings.likelihood):
        return 1, True
    likelihood = as_likelihood(settings.likelihood)
    return likelihood.n_latents, not likelihood.conjugate


def n_searches(encoder: TableEncoder, settings: Settings) -> int:
    """Return how many searches a Gaussian process takes: one for each of three or more classes, unless it is joint."""
    n_classes = len(encoder.labels)
    return n_classes if n_classes > 2 and settings.multi_class != JOINT else 1


def effort(encoder: TableEncoder, settings: Settings = DEFAULT) -> float:
    """Return the cost of a search relative to Gaussian noise with as many rows; it grows with the latent functions.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> effort(Stub(labels=[])), effort(Stub(labels=["no", "yes"])), effort(Stub(labels=["a", "b", "c"]))
    (1.0, 20.0, 30.0)
    """
    n_latents, sweeps = latents(encoder, settings)
    return 10.0 * max(n_latents, 2) if sweeps else 1.0


def exact_rows(encoder: TableEncoder, settings: Settings = DEFAULT) -> int:
    """Return up to how many rows the estimators keep the whole covariance when that is left to them."""
    estimator = unfitted(settings, encoder, "auto")
    return estimator.exact_limit(*([max(len(encoder.labels), 2)] if encoder.task == "classification" else []))


def subset(rows: np.ndarray, most: int, rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Draw at most ``most`` of the rows at random, with at least one of each label if there is room."""
    if len(rows) <= most:
        return rows
    order = rng.permutation(rows)
    _, firsts = np.unique(labels[order], return_index=True)
    order = np.concatenate([order[firsts], np.delete(order, firsts)]) if len(firsts) > 1 else order
    return np.sort(order[:most])
