import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.transport import ArrayCosts, Rows, Sweep, Workers, solve
from otprop.transport.problem import Problem
from tests import oracles, strategies


def posed(case, workers):
    return Problem(
        Sweep(ArrayCosts(case.cost), case.target_weights, workers), Rows(case.source_weights)
    )


@given(case=strategies.problems(moderation=(0.01, 20.0)), data=st.data())
def test_a_point_says_what_is_so(case, data):
    f = data.draw(strategies.vectors(len(case.source_weights)))
    point = posed(case, Workers(1)).at(f, case.epsilon)
    np.testing.assert_allclose(point.f - point.f[0], f - f[0], rtol=0, atol=1e-14)
    given_case = (case.cost, point.f, case.epsilon)
    weights = (case.source_weights, case.target_weights)
    mass = oracles.mass(*given_case, case.target_weights).astype(float)
    np.testing.assert_allclose(point.mass, mass, rtol=0, atol=1e-12)
    assert point.error == pytest.approx(oracles.marginal_error(*given_case, *weights), abs=1e-12)
    assert point.value == pytest.approx(oracles.semi_dual(*given_case, *weights), abs=1e-12)


@given(case=strategies.problems(moderation=(1e-3, 20.0)), data=st.data())
def test_sinkhorn_s_step_never_lowers_the_value(case, data):
    sources = len(case.source_weights)
    f = data.draw(strategies.vectors(sources))
    chosen = data.draw(st.lists(st.booleans(), min_size=sources, max_size=sources).map(np.array))
    problem = posed(case, Workers(1))
    before = problem.at(f, case.epsilon)
    stepped = problem.sinkhorn_step(before, chosen)
    after = problem.at(stepped, case.epsilon)
    np.testing.assert_array_equal(stepped[~chosen], before.f[~chosen])
    assert after.value >= before.value - 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("depth", [0.0, 1.0, 10.0, 1e3, 1e6])
def test_sinkhorn_s_step_is_exact_where_mass_underflows(dtype, depth):
    rng = np.random.default_rng(0)
    cost, f = rng.random((30, 4)).astype(dtype), np.array([0.0, 0.1, -0.1, -depth])
    a, b = oracles.uniform(4), oracles.uniform(30)
    problem = Problem(Sweep(ArrayCosts(cost), b, Workers(1)), Rows(a))
    point = problem.at(f, 0.05)
    f = point.f.copy()
    got = problem.sinkhorn_step(point, np.ones(4, bool))
    log_shares = (f + oracles.softmin(cost, f, 0.05)[:, None] - cost) / 0.05
    log_mass = oracles.log_sum_exp(log_shares + np.log(b)[:, None], axis=0)
    expected = (f + 0.05 * (np.log(a) - log_mass)).astype(float)
    np.testing.assert_allclose(
        got, expected, rtol=1e-14, atol=1e-15 * depth + (1e-12 if dtype is np.float64 else 1e-6)
    )
    np.testing.assert_array_equal(point.f, f)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e8, 1e300])
def test_a_start_is_never_worse_than_a_cold_one(size):
    rng = np.random.default_rng(0)
    cost, a, b = rng.random((30, 4)), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(30))
    problem = Problem(Sweep(ArrayCosts(cost), b, Workers(1)), Rows(a))
    cold = problem.at(0.1 * np.log(a), 0.1)
    start = problem.start(size * np.array([1.0, -1.0, 0.5, -0.3]), 0.1)
    assert start.value >= cold.value
    assert np.isfinite(start.f).all()


def test_a_good_start_is_kept():
    rng = np.random.default_rng(0)
    cost = rng.random((30, 4))
    f = solve(cost, 0.1).f
    problem = Problem(
        Sweep(ArrayCosts(cost), np.full(30, 1 / 30), Workers(1)), Rows(np.full(4, 0.25))
    )
    np.testing.assert_array_equal(problem.start(f, 0.1).f, f)


@pytest.mark.parametrize("away", [0.0, 0.02, 0.3, 50.0])
def test_the_shares_remembered_are_those_of_the_start(away):
    """Whether it is the warm one, with and without a look at the cold one, or the cold one."""
    rng = np.random.default_rng(0)
    cost, a, b, v = rng.random((30, 4)), np.full(4, 0.25), np.full(30, 1 / 30), rng.random(4)
    cost += np.array([0.0, 1.0, 2.0, 3.0])
    f = solve(cost, 0.1).f + away * np.array([1.0, -1.0, 0.2, -0.2])
    problem = Problem(Sweep(ArrayCosts(cost), b, Workers(1)), Rows(a))
    start = problem.start(f, 0.1)
    assert np.allclose(start.f - start.f[0], f - f[0]) == (away < 50)
    assert (start.error > 0.1) == (away > 0.02)
    p = oracles.shares(cost, start.f, 0.1)
    expected = ((b[:, None] * p).T @ (p @ v)).astype(float)
    np.testing.assert_allclose(problem.sweep.spread(v), expected, rtol=0, atol=1e-3)
