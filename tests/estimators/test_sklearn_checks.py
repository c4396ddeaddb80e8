"""scikit-learn's own checks, all of them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from errorband import GPRegressor


@parametrize_with_checks([GPRegressor()])
def test_sklearn(estimator, check):
    check(estimator)
