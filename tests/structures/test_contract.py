"""Every structure keeps the contract: checked against the same algebra done densely in NumPy."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagonal_sites import diagonal_sites
from errorband.structures import STRUCTURES, Dense, LowRank, LowRankBlocks, SimplexSites, Sites, Structure

N, M, S = 7, 4, 5  # data, basis functions, new inputs
TOLERANCE = 1e-9


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


class Case(NamedTuple):
    """A structure, what it needs to predict, and the covariance (L, S, N) between new and training latents."""

    structure: Structure
    cross: jax.Array
    prior: jax.Array
    K_star: np.ndarray


def dense(rng, L, n=N, m=M):
    factor = rng.normal(size=(L, n + S, n + S + 2)) / np.sqrt(n + S)
    K = factor @ factor.swapaxes(1, 2) + 0.1 * np.eye(n + S)
    prior = np.diagonal(K[:, n:, n:], axis1=1, axis2=2).T
    return Case(Dense(jnp.asarray(K[:, :n, :n])), jnp.asarray(K[:, n:, :n]), jnp.asarray(prior), K[:, n:, :n])


def low_rank(rng, L, n=N, m=M, zero_diagonal=False):
    basis = rng.normal(size=(L, n + S, m)) / np.sqrt(m)
    diag = np.zeros((L, n + S)) if zero_diagonal else rng.uniform(0.1, 1.0, size=(L, n + S))
    diag[:, 0] = 0.0  # an inducing input that sits on a datum
    prior = (diag[:, n:] + np.sum(basis[:, n:] ** 2, axis=2)).T
    structure = LowRank(jnp.asarray(diag[:, :n]), jnp.asarray(basis[:, :n]))
    K_star = basis[:, n:] @ basis[:, :n].swapaxes(1, 2)
    return Case(structure, jnp.asarray(basis[:, n:]), jnp.asarray(prior), K_star)


def low_rank_blocks(rng, L, n=N, m=M, sizes=(3, 1, 2)):
    """Rows in mixed order over blocks of these sizes and one more for the rest, with an empty block among them."""
    basis = rng.normal(size=(L, n + S, m)) / np.sqrt(m)
    labels = rng.permutation(np.repeat(np.arange(len(sizes) + 1), [*sizes, n])[:n])
    labels[labels == len(sizes)] += 1
    B = max(np.max(np.bincount(labels)), 1) + 1  # no block is full
    rest, blocks = np.zeros((L, len(sizes) + 2, B, B)), np.zeros((L, len(sizes) + 2, B, m))
    place = np.zeros(n)
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        size = len(rows)
        half = rng.normal(size=(L, size, size)) / np.sqrt(size)
        half[:, :, 0] *= size > 1  # singular, and nothing left out where a row is alone
        rest[:, k, :size, :size] = half @ half.swapaxes(1, 2)
        blocks[:, k, :size] = basis[:, rows]
        place[rows] = k * B + np.arange(size)
    structure = LowRankBlocks(*map(jnp.asarray, (rest, blocks, place)))
    prior = (rng.uniform(0.1, 1.0, size=(L, S)) + np.sum(basis[:, n:] ** 2, axis=2)).T
    K_star = basis[:, n:] @ basis[:, :n].swapaxes(1, 2)
    return Case(structure, jnp.asarray(basis[:, n:]), jnp.asarray(prior), K_star)


BUILDERS = {
    "dense": dense,
    "low_rank": low_rank,
    "low_rank with N < M": lambda rng, L, n=N, m=M: low_rank(rng, L, n, n + 3),
    "low_rank in weight space": lambda rng, L, n=N, m=M: low_rank(rng, L, n, m, zero_diagonal=True),
    "low_rank_blocks": low_rank_blocks,
}


def random_sites(rng, kind, K, n, L, margin=0.3):
    """Sites for a prior covariance K (nL, nL); indefinite ones leave ``margin`` as least eigenvalue of I + K½ΠK½."""
    root = rng.normal(size=(n, L, L))
    shift = rng.normal(size=(n, L))
    if kind == "positive":
        precision = root @ root.swapaxes(1, 2) + 0.1 * np.eye(L)
    elif kind == "zeros":
        root[:, :, 0] = 0.0  # singular throughout (absent, when L = 1) …
        root[::3] = 0.0  # … and some say nothing, though they still push
        precision = root @ root.swapaxes(1, 2)
        if L == 1:
            precision = rng.uniform(0.5, 2.0, size=(n, 1, 1)) * (np.arange(n) % 3 > 0)[:, None, None]
    else:
        precision = 0.5 * (root + root.swapaxes(1, 2))
        precision[0] = -np.eye(L)
        values, vectors = np.linalg.eigh(K)
        half = vectors * np.sqrt(np.maximum(values, 0.0))
        least = np.linalg.eigvalsh(half.T @ block_diagonal(precision) @ half)[0]
        precision *= (1.0 - margin) / -least
    return Sites(jnp.asarray(shift), jnp.asarray(precision))


def block_diagonal(blocks):
    n, L, _ = blocks.shape
    return np.einsum("nij,nm->nimj", blocks, np.eye(n)).reshape(n * L, n * L)


def make(name, L, kind, seed=0, n=N, m=M):
    rng = np.random.default_rng([seed, L])
    case = BUILDERS[name](rng, L, n, m)
    return case, random_sites(rng, kind, np.asarray(dense_of(case.structure)), n, L)


class Reference(NamedTuple):
    log_det: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray  # (NL, NL)
    log_partition: np.ndarray
    W: np.ndarray


def reference(structure, sites) -> Reference:
    K, Pi = np.asarray(dense_of(structure)), block_diagonal(np.asarray(sites.precision))
    shift = np.asarray(sites.shift)
    S_ = np.eye(len(K)) + Pi @ K
    sign, log_det = np.linalg.slogdet(S_)
    assert sign > 0
    weights = np.linalg.solve(S_, shift.ravel())
    A = K @ np.linalg.inv(S_)
    mean = K @ weights
    return Reference(
        np.asarray(log_det),
        weights.reshape(shift.shape),
        mean.reshape(shift.shape),
        A,
        0.5 * shift.ravel() @ mean - 0.5 * log_det,
        Pi - Pi @ A @ Pi,
    )


def blocks_of(A, L):
    """The diagonal L×L blocks."""
    n = len(A) // L
    return np.einsum("nink->nik", A.reshape(n, L, n, L))


def close(actual, desired, tolerance=TOLERANCE):
    scale = np.max(np.abs(desired), initial=1e-300)
    np.testing.assert_allclose(np.asarray(actual), desired, rtol=tolerance, atol=tolerance * scale)


# Compiled once per kind of structure and shape, and shared by the tests below.


@jax.jit
def everything(structure, sites, cross, prior):
    c = structure.condition(sites)
    return {
        "posterior": c,
        "log_partition": c.log_partition,
        "marginals": c.marginals(),
        "prediction": c.predictor()(cross, prior),
        "adjoint": c.adjoint(),
        "solution": c.solve(2.0 * sites.shift + 1.0),
        "state": c.state(),
        "prior": (structure.diagonal(), structure.matvec(sites.shift)),
    }


def evaluate(case, sites):
    return everything(case.structure, sites, case.cross, case.prior)


def naive_log_partition(structure, sites):
    K = structure.dense()
    N, L = sites.shift.shape
    Pi = jnp.einsum("nij,nm->nimj", sites.precision, jnp.eye(N)).reshape(N * L, N * L)
    b = sites.shift.reshape(-1)
    system = jnp.eye(N * L) + Pi @ K
    return 0.5 * b @ K @ jnp.linalg.solve(system, b) - 0.5 * jnp.linalg.slogdet(system)[1]


naive_gradient = jax.jit(jax.value_and_grad(naive_log_partition, argnums=(0, 1)))
condition = jax.jit(lambda structure, sites: structure.condition(sites))
adjoint = jax.jit(lambda conditioned: conditioned.adjoint())
dense_of = jax.jit(lambda structure: structure.dense())
updated = jax.jit(lambda state, n, shift, precision: state.update(n, shift, precision))
admits = jax.jit(lambda state, n, change: state.admits(n, change))


@jax.jit
def sweep(structure, sites, order):
    """From the prior, one site after the other, as EP does."""

    def body(i, state):
        n = order[i]
        return state.update(n, sites.shift[n], sites.precision[n])

    start = structure.condition(Sites.zeros(structure.n_data, structure.n_latents)).state()
    state = jax.lax.fori_loop(0, structure.n_data, body, start)
    return state, jax.vmap(state.marginal)(jnp.arange(structure.n_data))


over_cases = pytest.mark.parametrize(
    ("name", "L", "kind"),
    [
        (name, L, kind)
        for name in BUILDERS
        for L in (1, 2, 3)
        for kind in ("positive", "zeros", "indefinite")
        if L < 3 or name in STRUCTURES
    ],
)
over_structures = pytest.mark.parametrize("name", BUILDERS)


def test_every_registered_structure_is_tested():
    assert {name.split()[0] for name in BUILDERS} == set(STRUCTURES)
    for name, builder in BUILDERS.items():
        assert type(builder(np.random.default_rng(0), 1).structure) is STRUCTURES[name.split()[0]]


@over_cases
def test_agrees_with_dense_algebra(name, L, kind):
    case, sites = make(name, L, kind)
    check_against_dense_algebra(case, sites)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(list(BUILDERS)),
    kind=st.sampled_from(["positive", "zeros", "indefinite"]),
    L=st.integers(1, 3),
    n=st.integers(1, 9),
    m=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_agrees_with_dense_algebra_at_any_size(name, kind, L, n, m, seed):
    case, sites = make(name, L, kind, seed, n, m)
    check_against_dense_algebra(case, sites)


def check_against_dense_algebra(case, sites):
    structure = case.structure
    n, L = structure.n_data, structure.n_latents
    K, Pi, b = np.asarray(dense_of(structure)), block_diagonal(np.asarray(sites.precision)), np.asarray(sites.shift)
    want = reference(structure, sites)
    got = evaluate(case, sites)
    assert got["posterior"].proper
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(got))

    close(got["prior"][0], np.diag(K).reshape(n, L))
    close(got["prior"][1], (K @ b.ravel()).reshape(n, L))
    close(got["posterior"].log_det, want.log_det)
    close(got["posterior"].weights, want.weights)
    close(got["posterior"].mean, want.mean)
    close(got["log_partition"], want.log_partition)
    close(got["marginals"][0], want.mean)
    close(got["marginals"][1], blocks_of(want.covariance, L))
    close(got["solution"], np.linalg.solve(np.eye(n * L) + Pi @ K, 2.0 * b.ravel() + 1.0).reshape(n, L))

    k_star = np.einsum("lsn,lk->slnk", case.K_star, np.eye(L)).reshape(-1, L, n * L)
    prior = np.asarray(case.prior)[:, :, None] * np.eye(L)
    close(got["prediction"][0], k_star @ want.weights.ravel())
    close(got["prediction"][1], prior - k_star @ want.W @ k_star.swapaxes(1, 2))


@over_cases
def test_adjoint_is_the_gradient(name, L, kind):
    case, sites = make(name, L, kind)
    value, (want, want_sites) = naive_gradient(case.structure, sites)
    found = evaluate(case, sites)
    got = found["adjoint"]
    close(found["log_partition"], value)
    assert jax.tree.structure(got) == jax.tree.structure(case.structure)
    jax.tree.map(close, got, want)
    # In the sites: h, and −½(Aₙ + hₙhₙᵀ).
    mean, covariance = found["marginals"]
    close(mean, want_sites.shift)
    close(-0.5 * (covariance + mean[:, :, None] * mean[:, None, :]), want_sites.precision)


@over_structures
def test_adjoint_agrees_with_finite_differences(name):
    case, sites = make(name, 2, "indefinite")
    rng = np.random.default_rng(1)
    direction = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), case.structure)
    if isinstance(direction, Dense):
        direction = Dense(direction.K + jnp.swapaxes(direction.K, 1, 2))
    if isinstance(direction, LowRankBlocks):  # a place is no number to be moved
        rest = direction.rest + jnp.swapaxes(direction.rest, 2, 3)
        direction = LowRankBlocks(rest, direction.basis, jnp.zeros(N))
    step = 1e-4

    def along(t):
        # diag may be 0 and must not go below it in a model, but the reference formula does not mind.
        moved = jax.tree.map(lambda x, d: x + t * d, case.structure, direction)
        return naive_gradient(moved, sites)[0]

    difference = (8 * (along(step) - along(-step)) - (along(2 * step) - along(-2 * step))) / (12 * step)
    adjoint = evaluate(case, sites)["adjoint"]
    dot = sum(jnp.vdot(a, d) for a, d in zip(jax.tree.leaves(adjoint), jax.tree.leaves(direction), strict=True))
    np.testing.assert_allclose(dot, difference, rtol=1e-7)


@over_cases
def test_site_updates_equal_conditioning_afresh(name, L, kind):
    case, sites = make(name, L, kind)
    order = jnp.asarray(np.random.default_rng(2).permutation(N))
    state, (mean, covariance) = sweep(case.structure, sites, order)
    jax.tree.map(close, state, evaluate(case, sites)["state"])
    want = reference(case.structure, sites)
    close(mean, want.mean)
    close(covariance, blocks_of(want.covariance, L))


@pytest.mark.parametrize("L", [1, 2])
@over_structures
def test_update_changes_one_site(name, L):
    case, sites = make(name, L, "positive")
    shift, precision = (np.array(a) for a in (sites.shift, sites.precision))
    more = shift[0] + 1.0, 0.5 * precision[0]
    shift[2] += more[0]
    precision[2] += more[1]
    got = updated(evaluate(case, sites)["state"], 2, *more)
    jax.tree.map(close, got, evaluate(case, Sites(jnp.asarray(shift), jnp.asarray(precision)))["state"])


@pytest.mark.parametrize("L", [1, 2])
@over_structures
def test_improper_posterior_is_flagged(name, L):
    """The flag is exact: it turns where the least eigenvalue of I + K½ΠK½ crosses zero."""
    for margin, proper in ((1e-6, True), (-1e-6, False), (-3.0, False), (-1e4, False)):
        rng = np.random.default_rng([3, L])
        case = BUILDERS[name](rng, L)
        sites = random_sites(rng, "indefinite", np.asarray(dense_of(case.structure)), N, L, margin)
        conditioned = condition(case.structure, sites)
        assert conditioned.proper == proper
        assert np.isfinite(conditioned.log_det) == proper


@over_structures
def test_an_even_number_of_bad_directions_is_still_improper(name):
    """|I + KΠ| > 0 does not mean proper: two negative eigenvalues hide from a determinant."""
    case = BUILDERS[name](np.random.default_rng(4), 1)
    K = np.asarray(dense_of(case.structure))
    size = 10.0 / np.linalg.eigvalsh(K[:2, :2])[0]  # I - size·K of the first two rows has no positive eigenvalue
    sites = diagonal_sites(jnp.zeros(N), -size * (jnp.arange(N) < 2))
    assert np.linalg.slogdet(np.eye(N) + K @ block_diagonal(np.asarray(sites.precision)))[0] > 0
    assert not condition(case.structure, sites).proper


@pytest.mark.parametrize("L", [1, 2])
@over_structures
def test_state_admits_what_keeps_it_proper(name, L):
    case, sites = make(name, L, "indefinite")
    found = evaluate(case, sites)
    for n in (1, 4):
        A = np.asarray(found["marginals"][1])[n]
        bound = 1.0 / np.linalg.eigvalsh(A)[-1]  # Aₙ⁻¹ − c I is positive definite for c below this
        for factor, admitted in ((0.999, True), (1.001, False)):
            change = -factor * bound * np.eye(L)
            assert admits(found["state"], n, change) == admitted
            precision = np.array(sites.precision)
            precision[n] += change
            assert condition(case.structure, Sites(sites.shift, jnp.asarray(precision))).proper == admitted


@over_structures
def test_zero_sites_leave_the_prior(name):
    case, _ = make(name, 2, "positive")
    got = evaluate(case, Sites.zeros(N, 2))
    assert got["log_partition"] == 0.0
    np.testing.assert_array_equal(got["posterior"].weights, 0.0)
    np.testing.assert_array_equal(got["posterior"].mean, 0.0)
    np.testing.assert_array_equal(got["prediction"][0], 0.0)
    close(got["marginals"][1], np.asarray(got["prior"][0])[:, :, None] * np.eye(2))
    close(got["prediction"][1], np.asarray(case.prior)[:, :, None] * np.eye(2))


@pytest.mark.parametrize("kind", ["positive", "indefinite"])
@over_structures
def test_rows_without_sites_change_nothing(name, kind):
    """Padding: repeated rows with zero sites leave the evidence alone and get no gradient."""
    case, sites = make(name, 2, kind)
    pad = np.r_[np.arange(N), 0, 0, 0]
    padded = jax.tree.map(np.asarray, case.structure)
    if isinstance(padded, Dense):
        padded = Dense(padded.K[:, pad][:, :, pad])
    elif isinstance(padded, LowRankBlocks):  # copies of a row share its place
        padded = LowRankBlocks(padded.rest, padded.basis, padded.place[pad])
    else:
        padded = LowRank(padded.diag[:, pad], padded.basis[:, pad])
    padded_sites = jax.tree.map(lambda a: np.concatenate([a, np.zeros((3, *a.shape[1:]))]), sites)
    found, longer = evaluate(case, sites), condition(padded, padded_sites)
    close(longer.log_partition, found["log_partition"])
    for long, short in zip(jax.tree.leaves(adjoint(longer)), jax.tree.leaves(found["adjoint"]), strict=True):
        inner, long = tuple(slice(size) for size in short.shape), np.array(long)
        close(long[inner], short)
        long[inner] = 0.0
        np.testing.assert_array_equal(long, 0.0)


joint = jax.jit(lambda c, cross, prior, latent: c.predictor().joint(cross, prior, latent))
predicted = jax.jit(lambda c, cross, prior: c.predictor()(cross, prior))
simplex_sites = jax.jit(SimplexSites.of)


def check_joint(case, sites, found):
    """Joint prediction of each latent, against dense algebra and against the marginal prediction found."""
    want, conditioned = reference(case.structure, sites), condition(case.structure, sites)
    L, cross = case.structure.n_latents, np.asarray(case.cross)
    for l in range(L):
        prior = np.diag(np.asarray(case.prior)[:, l]) + 0.01 * (1.0 - np.eye(S))
        mean, covariance = joint(conditioned, cross[l], prior, l)
        close(mean, case.K_star[l] @ want.weights[:, l])
        close(covariance, prior - case.K_star[l] @ want.W[l::L, l::L] @ case.K_star[l].T)
        close(np.diag(covariance), np.asarray(found[1])[:, l, l])


@over_cases
def test_joint_prediction_of_each_latent(name, L, kind):
    case, sites = make(name, L, kind)
    check_joint(case, sites, evaluate(case, sites)["prediction"])


@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("name", STRUCTURES)
def test_joint_prediction_under_sites_of_softmax(name, L):
    rng = np.random.default_rng([5, L])
    case = BUILDERS[name](rng, L)
    share = rng.uniform(0.1, 1.0, (N, L))
    share[3] = 0.0  # a padded row
    shift = rng.normal(size=(N, L)) * (share > 0.0)
    sites = simplex_sites(shift, share)
    check_joint(case, sites, predicted(condition(case.structure, sites), case.cross, case.prior))


def narrower(structure, width):
    """The same structure with only the first columns of its basis."""
    if isinstance(structure, Dense):
        return structure
    return eqx.tree_at(lambda s: s.basis, structure, structure.basis[..., :width])


@jax.jit
def dense_parts(structure):
    """All of it, its diagonal, and each latent function's."""
    return structure.dense(), structure.diagonal(), [structure.latent(l).dense() for l in range(structure.n_latents)]


@over_structures
def test_repeated_gives_all_latents_one_covariance(name):
    one = BUILDERS[name](np.random.default_rng(6), 1).structure
    repeated = one.repeated(3)
    assert repeated.n_latents == 3
    whole, diagonal, each = dense_parts(repeated)
    close(whole, np.kron(np.asarray(dense_of(one)), np.eye(3)))
    close(diagonal, np.repeat(np.diagonal(dense_of(one))[:, None], 3, axis=1))
    for l in range(3):
        assert repeated.latent(l).n_latents == 1
        close(each[l], np.asarray(dense_of(one)))
    with pytest.raises(ValueError, match="has 3"):
        repeated.repeated(2)


@over_structures
def test_stacked_gives_each_latent_its_covariance(name):
    whole = BUILDERS[name](np.random.default_rng(7), 3).structure
    ones = [narrower(whole.latent(l), M - l) for l in range(3)]
    stacked = type(whole).stacked(ones)
    assert stacked.n_latents == 3
    whole, _, each = dense_parts(stacked)
    for l, one in enumerate(ones):
        want = np.asarray(dense_of(one))
        close(np.asarray(whole)[l::3, l::3], want)
        close(each[l], want)
    blocks = np.asarray(whole).reshape(N, 3, N, 3)
    np.testing.assert_array_equal(blocks[:, 0, :, 1], 0.0)
    for one, back in zip(ones, stacked.unstacked(ones), strict=True):
        jax.tree.map(np.testing.assert_array_equal, back, one)


@over_structures
def test_adjoints_of_repeated_and_stacked_structures(name):
    """`summed` and `unstacked` are the transposes of `repeated` and `stacked`."""
    rng = np.random.default_rng(8)
    whole = BUILDERS[name](rng, 2).structure
    ones = [narrower(whole.latent(l), M - l) for l in range(2)]
    sites = random_sites(rng, "positive", np.asarray(dense_of(whole)), N, 2)

    summed, wanted = adjoint_of_repeated(ones[0], sites)
    jax.tree.map(close, summed, wanted)
    assert jax.tree.structure(summed) == jax.tree.structure(ones[0])
    jax.tree.map(close, *adjoint_of_stacked(ones, sites))


@jax.jit
def adjoint_of_repeated(one, sites):
    repeated, back = jax.vjp(lambda one: one.repeated(2), one)
    bar = repeated.condition(sites).adjoint()
    return bar.summed(), back(bar)[0]


@jax.jit
def adjoint_of_stacked(ones, sites):
    stacked, back = jax.vjp(type(ones[0]).stacked, ones)
    bar = stacked.condition(sites).adjoint()
    return list(bar.unstacked(ones)), back(bar)[0]


@over_structures
def test_maps_over_a_batch(name):
    """Restarts and folds go through ``vmap``; some members of the batch may be improper."""
    cases = [make(name, 2, kind) for kind in ("positive", "zeros", "indefinite")]
    bad = Sites(cases[0][1].shift, -100.0 * cases[0][1].precision)
    pairs = [(case.structure, sites) for case, sites in cases] + [(cases[0][0].structure, bad)]
    structures, sites = jax.tree.map(lambda *x: jnp.stack(x), *pairs)

    def run(structure, sites):
        c = structure.condition(sites)
        return c.proper, c.log_partition, c.marginals()

    proper, log_z, (_, covariance) = jax.jit(jax.vmap(run))(structures, sites)
    assert proper.tolist() == [True, True, True, False]
    for i, pair in enumerate(pairs[:3]):
        want = reference(*pair)
        close(log_z[i], want.log_partition)
        close(covariance[i], blocks_of(want.covariance, 2))
