"""Arguments of arguments, as scikit-learn names them: ``kernel__lengthscale``."""

from typing import Any, Self

from sklearn.base import BaseEstimator

from errorband import parameters


class WithArguments(BaseEstimator):
    """An estimator with kernels, likelihoods and the like among its arguments, for ``GridSearchCV`` to search.

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import Matern
    >>> model = GPRegressor(Matern(lengthscale=1.0))
    >>> model.set_params(kernel__lengthscale=2.0, kernel__nu=2.5).kernel
    Matern(lengthscale=2, nu=2.5)
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor; with ``deep`` also theirs, as ``kernel__lengthscale``.

        Parameters
        ----------
        deep : bool
            Whether to add those of kernels, likelihoods and the like; of a dictionary as ``kernel__mean__lengthscale``.
        """
        params = super().get_params(deep)
        for key, given in list(params.items()) if deep else ():
            for name, part in given.items() if isinstance(given, dict) else ():
                params[f"{key}__{name}"] = part
                params |= {f"{key}__{name}__{k}": v for k, v in getattr(part, "get_params", dict)().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor, or theirs: ``set_params(kernel__lengthscale=2.0)``. Returns the estimator.

        Kernels and the like are frozen, so the estimator gets new ones; other estimators that hold the same are left
        alone.

        Parameters
        ----------
        **params
            By the names of :meth:`get_params`.
        """
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            first, _, rest = name.partition("__")
            if rest:
                nested.setdefault(first, {})[rest] = value
        own = self.get_params(deep=False)
        for name, new in nested.items():
            if name not in own:
                super().set_params(**{name: None})  # raises, with a list of what there is
            held = own[name]
            setattr(
                self, name, held.set_params(**new) if hasattr(held, "fit") else parameters.set_params(held, name, new)
            )
        return self
