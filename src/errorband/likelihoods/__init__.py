"""Likelihoods: the distribution of a target given the latent values.

A new likelihood is one file and one line in :data:`LIKELIHOODS`, over which the contract tests run.
"""

from errorband.likelihoods.additive import AdditiveNoise
from errorband.likelihoods.base import ClassLikelihood, Likelihood
from errorband.likelihoods.bernoulli import Bernoulli, RobustThreshold
from errorband.likelihoods.beta import Beta
from errorband.likelihoods.counts import Binomial, NegativeBinomial, Poisson
from errorband.likelihoods.double_exponential import DoubleExponential
from errorband.likelihoods.epsilon_insensitive import EpsilonInsensitive
from errorband.likelihoods.experts import TwoExperts
from errorband.likelihoods.gamma import Gamma
from errorband.likelihoods.gaussian import Gaussian
from errorband.likelihoods.heteroscedastic import HeteroscedasticGaussian
from errorband.likelihoods.huber import Huber
from errorband.likelihoods.ordinal import Ordinal
from errorband.likelihoods.outlier_kinds import CompoundOutliers, Ignorance
from errorband.likelihoods.outlier_mixture import OutlierMixture
from errorband.likelihoods.softmax import Softmax
from errorband.likelihoods.student_t import StudentT
from errorband.likelihoods.triplet import Triplet
from errorband.likelihoods.twinned import Twinned
from errorband.likelihoods.twinned_labels import TwinnedLabels

LIKELIHOODS: dict[str, type[Likelihood]] = {
    cls.__name__: cls
    for cls in (
        Bernoulli,
        Beta,
        Binomial,
        CompoundOutliers,
        DoubleExponential,
        EpsilonInsensitive,
        Gamma,
        Gaussian,
        HeteroscedasticGaussian,
        Huber,
        Ignorance,
        NegativeBinomial,
        Ordinal,
        OutlierMixture,
        Poisson,
        RobustThreshold,
        Softmax,
        StudentT,
        Triplet,
        Twinned,
        TwinnedLabels,
        TwoExperts,
    )
}

__all__ = [*LIKELIHOODS, "LIKELIHOODS", "AdditiveNoise", "ClassLikelihood", "Likelihood"]
