"""scikit-learn estimators."""

from errorband.estimators.regressor import GPRegressor

__all__ = ["GPRegressor"]
