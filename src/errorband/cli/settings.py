"""The options of ``errorband fit`` in one object."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of ``errorband fit``; None leaves the choice to the estimator."""

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
    time_budget: float = 60.0
    max_rows: int | None = None
    verbose: int = 0
