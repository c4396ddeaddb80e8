"""scikit-learn estimators."""

from errorband.estimators.classifier import GPClassifier
from errorband.estimators.regressor import GPRegressor

ESTIMATORS: dict[str, type] = {cls.__name__: cls for cls in (GPClassifier, GPRegressor)}

__all__ = [*ESTIMATORS, "ESTIMATORS"]
