"""The Nyström approximation: the covariance of the data has low rank, that of new inputs with the data has not."""

from typing import ClassVar

from errorband.approximations.inducing import Inducing


class Nystrom(Inducing):
    r"""Nyström approximation, for Gaussian noise: Q in place of K among the training rows, and nowhere else.

    With Q = K_fu K_uu⁻¹ K_uf and noise σ², evidence and weights are those of :class:`DTC`, and

        mean  m* + k*ᵀ(Q + σ²I)⁻¹(y − m),     variance  k** − k*ᵀ(Q + σ²I)⁻¹k*,     k* = k(X, x*).

    There is no Gaussian process whose predictions these are: the joint covariance of training and new values need not
    be positive, and variances can come out below zero. They are then set to zero, with a warning. It is here for
    comparison; use :class:`FITC` or :class:`VFE`. A prediction looks at all N training rows. Parameters are those of
    :class:`FITC`. (Williams & Seeger 2001; Quiñonero-Candela & Rasmussen 2005, §8.)

    Examples
    --------
    >>> Nystrom(50)
    Nystrom(n_inducing=50)
    """

    has_structure: ClassVar[bool] = False

    def structure(self, kernel, X, n_latents):
        """Not available: no structure at the training rows and cross covariance belong together."""
        raise NotImplementedError("Nystrom is no low-rank structure; use inference='auto'.")
