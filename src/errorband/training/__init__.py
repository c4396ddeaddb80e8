"""The search for hyperparameters. A new strategy is one file and one line in :data:`STRATEGIES`."""

from collections.abc import Sequence

from errorband.training.bound_noise import BoundNoise
from errorband.training.challenge import Challenge
from errorband.training.exact_first import ExactFirst
from errorband.training.few_first import FewFirst
from errorband.training.full_bayes import FullBayes
from errorband.training.gaussian_first import GaussianFirst
from errorband.training.greedy import Greedy
from errorband.training.grow import Grow
from errorband.training.informative_start import InformativeStart
from errorband.training.lbfgs import LBFGS
from errorband.training.move_dead import MoveDead
from errorband.training.objective import Objective
from errorband.training.race_first import RaceFirst
from errorband.training.relevance import Relevance
from errorband.training.result import FitResult, Stop, Trained, Trainer
from errorband.training.sample_first import SampleFirst
from errorband.training.scout import Scout
from errorband.training.strategy import Found, Maximise, Problem, Settings, Start, Strategy
from errorband.training.subset import Subset
from errorband.training.tie import Tie
from errorband.training.turns import TakeTurns

STRATEGIES: dict[str, type[Strategy]] = {
    "exact_first": ExactFirst,
    "gaussian_first": GaussianFirst,
    "few_first": FewFirst,
    "bound_noise": BoundNoise,
    "challenge": Challenge,
    "scout": Scout,
    "tie": Tie,
    "race_first": RaceFirst,
    "informative_start": InformativeStart,
    "grow": Grow,
    "move_dead": MoveDead,
    "sample_first": SampleFirst,
    "subset": Subset,
    "take_turns": TakeTurns,
    "relevance": Relevance,
    "greedy": Greedy,
}


def composed(names: Sequence[str], innermost: Strategy | None = None) -> Strategy:
    """The strategies of these names, each wrapped around the next, around one search (or another strategy)."""
    strategy = Maximise() if innermost is None else innermost
    for name in reversed(names):
        strategy = STRATEGIES[name](strategy)
    return strategy


__all__ = [
    "LBFGS",
    "STRATEGIES",
    "FitResult",
    "Found",
    "FullBayes",
    "Objective",
    "Problem",
    "Settings",
    "Start",
    "Stop",
    "Strategy",
    "Trained",
    "Trainer",
    "composed",
]
