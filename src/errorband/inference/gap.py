"""How far the variational bound can be from the exact evidence."""

import dataclasses

import numpy as np

from errorband.approximations import VFE
from errorband.inference.base import TrainingData
from errorband.inference.passes import FirstPass, first_pass
from errorband.model import Model, inducing_inputs
from errorband.numerics import in_double_precision


@in_double_precision
def evidence_gap(model: Model, data: TrainingData) -> float:
    r"""The most by which the exact log evidence can exceed the variational bound, for Gaussian noise.

    K lies between Q and Q + τI, τ = tr(K − Q), so that with t = y − m(X), V, r and the noise σ² of
    :class:`~errorband.inference.sparse.Sparse`

        log p(y) − bound ≤ ½ Σ r/σ² + ½ tᵀ[(VVᵀ + σ²)⁻¹ − (VVᵀ + σ² + τ)⁻¹]t

    (Titsias, *Variational inference for Gaussian and determinantal point processes*, 2014). Two passes over the rows.
    """
    only_noise = VFE(inducing_inputs=inducing_inputs(model))  # on the diagonal of its first pass
    model = Model(model.kernel, model.likelihood, model.mean, only_noise)
    f = first_pass(model, data)
    known = 0.0 if data.noise_variance is None else data.noise_variance
    wider = dataclasses.replace(data, noise_variance=np.full(len(data.y), np.sum(f.r)) + known)
    return 0.5 * float(np.sum(f.r / f.noise)) + 0.5 * (_quadratic(f) - _quadratic(first_pass(model, wider)))


def _quadratic(f: FirstPass) -> float:
    """The form tᵀ(VVᵀ + S)⁻¹t."""
    return float(f.E @ f.residual**2 - f.gamma @ (f.precision @ f.gamma + f.gamma))
