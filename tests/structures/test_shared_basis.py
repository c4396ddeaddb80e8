"""Several latent functions with one low-rank covariance: sharing, closed forms, and work in pieces of rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from errorband import rows
from errorband.structures import LowRank, SimplexSites, Sites

L, N, M = 3, 11, 4


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


def all_of_it(structure, sites, cross, prior):
    c = structure.condition(sites)
    found = {
        "posterior": (c.proper, c.log_det, c.weights, c.mean, c.log_partition),
        "marginals": c.marginals(),
        "solution": c.solve(2.0 * sites.shift + 1.0),
        "prediction": c.predictor()(cross, prior),
        "prior": (structure.diagonal(), structure.matvec(sites.shift)),
        "updated": [c.state().update(3, sites.shift[0], sites.precision[0]).marginal(n) for n in (3, 5)],
    }
    return found, c.adjoint()


everything = jax.jit(all_of_it)


def draw(kind):
    """A basis for all latents, sites, and what prediction takes."""
    rng = np.random.default_rng(5)
    diag, basis = rng.uniform(0.0, 1.0, (1, N)), rng.normal(size=(1, N, M)) / 2
    cross = each(rng.normal(size=(1, 5, M)) / 2)
    prior = jnp.sum(cross**2, axis=2).T + 0.3
    shift = jnp.asarray(rng.normal(size=(N, L)))
    if kind == "simplex":
        share = rng.uniform(0.1, 1.0, (N, L)) * (np.arange(N) != 4)[:, None]  # one row says nothing
        sites = SimplexSites.of(shift, jnp.asarray(share))
    else:
        root = rng.normal(size=(N, L, L))
        precision = np.einsum("nij,nkj->nik", root, root)
        precision[2] = -0.1 * np.eye(L)
        sites = Sites(shift, jnp.asarray(precision))
    return jnp.asarray(diag), jnp.asarray(basis), sites, cross, prior


def each(array):
    return jnp.repeat(jnp.asarray(array), L, axis=0)


def close(actual, desired, tolerance=1e-10):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max()), actual, desired
    )


@pytest.mark.parametrize("kind", ["general", "simplex"])
def test_a_shared_basis_is_as_good_as_one_for_each(kind):
    diag, basis, *rest = draw(kind)
    shared, own = LowRank(diag, basis, shared_by=L), LowRank(each(diag), each(basis))
    assert shared.n_latents == own.n_latents == L
    got, got_adjoint = everything(shared, *rest)
    want, want_adjoint = everything(own, *rest)
    assert got["posterior"][0]
    close(got, want)
    close(shared.dense(), own.dense())
    close(got_adjoint.diag[0], jnp.sum(want_adjoint.diag, axis=0))
    close(got_adjoint.basis[0], jnp.sum(want_adjoint.basis, axis=0))


@pytest.mark.parametrize("share_of_diagonal", [0.0, 1.0, 1e4])
def test_sites_of_softmax_are_absorbed_in_closed_form(share_of_diagonal):
    diag, basis, sites, *rest = draw("simplex")
    for structure in (
        LowRank(share_of_diagonal * diag, basis, shared_by=L),
        LowRank(share_of_diagonal * each(diag) * jnp.array([[1.0], [0.5], [0.0]]), each(basis)),
    ):
        close(everything(structure, sites, *rest), everything(structure, Sites(sites.shift, sites.precision), *rest))


@pytest.mark.parametrize("sharing", [True, False])
def test_where_pieces_of_rows_end_does_not_matter(sharing, monkeypatch):
    """Eleven rows in pieces of four: the last overlaps the one before."""
    diag, basis, *rest = draw("general")
    structure = LowRank(diag, basis, shared_by=L) if sharing else LowRank(each(diag), each(basis))
    whole = everything(structure, *rest)
    monkeypatch.setattr(rows, "TRACED_ROWS", 4)
    monkeypatch.setattr(rows, "TRACED_ENTRIES", 1)
    afresh = jax.jit(lambda *args: all_of_it(*args))  # what was compiled has no pieces
    close(afresh(structure, *rest), whole)


@pytest.mark.parametrize("kind", ["general", "simplex"])
def test_adjoint_in_pieces_is_the_gradient_of_the_dense_formula(kind, monkeypatch):
    monkeypatch.setattr(rows, "TRACED_ROWS", 4)
    monkeypatch.setattr(rows, "TRACED_ENTRIES", 1)
    diag, basis, sites, *_ = draw(kind)
    structure = LowRank(diag, basis, shared_by=L)

    def dense_formula(structure):
        K, b = structure.dense(), sites.shift.reshape(-1)
        system = jnp.eye(len(K)) + jax.scipy.linalg.block_diag(*sites.precision) @ K
        return 0.5 * b @ K @ jnp.linalg.solve(system, b) - 0.5 * jnp.linalg.slogdet(system)[1]

    def in_short(structure, sites):
        conditioned = structure.condition(sites)
        return conditioned.log_partition, conditioned.adjoint()

    value, gradient = jax.jit(jax.value_and_grad(dense_formula))(structure)
    close(jax.jit(in_short)(structure, sites), (value, gradient))


def test_memory_does_not_grow_with_the_number_of_latents():
    """No array is larger than the basis, B, or what a piece of rows is allowed."""
    n, m, latents = 20_000, 120, 10
    arrays = (jax.ShapeDtypeStruct(shape, float) for shape in ((1, n), (1, n, m), (n, latents), (n, latents)))

    def run(diag, basis, shift, share):
        c = LowRank(diag, basis, shared_by=latents).condition(SimplexSites.of(shift, share))
        return c.weights, c.marginals(), c.adjoint(), c.state(), c.predictor()

    sizes = [int(np.prod(v.aval.shape)) for v in made_in(jax.make_jaxpr(run)(*arrays).jaxpr)]
    assert max(sizes) <= max(n * m, (latents * m) ** 2, rows.TRACED_ENTRIES)


def made_in(jaxpr):
    """All arrays that a program makes, those inside its loops included."""
    for equation in jaxpr.eqns:
        yield from equation.outvars
        for inside in jax.tree.leaves(equation.params, is_leaf=lambda p: hasattr(p, "eqns") or hasattr(p, "jaxpr")):
            if hasattr(inside, "jaxpr") or hasattr(inside, "eqns"):
                yield from made_in(getattr(inside, "jaxpr", inside))


def test_one_basis_for_all_or_one_for_each():
    with pytest.raises(ValueError, match=r"takes one basis, \(1, N, M\).*got 2"):
        LowRank(jnp.zeros((2, 5)), jnp.ones((2, 5, 3)), shared_by=2)
