"""Several classes: the softmax of one latent function per class."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.base import ClassLikelihood, floored, in_rows
from errorband.parameters.checks import check_whole
from errorband.programs import program
from errorband.quadrature import (
    centred_lattice,
    expectation,
    expectation_nd,
    log_integral,
    log_integral_nd,
    quasi_monte_carlo,
)
from errorband.rows import map_rows

# Step and reach of the lattice for predictions of three and four classes: 3,233 and 5,209 nodes.
LATTICES = {3: (0.3, 6.8), 4: (0.7, 6.0)}
AT_ONCE = 2**20  # numbers that are worked on at once


class Softmax(ClassLikelihood):
    """Classes y = 0 … C − 1: p(y | f) = exp(f_y)/Σ_c exp(f_c) (Rasmussen & Williams 2006, eq. 3.34).

    Parameters
    ----------
    n_classes : int
        C ≥ 2, the number of classes and of latent functions.

    Notes
    -----
    Only the C − 1 differences g_c = f_c − f_y matter: p = 1/(1 + Σ exp(g_c)). Integrals are taken over those: one- and
    two-dimensional ones for two and three classes, to high accuracy; a product rule with 16³ nodes for four classes;
    quasi-Monte-Carlo for more. Predicted probabilities of many rows are averages over one set of nodes for all classes
    and rows. For latent values of standard deviation 2, 4 and 8 the largest errors are 1e-7, 1e-4 and 2e-3 with three
    classes, 1e-4, 1e-2 and 3e-2 with four, about those of the integrals above (``tests/likelihoods/test_families.py``).

    Examples
    --------
    >>> import numpy as np
    >>> Softmax(3).plug_in_probabilities(np.log([[3.0, 1.0, 1.0]])).round(4)
    array([[0.6, 0.2, 0.2]])
    """

    n_classes: int = eqx.field(static=True)
    log_concave: ClassVar[bool] = True
    simplex: ClassVar[bool] = True

    def __check_init__(self):
        check_whole("Softmax", "n_classes", self.n_classes, least=2)

    @property
    def n_latents(self) -> int:
        return self.n_classes

    @property
    def latent_names(self) -> tuple[str, ...]:
        return tuple(f"class_{c}" for c in range(self.n_classes))

    @property
    def latent_kinds(self) -> tuple[str, ...]:
        return ("class",) * self.n_classes

    @property
    def class_values(self) -> np.ndarray:
        return np.arange(float(self.n_classes))

    def log_prob(self, y, f):
        return f[jnp.asarray(y, int)] - jax.nn.logsumexp(f)

    def share(self, f: Any) -> Any:
        """Class probabilities π: the curvature of −log p is diag(π) − ππᵀ for every class."""
        return jax.nn.softmax(f)

    def expected_log_prob(self, y, mean, cov):
        mean, cov = self._differences(y, mean, cov)
        if self.n_classes == 2:
            rule: dict[str, Any] = {"frozen": _log_logistic, "concave": True, "feature": (0.0 * y, 2.0)}
            return expectation(_log_logistic, mean[0], cov[0, 0], **rule)
        return expectation_nd(_log_softmax, mean, cov)

    def _log_tilted_quadrature(self, y, mean, cov, power):
        mean, cov = self._differences(y, mean, cov)
        if self.n_classes == 2:
            rule: dict[str, Any] = {"concave": True, "feature": (0.0 * y, 2.0)}
            log_g = lambda g: power * _log_logistic(g)  # noqa: E731
            return log_integral(log_g, mean[0], cov[0, 0], frozen=log_g, **rule)
        log_g = lambda g: power * _log_softmax(g)  # noqa: E731
        return log_integral_nd(log_g, mean, cov, frozen=log_g, concave=True)

    def _differences(self, y: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
        """Moments of f_c − f_y for the other classes c."""
        C, y = self.n_classes, jnp.asarray(y, int)
        A = jnp.eye(C)[(y + 1 + jnp.arange(C - 1)) % C] - jnp.eye(C)[y]
        return A @ mean, A @ cov @ A.T

    def class_probabilities(self, mean, cov):
        if self.n_classes == 2:
            return super().class_probabilities(mean, cov)
        if self.n_classes in LATTICES:
            return _lattice_average(*floored(mean, cov), *LATTICES[self.n_classes])
        return in_rows(_averaged_softmax, self, *floored(mean, cov))


def _log_logistic(g: Any) -> Any:
    return -jax.nn.softplus(g)


def _log_softmax(g: Any) -> Any:
    return -jax.nn.logsumexp(jnp.append(g, 0.0))


def _lattice_average(mean: np.ndarray, cov: np.ndarray, step: float, reach: float) -> np.ndarray:
    """Softmax averaged over latent values of mean (n, C) and covariance (n, C, C), on a lattice of differences."""
    n, C = mean.shape
    nodes, weights = centred_lattice(step, C - 1, reach)
    A = np.eye(C)[:-1] - np.eye(C)[-1]  # differences to the last class
    V = A @ cov @ A.T
    tiny = 1e-13 * np.trace(V, axis1=1, axis2=2) + 1e-300
    centre, root = mean @ A.T, np.linalg.cholesky(V + tiny[:, None, None] * np.eye(C - 1))

    def average(part: slice) -> np.ndarray:
        g = np.zeros((part.stop - part.start, C, len(nodes)))
        g[:, :-1] = centre[part, :, None] + root[part] @ nodes.T
        g -= np.max(g, axis=1, keepdims=True)
        np.exp(g, out=g)
        return np.einsum("rcn,rn->rc", g, weights / np.sum(g, axis=1))

    return map_rows(average, n, max(1, AT_ONCE // (C * len(nodes))))


@program
def _averaged_softmax(likelihood: Softmax, mean: Any, cov: Any) -> Any:
    points, _ = quasi_monte_carlo(likelihood.n_classes)

    def one(row):
        m, V = row
        root = jnp.linalg.cholesky(V + 1e-13 * jnp.trace(V) * jnp.eye(len(m)))
        return jnp.mean(jax.nn.softmax(m + points @ root.T), axis=0)

    return jax.lax.map(one, (mean, cov), batch_size=64)
