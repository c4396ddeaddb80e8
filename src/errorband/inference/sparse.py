"""Gaussian likelihood with inducing points: evidence and all derivatives in two passes over the data, in chunks."""

from typing import Any, ClassVar

import jax
import numpy as np

from errorband import linalg
from errorband.approximations import PITC, Inducing, Nystrom
from errorband.approximations.base import sum_of_products
from errorband.inference.base import Evaluation, Inference, Status
from errorband.inference.passes import add, first_pass, pull_blocks, pull_factor, pull_product
from errorband.inference.sites import SiteAdjoint, site_posterior
from errorband.likelihoods import Gaussian
from errorband.model import Model
from errorband.numerics import in_double_precision, pad_rows
from errorband.parameters import replace_values
from errorband.predictive import GaussianPredictive
from errorband.structures.low_rank import LowRankPredictor


class Sparse(Inference):
    r"""Exact inference under the prior of an inducing-point approximation, for Gaussian noise.

    With V = K_fu L⁻ᵀ, K_uu = LLᵀ, r = diag(K) − Σ_m V², noise σ², t = y − m(X) and the approximation's share α of r on
    the diagonal, S = αr + σ², the prior of the targets is N(0, S + VVᵀ). With E = S⁻¹, B = I + VᵀEV, γ = B⁻¹VᵀEt and
    g = E(t − Vγ):

        log Z = −½ [Σ log S + log|B| + Σ g²S + γᵀγ + N log 2π] − b (1 − α)/2α Σ log(1 + αr/σ²),         (1)

    where b = 1 for VFE (the last term becomes −½ Σ r/σ²) and PowerEP, 0 for the others (Titsias 2009, eq. 9; Bui, Yan &
    Turner 2017, eq. 13). With w = diag(S + VVᵀ)⁻¹ = E − E² diag(VB⁻¹Vᵀ), the derivatives are

        S̄ = ½(g² − w),    r̄ = αS̄ − ½b(1 − α)E,    σ̄² = Σ S̄ + ½b(1 − α) Σ rE/σ²,                        (2)
        K̄_fu = V̄L⁻¹,    V̄ = gγᵀ − EVB⁻¹ − 2r̄V,    K̄_uu = −½ L⁻ᵀ(V̄ᵀV)L⁻¹,                                (3)

    and V̄ᵀV = γγᵀ − I + B⁻¹ + b(1 − α)(B − I) − 2αVᵀS̄V needs no product over the data unless α > 0. The first pass makes
    B; the second makes (3), a chunk of rows at a time, and pulls it back through the kernel. Memory is O(chunk·M + M²).

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import FITC
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> exact = GPRegressor(kernel, **settings).fit(X, y)
    >>> sparse = GPRegressor(kernel, approximation=FITC(inducing_inputs=X), inference=Sparse(), **settings).fit(X, y)
    >>> bool(np.isclose(sparse.log_evidence_, exact.log_evidence_, rtol=1e-6))  # with an inducing input at each row
    True
    """

    reads_rows: ClassVar[bool] = True
    partners: ClassVar[str] = "FITC or VFE"

    @classmethod
    def applies(cls, model):
        """Gaussian likelihood, inducing points."""
        inducing = isinstance(model.approximation, Inducing) and not isinstance(model.approximation, PITC | Nystrom)
        return inducing and isinstance(model.likelihood, Gaussian)

    def supports(self, model, data):
        """Gaussian likelihood, inducing points."""
        if not self.applies(model):
            likelihood, approximation = type(model.likelihood).__name__, type(model.approximation).__name__
            return (
                f"{type(self).__name__} inference needs a Gaussian likelihood and an approximation with inducing "
                f"points, such as {self.partners}, not {likelihood} with {approximation}; leave inference='auto'."
            )
        if data.weights is not None:
            return "Sparse inference has no weights per row; give each row's noise_variance instead."
        if model.mean.marginalize:
            return "A marginalised mean needs approximation='exact'; use marginalize=False with inducing points."
        return None

    def inputs(self, X):
        """None: chunks of them are read where they are used, from a file if X is mapped to one."""
        return X[:0]

    def prior(self, model, X):
        """Not the N × M basis and the mean at the data, but what makes them: the model itself."""
        return model

    def inner(self, model, X, bar):
        """The derivatives are in kernel, mean and inducing inputs themselves: little is left."""
        return sum_of_products(bar, model)

    @in_double_precision
    def evaluate(self, prior, data, basis, state=None):
        """Both passes."""
        f = first_pass(prior, data)
        M, alpha = len(f.gamma), f.share
        inverse = linalg.full_inverse(f.chol)  # B⁻¹
        L_inverse = linalg.solve_lower(f.factor, np.eye(M))
        beta = linalg.solve_lower(f.factor, f.gamma, transposed=True)  # L⁻ᵀγ
        rest = f.bound * (1.0 - alpha)
        # α = 0: the part of V̄ that is E times a product of V, in one go. Else V̄ has −2αS̄V too, with S̄ from VB⁻¹.
        project = (f.bound * np.eye(M) - inverse) @ L_inverse if alpha == 0 else -inverse
        g, S_bar = np.empty(len(f.r)), np.empty(len(f.r))
        functions, Z = (prior.kernel, prior.mean), prior.inducing.inducing_inputs

        @in_double_precision
        def pulled_back(part: slice) -> tuple[Any, Any]:
            """Derivatives from these rows: in kernel, mean and Z; and (α > 0) Vᵀ(S̄ + ½E)V."""
            V, n = f.V(part), part.stop - part.start
            E, q, K_bar, spread = f.E[part], f.q[part], f.buffers["K_bar"], None
            g[part] = E * (f.residual[part] - V @ f.gamma)
            rows, padding = K_bar[:n], (0, f.chunk - n)
            X, g_bar = pad_rows(data.X[part], f.chunk), np.pad(g[part], padding)
            np.matmul(V, project, out=rows)
            K_bar[n:] = 0.0
            if alpha == 0:
                r_bar = np.pad(-0.5 * rest * E, padding)
                h, pulled = pull_product(functions, Z, X, K_bar, np.pad(E, padding), beta, r_bar, g_bar)
                S_bar[part] = 0.5 * (g[part] ** 2 - E + E**2 * (f.bound * q - np.asarray(h)[:n]))
            else:
                # S̄ ≥ −½E, as w ≤ E: a root exists, and VᵀEV is known.
                twice = g[part] ** 2 - E**2 * np.einsum("nm,nm->n", V, rows)
                S_bar[part] = 0.5 * (twice - E)
                r_bar = alpha * S_bar[part] - 0.5 * rest * E
                scratch = f.buffers["scratch"][:n]
                rows *= E[:, None]
                rows += np.multiply(g[part][:, None], f.gamma, out=scratch)
                rows -= np.multiply(2.0 * r_bar[:, None], V, out=scratch)
                linalg.solve_lower_rows(f.factor, rows, transposed=True, overwrite=True)
                np.multiply(np.sqrt(np.maximum(0.5 * twice, 0.0))[:, None], V, out=scratch)
                spread = scratch.T @ scratch
                pulled = pull_blocks(functions, Z, X, K_bar, np.pad(r_bar, padding), g_bar)
            return jax.tree.map(np.asarray, pulled), spread

        bar = spread = None
        for pulled, gram in linalg.in_parallel(pulled_back, f.parts):
            bar, spread = add(bar, pulled), add(spread, gram)
        spread = 0.0 if spread is None else spread - 0.5 * f.precision
        gram_bar = np.outer(f.gamma, f.gamma) - np.eye(M) + inverse + rest * f.precision - 2.0 * alpha * spread
        bar = add(bar, pull_factor(functions, Z, -0.5 * L_inverse.T @ gram_bar @ L_inverse))
        fit = np.sum(np.log(f.S)) + f.log_det + g**2 @ f.S + f.gamma @ f.gamma + len(g) * np.log(2 * np.pi)
        value = -0.5 * fit + f.bound * left_out(alpha, f.r / f.noise)
        noise_bar = np.sum(S_bar) + 0.5 * rest * np.sum(f.r * f.E / f.noise)
        return self._evaluation(value, prior, bar, noise_bar)

    def _evaluation(self, value: float, model: Model, bar: Any, noise_bar: float) -> Evaluation:
        """From derivatives in kernel and mean, in Z, and in the noise: laid out like the model."""
        (kernel_bar, mean_bar), Z_bar = bar
        adjoint = Model(
            kernel_bar,
            replace_values(model.likelihood, {("noise_variance",): noise_bar}),
            mean_bar,
            replace_values(model.approximation, {("inducing_inputs",): Z_bar}),
        )
        return Evaluation(float(value), SiteAdjoint(adjoint), None, Status(True, 0, "In closed form."))

    @in_double_precision
    def posterior(self, model, prior, data, basis, state=None):
        """What is left of the data: M weights and an M × M matrix."""
        f = first_pass(prior, data)
        return site_posterior(model, data, predictor(f.gamma, f.chol))

    @in_double_precision
    def leave_one_out(self, prior, data, basis, state=None):
        """In closed form, inducing inputs held: mean y − g/w and variance 1/w, plus what of r is not in S."""
        f = first_pass(prior, data)
        means, variances = np.empty(len(f.r)), np.empty(len(f.r))
        for part in f.parts:
            E, V = f.E[part], f.V(part)
            w = E - E**2 * np.sum(linalg.solve_lower_rows(f.chol.factor, V) ** 2, axis=1)
            means[part] = data.y[part] - E * (f.residual[part] - V @ f.gamma) / w
            variances[part] = 1.0 / w
        open_share = 1.0 - f.share if prior.inducing.opens else 0.0
        return GaussianPredictive(means, np.sqrt(variances + open_share * f.r))


def predictor(gamma: np.ndarray, chol: linalg.Cholesky) -> LowRankPredictor:
    """What prediction needs: γ, and C⁻¹ with B = CCᵀ."""
    inverse = linalg.solve_lower(chol.factor, np.eye(len(gamma)))
    return LowRankPredictor(gamma[None], np.ascontiguousarray(inverse))  # pyright: ignore[reportArgumentType]


def left_out(share: float, ratio: np.ndarray) -> float:
    """The term of (1) for what is not on the diagonal, −(1 − α)/2α Σ log(1 + α·ratio), with its limit at α = 0."""
    if share == 0.0:
        return -0.5 * float(np.sum(ratio))
    return -0.5 * (1.0 - share) / share * float(np.sum(np.log1p(share * ratio)))
