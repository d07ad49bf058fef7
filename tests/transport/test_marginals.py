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
    gauged, part = rule.gauge(f), WEIGHTS > 0
    assert abs(WEIGHTS[part] @ gauged[part]) <= 1e-15
    np.testing.assert_array_equal(gauged[~part], -np.inf)
    np.testing.assert_allclose(np.diff(gauged[part]), np.diff(f[part]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(rule.gauge(f + shift), gauged, rtol=0, atol=1e-14)


def test_sources_without_weight_have_no_part_in_value_and_gauge():
    rule = Rows(WEIGHTS)
    for of_no_weight in (-np.inf, 5.0):
        f = np.array([1.0, 2.0, of_no_weight, 3.0])
        assert rule.value(f) == pytest.approx(0.5 + 0.4 + 0.9)
        np.testing.assert_allclose(rule.gauge(f), [-0.8, 0.2, -np.inf, 1.2], atol=1e-15)


@given(f=strategies.vectors(4), log_mass=strategies.vectors(4, -30.0, 0.0))
def test_at_a_fixed_point_the_mass_is_what_is_due(f, log_mass):
    """As far as mass grows like exp(f/ε), which is what Sinkhorn's update supposes."""
    for rule in (Rows(WEIGHTS), Relaxed(WEIGHTS + 0.1, 0.7)):
        fixed = rule.gauge(rule.fixed_point(f, 0.3, log_mass))
        part = np.isfinite(fixed)
        due = rule.due(fixed)[part]
        mass = np.exp(log_mass + (rule.fixed_point(f, 0.3, log_mass) - f) / 0.3)[part]
        np.testing.assert_allclose(mass, due, rtol=1e-9 if part.all() else 1e-12)


class Relaxed:
    """A rule that knows the protocol only: giving more or less than a_i costs ρ·KL."""

    def __init__(self, weights, rho):
        self._weights, self._rho = weights, rho

    def value(self, f):
        return float(-self._rho * (self._weights * np.expm1(-f / self._rho)).sum())

    def due(self, f):
        return self._weights * np.exp(-f / self._rho)

    def stiffness(self, f):
        return self.due(f) / self._rho

    def gauge(self, f):
        return f

    def lift(self, f, rise):
        return f + rise * np.log(self._weights)

    def fixed_point(self, f, epsilon, log_mass):
        kept = self._rho / (self._rho + epsilon)
        return kept * (f + epsilon * (np.log(self._weights) - log_mass))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.02])
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_a_new_rule_is_one_class(rho, epsilon, warm):
    """Both solvers find its solution, at which the mass given is what is due."""
    rng = np.random.default_rng(0)
    cost, a, b = rng.random((30, 7)), rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(30))
    start = rng.random(7) if warm else None
    found = []
    for solver in sorted(SOLVERS):
        with Workers(1) as workers:
            result = solve_sweep(
                Sweep(ArrayCosts(cost), b, workers), Relaxed(a, rho), epsilon,
                tol=1e-10, solver=solver, max_iter=None, warm_start=start,
            )  # fmt: skip
        assert result.converged
        due = a * np.exp(-result.f / rho)
        np.testing.assert_allclose(
            oracles.mass(cost, result.f, epsilon, b).astype(float), due, rtol=0, atol=1e-9
        )
        found.append(result.f)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-7)


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
            Sweep(ArrayCosts(cost), b, workers), Rows(a), epsilon,
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
