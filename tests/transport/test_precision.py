"""Any ε, both precisions: nothing overflows, and what is reported is what is so.

Warnings are errors in this suite, so an overflow or an invalid operation fails any of these tests.
"""

import numpy as np
import pytest
from hypothesis import given

from otprop.transport import SOLVERS, solve
from tests import oracles, strategies

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
EVERY_SCALE = pytest.mark.parametrize("scale", [10.0**k for k in range(2, -6, -1)])
BOTH_PRECISIONS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
# What single precision may add to an error that is computed in it.
ROUNDING = {np.float64: 1e-13, np.float32: 1e-6}


def points(seed, targets, sources, dimensions=3):
    rng = np.random.default_rng(seed)
    x, y = rng.random((targets, dimensions)), rng.random((sources, dimensions))
    return ((x[:, None] - y) ** 2).sum(axis=2)


def noise(seed, targets, sources):
    return np.random.default_rng(seed).random((targets, sources))


def duplicates(seed, targets, sources):
    rows = np.random.default_rng(seed).integers(0, 5, targets)
    columns = np.random.default_rng(seed + 1).integers(0, 4, sources)
    return points(seed, 5, 4)[rows][:, columns]


def outlier(seed, targets, sources):
    """One target far from every source, one source far from every target."""
    cost = points(seed, targets, sources)
    cost[0] += 1e4
    cost[:, 0] += 1e4
    return cost


def line(_seed, targets, sources):
    """A long line: mass goes from neighbour to neighbour."""
    return (np.linspace(0, 1, targets)[:, None] - np.linspace(0, 0.5, sources)) ** 2


def check_honest(result, cost, tol):
    """What is said of the error, the value and convergence is recomputed from f."""
    targets, sources = cost.shape
    a, b = oracles.uniform(sources), oracles.uniform(targets)
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.value)
    assert result.f.dtype == np.float64
    error = oracles.marginal_error(cost, result.f, result.epsilon, a, b)
    # A shift of f by its rounding error moves the shares by that much over ε.
    rounding = 8 * np.finfo(float).eps * np.abs(cost).max() / result.epsilon
    slack = ROUNDING[cost.dtype.type] + rounding
    assert abs(error - result.marginal_error) <= slack
    assert result.converged == (result.marginal_error <= tol)
    if result.converged:
        assert error <= tol + slack
    shares = result.shares(cost)
    assert shares.dtype == cost.dtype
    assert np.isfinite(shares).all()
    ulps = 2 * np.sqrt(sources) + 4
    np.testing.assert_allclose(
        shares.sum(axis=1, dtype=float), 1, rtol=0, atol=ulps * np.finfo(cost.dtype).eps
    )


@pytest.mark.parametrize("costs", [points, noise, duplicates, outlier, line])
@EVERY_SCALE
@BOTH_PRECISIONS
@EVERY_SOLVER
def test_every_epsilon(costs, scale, dtype, solver):
    cost = costs(3, 60, 17).astype(dtype)
    epsilon = scale * float(np.median(cost))
    tol = 1e-9 if dtype is np.float64 else 1e-6
    result = solve(
        cost, epsilon, tol=tol, solver=solver, max_iter=300 if solver == "sinkhorn" else None
    )
    check_honest(result, cost, tol)


@pytest.mark.parametrize("costs", [points, noise, line])
@pytest.mark.parametrize("shape", [(200, 40), (40, 200), (90, 90)])
@pytest.mark.parametrize("scale", [100.0, 1.0, 0.1, 0.01])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-9), (np.float32, 1e-6)])
def test_newton_gets_there(costs, shape, scale, dtype, tol):
    cost = costs(4, *shape).astype(dtype)
    result = solve(cost, scale * float(np.median(cost)), tol=tol)
    assert result.converged
    check_honest(result, cost, tol)


@pytest.mark.parametrize("scale", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("seed", range(3))
@BOTH_PRECISIONS
def test_newton_gets_there_at_tiny_epsilon(scale, seed, dtype):
    cost = points(seed, 60, 17).astype(dtype)
    result = solve(cost, scale * float(np.median(cost)), tol=1e-6)
    assert result.converged
    check_honest(result, cost, 1e-6)


@given(case=strategies.problems(moderation=(1e-5, 100.0)))
def test_newton_is_honest_about_any_problem(case):
    result = solve(case.cost, **case.problem)
    error = oracles.marginal_error(case.cost, result.f, *list(case.problem.values()))
    assert np.isfinite(result.f).all()
    assert result.converged == (result.marginal_error <= 1e-6)
    assert error == pytest.approx(result.marginal_error, rel=0, abs=1e-8)


@EVERY_SOLVER
def test_single_precision_is_near_double(solver):
    cost = points(6, 300, 150).astype(np.float32)
    single = solve(cost, 0.05, solver=solver, tol=1e-6)
    double = solve(cost.astype(float), 0.05, solver=solver, tol=1e-6)
    np.testing.assert_allclose(single.f, double.f, rtol=0, atol=1e-5)
    assert single.value == pytest.approx(double.value, abs=1e-6)


def test_single_precision_sums_in_double():
    """20,000 equal targets: a running single sum of 1/20,000 would be off by 1e-4 and more."""
    result = solve(np.zeros((20_000, 3), np.float32), 1.0, tol=1e-6, max_iter=0)
    assert result.marginal_error <= 1e-7


@EVERY_SOLVER
@pytest.mark.parametrize("unit", [1e-30, 1e-15, 1e15, 1e30])
@BOTH_PRECISIONS
def test_units_far_from_one(solver, unit, dtype):
    cost = (unit * points(7, 30, 11)).astype(dtype)
    result = solve(cost, 0.1 * unit, solver=solver)
    assert result.converged
    expected = solve(points(7, 30, 11), 0.1, solver=solver, tol=1e-9).shares(points(7, 30, 11))
    np.testing.assert_allclose(result.shares(cost), expected, rtol=0, atol=1e-4)


@EVERY_SOLVER
def test_costs_with_a_large_constant(solver):
    """As much as double precision leaves: 1e6 costs six of sixteen digits."""
    cost = points(8, 30, 11)
    result = solve(cost + 1e6, 0.1, solver=solver, tol=1e-6)
    assert result.converged
    expected = solve(cost, 0.1, solver=solver, tol=1e-9)
    np.testing.assert_allclose(result.f, expected.f, rtol=0, atol=1e-5)
    assert result.value == pytest.approx(expected.value + 1e6, abs=1e-5)


@EVERY_SOLVER
@pytest.mark.parametrize(
    ("unit", "epsilon", "dtype"),
    [
        (1.0, 1.2e-38, np.float32),
        (1.0, 2.3e-308, np.float64),
        (1e308, 1e307, np.float64),
        (1.0, 1e300, np.float64),
    ],
)
def test_at_the_ends_of_the_number_range_nothing_infinite_is_returned(unit, epsilon, dtype, solver):
    cost = (unit * (points(9, 20, 6) / 3)).astype(dtype)
    result = solve(cost, epsilon, solver=solver, max_iter=50)
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.marginal_error)
    assert np.isfinite(result.value)


@EVERY_SOLVER
@pytest.mark.parametrize(("epsilon", "dtype"), [(1e-40, np.float32), (1e-310, np.float64)])
def test_an_epsilon_whose_inverse_is_infinite_is_refused(epsilon, dtype, solver):
    with pytest.raises(ValueError, match=r"epsilon must be at least .*e-38|e-308"):
        solve(points(9, 20, 6).astype(dtype), epsilon, solver=solver)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("relative", [1e-1, 1e-2, 1e-3, 1e-4])
def test_sources_that_owe_next_to_nothing(seed, relative):
    """Newton's model knows nothing of a source that gives nothing yet: Sinkhorn's step does."""
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(200, 3)), random.normal(size=(60, 3))
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    owed = 10.0 ** random.uniform(-12, 0, 60)
    assert solve(cost, relative * np.median(cost), source_weights=owed, tol=1e-9).converged


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e300, 1e308])
def test_weights_of_any_size(size):
    cost = points(9, 20, 6)
    result = solve(cost, 0.1, source_weights=np.full(6, size))
    assert result.converged
    np.testing.assert_allclose(result.f, solve(cost, 0.1).f, rtol=0, atol=1e-4)
