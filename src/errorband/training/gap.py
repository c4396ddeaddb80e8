"""How far the variational bound can be from the exact evidence."""

import numpy as np

from errorband.approximations import VFE
from errorband.conjugate.low_rank import FirstPass, first_pass
from errorband.data import TrainingData
from errorband.model import Model
from errorband.precision import in_double_precision


@in_double_precision
def evidence_gap(model: Model, data: TrainingData) -> float:
    r"""The most by which the exact log evidence can exceed the variational bound, for Gaussian noise.

    K lies between Q and Q + τI, τ = tr(K − Q), so that with t = y − m(X), V, r and the noise σ² of
    :class:`~errorband.conjugate.LowRankEngine`

        log p(y) − bound ≤ ½ Σ r/σ² + ½ tᵀ[(VVᵀ + σ²)⁻¹ − (VVᵀ + σ² + τ)⁻¹]t

    (Titsias, *Variational inference for Gaussian and determinantal point processes*, 2014). Two passes over the rows.
    """
    latent, noise = model.latent, data.site_noise(model.likelihood)
    f = first_pass(VFE(), latent, noise, data)  # with nothing but noise on the diagonal
    wider = first_pass(VFE(), latent, noise + np.sum(f.r), data)
    return 0.5 * float(np.sum(f.r / f.noise)) + 0.5 * (_quadratic(f) - _quadratic(wider))


def _quadratic(f: FirstPass) -> float:
    """The form tᵀ(VVᵀ + S)⁻¹t."""
    return float(f.E @ f.t**2 - f.gamma @ (f.precision @ f.gamma + f.gamma))
