"""The half-space kernel: how often random linear classifiers agree."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import beta

from errorband.kernels.base import Kernel, squared_distance
from errorband.kernels.projection import of_one_unit
from errorband.kernels.stationary import safe_sqrt
from errorband.parameters import LENGTH, POSITIVE, VARIANCE, hyperparameter


class HalfSpace(Kernel):
    """k = variance · (1 − 2 P(a random half-space separates x from z)) (Naish-Guzman 2007, appendix D).

    The half-space is given by the foot r of the perpendicular from the origin, uniform in the ball of radius R. It
    separates x from the origin iff r lies in the ball with *diameter* Ox, so that

        P = [V(‖x‖/2) + V(‖z‖/2) − 2 V_∩] / V(R),

    V(r) the volume of a ball and V_∩ that of the intersection of the two balls: two caps, for any number of inputs D.
    Inputs with ‖x‖ > R are projected onto the sphere of radius R. Since P shrinks like (‖x‖/2R)^D, the kernel is nearly
    constant when D is large. (*Sparse and robust kernel methods* prints the formula with radius ‖x‖ in place of ‖x‖/2,
    and with r in a cube.)

    Parameters
    ----------
    radius : float or None
        R. None takes 1.5 times the largest ‖x‖ of the training inputs.
    variance : float or None
        k(x, x).
    active_dims : sequence of int or str, optional
        Inputs the kernel depends on.

    Examples
    --------
    >>> HalfSpace(radius=1.0, variance=1.0)([[0.5]], [[0.5], [-0.5], [0.0]])  # one input: P = |x − z|/2R
    array([[1. , 0. , 0.5]])
    """

    radius: Any = hyperparameter(POSITIVE, ndim=0, unit=LENGTH)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    def evaluate(self, X, Z):
        d = X.shape[1]
        X, Z = self._inside(X), self._inside(Z)
        # In units of R: radii of the two balls and the distance of their centres.
        a = 0.5 * safe_sqrt(jnp.sum(X * X, axis=1))[:, None]
        b = 0.5 * safe_sqrt(jnp.sum(Z * Z, axis=1))[None, :]
        c = 0.5 * safe_sqrt(squared_distance(X, Z))
        if d == 1:
            return self.variance * (1 - 2 * c)
        same = c <= 1e-12
        safe_c = jnp.where(same, 1.0, c)
        to_plane = (a * a - b * b + safe_c**2) / (2 * safe_c)  # from the centre of the first ball to the common chord
        lens = _cap(a, to_plane, d) + _cap(b, safe_c - to_plane, d)
        separated = jnp.where(same, 0.0, a**d + b**d - 2 * lens)
        return self.variance * (1 - 2 * separated)

    def evaluate_diag(self, X):
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def _inside(self, X):
        X = X / self.radius
        norm = jnp.sum(X * X, axis=1, keepdims=True)
        beyond = norm > 1
        return jnp.where(beyond, X / jnp.sqrt(jnp.where(beyond, norm, 1.0)), X)

    def in_units(self, change):
        return of_one_unit(self, change)

    def defaults(self, X, y_variance):
        largest = np.sqrt(np.max(np.sum(X**2, axis=1), initial=0.0))
        return {"radius": 1.5 * largest if largest > 0 else 1.0, "variance": y_variance}


def _cap(r: Any, t: Any, d: int) -> Any:
    """Volume of the part of a d-ball of radius r beyond a plane at signed distance t, relative to the unit ball."""
    share = _cap_share(jnp.clip(t / jnp.where(r > 0, r, 1.0), -1.0, 1.0), d)
    return r**d * share


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _cap_share(s: Any, d: int) -> Any:
    """Fraction of the unit d-ball beyond a plane at s: ½ − J_d(s)/2J_d(1), J_d(s) = ∫₀ˢ (1 − u²)^((d−1)/2) du."""
    w = 1 - s * s
    power, J = (jnp.sqrt(w), jnp.arcsin(s)) if d % 2 == 0 else (w, s)  # J_0 or J_1
    for k in range(2 + d % 2, d + 1, 2):
        J, power = (s * power + (k - 1) * J) / k, power * w
    return 0.5 - J / beta(0.5, 0.5 * (d + 1))


@_cap_share.defjvp
def _cap_share_derivative(d, primals, tangents):
    (s,), (s_dot,) = primals, tangents
    return _cap_share(s, d), -((1 - s * s) ** (0.5 * (d - 1))) / beta(0.5, 0.5 * (d + 1)) * s_dot
