"""What `solve` finds, against closed forms and other people's solvers."""

import numpy as np
import pytest
from hypothesis import example, given

from otprop.transport import SOLVERS, solve
from tests import oracles, strategies
from tests.strategies import Case

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))


def draw_problem(seed, targets, sources):
    rng = np.random.default_rng(seed)
    x, y = rng.random((targets, 3)), rng.random((sources, 3))
    return ((x[:, None] - y) ** 2).sum(axis=2)


def assert_solves(result, case, tol):
    """Check all that a converged result promises."""
    shares = result.shares(case.cost)
    assert result.converged
    assert np.isfinite(result.f).all()
    assert result.epsilon == case.epsilon
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    given_away = case.target_weights @ shares
    assert np.abs(given_away - case.source_weights).sum() <= tol + 1e-13
    assert abs(result.marginal_error - np.abs(given_away - case.source_weights).sum()) <= 1e-13
    if case.shares is not None:
        np.testing.assert_allclose(shares, case.shares, rtol=0, atol=1e-6)


@EVERY_SOLVER
@given(case=strategies.single_source())
def test_one_source_serves_every_target(case, solver):
    result = solve(case.cost, **case.problem, tol=1e-9, solver=solver)
    assert_solves(result, case, 1e-9)
    assert result.n_iter == 0
    np.testing.assert_array_equal(result.f, [0.0])


@EVERY_SOLVER
@given(case=strategies.single_target())
def test_one_target_takes_what_the_sources_have(case, solver):
    assert_solves(solve(case.cost, **case.problem, tol=1e-9, solver=solver), case, 1e-9)


@EVERY_SOLVER
@given(case=strategies.two_by_two())
def test_two_by_two_is_a_quadratic(case, solver):
    assert_solves(solve(case.cost, **case.problem, tol=1e-9, solver=solver), case, 1e-9)


@given(case=strategies.two_by_two(moderation=(1e-3, 0.2)))
def test_two_by_two_at_small_epsilon(case):
    """Where Sinkhorn needs more than its 100,000 steps."""
    assert_solves(solve(case.cost, **case.problem, tol=1e-9), case, 1e-9)


def test_two_by_two_by_hand():
    """Equal weights: t00 = √K / (2 (1 + √K)), K the cross ratio."""
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    part = 1.0 / (1.0 + np.exp(-1.0 / 0.5))
    shares = solve(cost, 0.5, tol=1e-12).shares(cost)
    np.testing.assert_allclose(shares, [[part, 1 - part], [1 - part, part]], atol=1e-12)


@EVERY_SOLVER
@given(case=strategies.separable())
def test_separable_costs_decide_nothing(case, solver):
    assert_solves(solve(case.cost, **case.problem, tol=1e-9, solver=solver), case, 1e-9)


@EVERY_SOLVER
@given(case=strategies.diracs())
def test_mass_stays_where_it_is(case, solver):
    assert_solves(solve(case.cost, **case.problem, tol=1e-9, solver=solver), case, 1e-9)


@given(case=strategies.assignments())
def test_planted_assignment_is_found(case):
    assert_solves(solve(case.cost, **case.problem, tol=1e-9), case, 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_small_epsilon_gives_the_cheapest_assignment(seed):
    """With gaps that are only random, as `linear_sum_assignment` finds it."""
    cost = np.random.default_rng(seed).random((12, 12))
    result = solve(cost, 1e-4, tol=1e-9)
    assert result.converged
    np.testing.assert_allclose(
        result.shares(cost), oracles.assignment_shares(cost), rtol=0, atol=1e-6
    )
    assert abs((result.shares(cost) * cost).sum() - 12 * result.value) < 1e-2


@EVERY_SOLVER
@given(case=strategies.problems())
def test_shares_are_those_of_pot(case, solver):
    plan = oracles.pot_plan(case.cost, case.epsilon, case.source_weights, case.target_weights)
    result = solve(case.cost, **case.problem, tol=1e-9, solver=solver)
    expected = plan / case.target_weights[:, None]
    assert_solves(result, Case(**(vars(case) | {"shares": expected})), 1e-9)
    value = oracles.primal(plan, case.cost, case.epsilon)
    assert result.value == pytest.approx(value, rel=1e-9, abs=1e-9 * case.epsilon)


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.02])
@pytest.mark.parametrize(("targets", "sources"), [(300, 20), (40, 200)])
@EVERY_SOLVER
def test_shares_are_those_of_pot_when_there_are_many(targets, sources, epsilon, solver):
    cost = draw_problem(1, targets, sources)
    a, b = oracles.uniform(sources), oracles.uniform(targets)
    expected = oracles.pot_plan(cost, epsilon, a, b) / b[:, None]
    result = solve(cost, epsilon, tol=1e-9, solver=solver)
    assert_solves(result, Case(cost, epsilon, a, b, expected), 1e-9)


@EVERY_SOLVER
def test_shares_are_those_of_algorithm_1(solver):
    rng = np.random.default_rng(5)
    cost, a, b = rng.random((15, 9)), rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(15))
    expected = oracles.naive_sinkhorn(cost, 0.1, a, b, 1_000) / b[:, None]
    result = solve(cost, 0.1, source_weights=a, target_weights=b, tol=1e-9, solver=solver)
    np.testing.assert_allclose(result.shares(cost), expected, rtol=0, atol=1e-7)


@given(case=strategies.problems(moderation=(0.05, 20.0)))
def test_newton_and_sinkhorn_agree(case):
    newton = solve(case.cost, **case.problem, tol=1e-9, solver="newton")
    sinkhorn = solve(case.cost, **case.problem, tol=1e-9, solver="sinkhorn")
    assert newton.converged
    assert sinkhorn.converged
    assert (newton.solver, sinkhorn.solver) == ("newton", "sinkhorn")
    assert newton.value == pytest.approx(sinkhorn.value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(
        newton.shares(case.cost), sinkhorn.shares(case.cost), rtol=0, atol=1e-6
    )


@EVERY_SOLVER
@given(case=strategies.problems())
def test_value_is_the_minimum_of_eq_11(case, solver):
    result = solve(case.cost, **case.problem, tol=1e-9, solver=solver)
    plan = case.target_weights[:, None] * result.shares(case.cost)
    value = oracles.primal(plan, case.cost, case.epsilon)
    # The plan misses the marginal by the tolerance, which costs at most max |f| times as much.
    slack = 1e-9 * (1 + np.abs(result.f).max() + case.epsilon)
    assert abs(result.value - value) <= slack
    # No other plan with the same marginals does better: a step towards a ⊗ b, for one.
    other = 0.9 * plan + 0.1 * case.target_weights[:, None] * case.source_weights
    assert oracles.primal(other, case.cost, case.epsilon) >= result.value - slack


@pytest.mark.parametrize("max_iter", [0, 1, 10_000])
@EVERY_SOLVER
def test_value_is_the_dual_value_at_f(solver, max_iter):
    rng = np.random.default_rng(6)
    cost, a, b = rng.random((15, 9)), rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(15))
    result = solve(cost, 0.05, source_weights=a, target_weights=b, solver=solver, max_iter=max_iter)
    entropy = 0.05 * (b @ np.log(b) - 1)
    expected = oracles.semi_dual(cost, result.f, 0.05, a, b) + entropy
    assert result.value == pytest.approx(expected, rel=0, abs=1e-13)


@EVERY_SOLVER
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (4, 7), (70, 200)])
def test_costs_of_nothing(shape, solver):
    rng = np.random.default_rng(7)
    a, b = rng.dirichlet(np.ones(shape[1])), rng.dirichlet(np.ones(shape[0]))
    cost = np.zeros(shape)
    result = solve(cost, 0.3, source_weights=a, target_weights=b, tol=1e-12, solver=solver)
    assert_solves(result, Case(cost, 0.3, a, b, np.tile(a, (shape[0], 1))), 1e-12)
    assert result.n_iter == 0


@EVERY_SOLVER
def test_equal_weights_are_the_default(solver):
    cost = draw_problem(2, 13, 6)
    left_out = solve(cost, 0.1, solver=solver)
    written = solve(
        cost, 0.1, source_weights=np.full(6, 3.0), target_weights=np.ones(13), solver=solver
    )
    np.testing.assert_allclose(left_out.f, written.f, rtol=0, atol=1e-14)
    assert left_out.value == pytest.approx(written.value, rel=1e-14)


@EVERY_SOLVER
@example(skewed=np.array([1e-6, 1.0, 1e-3, 1.0, 1e-6]))
@given(skewed=strategies.vectors(5, -6.0, 0.0).map(lambda x: 10.0**x))
def test_skewed_weights(skewed, solver):
    """Each source gives its weight to a part of the smallest."""
    cost = draw_problem(3, 7, 5)
    a, b = skewed / skewed.sum(), oracles.uniform(7)
    result = solve(cost, 0.1, source_weights=skewed, tol=1e-9, solver=solver)
    assert_solves(result, Case(cost, 0.1, a, b), 1e-9)
    # The same targets, now with weights that differ by six orders.
    result = solve(cost.T, 0.1, target_weights=skewed, tol=1e-9, solver=solver)
    assert_solves(result, Case(cost.T, 0.1, b, a), 1e-9)
    mass = oracles.mass(cost.T, result.f, 0.1, a)
    np.testing.assert_allclose(mass.astype(float), b, rtol=0, atol=1.1e-9)


@EVERY_SOLVER
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forbidden_pairs_get_nothing(solver, dtype):
    rng = np.random.default_rng(8)
    cost = rng.random((20, 6)).astype(dtype)
    forbidden = rng.random(cost.shape) < 0.3
    forbidden[:, 0] = False
    cost[forbidden] = np.inf
    result = solve(cost, 0.1, solver=solver, tol=1e-6)
    assert result.converged
    shares = result.shares(cost)
    assert (shares[forbidden] == 0).all()
    assert (shares[~forbidden] > 0).all()
    error = oracles.marginal_error(cost, result.f, 0.1, oracles.uniform(6), oracles.uniform(20))
    assert error <= 2e-6


@EVERY_SOLVER
def test_forbidden_pairs_are_very_dear_pairs(solver):
    rng = np.random.default_rng(9)
    cost = rng.random((20, 6))
    forbidden = rng.random(cost.shape) < 0.3
    forbidden[:, 0] = False
    allowed = solve(np.where(forbidden, np.inf, cost), 0.1, tol=1e-9, solver=solver)
    dear = solve(np.where(forbidden, 1e3, cost), 0.1, tol=1e-9, solver=solver)
    np.testing.assert_allclose(
        allowed.shares(np.where(forbidden, np.inf, cost)), dear.shares(cost + 1e3 * forbidden),
        rtol=0, atol=1e-7,
    )  # fmt: skip


@EVERY_SOLVER
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("epsilon", [1e3, 0.5, 1e-3])
def test_forbidden_pairs_that_leave_no_plan(solver, dtype, epsilon):
    """Source 1 may serve one target of three and would have to give one half."""
    cost = np.array([[0.0, np.inf], [0.0, np.inf], [0.0, 1.0]], dtype)
    result = solve(cost, epsilon, solver=solver, max_iter=300)
    assert not result.converged
    assert result.marginal_error == pytest.approx(1 / 3, abs=1e-6)
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.value)


@EVERY_SOLVER
def test_a_plan_that_is_forced(solver):
    """Source i serves target i and no other: feasible, and nothing to choose."""
    cost = np.where(np.eye(5, dtype=bool), 2.0, np.inf)
    result = solve(cost, 0.1, solver=solver)
    assert result.converged
    np.testing.assert_allclose(result.shares(cost), np.eye(5), rtol=0, atol=1e-12)
