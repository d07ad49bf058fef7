"""Newton's method does what it is there for: few passes where Sinkhorn needs thousands."""

import numpy as np
import pytest

from otprop.transport import solve

RNG = np.random.default_rng(0)
COST = ((RNG.random((400, 1, 4)) - RNG.random((60, 4))) ** 2).sum(axis=2)


@pytest.mark.parametrize(("scale", "sweeps"), [(1.0, 30), (0.1, 60), (0.01, 250), (0.003, 600)])
def test_tens_of_passes_are_enough(scale, sweeps):
    result = solve(COST, scale * np.median(COST), tol=1e-9)
    assert result.converged
    assert result.n_sweeps <= sweeps


def test_fewer_passes_than_sinkhorn():
    epsilon = 0.01 * np.median(COST)
    newton = solve(COST, epsilon, tol=1e-6)
    sinkhorn = solve(COST, epsilon, tol=1e-6, solver="sinkhorn")
    assert newton.converged
    assert sinkhorn.converged
    assert 3 * newton.n_sweeps < sinkhorn.n_sweeps


def test_digits_double_near_the_solution():
    epsilon = 0.05 * np.median(COST)
    solution = solve(COST, epsilon, tol=1e-11).f
    start = solution + 0.02 * epsilon * RNG.standard_normal(60)
    first = solve(COST, epsilon, tol=1e-11, warm_start=start, max_iter=0)
    second = solve(COST, epsilon, tol=1e-11, warm_start=start, max_iter=1)
    assert 1e-4 < first.marginal_error < 0.1
    assert second.marginal_error < first.marginal_error**1.5


@pytest.mark.parametrize("seed", range(5))
def test_a_warm_start_from_a_higher_epsilon_helps(seed):
    rng = np.random.default_rng(seed)
    cost = rng.random((100, 30))
    near = solve(cost, 0.06, tol=1e-6).f
    cold, warm = solve(cost, 0.05), solve(cost, 0.05, warm_start=near)
    assert warm.converged
    assert warm.n_sweeps < cold.n_sweeps
