"""Printing of the commands: results on standard output, remarks and progress on standard error."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from errorband.reporting.parts.sections import candidate_rows
from errorband.reporting.text import number, percent


class Screen:
    """Prints unless asked to be quiet."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.out = Console(highlight=False, emoji=False)
        self.err = Console(highlight=False, emoji=False, stderr=True)

    def say(self, text: str) -> None:
        """A line of the result."""
        if not self.quiet:
            self.out.print(text, markup=False, soft_wrap=True)

    def note(self, notes: Iterable[str], kind: str = "Note") -> None:
        """Remarks, one line each."""
        for note in () if self.quiet else notes:
            self.err.print(f"{kind}: {note}", markup=False, soft_wrap=True, style="yellow" if kind != "Note" else None)

    def table(self, title: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: bool = False) -> None:
        """A table of results: the first column to the left, the others to the right unless they are words."""
        if self.quiet:
            return
        table = Table(title=Text(title, style="bold"), title_justify="left")
        table.add_column(header[0])
        for name in header[1:]:
            table.add_column(name, justify="left" if words else "right")
        for row in rows:
            table.add_row(*map(Text, row))  # as text: names of columns may look like markup
        self.out.print(table)

    def scores(self, title: str, scores: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """A table of held-out metrics, of numbers or of classes."""
        if "error_rate" in scores[0][1]:
            self.table(title, CLASS_HEADER, class_rows(scores))
        else:
            self.table(title, SCORE_HEADER, score_rows(scores))

    def candidates(self, found: Any) -> None:
        """A table of what kernel and noise were chosen from, if they were."""
        if found is not None:
            rows = [(f"{name} *" if kept else name, *figures) for name, kept, *figures in candidate_rows(found)]
            told, header = ("shown", (*CANDIDATE_HEADER, "share")) if found.share else ("kept", CANDIDATE_HEADER)
            self.table(f"Tried on {found.n_rows[0]:,} rows (* {told})", header, rows)

    @contextlib.contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[str], None]]:
        """A bar on a terminal; call what it yields before each of ``total`` steps."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda text: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as bar:
            task, begun = bar.add_task(label, total=total), False

            def step(text: str) -> None:
                nonlocal begun
                bar.update(task, advance=1 if begun else 0, description=f"{label}: {text}")
                begun = True

            yield step


def named_scores(assessment: Any) -> list[tuple[str, dict[str, float]]]:
    """Return names and held-out metrics of an assessment: of the model, called errorband's, and of the baselines."""
    own, *others = assessment.scores
    return [(f"errorband {own.name}", own.values), *[(s.name, s.values) for s in others]]


CANDIDATE_HEADER = ("candidate", "log evidence", "score", "LOO log density")
SCORE_HEADER = ("method", "RMSE", "R²", "NLPD", "95 % coverage", "95 % width")
CLASS_HEADER = ("method", "errors", "log loss", "AUC", "calibration error")


def score_rows(scores: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, ...]]:
    """Held-out metrics of a regression as rows of a table."""
    return [
        (
            name,
            number(v.get("rmse")),
            number(v.get("r2"), decimals=3),
            number(v.get("nlpd"), decimals=3),
            percent(v.get("coverage")),
            number(v.get("width")),
        )
        for name, v in scores
    ]


def class_rows(scores: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, ...]]:
    """Held-out metrics of a classification as rows of a table."""
    return [
        (
            name,
            percent(v.get("error_rate")),
            number(v.get("log_loss"), decimals=3),
            number(v.get("auc"), decimals=3),
            percent(v.get("calibration_error")),
        )
        for name, v in scores
    ]
