"""What prediction needs and nothing else. A new posterior is one file and one line in :data:`POSTERIORS`."""

from errorband.posterior.augmented import AugmentedPosterior
from errorband.posterior.base import Posterior
from errorband.posterior.committee import CommitteePosterior
from errorband.posterior.dense import DensePosterior
from errorband.posterior.draws import DrawsPosterior
from errorband.posterior.mixture import MixturePosterior
from errorband.posterior.nystrom import NystromPosterior
from errorband.posterior.pic import PICPosterior
from errorband.posterior.predictor import FeaturePosterior, SitePosterior

POSTERIORS: dict[str, type[Posterior]] = {
    cls.__name__: cls
    for cls in (
        DensePosterior,
        SitePosterior,
        FeaturePosterior,
        PICPosterior,
        NystromPosterior,
        MixturePosterior,
        AugmentedPosterior,
        DrawsPosterior,
        CommitteePosterior,
    )
}

__all__ = [*POSTERIORS, "POSTERIORS", "Posterior"]
