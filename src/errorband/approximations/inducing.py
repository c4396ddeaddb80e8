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

import dataclasses
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.approximations.base import Approximation, with_features
from errorband.conjugate import LowRankEngine
from errorband.conjugate.low_rank import left_out, whitened_in_pieces
from errorband.features import Features, Points, TimeFrequency, WindowedFourier
from errorband.parameters import PLACE, as_flags, as_value, value_of
from errorband.parameters.checks import check_whole
from errorband.structures import LowRank

FIRST = 25  # inducing inputs that "auto" begins with


class LowRankApproximation(Approximation):
    """Base: the prior covariance is Q = K_fu K_uu⁻¹ K_uf, plus a share of what that leaves out on the diagonal."""

    bound: ClassVar[bool] = False
    """Whether the evidence has a term for the share of r that is not on the diagonal."""

    opens: ClassVar[bool] = True
    """Whether the prior variance at new inputs is that of the kernel, so that bands open away from the features."""

    @property
    def share(self) -> float:
        """Share of r = diag(K − Q) that is kept on the diagonal."""
        return 0.0

    @property
    def engine(self):
        return LowRankEngine()

    @property
    def site_power(self) -> float | None:
        return self.share if self.bound else None

    def structure(self, latent, X, layout=None):
        """VFE and PowerEP: sites are functions of u alone, and the likelihood sees r (Bui, Yan & Turner 2017)."""
        basis = whitened_in_pieces(latent, X)
        if self.share == 0.0 and not self.bound:
            return LowRank(jnp.zeros((1, X.shape[0])), basis[None]), None
        r = left_out(latent, X, basis)
        diagonal = jnp.zeros_like(r) if self.bound else self.share * r
        return LowRank(diagonal[None], basis[None]), r if self.bound else None


class WeightSpace(LowRankApproximation):
    """The prior f = Φu, u ~ N(0, I), of features that are a whole model: nothing is left out.

    What ``approximation=SparseSpectrum(100)`` stands for.

    Parameters
    ----------
    features : Features
        In weight space.
    bound_noise : bool
        Search with the features held first, then all together with no less noise than was found: learned features
        that are many cannot then explain noise as function (Lázaro-Gredilla 2010).

    Examples
    --------
    >>> from errorband.features import Points, SparseSpectrum
    >>> WeightSpace(SparseSpectrum(100, learn=True), bound_noise=True)
    WeightSpace(features=SparseSpectrum(learn=True), bound_noise=True)
    >>> WeightSpace(Points([[0.0]]))
    Traceback (most recent call last):
    ...
    ValueError: Points needs an approximation that says what becomes of the rest, such as FITC(features=Points()).
    """

    short_names: ClassVar = {"bounded": {"bound_noise": True}}  # without it its features are named instead

    features: Features | None  # None in a model, where each latent prior has its own
    bound_noise: bool = eqx.field(default=False, static=True)

    opens: ClassVar[bool] = False

    def __check_init__(self):
        if self.features is not None and not self.features.weight_space:
            name = type(self.features).__name__
            raise ValueError(
                f"{name} needs an approximation that says what becomes of the rest, such as FITC(features={name}())."
            )

    @property
    def strategies(self):
        return ("exact_first", *(("bound_noise",) if self.bound_noise else ()), "sample_first")

    def initialised(self, latents, X, classes=None, random_state=None):
        features = self.features
        assert features is not None
        for latent in latents:
            features.check(latent.kernel)
        ready = [features.initialised(latent.kernel, X, None, classes, random_state) for latent in latents]
        return dataclasses.replace(self, features=None), with_features(latents, ready)

    def fitted(self, latents):
        return dataclasses.replace(self, features=latents[0].features) if len(latents) == 1 else self


class Inducing(LowRankApproximation):
    """Base of the approximations with inducing points. Parameters are those of :class:`FITC`."""

    n_inducing: int | str = eqx.field(default=200, static=True)
    _: KW_ONLY
    features: Features | None = None
    inducing_inputs: Any = eqx.field(default=None, converter=as_value, metadata={"unit": PLACE})
    optimize_inputs: Any = eqx.field(default=True, static=True, converter=as_flags)
    init: str = eqx.field(default="kmeans", static=True)
    budget: float = eqx.field(default=60.0, static=True)
    memory: float = eqx.field(default=2.0, static=True)
    bound_noise: bool = eqx.field(default=False, static=True)

    def __check_init__(self):
        name = type(self).__name__
        if not (isinstance(self.n_inducing, str) and self.n_inducing == "auto"):
            check_whole(name, "n_inducing", self.n_inducing, other=", or 'auto'")
        elif self.init == "ivm":
            raise ValueError(f"{name}('auto', init='ivm'): IVM needs the number of rows to choose; give one.")
        elif np.ndim(self.optimize_inputs) == 2 and len(self.optimize_inputs) > 1:
            raise ValueError(f"{name}('auto', optimize_inputs=...): for a number to be found, give flags for columns.")
        if not self.budget >= 0:
            raise ValueError(f"{name}(budget={self.budget!r}): give seconds, zero or more.")
        if not self.memory >= 0:
            raise ValueError(f"{name}(memory={self.memory!r}): give GiB, zero or more.")
        if self.features is not None:
            self._check_features(name)
        else:
            self._points()

    def _check_features(self, name: str) -> None:
        if not isinstance(self.features, Features):
            raise TypeError(f"{name}(features=...) takes an object of errorband.features; got {self.features!r}.")
        if self.features.weight_space:
            kind = type(self.features).__name__
            raise ValueError(f"{kind} is a whole prior and leaves nothing out: use approximation={kind}(...).")
        if self.n_inducing == "auto" and not hasattr(self.features, "enlarged"):
            raise ValueError(
                f"{name}('auto') is for inducing points; give a number with {type(self.features).__name__}."
            )
        if value_of(self.inducing_inputs) is not None or self.optimize_inputs is not True or self.init != "kmeans":
            raise ValueError(
                f"{name}: inducing_inputs, optimize_inputs and init are those of Points; give them to features instead."
            )

    def _points(self) -> Points:
        return Points(inducing_inputs=self.inducing_inputs, optimize_inputs=self.optimize_inputs, init=self.init)

    @property
    def strategies(self):
        first = ("informative_start",) if self.init == "ivm" and value_of(self.inducing_inputs) is None else ()
        bounded = ("bound_noise",) if self.bound_noise else ()
        return (*first, *(("grow",) if self.n_inducing == "auto" else ()), *bounded, "move_dead", "sample_first")

    def initialised(self, latents, X, classes=None, random_state=None):
        features = self._points() if self.features is None else self.features
        n = FIRST if isinstance(self.n_inducing, str) else self.n_inducing
        for latent in latents:
            features.check(latent.kernel)
        ready = [features.initialised(latent.kernel, X, n, classes, random_state) for latent in latents]
        return dataclasses.replace(self, features=None, inducing_inputs=None), with_features(latents, ready)

    def fitted(self, latents):
        """With the number of inducing inputs in place of "auto"; inducing inputs if they are plain points."""
        features = latents[0].features
        ready = dataclasses.replace(self, n_inducing=features.size) if self.n_inducing == "auto" else self
        if len(latents) > 1:
            return ready
        if type(features) is Points:
            return dataclasses.replace(ready, inducing_inputs=value_of(features.inducing_inputs))
        return dataclasses.replace(ready, init="kmeans", optimize_inputs=True, features=features)


class SoR(Inducing):
    """Subset of regressors: the prior is that of M basis functions. Its bands close where they should open: use DTC.

    Parameters are those of :class:`FITC`.

    Examples
    --------
    >>> SoR(50)
    SoR(n_inducing=50)
    """

    short_names: ClassVar = {"sor": {}}

    opens: ClassVar[bool] = False


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
    >>> few = GPRegressor("se", approximation=VFE(12), random_state=0).fit(X, y)
    >>> exact = GPRegressor("se").fit(X, y)
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
    features : Features or None
        What the function is seen through, from :mod:`errorband.features`; None: inducing points, to which the next
        three belong.
    inducing_inputs : array (M, D), Parameter or None
        Where they start, in the units of the data; None chooses ``n_inducing`` places by ``init``. Rows may repeat and
        may lie outside the data.
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
    bound_noise : bool
        Search with the features held first, then all together with no less noise than was found.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (500, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=500)
    >>> model = GPRegressor("se", approximation=FITC(15), random_state=0).fit(X, y)
    >>> model.approximation_.inducing_inputs.shape
    (15, 1)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    >>> grown = GPRegressor("se", approximation=FITC("auto"), random_state=0).fit(X, y)
    >>> grown.approximation_.n_inducing, grown.inducing_sweep_.stopped
    (25, 'certified')
    """

    short_names: ClassVar = {
        "fitc": {},
        "fifgp": {"features": WindowedFourier()},
        "tfifgp": {"features": TimeFrequency()},
    }

    @property
    def share(self) -> float:
        return 1.0


class PowerEP(Inducing):
    """Between VFE (``power`` → 0) and FITC (``power`` = 1).

    In closed form for Gaussian noise; for other likelihoods by ``inference=EP(power=power)``, which ``"auto"`` takes.

    Parameters
    ----------
    n_inducing, features, inducing_inputs, optimize_inputs, init, budget, memory, bound_noise
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
