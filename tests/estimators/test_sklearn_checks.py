"""scikit-learn's own checks, all of them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from errorband import LBFGS, GPClassifier, GPRegressor


@parametrize_with_checks([GPRegressor(), GPClassifier(optimizer=LBFGS(tolerance=0.1))])
def test_sklearn(estimator, check):
    check(estimator)
