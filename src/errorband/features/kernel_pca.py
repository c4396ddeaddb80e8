"""Truncated spectrum: values of the function along the leading eigenvectors of a covariance."""

from typing import Any

import equinox as eqx
import numpy as np
from sklearn.utils import check_random_state

from errorband.features.base import Features
from errorband.parameters import PLACE, plain

ROWS = 1000  # the covariance of so many rows is decomposed


def _array(value: Any) -> Any:
    return None if value is None else np.asarray(value, float)


class KernelPCA(Features):
    r"""u = Uᵀf(Z): the function at some rows Z along the leading eigenvectors U of their covariance.

    K_uu = Uᵀk(Z, Z)U and K_fu = k(X, Z)U. With ``SoR(M, features=KernelPCA())`` the prior covariance at Z is that of
    the kernel without all but its M largest eigenvalues (truncated spectrum, kernel principal components): no other M
    features leave less of it out. Eigenvectors are those at the starting values of the kernel, and stay.

    Parameters
    ----------
    rows : array (R, D) or None
        Z; None draws up to 1000 of the training inputs at ``fit``.
    directions : array (R, M) or None
        U; None computes as many as the approximation has features.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import VFE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GPRegressor(approximation=VFE(12, features=KernelPCA()), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    rows: Any = eqx.field(default=None, converter=_array, metadata={"unit": PLACE})
    directions: Any = eqx.field(default=None, converter=_array)

    @property
    def size(self) -> int:
        return self.directions.shape[1]

    def K_uu(self, kernel):
        return self.directions.T @ kernel.gram(self.rows, self.rows) @ self.directions

    def K_fu(self, kernel, X):
        return kernel.gram(X, self.rows) @ self.directions

    def initialised(self, kernel, X, n=None, classes=None, random_state=None):
        rows = self.rows
        if rows is None:
            rows = np.asarray(X[np.sort(check_random_state(random_state).permutation(len(X))[:ROWS])])
        if rows.ndim != 2 or rows.shape[1] != X.shape[1]:
            raise ValueError(
                f"rows of KernelPCA must have shape (R, {X.shape[1]}), a column for each input; got {rows.shape}."
            )
        kernel.check(rows)
        if self.directions is not None:
            if self.directions.ndim != 2 or len(self.directions) != len(rows):
                raise ValueError(
                    f"directions of KernelPCA must have a row for each of its {len(rows)} rows; got shape "
                    f"{self.directions.shape}."
                )
            return KernelPCA(rows, self.directions)
        if n is None:
            raise ValueError("KernelPCA() has no number of components: give it one in VFE(n, features=KernelPCA()).")
        return KernelPCA(rows, np.linalg.eigh(plain(kernel)(rows))[1][:, -min(n, len(rows)) :])
