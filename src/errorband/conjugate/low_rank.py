"""Gaussian noise and features: evidence and all derivatives in two passes over the data, in chunks of rows."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg, rows
from errorband.conjugate.base import Closed, Engine, gradient, sum_of_products, values_and_pull
from errorband.data import TrainingData
from errorband.latents import Latent
from errorband.posterior import FeaturePosterior
from errorband.precision import in_double_precision
from errorband.predictive import GaussianPredictive
from errorband.programs import program
from errorband.rows import map_reduce, pad_rows, pad_zeros, padded_size
from errorband.structures.low_rank import LowRankPredictor

CHUNK = 2**19  # entries of K_fu that are worked on at once, at most: memory of that size is used again, larger is new
SHARE, SHARES = 2**17, 2  # entries that are worth a thread of their own, and how many such chunks are made at least
# Order of matrices from which all BLAS threads work between two passes. They go on waiting for work in a busy loop for
# a while, and take that from the threads of the pass.
BETWEEN = 1024
BLOCK = 2**17  # entries that stay in the cache of a core from one operation on the host to the next


class LowRankEngine(Engine):
    r"""Inference under the prior Q = K_fu K_uu⁻¹ K_uf, with a share α of what that leaves out kept on the diagonal.

    With V = K_fu L⁻ᵀ, K_uu = LLᵀ (L = I in weight space), r = diag(K) − Σ_m V², noise σ² and t = y − m(X), the prior of
    the targets is N(0, S + VVᵀ), S = αr + σ². With E = S⁻¹, B = I + VᵀEV, γ = B⁻¹VᵀEt and g = E(t − Vγ):

        log Z = −½ [Σ log S + log|B| + Σ g²S + γᵀγ + N log 2π] − b (1 − α)/2α Σ log(1 + αr/σ²),         (1)

    where b = 1 for VFE (the last term becomes −½ Σ r/σ²) and PowerEP, 0 for the others (Titsias 2009, eq. 9; Bui, Yan &
    Turner 2017, eq. 13). With w = diag(S + VVᵀ)⁻¹ = E − E² diag(VB⁻¹Vᵀ), the derivatives are

        S̄ = ½(g² − w),    r̄ = αS̄ − ½b(1 − α)E,    σ̄² = S̄ + ½b(1 − α) rE/σ²,                            (2)
        K̄_fu = V̄L⁻¹,    V̄ = gγᵀ − EVB⁻¹ − 2r̄V,    K̄_uu = −½ L⁻ᵀ(V̄ᵀV)L⁻¹,                                (3)

    and V̄ᵀV = γγᵀ − I + B⁻¹ + b(1 − α)(B − I) − 2αVᵀS̄V needs no product over the data unless α > 0. The first pass makes
    B; the second makes (3), a chunk of rows at a time, and pulls it back through kernel, mean and features. Memory is
    O(chunk·M + M²). Where all rows are one chunk, one program makes all covariances and another goes the way back, from
    what the first has computed.

    The approximation has ``share`` (α), ``bound`` (b) and ``opens`` (whether new inputs have the prior variance of the
    kernel, not that of Q).
    """

    reads_rows: ClassVar[bool] = True

    @in_double_precision
    def evaluate(self, approximation, latent, noise, data):
        # Not at each step: to switch BLAS threads off and on costs as much as a small factorisation.
        with linalg.blas_threads(latent.features.size, BETWEEN):
            return self._evaluate(approximation, latent, noise, data)

    def _evaluate(self, approximation, latent, noise, data):
        f = first_pass(approximation, latent, noise, data)
        M, alpha, bound = len(f.gamma), f.alpha, f.bound
        inverse = linalg.full_inverse(f.chol)  # B⁻¹
        left = bound * (1.0 - alpha)  # b(1 − α)
        # α = 0: the part of V̄ that is E times a product of V, in one go. Else V̄ has −2αS̄V too, with S̄ from VB⁻¹.
        project = _whitened(f.whitening, bound * np.eye(M) - inverse) if alpha == 0 else -inverse
        beta = f.gamma if f.whitening is None else f.whitening.T @ f.gamma
        state = _Second(latent, f.whitening, f.gamma, beta, project, alpha, bound, left, f.size)
        chunks = f.second_rows()

        def K_uu_bar(spread: Any) -> np.ndarray | None:
            """Of (3)."""
            if f.factor is None:
                return None
            spread = spread - 0.5 * f.precision if alpha > 0 else 0.0
            gram_bar = np.outer(f.gamma, f.gamma) - np.eye(M) + inverse + left * f.precision - 2.0 * alpha * spread
            return -0.5 * _whitened(f.whitening, _whitened(f.whitening, gram_bar).T)

        if f.whole is None:
            (latent_bar, spread), values = map_reduce(_second_chunk, state, chunks)
            g, S_bar = rows.joined(values)
            if (uu_bar := K_uu_bar(spread)) is not None:
                latent_bar = jax.tree.map(lambda a, b: a + np.asarray(b), latent_bar, _pull_factor(latent, uu_bar))
        else:
            adjoint, g, S_bar, spread = _adjoint(state, chunks[0])
            h, bar = _pull_whole(f.whole.pull, f.whole.K_fu if alpha == 0 else None, adjoint, K_uu_bar(spread))
            latent_bar = jax.tree.map(np.asarray, bar)  # waits, for the adjoint is scratch memory
            S_bar = _S_bar(state, chunks[0], g, h) if alpha == 0 else S_bar
        noise_bar = S_bar + 0.5 * left * f.r * f.E / f.noise
        f.give_back(data)
        return Closed(f.log_evidence(g), latent_bar, noise_bar, -g)

    @in_double_precision
    def posterior(self, approximation, latent, noise, data):
        """Keep M weights and an M × M matrix."""
        f = first_pass(approximation, latent, noise, data)
        chunks = f.second_rows()
        _, g = map_reduce(_weights_chunk, (latent, f.whitening, f.gamma, f.size), chunks)
        value = f.log_evidence(rows.joined(g))
        found = _feature_posterior(approximation, (latent,), [f.factor], _predictor(f.gamma, f.chol))
        f.give_back(data)
        return value, found

    @in_double_precision
    def leave_one_out(self, approximation, latent, noise, data):
        """In closed form, features held: mean y − g/w and variance 1/w, plus what of r is not in S."""
        f = first_pass(approximation, latent, noise, data)
        chunks = f.second_rows()
        _, values = map_reduce(_left_out_chunk, (latent, f.whitening, f.gamma, f.chol.factor, f.size), chunks)
        g, w = rows.joined(values)
        open_share = 1.0 - f.alpha if approximation.opens else 0.0
        f.give_back(data)
        return GaussianPredictive(data.y - g / w, np.sqrt(1.0 / w + open_share * f.r))

    def inner(self, approximation, latent, X, layout, bar, residual_bar):
        def inner(piece):
            bars = bar.part(piece), None if residual_bar is None else piece.once(residual_bar)
            return sum_of_products(bars, approximation.structure(latent, piece.of(X)))

        return rows.sum_over_rows(inner, bar.n_data, rows.piece_size(bar.n_data, bar.basis.shape[2]))

    def unseen_variance(self, approximation, latent, X):
        """The share of r that is neither on the diagonal nor seen by the likelihood, of bands that open."""
        if approximation.bound or approximation.share == 1.0 or not approximation.opens:
            return None
        return (1.0 - approximation.share) * left_out(latent, X, whitened_in_pieces(latent, X))

    @in_double_precision
    def site_posterior(self, approximation, latents, data, conditioned):
        factors = [_factor(latent) for latent in latents]
        return _feature_posterior(approximation, latents, factors, conditioned.predictor())


# ------------------------------------------------------------------------------------------------------ first pass
class FirstPass(NamedTuple):
    """Everything of size M² or N that (1) is made of."""

    chunks: list["_FirstRows"]
    parts: list[slice]
    V: list[np.ndarray | None]  # of each chunk, if all fit the memory budget: the second pass need not make them again
    size: int  # rows of a padded chunk
    alpha: float
    bound: float
    noise: np.ndarray  # σ², of each row
    t: np.ndarray
    q: np.ndarray  # Σ_m V²
    r: np.ndarray
    S: np.ndarray
    E: np.ndarray
    factor: np.ndarray | None  # L; None for the identity
    whitening: np.ndarray | None  # L⁻¹
    precision: np.ndarray  # VᵀEV = B − I
    chol: linalg.Cholesky  # of B
    gamma: np.ndarray
    kept: np.ndarray | None  # memory of V
    whole: "_Whole | None"

    def log_evidence(self, g: np.ndarray) -> float:
        """(1)."""
        fit = np.sum(np.log(self.S)) + self.chol.log_det + g**2 @ self.S + self.gamma @ self.gamma
        fit += len(self.t) * np.log(2 * np.pi)
        return float(-0.5 * fit + self.bound * _bound_term(self.alpha, self.r / self.noise))

    def second_rows(self) -> list["_SecondRows"]:
        """The chunks of the second pass."""
        zipped = zip(self.chunks, self.parts, self.V, strict=True)
        return [_SecondRows(c.X, self.E[p], self.q[p], self.t[p], V) for c, p, V in zipped]

    def make_V(self, latent: Latent, chunk: "_SecondRows") -> np.ndarray:
        """V of a chunk of the second pass; the next call in this thread may overwrite it."""
        return _V_of(latent, self.whitening, self.size, chunk)

    def give_back(self, data: TrainingData) -> None:
        """Leave the memory of V to the next evaluation at these data."""
        if self.kept is not None:
            data.spare.give(_kept_key(len(data.y), len(self.gamma)), self.kept)


class _First(NamedTuple):
    latent: Latent
    whitening: np.ndarray | None
    alpha: float
    size: int


class _FirstRows(NamedTuple):
    X: Any  # (n, D), or rows of a file
    y: np.ndarray
    noise: np.ndarray
    V: np.ndarray | None  # memory to return V in, as NumPy's ``out``; None: V is not wanted
    covariances: tuple[Any, Any, Any] | None  # K_fu, prior variances and mean; None: to be made


class _Whole(NamedTuple):
    """All covariances, where the rows are one chunk, and the way back from them."""

    K_fu: Any
    k: Any
    m: Any
    K_uu: Any
    pull: Any


def first_pass(approximation: Any, latent: Latent, noise: np.ndarray, data: TrainingData) -> FirstPass:
    """Make B, a chunk of rows at a time."""
    n, M = len(data.y), latent.features.size
    size = chunk_rows(n, M)
    parts = rows.slices(n, size)
    at_once = len(parts) == 1 and isinstance(data.X, np.ndarray)
    whole = _Whole(*_whole_covariances(latent, data.on_device)) if at_once else None
    factor = _factor(latent) if whole is None else _factorised(whole.K_uu)
    whitening = None if factor is None else linalg.inverse_lower(factor)
    kept = None
    if 8 * n * M <= rows.MEMORY_BUDGET:
        kept = data.spare.take(_kept_key(n, M))
        kept = linalg.aligned_empty(n, M) if kept is None else kept
    known = None if whole is None else whole[:3]
    chunks = [
        _FirstRows(rows_of(data.X, part), data.y[part], noise[part], None if kept is None else kept[part], known)
        for part in parts
    ]
    alpha = float(approximation.share)
    (precision, right), values = map_reduce(_first_chunk, _First(latent, whitening, alpha, size), chunks)
    t, q, k, S = rows.joined([v[:4] for v in values])
    chol = linalg.cholesky(precision + np.eye(M), overwrite=True)
    return FirstPass(
        chunks=chunks,
        parts=parts,
        V=[v[4] for v in values],
        size=size,
        alpha=alpha,
        bound=float(approximation.bound),
        noise=noise,
        t=t,
        q=q,
        r=np.maximum(k - q, 0.0),
        S=S,
        E=1.0 / S,
        factor=factor,
        whitening=whitening,
        precision=precision,
        chol=chol,
        gamma=linalg.solve_cholesky(chol.factor, right),
        kept=kept,
        whole=whole,
    )


@in_double_precision
def _first_chunk(state: _First, chunk: _FirstRows) -> tuple[Any, Any]:
    """VᵀEV and VᵀEt of these rows; t, q, k and S of each, and V if it is wanted."""
    V, k, m = _make_V(state.latent, state.whitening, chunk.X, state.size, chunk.V, chunk.covariances)
    (n, M), t = V.shape, chunk.y - m
    q, S, precision = np.empty(n), np.empty(n), np.zeros((M, M))
    with linalg.blas_threads(M):
        for part in blocks(n, M):
            own, scaled = V[part], _SCRATCH.array("scaled", *V[part].shape)
            q[part] = np.einsum("nm,nm->n", own, own)
            S[part] = state.alpha * np.maximum(k[part] - q[part], 0.0) + chunk.noise[part]
            np.divide(own, np.sqrt(S[part])[:, None], out=scaled)
            precision += scaled.T @ scaled
        right = V.T @ (t / S)
    return (precision, right), (t, q, k, S, None if chunk.V is None else V)


def _whitened(whitening: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Rows times L⁻¹."""
    return rows if whitening is None else linalg.multiply_lower_rows(whitening, rows, transposed=True)


def _make_V(
    latent: Latent,
    whitening: np.ndarray | None,
    X: Any,
    size: int,
    out: np.ndarray | None = None,
    known: tuple[Any, Any, Any] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V, prior variances and mean at some rows; V is in the memory of ``out``, or in that of this thread."""
    X = np.asarray(X)
    found = _covariances(latent, pad_rows(X, size)) if known is None else known
    K_fu, k, m = (np.asarray(a)[: len(X)] for a in found)
    V = _SCRATCH.array("V", *K_fu.shape) if out is None else out
    for part in blocks(*V.shape):
        V[part] = K_fu[part]
        if whitening is not None:
            linalg.multiply_lower_rows(whitening, V[part], overwrite=True)
    return V, k, m


def blocks(n: int, M: int) -> list[slice]:
    """Rows in pieces small enough for the cache, large enough for BLAS."""
    return rows.slices(n, max(384, BLOCK // M))


_SCRATCH = rows.Scratch()


def _kept_key(n: int, M: int) -> tuple[str, int, int]:
    return ("V", n, M)


class RowsOfFile(NamedTuple):
    """Some rows of a table that is read when it is used."""

    table: Any
    part: slice

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.table[self.part], dtype=dtype)


def rows_of(X: Any, part: slice) -> Any:
    """Some rows of an array, or of a table in a file, which is not read here."""
    return X[part] if isinstance(X, np.ndarray) else RowsOfFile(X, part)


def chunk_rows(n: int, M: int) -> int:
    """Rows of a chunk: all chunks alike, so that they share compiled code, and little padding in the last.

    Their number is even, if there are several: with two threads neither waits for the last. It does not depend on the
    number of threads at hand, as the order of sums would change with it.
    """
    chunks = -(-n // max(512, CHUNK // M))
    chunks = max(chunks, min(SHARES, n * M // SHARE))
    chunks += chunks % 2 if chunks > 1 else 0
    return padded_size(-(-n // chunks))


# ----------------------------------------------------------------------------------------------------- second pass
class _Second(NamedTuple):
    latent: Latent
    whitening: np.ndarray | None
    gamma: np.ndarray
    beta: np.ndarray  # L⁻ᵀγ
    project: np.ndarray  # what V is multiplied with: (bI − B⁻¹)L⁻¹ if α = 0, else −B⁻¹
    alpha: float
    bound: float
    left: float  # b(1 − α)
    size: int

    def r_bar(self, S_bar: Any, E: np.ndarray) -> np.ndarray:
        """Of (2)."""
        return self.alpha * S_bar - 0.5 * self.left * E


class _SecondRows(NamedTuple):
    X: Any
    E: np.ndarray
    q: np.ndarray
    t: np.ndarray
    V: np.ndarray | None  # None: to be made again


def _V_of(latent: Latent, whitening: np.ndarray | None, size: int, chunk: _SecondRows) -> np.ndarray:
    return chunk.V if chunk.V is not None else _make_V(latent, whitening, chunk.X, size)[0]


class _Adjoint(NamedTuple):
    """K̄_fu = EY + gβᵀ, the derivatives in the prior variances, and g in the mean, at the rows of a padded chunk."""

    Y: Any
    E: Any
    beta: Any
    k_bar: Any
    g: Any

    def K_fu(self) -> Any:
        """K̄_fu. Traced."""
        return self.E[:, None] * self.Y + self.g[:, None] * self.beta


@in_double_precision
def _second_chunk(state: _Second, chunk: _SecondRows) -> tuple[Any, Any]:
    """Derivatives in the latent prior from these rows and, if α > 0, Vᵀ(S̄ + ½E)V; and g and S̄ of each row."""
    adjoint, g, S_bar, spread = _adjoint(state, chunk)
    X = pad_rows(np.asarray(chunk.X), state.size)
    if state.alpha == 0:
        h, bar = _pull_product(state.latent, X, adjoint)
        S_bar = _S_bar(state, chunk, g, h)
    else:
        bar = _pull_scaled(state.latent, X, adjoint)
    # The arrays given to JAX are scratch memory: it must be done with them before they are used again.
    return (jax.tree.map(np.asarray, jax.block_until_ready(bar)), spread), (g, S_bar)


def _adjoint(state: _Second, chunk: _SecondRows) -> tuple[_Adjoint, np.ndarray, np.ndarray, np.ndarray]:
    """The adjoint, in memory of this thread, and g; S̄ and Vᵀ(S̄ + ½E)V if α > 0 (else S̄ follows from the way back)."""
    E, size, V = chunk.E, state.size, _V_of(state.latent, state.whitening, state.size, chunk)
    n, M = V.shape
    g = E * (chunk.t - V @ state.gamma)
    Y = _SCRATCH.array("K_bar", size, M)
    Y[n:] = 0.0
    S_bar, spread = np.zeros(0), np.zeros(0)
    with linalg.blas_threads(M):
        if state.alpha == 0:
            for part in blocks(n, M):
                np.matmul(V[part], state.project, out=Y[part])
            r_bar = state.r_bar(0.0, E)
        else:
            S_bar, spread = np.empty(n), np.zeros((M, M))
            for part in blocks(n, M):
                S_bar[part] = _second_block(state, V[part], E[part], g[part], Y[part], spread)
            r_bar = state.r_bar(S_bar, E)
    E, r_bar, g_bar = (pad_zeros(a, size) for a in (E, r_bar, g))
    return _Adjoint(Y, E, state.beta, r_bar, g_bar), g, S_bar, spread


def _S_bar(state: _Second, chunk: _SecondRows, g: np.ndarray, h: Any) -> np.ndarray:
    """S̄ if α = 0, from the sums h of the rows of K_fu ∘ Y: as K_fu = VLᵀ, that is diag V(·)Vᵀ for Y = V(·)L⁻¹."""
    return 0.5 * (g**2 - chunk.E + chunk.E**2 * (state.bound * chunk.q - np.asarray(h)[: len(g)]))


def _second_block(
    state: _Second, V: np.ndarray, E: np.ndarray, g: np.ndarray, K_bar: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """S̄ of these rows, if α > 0. Y of K̄_fu = EY + gβᵀ is written to ``K_bar``, Vᵀ(S̄ + ½E)V is added to ``spread``."""
    np.matmul(V, state.project, out=K_bar)  # −VB⁻¹
    # S̄ ≥ −½E, as w ≤ E: a root exists, and VᵀEV is known.
    twice = g**2 - E**2 * np.einsum("nm,nm->n", V, K_bar)
    S_bar = 0.5 * (twice - E)
    scratch = _SCRATCH.array("scaled", *V.shape)
    K_bar -= np.multiply((2.0 * state.r_bar(S_bar, E) / E)[:, None], V, out=scratch)
    if state.whitening is not None:
        linalg.multiply_lower_rows(state.whitening, K_bar, transposed=True, overwrite=True)
    np.multiply(np.sqrt(np.maximum(0.5 * twice, 0.0))[:, None], V, out=scratch)
    spread += scratch.T @ scratch
    return S_bar


@in_double_precision
def _weights_chunk(state: tuple[Any, ...], chunk: _SecondRows) -> tuple[Any, Any]:
    """G of each row."""
    latent, whitening, gamma, size = state
    V = _V_of(latent, whitening, size, chunk)
    return (), chunk.E * (chunk.t - V @ gamma)


@in_double_precision
def _left_out_chunk(state: tuple[Any, ...], chunk: _SecondRows) -> tuple[Any, Any]:
    """G and w of each row."""
    latent, whitening, gamma, chol, size = state
    V = _V_of(latent, whitening, size, chunk)
    g = chunk.E * (chunk.t - V @ gamma)
    return (), (g, chunk.E - chunk.E**2 * np.sum(linalg.solve_lower_rows(chol, V) ** 2, axis=1))


def _bound_term(share: float, ratio: np.ndarray) -> float:
    """The last term of (1), −(1 − α)/2α Σ log(1 + α·ratio), with its limit at α = 0."""
    if share == 0.0:
        return -0.5 * float(np.sum(ratio))
    return -0.5 * (1.0 - share) / share * float(np.sum(np.log1p(share * ratio)))


# ------------------------------------------------------------------------------------------------------- posterior
def _predictor(gamma: np.ndarray, chol: linalg.Cholesky) -> LowRankPredictor:
    """γ, and C⁻¹ with B = CCᵀ."""
    inverse = linalg.solve_lower(chol.factor, np.eye(len(gamma)))
    return LowRankPredictor(gamma[None], np.ascontiguousarray(inverse))  # pyright: ignore[reportArgumentType]


def _feature_posterior(approximation: Any, latents: Any, factors: Any, predictor: Any) -> FeaturePosterior:
    return FeaturePosterior(
        latents=latents, factors=tuple(factors), predictor=predictor, opens=approximation.opens, jitter=0.0
    )


# --------------------------------------------------------------------------------------- covariances and derivatives
def left_out(latent: Latent, X: Any, basis: Any) -> Any:
    """The diagonal of K − Q at the rows of X, which is not negative but for rounding. Traced."""
    return jnp.maximum(latent.variance(X) - jnp.sum(basis**2, axis=1), 0.0)


def whitened_in_pieces(latent: Latent, X: Any) -> Any:
    """Φ = K_fu L⁻ᵀ at all rows, a piece at a time. Traced."""
    features: Any = latent.features
    n, factor = X.shape[0], features.factor(latent.kernel)
    size = rows.piece_size(n, features.size)
    return rows.map_over_rows(lambda piece: latent.whitened(factor, piece.of(X)), n, size)


def _factor(latent: Latent) -> np.ndarray | None:
    """L with LLᵀ = K_uu; None for the identity."""
    return _factorised(_feature_covariance(latent))


def _factorised(K_uu: Any) -> np.ndarray | None:
    if K_uu is None:
        return None
    chol = linalg.cholesky(np.array(K_uu), overwrite=True)
    if chol.jitter > 0:
        raise linalg.NotPositiveDefinite(
            "The covariance of the inducing variables is not positive definite; move inducing inputs apart or "
            "rescale the inputs."
        )
    return chol.factor


@program
def _feature_covariance(latent: Latent) -> Any:
    """K_uu with its little noise; None for the identity."""
    K_uu = latent.features.K_uu(latent.kernel)
    return None if K_uu is None else linalg.regularised(K_uu)


def _work(latent: Latent, X: Any, *adjoint: Any) -> int:
    """Numbers that a program makes on the way: K_fu, its derivative and more. Searches call it a hundred times."""
    return 6 * len(X) * latent.features.size  # pyright: ignore[reportOptionalMemberAccess]


@program(numbers=_work)
def _covariances(latent: Latent, X: Any) -> tuple[Any, Any, Any]:
    """K_fu, prior variances and mean."""
    features: Any = latent.features
    return features.K_fu(latent.kernel, X), features.k_ff(latent.kernel, X), latent.mean.evaluate(X)


@program(numbers=_work)
def _pull_scaled(latent: Latent, X: Any, adjoint: _Adjoint) -> Latent:
    """Derivatives in the latent prior."""

    def inner(latent):
        K_fu, k, m = _covariances(latent, X)
        return jnp.vdot(adjoint.K_fu(), K_fu) + jnp.vdot(adjoint.k_bar, k) + jnp.vdot(adjoint.g, m)

    return gradient(inner, latent)


@program(numbers=_work)
def _pull_product(latent: Latent, X: Any, adjoint: _Adjoint) -> tuple[Any, Latent]:
    """The same, and the sum of each row of K_fu ∘ Y: no further product for S̄."""
    return jnp.sum(_covariances(latent, X)[0] * adjoint.Y, axis=1), _pull_scaled(latent, X, adjoint)


@program(numbers=lambda latent, X: 4 * len(X) * latent.features.size)
def _whole_covariances(latent: Latent, X: Any) -> tuple[Any, ...]:
    """K_fu, prior variances, mean, K_uu, and the way back from these to the latent prior."""
    values, pull = values_and_pull(lambda l: (*_covariances(l, X), _feature_covariance(l)), latent)
    return *values, pull


@program(numbers=lambda pull, K_fu, adjoint, K_uu_bar: 4 * adjoint.Y.size)
def _pull_whole(pull: Any, K_fu: Any, adjoint: _Adjoint, K_uu_bar: Any) -> tuple[Any, Latent]:
    """The sum of each row of K_fu ∘ Y, if K_fu is given, and derivatives in the latent prior."""
    h = None if K_fu is None else jnp.sum(K_fu * adjoint.Y, axis=1)
    return h, pull((adjoint.K_fu(), adjoint.k_bar, adjoint.g, K_uu_bar))


@program
def _pull_factor(latent: Latent, bar: Any) -> Latent:
    """Derivatives in the latent prior, from those in K_uu."""
    return gradient(lambda l: jnp.vdot(bar, linalg.regularised(l.features.K_uu(l.kernel))), latent)
