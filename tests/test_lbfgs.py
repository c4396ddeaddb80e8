"""The optimiser's adaptor."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband.training.lbfgs import LBFGS, draw_restarts


def bowl(theta):
    return -float(np.sum((theta - 1.0) ** 2)), -2.0 * (theta - 1.0)


def test_finds_the_top():
    result = LBFGS().maximise(bowl, np.array([5.0, -3.0]))
    assert_allclose(result.theta, 1.0, atol=1e-4)
    assert result.converged
    assert result.message == "Converged."
    assert result.value == pytest.approx(0.0, abs=1e-7)
    assert result.gradient_norm < 1e-3
    assert result.trace[-1] == result.value
    assert all(a <= b for a, b in zip(result.trace, result.trace[1:], strict=False))
    assert result.evaluations >= result.iterations >= 1
    assert result.seconds > 0


def test_a_failed_factorisation_is_a_bad_point():
    def cliff(theta):
        if theta[0] > 1.5:
            raise np.linalg.LinAlgError("fell off")
        return bowl(theta)

    result = LBFGS().maximise(cliff, np.array([-8.0]))
    assert_allclose(result.theta, 1.0, atol=1e-3)


def test_not_finite_is_a_bad_point():
    def hole(theta):
        return (np.nan, theta) if theta[0] > 1.5 else bowl(theta)

    assert_allclose(LBFGS().maximise(hole, np.array([-8.0])).theta, 1.0, atol=1e-3)


def test_no_usable_start_is_an_error_with_the_reason():
    def never(theta):
        raise np.linalg.LinAlgError("indefinite")

    with pytest.raises(np.linalg.LinAlgError, match=r"No starting point.*indefinite"):
        LBFGS().maximise(never, np.zeros(2))


def test_interrupt_keeps_the_best_point():
    calls = []

    def interrupted(theta):
        calls.append(theta)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return bowl(theta)

    result = LBFGS().maximise(interrupted, np.array([9.0, -9.0]), restarts=np.zeros((2, 2)))
    assert not result.converged
    assert "Interrupted" in result.message
    assert result.value == max(bowl(t)[0] for t in calls[:2])
    assert len(result.starts) == 1  # the restarts were not begun


def test_interrupt_before_any_point_is_raised():
    def interrupted(theta):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LBFGS().maximise(interrupted, np.zeros(1))


def test_time_limit_keeps_the_best_point():
    import time

    def slow(theta):
        time.sleep(0.02)
        a, b = theta
        gradient = np.array([2 * (a - 1) - 400 * a * (b - a**2), 200 * (b - a**2)])
        return -float(100 * (b - a**2) ** 2 + (1 - a) ** 2), -gradient

    result = LBFGS(max_seconds=0.1).maximise(slow, np.array([-1.2, 1.0]))
    assert "0.1 s" in result.message
    assert not result.converged
    assert np.isfinite(result.value)


def test_restarts_find_the_higher_of_two_hills():
    def hills(theta):
        a, b = np.exp(-0.5 * (theta[0] + 4) ** 2), 2 * np.exp(-0.5 * (theta[0] - 4) ** 2)
        return float(a + b), np.array([-(theta[0] + 4) * a - (theta[0] - 4) * b])

    alone = LBFGS().maximise(hills, np.array([-4.5]))
    result = LBFGS().maximise(hills, np.array([-4.5]), restarts=np.array([[3.0], [-5.0]]))
    assert alone.value == pytest.approx(1.0, abs=1e-3)
    assert result.value == pytest.approx(2.0, abs=1e-3)
    assert len(result.starts) == 3


def test_nothing_free_is_an_evaluation():
    result = LBFGS().maximise(lambda t: (3.0, t), np.zeros(0))
    assert (result.value, result.evaluations, result.converged) == (3.0, 1, True)


def test_restarts_are_seeded():
    one, two = (draw_restarts(np.zeros(3), 4, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(one, two)
    assert one.shape == (4, 3)
    assert np.unique(one).size == 12


def test_the_first_step_is_no_longer_than_one():
    """However steep the objective is where the search starts: the whole gradient would lead to the bounds."""
    seen = []

    def steep(theta):
        seen.append(theta.copy())
        return -1e6 * float(np.sum((theta - 3.0) ** 2)), -2e6 * (theta - 3.0)

    result = LBFGS().maximise(steep, np.zeros(2))
    assert np.linalg.norm(seen[1]) < 1 + 1e-9
    assert_allclose(result.theta, 3.0, atol=1e-6)
    assert len(seen) == result.evaluations
    assert result.converged


def test_absurd_values_are_bad_points():
    """A value of -1e30 leaves a line search no step to take unless it is cut off."""

    def cliff(theta):
        return (-1e30, np.array([1e30])) if theta[0] > 0.6 else (-float((theta[0] - 0.5) ** 2), 1.0 - 2.0 * theta)

    result = LBFGS().maximise(cliff, np.array([-20.0]))
    assert_allclose(result.theta, 0.5, atol=1e-3)


def valley(theta):
    """Long and bent: hundreds of iterations lead down to (1, 1)."""
    a, b = theta
    gradient = np.array([400 * a * (b - a**2) + 2 * (1 - a), -200 * (b - a**2)])
    return -float(100 * (b - a**2) ** 2 + (1 - a) ** 2), gradient


def test_a_start_that_is_behind_is_given_up():
    starts = np.array([-1.2, 1.0]), np.array([[1.1, 1.3], [-50.0, 40.0]])
    alone = [LBFGS().maximise(valley, start) for start in (starts[0], *starts[1])]
    raced = LBFGS(race=3).maximise(valley, starts[0], restarts=starts[1])
    assert raced.starts[:2] == tuple(r.value for r in alone[:2])  # the second was ahead after three iterations
    assert raced.iterations == sum(r.iterations for r in alone[:2]) + 3
    assert raced.converged


def test_a_search_settles_where_it_only_creeps():
    def flat(theta):
        value, gradient = valley(theta)
        return 0.001 * value, 0.001 * gradient

    whole = LBFGS(tolerance=0.0, gradient_tolerance=0.0)
    brief = LBFGS(tolerance=0.0, gradient_tolerance=0.0, settle=5)
    whole, brief = (search.maximise(flat, np.array([-1.2, 1.0])) for search in (whole, brief))
    assert brief.converged
    assert brief.iterations == 6 < whole.iterations  # the last five gained less than 0.05


def test_only_the_best_of_several_starts_goes_on():
    starts = [np.array([-1.2, 1.0]), np.array([1.1, 1.3]), np.array([-50.0, 40.0])]
    alone, brief = ([LBFGS(max_iter=k).maximise(valley, start) for start in starts] for k in (200, 3))
    raced = LBFGS(heat=3).maximise(valley, starts[0], restarts=starts[1:])
    assert raced.starts == (brief[0].value, alone[1].value, brief[2].value)
    assert raced.trace == alone[1].trace  # it goes on as if it had not waited
    assert raced.iterations == alone[1].iterations + 6
    assert raced.evaluations == alone[1].evaluations + brief[0].evaluations + brief[2].evaluations
    assert raced.converged


def test_of_many_starts_the_better_half_has_a_whole_heat(monkeypatch):
    monkeypatch.setattr("errorband.training.lbfgs.LONG", np.inf)
    starts = [np.array([x, y]) for x, y in ((-1.2, 1.0), (1.1, 1.3), (-50.0, 40.0), (0.5, 0.5), (9.0, 9.0))]
    heats = {k: [LBFGS(max_iter=k).maximise(valley, start).value for start in starts] for k in (2, 6, 200)}
    raced = LBFGS(heat=6).maximise(valley, starts[0], restarts=starts[1:])
    first, second = np.argsort(heats[2])[::-1][:2]
    best = max(first, second, key=lambda i: heats[6][i])
    expected = dict(enumerate(heats[2])) | {i: heats[6][i] for i in (first, second)} | {best: heats[200][best]}
    assert raced.starts == tuple(expected.values())


def test_long_steps_of_many_starts_are_not_looked_at_before_the_curvature_is_known():
    starts, looked_at = [np.array([15.0, 3.0]), *np.full((3, 2), 9.0)], []

    def cone(theta):
        looked_at.append(theta.copy())
        return -float(np.sum(np.sqrt(1 + theta**2))), -theta / np.sqrt(1 + theta**2)

    def longest(**options):
        looked_at.clear()
        assert LBFGS(**options).maximise(cone, starts[0], restarts=starts[1:]).converged
        return np.max(np.abs(np.diff(looked_at[:4], axis=0)))

    assert longest(heat=10) <= 2.0 < longest()


def test_a_search_that_is_stuck_gives_way_to_the_next_best_start():
    """Beyond a wall on the way there is no answer, as where EP has none."""

    def walled(theta):
        if theta[0] > 0 and theta[1] > 0.1:
            raise np.linalg.LinAlgError("beyond the wall")
        off = theta - [np.copysign(3.0, theta[0]), 5.0]
        return -float(off**4 @ [0.01, 1.0]), -4 * off**3 * [0.01, 1.0]

    found = LBFGS(heat=3).maximise(
        walled, np.array([1.0, 0.09]), restarts=[np.array([-20.0, -9.0 - i]) for i in range(3)]
    )
    assert found.converged
    assert found.value > -1e-3


def test_points_without_an_answer_do_not_end_a_search():
    """Close to the maximum there is none: a step into that region came back so far that nothing seemed to be gained."""
    share = 0.1 * np.arange(1, 5)

    def walled(theta):
        x, rest = theta[0], theta[1:] - theta[0]
        if x > 3.3:
            raise np.linalg.LinAlgError("beyond the wall")
        slope = 1 - 0.002 * np.exp(2 * x) + 2 * share @ rest
        return float(x - 0.001 * np.exp(2 * x) - share @ rest**2), np.r_[slope, -2 * share * rest]

    found = LBFGS().maximise(walled, np.r_[-20.0, np.ones(4)])
    assert found.converged
    assert_allclose(found.theta, 0.5 * np.log(500), atol=1e-2)
    assert found.evaluations < 40
