"""Inducing points: M values of the function, at inputs that are learned, stand in for the N at the data.

With u = f(Z), K_uu = LLᵀ and the whitened basis Φ = K_fu L⁻ᵀ, all of these replace the prior covariance by Q = ΦΦᵀ and
differ in what they do with what that leaves out, r = diag(K − Q):

| | on the diagonal | added to the log evidence | prior variance at new inputs |
|---|---|---|---|
| SoR | 0 | | q** |
| DTC | 0 | | k** |
| VFE | 0 | −½ Σ πₙrₙ | k** |
| PowerEP | αr | −(1 − α)/2α Σ log(1 + απₙrₙ) | k** |
| FITC | r | | k** |

(PITC and PIC keep blocks of K − Q: :mod:`errorband.approximations.blocks`.)

π is the precision of the noise. DTC and SoR share mean and evidence; PowerEP goes from VFE (α → 0) to FITC (α = 1).
(Quiñonero-Candela & Rasmussen 2005; Titsias 2009; Bui, Yan & Turner 2017.)
"""

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from errorband import linalg
from errorband.approximations.base import Approximation, for_each_latent
from errorband.approximations.placement import PLACEMENTS, place
from errorband.arguments import check_whole
from errorband.numerics import in_double_precision
from errorband.parameters import Parameter, Real, as_flags, broadcasts, hyperparameter, replace_values, value_of
from errorband.structures import LowRank
from errorband.structures.rows import map_over_rows, piece_size

FIRST = 25  # inducing inputs that "auto" begins with

# One inducing input has the say over a small part of the data, a length-scale over all: the evidence is much flatter in
# the former. In units of 4 (of standardised data) the search takes steps of the right size in both.
UNIT = 4.0


class Inducing(Approximation):
    """Base of the family. Parameters are those of :class:`FITC`."""

    n_inducing: int | str = eqx.field(default=200, static=True)
    _: KW_ONLY
    inducing_inputs: Any = hyperparameter(Real(unit=UNIT), ndim=2)
    optimize_inputs: Any = eqx.field(default=True, static=True, converter=as_flags)
    init: str = eqx.field(default="kmeans", static=True)
    budget: float = eqx.field(default=60.0, static=True)
    memory: float = eqx.field(default=2.0, static=True)

    bound: ClassVar[bool] = False
    """Whether the evidence has a term for the share of r that is not on the diagonal."""

    opens: ClassVar[bool] = True
    """Whether the prior variance at new inputs is that of the kernel, so that bands open away from Z."""

    def __check_init__(self):
        name = type(self).__name__
        if self.n_inducing != "auto":
            check_whole(name, "n_inducing", self.n_inducing, other=", or 'auto'")
        elif self.init == "ivm":
            raise ValueError(f"{name}('auto', init='ivm'): IVM needs the number of rows to choose; give one.")
        elif np.ndim(self.optimize_inputs) == 2 and len(self.optimize_inputs) > 1:
            raise ValueError(f"{name}('auto', optimize_inputs=...): for a number to be found, give flags for columns.")
        if not self.budget >= 0:
            raise ValueError(f"{name}(budget={self.budget!r}): give seconds, zero or more.")
        if not self.memory >= 0:
            raise ValueError(f"{name}(memory={self.memory!r}): give GiB, zero or more.")
        if self.init not in PLACEMENTS:
            raise ValueError(f"{name}(init={self.init!r}): choose one of {', '.join(map(repr, PLACEMENTS))}.")

    @property
    def share(self) -> float:
        """Share of r that is kept on the diagonal."""
        return 0.0

    def initialised(self, kernel, X, classes=None, random_state=None):
        given = value_of(self.inducing_inputs)
        if given is not None and (np.ndim(given) != 2 or np.shape(given)[1] != X.shape[1] or len(given) == 0):
            raise ValueError(
                f"inducing_inputs of {type(self).__name__} must be an array of shape (M, {X.shape[1]}), a row for each "
                f"inducing input and a column for each input of X; got shape {np.shape(given)}."
            )
        number = FIRST if isinstance(self.n_inducing, str) else self.n_inducing
        Z = place(self.init, number, kernel, X, classes, random_state) if given is None else np.asarray(given)
        kernel.check(Z)
        return replace_values(self, {("inducing_inputs",): self._as_parameter(Z, kernel.raw_columns(X.shape[1]))})

    def _as_parameter(self, Z: np.ndarray, labels: np.ndarray) -> Any:
        """Z, with the entries fixed that are not to be learned: as asked for, and those of columns of labels."""
        learned, held = np.asarray(self.optimize_inputs), self.inducing_inputs
        if not broadcasts(learned.shape, Z.shape):
            M, D = Z.shape
            raise ValueError(
                f"optimize_inputs of {type(self).__name__} has shape {learned.shape}; for {M} inducing inputs of {D} "
                f"columns give True, False, or an array of these: ({D},) for columns, ({M}, 1) for points, ({M}, {D})."
            )
        fixed = ~learned | labels if np.any(labels) else ~learned
        if not isinstance(held, Parameter):
            return Parameter(Z, fixed) if np.any(fixed) else Z
        return Parameter(Z, fixed | np.asarray(held.fixed), held.prior, held.bounds)

    @property
    def ep_power(self) -> float | None:
        return self.share if self.bound else None

    def structure(self, kernel, X, n_latents):
        basis = self._whitened(kernel, X)
        diag = jnp.zeros(len(X)) if self.bound else self.share * _left_out(kernel, X, basis)
        return LowRank(diag=diag[None], basis=basis[None], shared_by=n_latents)

    def residual(self, kernel, X, n_latents):
        """What is left out, r: the sites of VFE and PowerEP are functions of u alone (Bui, Yan & Turner 2017)."""
        return self.at(kernel, X, n_latents)[1] if self.bound else None

    def at(self, kernel, X, n_latents):
        structure = self.structure(kernel, X, n_latents)
        if not self.bound:
            return structure, None
        return structure, for_each_latent(_left_out(kernel, X, structure.basis[0]), n_latents).T

    @in_double_precision
    def anchors(self, kernel, X):
        """L with LLᵀ = K_uu: nothing of the training inputs."""
        return np.asarray(_factor(self, kernel))

    def cross(self, kernel, anchors, X_new, n_latents):
        return for_each_latent(self._solved(kernel, anchors, X_new), n_latents)

    def cross_times(self, kernel, anchors, X_new, weights):
        return kernel.gram(X_new, self.inducing_inputs) @ solve_triangular(anchors.T, weights.T)

    def _whitened(self, kernel, X):
        """Φ = K_fu L⁻ᵀ. Formed first, it keeps the digits that K_uf K_fu would lose when K_uu is badly conditioned."""
        n, factor = len(X), _factor(self, kernel)
        pieces = piece_size(n, len(self.inducing_inputs))
        return map_over_rows(lambda piece: self._solved(kernel, factor, piece.of(X)), n, pieces)

    def _solved(self, kernel, factor, X):
        return solve_triangular(factor, kernel.gram(self.inducing_inputs, X), lower=True).T


@jax.jit
def _factor(approximation: Inducing, kernel: Any) -> Any:
    """L with LLᵀ = K_uu."""
    Z = approximation.inducing_inputs
    return jnp.linalg.cholesky(linalg.regularised(kernel.gram(Z, Z)))


def _left_out(kernel, X, basis):
    """The diagonal of K − Q, which is not negative but for rounding."""
    return jnp.maximum(kernel.gram_diag(X) - jnp.sum(basis**2, axis=1), 0.0)


class SoR(Inducing):
    """Subset of regressors: the prior is that of M basis functions. Its bands close where they should open: use DTC.

    Parameters are those of :class:`FITC`.

    Examples
    --------
    >>> SoR(50)
    SoR(n_inducing=50)
    """

    opens: ClassVar[bool] = False

    def new_variance(self, kernel, X_new, cross):
        """The basis functions are all there is: q** = ‖φ*‖²."""
        return jnp.sum(cross**2, axis=2).T

    def new_covariance(self, kernel, X_new, cross):
        """Q** = Φ*Φ*ᵀ."""
        return cross @ cross.T


class DTC(Inducing):
    """Deterministic training conditional (projected process): f = K_fu K_uu⁻¹ u at the data, the full prior elsewhere.

    The mean of :class:`SoR` with bands that open away from the inducing inputs. Parameters are those of :class:`FITC`.

    Examples
    --------
    >>> DTC(50, init="random")
    DTC(n_inducing=50, init='random')
    """


class VFE(Inducing):
    """Titsias' variational approximation: a lower bound of the evidence.

    In closed form for Gaussian noise; for other likelihoods by ``inference=KL()`` (Hensman, Matthews & Ghahramani
    2015), which ``"auto"`` takes. The bound never falls when an inducing input is added, and choosing their places by
    it cannot overfit. With too few of them it explains what it cannot follow as noise. Parameters are those of
    :class:`FITC`.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> few = GPRegressor(approximation=VFE(12), random_state=0).fit(X, y)
    >>> exact = GPRegressor().fit(X, y)
    >>> bool(few.log_evidence_ <= exact.log_evidence_), bool(few.log_evidence_ > exact.log_evidence_ - 1)
    (True, True)
    """

    bound: ClassVar[bool] = True


class FITC(Inducing):
    """Fully independent training conditional (SPGP): what the inducing points leave out is independent noise.

    A Gaussian process in its own right, with the right prior variance everywhere, so it goes with every likelihood.
    The variance on the diagonal depends on the input, and learning may use it in place of noise: the noise variance
    found is then too small, though the bands usually are not.

    Parameters
    ----------
    n_inducing : int or "auto"
        How many inducing inputs. If the data have fewer distinct rows, every distinct row becomes one. "auto" begins
        with 25 and doubles them until, on rows held out for the purpose, that no longer helps by 0.01 nats per row; see
        ``inducing_sweep_`` of the fitted estimator.
    inducing_inputs : array (M, D), Parameter or None
        Where they start, in the units the model sees (see ``normalize``); None chooses ``n_inducing`` places by
        ``init``. Rows may repeat and may lie outside the data.
    optimize_inputs : bool or array of bool
        Learn the inducing inputs with the other hyperparameters, or leave them where they start. Some of them: True
        for each column (D,), each point (M, 1) or each number (M, D) that is to be learned. Columns that a kernel reads
        as labels are never learned.
    init : {"kmeans", "random", "pivoted", "ivm"}
        Centres of clusters, of each class in turn if targets are classes; rows at random; one after the other, the row
        of largest variance given those before (pivoted Cholesky factorisation at the starting values of the kernel), at
        random once none is left; or the rows that an informative vector machine (:class:`IVM`) chooses, with the
        hyperparameters it finds to begin with.
    budget : float
        Seconds for finding the number, with "auto"; half of ``max_seconds`` of the optimiser if that is less. The one
        thing that makes results depend on the clock: if it ends the search, ``inducing_sweep_.stopped`` says so.
    memory : float
        GiB that the matrices of a search may take, with "auto".

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (500, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=500)
    >>> model = GPRegressor(approximation=FITC(15), random_state=0).fit(X, y)
    >>> model.approximation_.inducing_inputs.shape
    (15, 1)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    >>> grown = GPRegressor(approximation=FITC("auto"), random_state=0).fit(X, y)
    >>> grown.approximation_.n_inducing, grown.inducing_sweep_.stopped
    (25, 'certified')
    """

    @property
    def share(self) -> float:
        return 1.0


class PowerEP(Inducing):
    """Between VFE (``power`` → 0) and FITC (``power`` = 1).

    In closed form for Gaussian noise; for other likelihoods by ``inference=EP(power=power)``, which ``"auto"`` takes.

    Parameters
    ----------
    n_inducing, inducing_inputs, optimize_inputs, init, budget, memory
        As in :class:`FITC`; ``power`` comes second.
    power : float in [0, 1]
        Share of what the inducing points leave out that counts as noise; about 0.5 often predicts best.

    Examples
    --------
    >>> PowerEP(50, 0.5)
    PowerEP(n_inducing=50, power=0.5)
    """

    power: float = eqx.field(default=0.5, static=True)
    bound: ClassVar[bool] = True

    def __check_init__(self):
        if not 0.0 <= self.power <= 1.0:
            raise ValueError(f"PowerEP(power={self.power:g}): give a number from 0 (VFE) to 1 (FITC).")

    @property
    def share(self) -> float:
        return self.power
