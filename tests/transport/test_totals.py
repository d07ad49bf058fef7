"""The search for the classes to hold at a bound: right, soon done, and sure to end."""

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from otprop.transport import (
    SOLVERS,
    ArrayCosts,
    Workers,
    shares,
    solve_classes,
    solve_totals,
)
from tests import oracles
from tests.transport.class_problems import TOL, Classes, assert_optimal, problems, random_classes

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))


@pytest.mark.parametrize("room", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_tight_bounds_are_kept(room, scale, seed):
    case = random_classes(seed, room=room, scale=scale, classes=3 + seed)
    result = case.solve()
    assert_optimal(result, case)
    again = case.solve(warm_start=result.f, tol=1.01 * TOL)
    assert again.n_iter == 0
    assert again.n_sweeps == 3  # over the classes to merge the free ones, for these, and for all
    np.testing.assert_allclose(again.f, result.f, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_the_sure_order_ends_at_the_same_prices(seed, monkeypatch):
    """It is what is left when guesses do not end, which is too rare to wait for."""
    case = random_classes(seed, room=[0.05, 0.5][seed % 2], classes=2 + seed % 9)
    guessed = case.solve()
    monkeypatch.setattr("otprop.transport.totals._GUESSES", 0)
    result = case.solve()
    assert_optimal(result, case)
    np.testing.assert_allclose(result.f, guessed.f, rtol=0, atol=1e-6)


def test_guesses_spare_passes():
    """The budget is about 1.2 times what it takes; in the sure order it takes 1.6 times that."""
    cases = [random_classes(seed, room=0.05, classes=12) for seed in range(20)]
    results = [case.solve(tol=1e-6) for case in cases]
    assert all(result.converged for result in results)
    assert sum(result.n_sweeps for result in results) <= 1_600


def test_classes_held_without_need_are_soon_let_go():
    """From the prices of narrower bounds; the budget is about 1.2 times what it takes."""
    passes = 0
    for seed in range(20):
        narrow, wide = (random_classes(seed, room=room, classes=8) for room in (0.05, 0.5))
        result = wide.solve(tol=1e-6, warm_start=narrow.solve(tol=1e-6).f)
        assert result.converged
        passes += result.n_sweeps
    assert passes <= 1_000


@pytest.mark.parametrize("seed", range(10))
def test_from_anywhere_the_same_prices_are_found(seed):
    case = random_classes(seed, room=0.3)
    rng = np.random.default_rng(seed)
    start = rng.choice([0.0, 1.0, -1.0, 1e3, -np.inf], 6) * rng.random()
    start[np.isnan(start)] = 0.0
    result = case.solve(warm_start=start)
    assert_optimal(result, case)
    np.testing.assert_allclose(result.f, case.solve().f, rtol=0, atol=1e-6)


def test_prices_of_a_near_problem_save_steps():
    case = random_classes(4, targets=300)
    start = case.solve().f
    near = Classes(**(vars(case) | {"epsilon": 0.099}))
    assert near.solve(warm_start=start).n_sweeps < 0.7 * near.solve().n_sweeps


@EVERY_SOLVER
def test_a_class_that_may_give_nothing_gives_nothing(solver):
    case = random_classes(1, classes=4)
    for least, most in (([0, 0.5, 0.2, 0.3], [0, 0.5, 0.2, 0.3]), ([0, 0, 0.6, 0], [0, 1, 1, 1])):
        result = case.solve(least=least, most=most, solver=solver)
        assert result.converged
        assert np.isneginf(result.f[0])
        assert np.isfinite(result.f[1:]).all()
        assert case.masses(result.f)[0] <= 1e-300
        again = case.solve(least=least, most=most, solver=solver, warm_start=result.f)
        assert again.converged
        # What gave nothing may give again.
        bounds = {"least": np.full(4, 0.2), "most": np.array([0.3, 1.0, 1.0, 1.0])}
        other = Classes(**(vars(case) | bounds))
        assert_optimal(other.solve(warm_start=result.f), other)


@EVERY_SOLVER
@given(case=problems())
def test_single_precision_keeps_totals(case, solver):
    """But for what its shares are rounded by, where costs are many ε."""
    single = Classes(**(vars(case) | {"cost": case.cost.astype(np.float32)}))
    assert_optimal(single.solve(solver=solver, tol=1e-6), single, tol=1.2e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_merged_costs_of_either_precision(dtype):
    case = random_classes(2, targets=300)
    cost, b = case.merged.astype(dtype), case.target_weights
    with Workers(2) as workers:
        result = solve_totals(
            ArrayCosts(cost), b, workers, case.least, case.most, case.epsilon, tol=1e-6
        )
    assert result.converged
    np.testing.assert_allclose(result.f, case.solve().f, rtol=0, atol=1e-5)
    off = b @ result.shares(cost)
    assert (off >= case.least - 2e-6).all()
    assert (off <= case.most + 2e-6).all()


def test_single_precision_does_not_round_a_class():
    """Costs of 1,000 ε, where rounding once more would move the totals by 1e-6."""
    rng = np.random.default_rng(0)
    cost = (3.0 + rng.random((50, 90))).astype(np.float32)
    labels, totals = np.arange(90) % 3, np.array([0.3, 0.3, 0.4])
    result = solve_classes(cost, labels, 3e-3, least=totals, most=totals, tol=1e-8)
    assert result.converged
    each = shares(cost.astype(float), result.f[labels], 3e-3).mean(axis=0)
    np.testing.assert_allclose(np.bincount(labels, each), totals, rtol=0, atol=5e-8)


def test_single_precision_does_not_round_the_free_classes():
    """Costs of 10,000 ε, where their soft-min has to be exact to be worth what they are."""
    rng = np.random.default_rng(0)
    cost = (30.0 + 0.01 * rng.random((50, 4))).astype(np.float32)
    with Workers(1) as workers:
        result = solve_totals(
            ArrayCosts(cost), oracles.uniform(50), workers, [0.5, 0, 0, 0], np.ones(4), 3e-3,
            tol=2e-6,
        )  # fmt: skip
    assert result.converged
    assert result.f[0] > 0


def test_threads_and_memory_change_no_bit():
    rng = np.random.default_rng(0)
    cost, b = rng.random((200_000, 3)), oracles.uniform(200_000)
    bounds = np.array([0.1, 0.4, 0.2]), np.array([0.3, 0.8, 0.3])
    found = []
    for count, memory in ((1, np.inf), (3, np.inf), (2, 0.0)):
        with Workers(count) as workers:
            found.append(solve_totals(ArrayCosts(cost), b, workers, *bounds, 0.3, memory=memory))
    for other in found[1:]:
        np.testing.assert_array_equal(other.f, found[0].f)
        assert other.value == found[0].value


FORBIDDEN = np.array([[0.0, np.inf, 1.0], [0.5, np.inf, 0.5], [1.0, np.inf, 0.0], [1.0, 0.2, 0.3]])


@EVERY_SOLVER
@pytest.mark.parametrize(
    ("least", "most", "missing"),
    [
        ([0.0, 0.5, 0.0], [1.0, 1.0, 1.0], 0.25),  # reaches a fourth only
        ([0.2, 0.5, 0.3], [0.2, 0.5, 0.3], 0.25),
        ([0.0, 0.0, 0.0], [0.1, 1.0, 0.1], 0.5),  # three fourths need them
        ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], 0.75),
        ([0.0, 0.3, 0.1], [0.0, 0.5, 1.0], 0.05),
    ],
)
def test_forbidden_pairs_that_leave_no_plan_are_told(least, most, missing, solver):
    result = solve_classes(
        FORBIDDEN, [0, 1, 2], 0.2, least=least, most=most, solver=solver, max_iter=500
    )
    assert not result.converged
    assert result.marginal_error >= missing - 1e-9
    assert not np.isnan(result.f).any()
    assert np.isfinite(result.value)
    assert np.isfinite(shares(FORBIDDEN, result.f, 0.2)).all()


@pytest.mark.parametrize("least", [[0.0, 0.5, 0.0], [0.3, 0.3, 0.3]])
def test_where_there_is_no_plan_that_is_soon_found(least):
    """Newton's method sees in 40 steps that it gets no further; once is enough to know."""
    result = solve_classes(FORBIDDEN, [0, 1, 2], 0.2, least=least, most=np.ones(3))
    assert not result.converged
    assert result.n_iter <= 120


def least_violation(case):
    """By how much the bounds have to be missed, by SciPy's linear programming."""
    targets, classes = case.cost.shape
    flows = targets * classes
    received = np.hstack(
        [np.kron(np.eye(targets), np.ones(classes)), np.zeros((targets, 2 * classes))]
    )
    gives = np.kron(np.ones(targets), np.eye(classes))
    bounds = np.hstack([np.vstack([-gives, gives]), -np.eye(2 * classes)])
    open_pairs = [(0, None if np.isfinite(cost) else 0) for cost in case.cost.ravel()]
    found = linprog(
        np.concatenate([np.zeros(flows), np.ones(2 * classes)]),
        A_ub=bounds, b_ub=np.concatenate([-case.least, case.most]),
        A_eq=received, b_eq=case.target_weights, bounds=open_pairs + [(0, None)] * 2 * classes,
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize("seed", range(60))
def test_it_converges_if_forbidden_pairs_leave_a_plan(seed):
    case = random_classes(seed, targets=6, sources=4, classes=4, room=0.7)
    cost = case.cost.copy()
    cost[np.random.default_rng(seed).random(cost.shape) < 0.45] = np.inf
    cost[np.arange(6), np.arange(6) % 3] = case.cost[np.arange(6), np.arange(6) % 3]
    case = Classes(**(vars(case) | {"cost": cost}))
    with Workers(1) as workers:
        result = solve_totals(
            ArrayCosts(cost), case.target_weights, workers, case.least, case.most, 0.1
        )
    violation = least_violation(case)
    assert result.converged == (violation < 1e-9)
    assert result.marginal_error >= violation - 1e-9
    assert not (np.isnan(result.f) | np.isposinf(result.f)).any()
    assert np.isfinite(shares(cost, result.f, 0.1)).all()


def test_a_class_that_must_give_all_may():
    """Though its least is less, when no other class reaches a target."""
    cost = np.array([[0.0, np.inf], [1.0, np.inf]])
    with Workers(1) as workers:
        result = solve_totals(
            ArrayCosts(cost), oracles.uniform(2), workers, [0.4, 0.0], [1.0, 0.5], 0.1
        )
    assert result.converged
    np.testing.assert_array_equal(result.f, [0.0, -np.inf])


def test_forbidden_pairs_that_leave_a_plan_are_obeyed():
    least, most = np.array([0.5, 0.2, 0.0]), np.array([0.9, 0.9, 0.05])
    result = solve_classes(FORBIDDEN, [0, 1, 2], 0.2, least=least, most=most, tol=TOL)
    assert result.converged
    given_away = shares(FORBIDDEN, result.f, 0.2)
    assert (given_away[:3, 1] <= 1e-300).all()
    mass = given_away.mean(axis=0)
    assert (mass >= least - TOL).all()
    assert (mass <= most + TOL).all()


def test_a_class_that_reaches_no_target_is_told():
    cost = np.array([[0.0, 1.0, np.inf], [1.0, 0.0, np.inf]])
    with Workers(1) as workers:
        for least in ([0.0, 0.0, 0.3], [0.3, 0.4, 0.3]):
            result = solve_totals(
                ArrayCosts(cost), oracles.uniform(2), workers, least, [0.7, 0.7, 0.3], 0.1
            )
            assert not result.converged
            assert result.marginal_error >= 0.3
            assert np.isfinite(result.f[:2]).all()
        result = solve_totals(
            ArrayCosts(cost), oracles.uniform(2), workers, [0.6, 0.0, 0.0], [1.0, 1.0, 1.0], 0.1
        )
        assert result.converged
        assert result.f[0] > 0


@EVERY_SOLVER
@pytest.mark.parametrize("max_iter", [0, 1, 2, 5])
@pytest.mark.parametrize("room", [0.0, 0.1])
def test_stopped_early_it_says_so(solver, max_iter, room):
    case = random_classes(3, room=room, scale=0.02)
    result = case.solve(solver=solver, max_iter=max_iter, tol=1e-12)
    assert not result.converged
    assert result.n_iter == max_iter
    mass = case.masses(result.f)
    outside = np.maximum(0, np.maximum(case.least - mass, mass - case.most)).sum()
    assert result.marginal_error >= outside - 1e-12
    assert np.isfinite(result.f).all()
