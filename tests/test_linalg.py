"""Factorisations on the host and work in threads."""

import contextlib
import threading

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_info, threadpool_limits

from errorband import linalg
from errorband.rows import THREADS


@pytest.mark.parametrize("n", [1, 7, 500])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_rows_are_solved(n, transposed, overwrite):
    rng = np.random.default_rng(0)
    factor = np.asfortranarray(np.tril(rng.standard_normal((40, 40))) + 10 * np.eye(40))
    rows = rng.standard_normal((n, 40))
    expected = solve_triangular(factor, rows.T, lower=True, trans=int(transposed)).T
    given = rows.copy()
    found = linalg.solve_lower_rows(factor, given, transposed=transposed, overwrite=overwrite)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.array_equal(given, found if overwrite else rows)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_rows_times_an_inverse_factor_are_rows_solved(transposed, overwrite):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 50))
    factor = linalg.cholesky(A @ A.T).factor  # what is above its diagonal is not specified
    rows = rng.standard_normal((30, 40))
    given = rows.copy()
    inverse = linalg.inverse_lower(factor)
    found = linalg.multiply_lower_rows(inverse, given, transposed=transposed, overwrite=overwrite)
    np.testing.assert_allclose(inverse @ np.tril(factor), np.eye(40), atol=1e-12)
    np.testing.assert_allclose(found, linalg.solve_lower_rows(factor, rows, transposed=transposed), atol=1e-11)
    assert np.array_equal(given, found if overwrite else rows)


def test_a_singular_factor_has_no_inverse():
    with pytest.raises(linalg.NotPositiveDefinite, match="row 1 follows from those before it"):
        linalg.inverse_lower(np.array([[1.0, 0.0], [2.0, 0.0]]))


def test_a_c_ordered_factor_will_do():
    factor = np.array([[2.0, 0.0], [1.0, 4.0]])
    np.testing.assert_allclose(linalg.solve_lower_rows(factor, np.array([[2.0, 5.0]])), [[1.0, 1.0]])


def test_parallel_work_comes_back_in_order_and_a_few_at_a_time():
    begun = []

    def work(i):
        begun.append(i)
        return i * i

    with threadpool_limits(2, "blas"):
        results = THREADS.map(work, range(100))
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        assert max(begun) < 10
        assert list(results) == [i * i for i in range(3, 100)]


@pytest.mark.parametrize("between", [contextlib.nullcontext, linalg.single_blas_thread])
def test_parallel_work_has_one_blas_thread_each_and_two_workers(between):
    meeting = threading.Barrier(2, timeout=60)

    def work(_):
        meeting.wait()  # breaks unless two are here at the same time
        return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

    with threadpool_limits(2, "blas"):
        with between():  # single-threaded steps before and after
            assert list(THREADS.map(work, range(4))) == [1, 1, 1, 1]
        after = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        assert set(after) == {2}


def test_an_error_in_parallel_work_is_raised_and_the_threads_are_given_back():
    def work(i):
        if i == 3:
            raise linalg.NotPositiveDefinite("row 3")
        return i

    with threadpool_limits(2, "blas"):
        with pytest.raises(linalg.NotPositiveDefinite, match="row 3"):
            list(THREADS.map(work, range(10)))
        assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {2}


def test_one_thread_needs_no_pool():
    with threadpool_limits(1, "blas"):
        threads = list(THREADS.map(lambda _: threading.current_thread(), range(3)))
    assert threads == 3 * [threading.current_thread()]


def test_a_single_item_keeps_all_threads():
    def work(_):
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        assert list(THREADS.map(work, [0])) == [{2}]


@pytest.mark.parametrize("solve", [linalg.inverse_from_cholesky, lambda L: linalg.solve_lower(L, np.ones(3))])
def test_what_cannot_be_factorised_says_why_and_what_to_do(solve):
    with pytest.raises(linalg.NotPositiveDefinite, match=r"row 1 follows from those before it\. Remove duplicate rows"):
        solve(np.asfortranarray(np.diag([1.0, 0.0, 2.0])))
    with pytest.raises(linalg.NotPositiveDefinite, match=r"not finite \(its mean diagonal is inf\); rescale"):
        linalg.cholesky(np.diag([np.inf, 1.0]))
