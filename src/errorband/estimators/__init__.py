"""scikit-learn estimators. A new one is one file and one line in :data:`ESTIMATORS`."""

from errorband.estimators.classifier import GPClassifier
from errorband.estimators.mixture import Mixture
from errorband.estimators.regressor import GPRegressor
from errorband.estimators.rvm_classifier import RVMClassifier
from errorband.estimators.rvm_regressor import RVMRegressor

ESTIMATORS: dict[str, type] = {cls.__name__: cls for cls in (GPClassifier, GPRegressor, RVMClassifier, RVMRegressor)}

__all__ = [*ESTIMATORS, "ESTIMATORS", "Mixture"]
