"""The options of ``errorband fit`` in one object."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of ``errorband fit``; None leaves the choice to the estimator.

    Without ``time_budget`` a search is planned for a minute, and work is counted in place of seconds: the clock of a
    busy machine does not change what a seed gives.
    """

    kernel: str | None = None
    likelihood: str | None = None
    multi_class: str | None = None
    target_transform: str | None = None
    exposure: str | None = None
    weight: str | None = None
    model: str = "auto"
    inducing: str | None = None
    test_size: float = 0.2
    seed: int = 0
    time_budget: float | None = None
    max_rows: int | None = None
    verbose: int = 0

    @property
    def planned_seconds(self) -> float:
        """What rows, inducing points and iterations are planned for."""
        return 60.0 if self.time_budget is None else self.time_budget
