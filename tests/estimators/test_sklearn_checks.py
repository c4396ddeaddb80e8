"""All of scikit-learn's checks on estimators that keep their starting values; those about fitting with a search too."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from errorband import (
    LBFGS,
    BayesianCommittee,
    GenerativeGaussianClassifier,
    GPClassifier,
    GPRegressor,
    LeastSquaresGPClassifier,
    PlattScaling,
    ProbabilisticNearestNeighbour,
    ProductOfExperts,
    RVMClassifier,
    RVMRegressor,
    TransductiveGPClassifier,
)

WITH_A_SEARCH = [
    "check_dict_unchanged",
    "check_estimators_overwrite_params",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_pipeline_consistency",
    "check_regressors_train",
    "check_classifiers_train",
]
SEARCHES = [
    pytest.param(estimator, check, id=f"{type(estimator).__name__}-{check.func.__name__}")
    for default in (GPRegressor(), GPClassifier(optimizer=LBFGS(tolerance=0.1)))
    for estimator, check in estimator_checks_generator(default)
    if check.func.__name__ in WITH_A_SEARCH and not check.keywords
]


@parametrize_with_checks([GPRegressor(optimizer=None), GPClassifier(optimizer=None)])
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        RVMRegressor(optimizer=None),
        RVMClassifier(optimizer=None),
        BayesianCommittee(GPRegressor(optimizer=None), n_members=2),
        ProductOfExperts(GPClassifier(optimizer=None), n_members=2),
        GenerativeGaussianClassifier(),
        LeastSquaresGPClassifier(optimizer=None),
        PlattScaling(),
        ProbabilisticNearestNeighbour(),
        TransductiveGPClassifier(optimizer=None),
    ]
)
def test_sklearn_of_the_others(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("estimator", "check"), SEARCHES)
def test_sklearn_with_a_search(estimator, check):
    check(estimator)
