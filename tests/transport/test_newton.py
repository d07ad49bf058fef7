"""Newton's method does what it is there for: few passes where Sinkhorn needs thousands."""

import numpy as np
import pytest

from otprop.transport import solve

RNG = np.random.default_rng(0)
COST = ((RNG.random((400, 1, 4)) - RNG.random((60, 4))) ** 2).sum(axis=2)


NOISE = np.random.default_rng(1).random((100, 100))


# Budgets are about 1.5 times what it takes; without the step in question (annealing, elimination,
# the logarithm of a direction, an accuracy that depends on the error) it takes 3 to 50 times that.
@pytest.mark.parametrize(
    ("cost", "scale", "sweeps"),
    [
        (COST, 1.0, 30),
        (COST, 0.1, 80),
        (COST, 1e-2, 250),
        (COST, 1e-3, 600),
        (COST, 1e-4, 800),
        (NOISE, 1e-2, 150),
        (NOISE, 1e-3, 600),
        (NOISE, 1e-4, 400),
        (NOISE, 1e-5, 250),
    ],
    ids=lambda value: "points" if value is COST else "noise" if value is NOISE else None,
)
def test_passes_are_few(cost, scale, sweeps):
    result = solve(cost, scale * np.median(cost), tol=1e-8)
    assert result.converged
    assert result.n_sweeps <= sweeps


def test_passes_are_few_for_skewed_weights():
    a = 10.0 ** np.random.default_rng(0).uniform(-6, 0, 60)
    budgets = {1.0: 52, 0.1: 90, 0.01: 220}
    for scale, sweeps in budgets.items():
        result = solve(COST, scale * np.median(COST), tol=1e-8, source_weights=a)
        assert result.converged
        assert result.n_sweeps <= sweeps


@pytest.mark.parametrize("epsilon", [0.03, 3e-3, 3e-4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_more_steps_are_no_worse(dtype, epsilon):
    """Of all points at the ε asked for, the one with the least error is returned."""
    cost = NOISE[:60, :20].astype(dtype)
    start = solve(cost, epsilon, tol=1e-2).f
    stages = [
        solve(cost, epsilon, tol=1e-18, warm_start=start, max_iter=k).marginal_error
        for k in (*range(30), None)
    ]
    assert (np.diff(stages) <= 0).all()
    assert stages[-1] < 1e-6 if dtype is np.float32 else stages[-1] < 1e-11


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
