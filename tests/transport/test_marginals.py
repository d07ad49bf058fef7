import numpy as np
import pytest
from hypothesis import given

from otprop.transport import SOLVERS, ArrayCosts, Rows, Sweep, Workers, solve, solve_sweep
from tests import oracles, strategies

WEIGHTS = np.array([0.5, 0.2, 0.0, 0.3])


@given(f=strategies.vectors(4))
def test_value_gradient_and_curvature_belong_together(f):
    rule, step = Rows(WEIGHTS), 1e-3
    assert rule.value(f) == pytest.approx(WEIGHTS @ f, rel=0, abs=1e-15)
    for i, direction in enumerate(step * np.eye(4)):
        up, here, down = (rule.value(f + s * direction) for s in (1, 0, -1))
        assert (up - down) / (2 * step) == pytest.approx(rule.due(f)[i], rel=0, abs=1e-10)
        curvature = (up - 2 * here + down) / step**2
        assert -curvature == pytest.approx(rule.stiffness(f)[i], rel=0, abs=1e-8)


@given(f=strategies.vectors(4), shift=strategies.numbers(-5, 5))
def test_gauge_is_one_for_all_shifts(f, shift):
    rule = Rows(WEIGHTS)
    gauged = rule.gauge(f)
    assert abs(WEIGHTS @ gauged) <= 1e-15
    np.testing.assert_allclose(np.diff(gauged), np.diff(f), rtol=0, atol=1e-14)
    np.testing.assert_allclose(rule.gauge(f + shift), gauged, rtol=0, atol=1e-14)


def test_sources_without_weight_have_no_part_in_value_and_gauge():
    rule = Rows(WEIGHTS)
    f = np.array([1.0, 2.0, -np.inf, 3.0])
    assert rule.value(f) == pytest.approx(0.5 + 0.4 + 0.9)
    np.testing.assert_allclose(rule.gauge(f), [-0.8, 0.2, -np.inf, 1.2], atol=1e-15)


@given(f=strategies.vectors(4), rise=strategies.numbers(0, 5))
def test_lifted_potentials_give_the_weights_at_a_large_epsilon(f, rise):
    rule = Rows(WEIGHTS)
    lifted = rule.lift(f, rise)
    part = WEIGHTS > 0
    np.testing.assert_allclose(
        lifted[part], (f + rise * np.log(np.where(part, WEIGHTS, 1.0)))[part], atol=1e-14
    )
    cold = rule.lift(np.where(part, 0.0, -np.inf), 1e9)
    shares = oracles.shares(np.zeros((1, 4)), cold, 1e9)[0]
    np.testing.assert_allclose(shares.astype(float), WEIGHTS, rtol=0, atol=1e-15)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 1e-2])
@pytest.mark.parametrize("warm", [False, True])
def test_a_source_without_weight_is_as_if_left_out(solver, epsilon, warm):
    rng = np.random.default_rng(0)
    cost = rng.random((30, 7))
    cost[5, [1, 4]] = 0.0  # a target for which they would be the best
    a = np.ones(7)
    a[[1, 4]] = 0.0
    part, a, b = a > 0, a / a.sum(), oracles.uniform(30)
    with Workers(1) as workers:
        result = solve_sweep(
            Sweep(ArrayCosts(cost), b, workers), Rows(a), b, epsilon,
            tol=1e-9, solver=solver, max_iter=None, warm_start=rng.random(7) if warm else None,
        )  # fmt: skip
    expected = solve(cost[:, part], epsilon, tol=1e-9, solver=solver)
    assert result.converged
    np.testing.assert_array_equal(result.f[~part], -np.inf)
    np.testing.assert_allclose(result.f[part], expected.f, rtol=0, atol=1e-6)
    assert result.value == pytest.approx(expected.value, rel=0, abs=1e-8)
    shares = result.shares(cost)
    assert (shares[:, ~part] <= 2 * np.finfo(float).tiny).all()
    np.testing.assert_allclose(shares[:, part], expected.shares(cost[:, part]), rtol=0, atol=1e-6)
