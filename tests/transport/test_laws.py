"""What must not change the answer of `solve`, and what must change it in a known way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.transport import SOLVERS, solve
from tests import strategies

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
TOL = 1e-10


def assert_same(one, other, atol=1e-6):
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


@st.composite
def problem_and_order(draw):
    case = draw(strategies.problems())
    targets, sources = case.cost.shape
    rows = np.array(draw(st.permutations(range(targets))), np.intp)
    columns = np.array(draw(st.permutations(range(sources))), np.intp)
    return case, rows, columns


@st.composite
def problem_and_shifts(draw):
    case = draw(strategies.problems())
    targets, sources = case.cost.shape
    return case, draw(strategies.vectors(targets)), draw(strategies.vectors(sources))


@EVERY_SOLVER
@given(drawn=problem_and_shifts())
def test_a_fee_on_a_target_changes_the_value_alone(drawn, solver):
    case, fee, _ = drawn
    dearer = case.cost + fee[:, None]
    before = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    after = solve(dearer, **case.problem, tol=TOL, solver=solver)
    assert_same(after.f, before.f)
    assert_same(after.shares(dearer), before.shares(case.cost))
    assert_same(after.value, before.value + case.target_weights @ fee)


@EVERY_SOLVER
@given(drawn=problem_and_shifts())
def test_a_fee_on_a_source_is_added_to_its_potential(drawn, solver):
    case, _, fee = drawn
    dearer = case.cost + fee
    before = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    after = solve(dearer, **case.problem, tol=TOL, solver=solver)
    mean = case.source_weights @ fee
    assert_same(after.f, before.f + fee - mean)
    assert_same(after.shares(dearer), before.shares(case.cost))
    assert_same(after.value, before.value + mean)


@EVERY_SOLVER
@given(case=strategies.problems(), factor=st.floats(1e-6, 1e6))
def test_the_unit_of_cost_does_not_matter(case, factor, solver):
    other = case.problem | {"epsilon": factor * case.epsilon}
    before = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    after = solve(factor * case.cost, **other, tol=TOL, solver=solver)
    assert_same(after.f / factor, before.f)
    assert_same(after.shares(factor * case.cost), before.shares(case.cost))
    b = case.target_weights
    entropy = case.epsilon * (b @ np.log(b) - 1)  # is scaled as well
    assert_same((after.value / factor - entropy), before.value - entropy)


@pytest.mark.parametrize("power", [-200, -20, 20, 200])
@EVERY_SOLVER
def test_a_power_of_two_as_the_unit_changes_no_digit(solver, power):
    cost = np.random.default_rng(0).random((70, 30))
    factor = 2.0**power
    before = solve(cost, 0.125, solver=solver)
    after = solve(factor * cost, factor * 0.125, solver=solver)
    np.testing.assert_array_equal(after.shares(factor * cost), before.shares(cost))
    assert after.n_sweeps == before.n_sweeps


@EVERY_SOLVER
@given(drawn=problem_and_order())
def test_the_order_of_rows_and_columns_orders_the_answer(drawn, solver):
    case, rows, columns = drawn
    cost = case.cost[np.ix_(rows, columns)]
    a, b = case.source_weights[columns], case.target_weights[rows]
    before = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    after = solve(cost, case.epsilon, source_weights=a, target_weights=b, tol=TOL, solver=solver)
    assert_same(after.f, before.f[columns])
    assert_same(after.shares(cost), before.shares(case.cost)[np.ix_(rows, columns)])
    assert_same(after.value, before.value)


@EVERY_SOLVER
@given(case=strategies.problems(), data=st.data())
def test_a_target_twice_is_a_target_of_twice_the_weight(case, data, solver):
    target = data.draw(st.integers(0, len(case.cost) - 1))
    b = case.target_weights.copy()
    b[target] /= 2
    cost, b = np.vstack([case.cost, case.cost[target]]), np.append(b, b[target])
    once = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    twice = solve(cost, **(case.problem | {"target_weights": b}), tol=TOL, solver=solver)
    assert_same(twice.f, once.f)
    assert_same(twice.shares(cost)[:-1], once.shares(case.cost))


@EVERY_SOLVER
@given(case=strategies.problems(), data=st.data(), part=st.floats(0.1, 0.9))
def test_a_source_twice_shares_what_it_gave_by_weight(case, data, part, solver):
    source = data.draw(st.integers(0, len(case.source_weights) - 1))
    cost = np.hstack([case.cost, case.cost[:, [source]]])
    a = np.append(case.source_weights, (1 - part) * case.source_weights[source])
    a[source] *= part
    once = solve(case.cost, **case.problem, tol=TOL, solver=solver).shares(case.cost)
    twice = solve(cost, **(case.problem | {"source_weights": a}), tol=TOL, solver=solver)
    twice = twice.shares(cost)
    assert_same(twice[:, source], part * once[:, source])
    assert_same(twice[:, -1], (1 - part) * once[:, source])


@given(case=strategies.problems())
def test_sources_and_targets_may_change_places(case):
    """The plan is the same, transposed."""
    swapped = {"source_weights": case.target_weights, "target_weights": case.source_weights}
    one = solve(case.cost, **case.problem, tol=TOL)
    other = solve(case.cost.T, case.epsilon, **swapped, tol=TOL)
    plan = case.target_weights[:, None] * one.shares(case.cost)
    assert_same(case.source_weights[:, None] * other.shares(case.cost.T), plan.T)
    assert_same(other.value, one.value)


@EVERY_SOLVER
@given(case=strategies.problems())
def test_weights_need_not_sum_to_one(case, solver):
    once = solve(case.cost, **case.problem, solver=solver)
    many = solve(
        case.cost,
        case.epsilon,
        source_weights=8.0 * case.source_weights,
        target_weights=1024.0 * case.target_weights,
        solver=solver,
    )
    assert_same(many.f, once.f, atol=1e-12)
    assert_same(many.value, once.value, atol=1e-12)


@EVERY_SOLVER
@given(case=strategies.problems())
def test_potentials_have_a_weighted_mean_of_zero(case, solver):
    f = solve(case.cost, **case.problem, solver=solver).f
    # Potentials are rounded on the scale of ε too: they are shifted from ε log a.
    assert abs(case.source_weights @ f) <= 1e-14 * (1 + case.epsilon + np.abs(f).max())


@given(case=strategies.problems(moderation=(20.0, 1e4)))
def test_large_epsilon_gives_the_weights(case):
    """Up to an order of cost/ε, the plan is a ⊗ b."""
    shares = solve(case.cost, **case.problem, tol=TOL).shares(case.cost)
    assert np.abs(shares / case.source_weights - 1).max() <= 8 * 4 / case.epsilon
