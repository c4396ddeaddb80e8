"""What a sweep over the number of inducing inputs found: when more would not help, and the same in a sentence."""

import dataclasses

from errorband.model import Model

# Nats per row, of log evidence and of held-out log density, that a doubling must gain to be worth it.
TOLERANCE = 0.01

# A doubling that gains nothing proves little while the model may be too small to see a pattern: up to this number of
# inducing inputs, where steps are cheap, the sweep goes on; and up to the second if no pattern has been seen at all.
LEAST, LEAST_BLIND = 100, 400

CERTIFIED, TIME, MEMORY_FULL, DISTINCT, INTERRUPTED = (
    "certified",
    "time budget",
    "memory budget",
    "all distinct rows",
    "interrupted",
)


@dataclasses.dataclass(frozen=True)
class InducingSweep:
    """What was tried to choose the number of inducing inputs, in the units of the data; an entry for each number.

    Attributes
    ----------
    n_inducing : tuple of int
    log_evidence : tuple of float
        Per row of those learned from.
    nlpd : tuple of float
        Negative log predictive density per held-out row.
    gap : tuple of float or None
        The most by which the exact log evidence per row, at the same hyperparameters, can exceed the variational bound
        of these inducing inputs; None where noise is not Gaussian.
    seconds : tuple of float
        Wall time of each.
    chosen : int
    stopped : {"certified", "time budget", "memory budget", "all distinct rows", "interrupted"}
        Why no larger number was tried.
    certificate : str
        The same in a sentence.
    n_rows, n_held_out : int
        How many rows the sweep learned from, and how many it judged on.
    """

    n_inducing: tuple[int, ...]
    log_evidence: tuple[float, ...]
    nlpd: tuple[float, ...]
    gap: tuple[float | None, ...]
    seconds: tuple[float, ...]
    chosen: int
    stopped: str
    certificate: str
    n_rows: int
    n_held_out: int

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.stopped == INTERRUPTED

    def __str__(self) -> str:
        head = f"{'M':>6} {'log evidence':>13} {'NLPD':>9} {'gap':>9} {'seconds':>8}"
        lines = [
            f"{M:6d} {value:13.4f} {nlpd:9.4f} {'' if gap is None else f'{gap:.2g}':>9} {seconds:8.1f}"
            for M, value, nlpd, gap, seconds in zip(
                self.n_inducing, self.log_evidence, self.nlpd, self.gap, self.seconds, strict=True
            )
        ]
        return "\n".join([head, *lines, self.certificate])


@dataclasses.dataclass(frozen=True)
class Step:
    """One number of inducing inputs, fitted."""

    model: Model
    log_evidence: float
    nlpd: float
    gap: float | None
    blind: bool  # predictions of other rows would do as well
    seconds: float

    @property
    def n_inducing(self) -> int:
        return self.model.latent.features.size


def enough(steps: list[Step]) -> bool:
    """Whether the last step shows that more inducing inputs would not help."""
    last = steps[-1]
    if last.n_inducing < (LEAST_BLIND if last.blind else LEAST):
        return False
    if last.gap is not None and last.gap < TOLERANCE:
        return True
    return len(steps) > 1 and max(_gains(steps)) < TOLERANCE


def choice(steps: list[Step]) -> Step:
    """The smallest number within the tolerance of the best held-out NLPD, and of the log evidence of that step."""
    best = min(steps, key=lambda s: s.nlpd)
    return next(s for s in steps if s.nlpd <= best.nlpd + TOLERANCE and s.log_evidence >= best.log_evidence - TOLERANCE)


def summary(
    steps: list[Step],
    chosen: Step,
    stopped: str,
    budget: float,
    memory: float,
    n_rows: int,
    n_held_out: int,
    n_all: int,
) -> InducingSweep:
    """The steps as a table, with the certificate; ``budget`` is in seconds, ``memory`` in GiB, ``n_all`` all rows."""
    return InducingSweep(
        n_inducing=tuple(s.n_inducing for s in steps),
        log_evidence=tuple(s.log_evidence for s in steps),
        nlpd=tuple(s.nlpd for s in steps),
        gap=tuple(s.gap for s in steps),
        seconds=tuple(s.seconds for s in steps),
        chosen=chosen.n_inducing,
        stopped=stopped,
        certificate=_sentence(steps, chosen, stopped, budget, memory) + _on_how_many(n_rows, n_held_out, n_all),
        n_rows=n_rows,
        n_held_out=n_held_out,
    )


def _gains(steps: list[Step]) -> tuple[float, float]:
    """What the last step gained over the one before, in log evidence per row and in held-out NLPD."""
    before, last = steps[-2:]
    return last.log_evidence - before.log_evidence, before.nlpd - last.nlpd


def _sentence(steps: list[Step], chosen: Step, stopped: str, budget: float, memory: float) -> str:
    last = steps[-1]
    took = f"{chosen.n_inducing} inducing inputs were chosen."
    if chosen.blind:
        took += " No pattern was seen: predictions of other rows would do as well."
    if stopped == DISTINCT:
        more = "" if chosen.n_inducing <= last.n_inducing else "with those held out, "
        return f"With {last.n_inducing} inducing inputs every distinct row learned from is one; {more}{took}"
    if stopped == CERTIFIED and last.gap is not None and last.gap < TOLERANCE:
        return (
            f"With {last.n_inducing} inducing inputs the exact log evidence at these hyperparameters is at most "
            f"{last.gap:.1g} per row above their variational bound; {took}"
        )
    if len(steps) > 1:
        evidence, nlpd = _gains(steps)
        before = f"From {steps[-2].n_inducing} to {last.n_inducing} inducing inputs"
        gains = f"{before} the log evidence per row changed by {evidence:+.3f} and the held-out NLPD by {-nlpd:+.3f}"
    else:
        gains = f"{last.n_inducing} inducing inputs were tried"
    if stopped == CERTIFIED:
        return f"{gains}: more would not help; {took}"
    reasons = {
        TIME: f"the time budget of {budget:g} s ended the sweep",
        MEMORY_FULL: f"the memory budget of {memory:g} GiB ended the sweep",
        INTERRUPTED: "an interrupt ended the sweep",
    }
    return f"{gains}; {reasons[stopped]}, so that more might help; {took}"


def _on_how_many(n_rows: int, n_held_out: int, n_all: int) -> str:
    return f" The sweep saw {n_rows + n_held_out} of {n_all} rows." if n_rows + n_held_out < n_all else ""
