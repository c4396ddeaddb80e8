"""The features contract: M random variables u through which a latent function f is seen.

u is linear in f, so (f, u) are jointly Gaussian, and a kind of features is three covariances: K_uu of u, K_fu of the
function at X with u, and the prior variance k_ff at X. An approximation replaces the prior covariance of f by
Q = K_fu K_uu⁻¹ K_uf and says what becomes of the difference (:mod:`errorband.approximations`).

In weight space f(x) = φ(x)ᵀu with u ~ N(0, I): K_uu is None (the identity), K_fu holds the basis functions φ(x), and
nothing is left out.
"""

import abc
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from errorband import linalg
from errorband.kernels import Kernel
from errorband.parameters import Module


class Features(Module):
    """A kind of features. All methods but :meth:`initialised` and :meth:`check` are traced by JAX.

    Each row of what :meth:`K_fu` and :meth:`k_ff` return depends on the same row of X only, so that rows can be worked
    on in chunks. Parameters (places, scales, frequencies) are fields declared with ``hyperparameter``, as in a kernel.
    """

    weight_space: ClassVar[bool] = False
    """Whether f = Φu with u ~ N(0, I) is the whole prior: then the features can be given as ``approximation=``."""

    movable: ClassVar[bool] = False
    """Whether the search may move, add and replace features: then they have the methods of :class:`Points` for it."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number M of features."""

    @abc.abstractmethod
    def K_fu(self, kernel: Kernel, X: Any) -> Any:
        """Covariance (n, M) of the function at the rows of X with the features."""

    def K_uu(self, kernel: Kernel) -> Any:
        """Covariance (M, M) of the features; None for the identity."""
        return None

    def k_ff(self, kernel: Kernel, X: Any) -> Any:
        """Prior variance (n,) of the function at the rows of X."""
        return jnp.sum(self.K_fu(kernel, X) ** 2, axis=1) if self.weight_space else kernel.gram_diag(X)

    def check(self, kernel: Kernel) -> None:
        """Raise ValueError for a kernel without a closed form for these features, naming kernels that have one."""

    def initialised(
        self,
        kernel: Kernel,
        X: np.ndarray,
        n: int | None = None,
        classes: np.ndarray | None = None,
        random_state: Any = None,
    ) -> Self:
        """Copy with every value set, on the host.

        Parameters
        ----------
        kernel : Kernel
            At its starting values.
        X : array (N, D)
            Training inputs.
        n : int or None
            How many features to place, if they have no number of their own.
        classes : array (N,) or None
            The targets if they are classes.
        random_state : int, RandomState or None
        """
        return self

    # ------------------------------------------------------------------ what follows from the three covariances
    def factor(self, kernel: Kernel) -> Any:
        """Lower Cholesky factor L of K_uu (with a little noise added to the diagonal); None for the identity."""
        K_uu = self.K_uu(kernel)
        return None if K_uu is None else jnp.linalg.cholesky(linalg.regularised(K_uu))

    def whitened(self, kernel: Kernel, factor: Any, X: Any) -> Any:
        """Φ = K_fu L⁻ᵀ (n, M), so that Q = ΦΦᵀ.

        Formed first, it keeps the digits that K_uf K_fu would lose when K_uu is badly conditioned.
        """
        K_fu = self.K_fu(kernel, X)
        return K_fu if factor is None else solve_triangular(factor, K_fu.T, lower=True).T
