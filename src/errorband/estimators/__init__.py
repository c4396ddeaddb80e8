"""scikit-learn estimators. A new one is one file and one line in :data:`ESTIMATORS`."""

from errorband.estimators.bayesian_committee import BayesianCommittee
from errorband.estimators.classifier import GPClassifier
from errorband.estimators.compare_evidence import compare_evidence
from errorband.estimators.generative_gaussian import GenerativeGaussianClassifier
from errorband.estimators.least_squares_classifier import LeastSquaresGPClassifier
from errorband.estimators.mixture import Mixture
from errorband.estimators.nearest_neighbour import ProbabilisticNearestNeighbour
from errorband.estimators.platt import PlattScaling
from errorband.estimators.product_of_experts import ProductOfExperts
from errorband.estimators.regressor import GPRegressor
from errorband.estimators.rvm_classifier import RVMClassifier
from errorband.estimators.rvm_regressor import RVMRegressor
from errorband.estimators.transductive import TransductiveGPClassifier

ESTIMATORS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        GPClassifier,
        GPRegressor,
        RVMClassifier,
        RVMRegressor,
        BayesianCommittee,
        ProductOfExperts,
        LeastSquaresGPClassifier,
        PlattScaling,
        ProbabilisticNearestNeighbour,
        GenerativeGaussianClassifier,
        TransductiveGPClassifier,
    )
}

__all__ = [*ESTIMATORS, "ESTIMATORS", "compare_evidence", "Mixture"]
