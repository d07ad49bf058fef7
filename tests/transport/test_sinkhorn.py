import numpy as np
import pytest

from otprop.transport import solve
from tests import oracles

RNG = np.random.default_rng(0)
COST, A, B = RNG.random((20, 7)), RNG.dirichlet(np.ones(7)), RNG.dirichlet(np.ones(20))


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 20])
def test_each_step_is_a_pass_of_algorithm_1(steps):
    """From f = ε log a, which Algorithm 1 reaches by its v ← 1 when the kernel is constant."""
    f = 0.05 * np.log(A)
    for _ in range(steps):
        f = f + 0.05 * np.log(A / oracles.mass(COST, f, 0.05, B).astype(float))
    result = solve(
        COST, 0.05, source_weights=A, target_weights=B, solver="sinkhorn", max_iter=steps, tol=1e-15
    )
    assert result.n_iter == steps
    assert result.n_sweeps == steps + 1
    np.testing.assert_allclose(result.f, f - A @ f, rtol=0, atol=1e-13)


def test_it_stops_as_soon_as_the_tolerance_is_reached():
    result = solve(COST, 0.1, solver="sinkhorn", tol=1e-6)
    assert result.converged
    short = solve(COST, 0.1, solver="sinkhorn", tol=1e-6, max_iter=result.n_iter - 1)
    assert not short.converged
    assert short.marginal_error > 1e-6
    assert solve(COST, 0.1, solver="sinkhorn", tol=1e-6, max_iter=result.n_iter).converged
