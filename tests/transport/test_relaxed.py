"""The rule `relaxed`: giving more or less than the weight costs ρ·KL."""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.transport import (
    SOLVERS,
    ArrayCosts,
    Relaxed,
    Rows,
    Sweep,
    Workers,
    shares,
    solve,
    solve_sweep,
)
from tests import oracles, strategies

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
WEIGHTS = np.array([0.5, 0.2, 0.0, 0.3])
PART = WEIGHTS > 0
TOL = 1e-10
RELAXATIONS = strategies.numbers(0.05, 20.0)


def relative(masses, weights):
    """Σ r log(r/a) − r + a."""
    return float((masses * np.log(masses / weights) - masses + weights).sum())


@given(f=strategies.vectors(4), rho=strategies.numbers(0.5, 5.0))
def test_value_gradient_and_curvature_belong_together(f, rho):
    rule, step = Relaxed(WEIGHTS, rho), 1e-3
    assert rule.value(f) == pytest.approx(
        rho * (WEIGHTS * (1 - np.exp(-f / rho))).sum(), rel=1e-13, abs=1e-13
    )
    for i, direction in enumerate(step * np.eye(4)):
        up, here, down = (rule.value(f + s * direction) for s in (1, 0, -1))
        assert (up - down) / (2 * step) == pytest.approx(rule.due(f)[i], rel=1e-5, abs=1e-10)
        curvature = (up - 2 * here + down) / step**2
        assert -curvature == pytest.approx(rule.stiffness(f)[i], rel=1e-3, abs=1e-8)


@given(f=strategies.vectors(4), shift=strategies.numbers(-5, 5), rho=RELAXATIONS)
def test_gauge_is_the_best_of_all_shifts(f, shift, rho):
    """With the targets' part, which falls by as much as f rises."""
    rule = Relaxed(WEIGHTS, rho)
    gauged = rule.gauge(f)
    np.testing.assert_array_equal(gauged[~PART], -np.inf)
    assert rule.due(gauged).sum() == pytest.approx(1.0, rel=0, abs=1e-12)
    np.testing.assert_allclose((gauged - f)[PART], (gauged - f)[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(rule.gauge(f + shift), gauged, rtol=0, atol=1e-12 * (1 + rho))
    for away in (-0.1, 0.1):
        assert rule.value(gauged + away) - away < rule.value(gauged)


@pytest.mark.parametrize("power", range(-6, 7))
def test_a_gauged_potential_stays_as_it_is(power):
    rule = Relaxed(WEIGHTS, 10.0**power)
    for f in np.random.default_rng(0).standard_normal((100, 4)):
        gauged = rule.gauge(f)
        np.testing.assert_array_equal(rule.gauge(gauged), gauged)


@pytest.mark.parametrize("least", [1e-10, 1e-30, 1e-300])
@pytest.mark.parametrize("rho", [1e-3, 1.0])
def test_gauge_where_the_cheapest_source_has_next_to_no_weight(least, rho):
    rule = Relaxed(np.array([least, 1.0 - least]), rho)
    for steps in (20.0, 60.0, 690.0, 1e4):
        gauged = rule.gauge(np.array([0.0, steps * rho]))
        assert rule.due(gauged).sum() == pytest.approx(1.0, rel=0, abs=1e-12)


@pytest.mark.parametrize("power", [-6, -3, 0, 3, 6, 300])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_gauge_bears_all_scales(power, size, offset):
    f = size * np.array([1.0, -1.0, 7.0, 0.3])
    rule = Relaxed(WEIGHTS, 10.0**power)
    gauged = rule.gauge(f + offset)
    assert np.isfinite(gauged[PART]).all()
    assert rule.due(gauged).sum() == pytest.approx(1.0, rel=0, abs=1e-10)
    np.testing.assert_allclose(
        (gauged - gauged[1])[PART], (f - f[1])[PART], rtol=0, atol=1e-9 * max(1.0, offset / 1e6)
    )
    assert np.isfinite(rule.value(gauged))


@given(f=strategies.vectors(4), log_mass=strategies.vectors(4, -3e3, 0.0), rho=RELAXATIONS)
def test_at_a_fixed_point_the_mass_is_what_is_due(f, log_mass, rho):
    fixed = Relaxed(WEIGHTS, rho).fixed_point(f, 0.3, log_mass)
    log_due = np.log(WEIGHTS[PART]) - fixed[PART] / rho
    grown = (log_mass + (fixed - f) / 0.3)[PART]
    np.testing.assert_allclose(log_due, grown, rtol=1e-10, atol=1e-9)


@given(rise=strategies.numbers(0.01, 1e3), rho=RELAXATIONS)
def test_a_cold_start_is_the_solution_where_nothing_costs(rise, rho):
    rule = Relaxed(WEIGHTS, rho)
    cold = rule.gauge(rule.lift(np.where(PART, 0.0, -np.inf), rise))
    given_away = oracles.shares(np.zeros((1, 4)), cold, rise)[0].astype(float)
    np.testing.assert_allclose(given_away, rule.due(cold), rtol=0, atol=1e-12)


@EVERY_SOLVER
@given(case=strategies.problems(), rho=RELAXATIONS)
def test_what_is_given_is_what_is_due(case, rho, solver):
    result = solve(case.cost, **case.problem, relaxation=rho, tol=TOL, solver=solver)
    assert result.converged
    due = case.source_weights * np.exp(-result.f / rho)
    mass = case.target_weights @ result.shares(case.cost)
    assert due.sum() == pytest.approx(1.0, rel=0, abs=1e-12)
    assert np.abs(mass - due).sum() <= TOL + 1e-13
    assert result.marginal_error == pytest.approx(np.abs(mass - due).sum(), rel=0, abs=1e-13)


@EVERY_SOLVER
@given(case=strategies.problems(), rho=RELAXATIONS)
def test_value_is_the_minimum_of_the_relaxed_problem(case, rho, solver):
    result = solve(case.cost, **case.problem, relaxation=rho, tol=TOL, solver=solver)
    plan = case.target_weights[:, None] * result.shares(case.cost)
    value = oracles.primal(plan, case.cost, case.epsilon)
    value += rho * relative(plan.sum(axis=0), case.source_weights)
    assert result.value == pytest.approx(value, rel=1e-8, abs=1e-8)


@EVERY_SOLVER
@given(case=strategies.single_source(), rho=RELAXATIONS)
def test_one_source_gives_all(case, rho, solver):
    result = solve(case.cost, **case.problem, relaxation=rho, solver=solver)
    assert result.converged
    np.testing.assert_allclose(result.f, 0.0, rtol=0, atol=1e-14)


@EVERY_SOLVER
@given(case=strategies.single_target(), rho=RELAXATIONS)
def test_one_target_is_a_softmax_of_weights_and_costs(case, rho, solver):
    """log r_i = (ρ log a_i − m_i)/(ρ + ε) but for a constant."""
    result = solve(case.cost, **case.problem, relaxation=rho, tol=TOL, solver=solver)
    logits = (rho * np.log(case.source_weights) - case.cost) / (rho + case.epsilon)
    expected = np.exp(logits - oracles.log_sum_exp(logits, axis=1)[:, None])
    np.testing.assert_allclose(result.shares(case.cost), expected, rtol=0, atol=1e-9)


@EVERY_SOLVER
def test_a_symmetric_problem_by_hand(solver):
    """Two targets, each with a source of its own: f = 0, whatever ρ."""
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    part = 1.0 / (1.0 + np.exp(-2.0))
    for rho in (1e-3, 1.0, 1e3):
        result = solve(cost, 0.5, relaxation=rho, solver=solver)
        np.testing.assert_allclose(result.f, 0.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            result.shares(cost), [[part, 1 - part], [1 - part, part]], rtol=0, atol=1e-12
        )


@EVERY_SOLVER
@given(case=strategies.problems())
def test_without_a_price_the_vote_is_the_kernel_s(case, solver):
    result = solve(case.cost, **case.problem, relaxation=1e-6, solver=solver)
    assert result.converged
    vote = shares(case.cost, np.zeros_like(result.f), case.epsilon)
    np.testing.assert_allclose(result.shares(case.cost), vote, rtol=0, atol=1e-4)


@EVERY_SOLVER
@given(case=strategies.problems())
def test_at_a_prohibitive_price_the_weights_are_given(case, solver):
    expected = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    result = solve(case.cost, **case.problem, relaxation=1e9, tol=TOL, solver=solver)
    assert result.converged
    np.testing.assert_allclose(
        result.shares(case.cost), expected.shares(case.cost), rtol=0, atol=1e-6
    )
    assert result.value == pytest.approx(expected.value, abs=1e-8 * (4 + 3 * case.epsilon) ** 2)


@given(case=strategies.problems(moderation=(0.1, 2.0)), rho=strategies.numbers(0.2, 5.0))
def test_shares_are_those_of_pot(case, rho):
    plan, log = ot.unbalanced.sinkhorn_unbalanced(
        case.source_weights, case.target_weights, case.cost.T, case.epsilon,
        (rho, float("inf")), method="sinkhorn", reg_type="kl", c=np.ones_like(case.cost.T),
        numItermax=20_000, stopThr=1e-14, log=True,
    )  # fmt: skip
    assert log["err"][-1] < 1e-12
    np.testing.assert_allclose(plan.sum(axis=0), case.target_weights, rtol=0, atol=1e-10)
    result = solve(case.cost, **case.problem, relaxation=rho, tol=TOL)
    np.testing.assert_allclose(
        result.shares(case.cost), plan.T / case.target_weights[:, None], rtol=0, atol=1e-7
    )


@given(case=strategies.problems(moderation=(0.05, 20.0)), rho=RELAXATIONS)
def test_newton_and_sinkhorn_agree(case, rho):
    newton, sinkhorn = (
        solve(case.cost, **case.problem, relaxation=rho, tol=TOL, solver=solver)
        for solver in ("newton", "sinkhorn")
    )
    assert newton.converged
    assert sinkhorn.converged
    np.testing.assert_allclose(
        newton.shares(case.cost), sinkhorn.shares(case.cost), rtol=0, atol=1e-7
    )
    assert newton.value == pytest.approx(sinkhorn.value, rel=0, abs=1e-8)


@EVERY_SOLVER
@given(case=strategies.problems(), rho=RELAXATIONS, data=st.data())
def test_a_fee_on_a_target_changes_the_value_alone(case, rho, data, solver):
    fee = data.draw(strategies.vectors(len(case.cost)))
    dearer = case.cost + fee[:, None]
    before = solve(case.cost, **case.problem, relaxation=rho, tol=TOL, solver=solver)
    after = solve(dearer, **case.problem, relaxation=rho, tol=TOL, solver=solver)
    np.testing.assert_allclose(after.f, before.f, rtol=0, atol=1e-7)
    np.testing.assert_allclose(after.shares(dearer), before.shares(case.cost), rtol=0, atol=1e-7)
    assert after.value == pytest.approx(before.value + case.target_weights @ fee, abs=1e-8)


@EVERY_SOLVER
@given(case=strategies.problems(), rho=RELAXATIONS, data=st.data())
def test_the_order_of_sources_orders_the_answer(case, rho, data, solver):
    order = np.array(data.draw(st.permutations(range(len(case.source_weights)))), np.intp)
    other = case.problem | {"source_weights": case.source_weights[order]}
    before = solve(case.cost, **case.problem, relaxation=rho, tol=TOL, solver=solver)
    after = solve(case.cost[:, order], **other, relaxation=rho, tol=TOL, solver=solver)
    np.testing.assert_allclose(after.f, before.f[order], rtol=0, atol=1e-6)


@given(case=strategies.problems(moderation=(0.05, 2.0)))
def test_the_dearer_a_deviation_the_smaller_it_is(case):
    a, b = case.source_weights, case.target_weights
    deviations = [
        relative(b @ solve(case.cost, **case.problem, relaxation=rho, tol=TOL).shares(case.cost), a)
        for rho in (0.01, 0.1, 1.0, 10.0, 100.0)
    ]
    assert (np.diff(deviations) <= 1e-8).all()


@EVERY_SOLVER
def test_the_unit_of_cost_does_not_matter(solver):
    cost = np.random.default_rng(0).random((70, 30))
    before = solve(cost, 0.125, relaxation=0.5, solver=solver)
    for factor in (2.0**-200, 2.0**200):
        after = solve(factor * cost, factor * 0.125, relaxation=factor * 0.5, solver=solver)
        np.testing.assert_array_equal(after.shares(factor * cost), before.shares(cost))


def points(targets, sources):
    rng = np.random.default_rng(3)
    x, y = rng.random((targets, 3)), rng.random((sources, 3))
    return ((x[:, None] - y) ** 2).sum(axis=2)


def outlier(targets, sources):
    cost = points(targets, sources)
    cost[0] += 1e4
    cost[:, 0] += 1e4
    return cost


@pytest.mark.parametrize("costs", [points, outlier])
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("epsilon", [10.0, 1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@EVERY_SOLVER
def test_every_epsilon_and_every_relaxation(costs, rho, epsilon, dtype, solver):
    cost, tol = costs(60, 17).astype(dtype), 1e-9 if dtype is np.float64 else 1e-6
    scale = float(np.median(cost))
    steps = 300 if solver == "sinkhorn" else None
    weights = 10.0 ** np.linspace(-6, 0, 17)
    result = solve(
        cost, epsilon * scale, source_weights=weights, relaxation=rho * scale, tol=tol,
        solver=solver, max_iter=steps,
    )  # fmt: skip
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.value)
    assert result.converged == (result.marginal_error <= tol)
    due = weights / weights.sum() * np.exp(-result.f / (rho * scale))
    mass = oracles.mass(cost, result.f, result.epsilon, oracles.uniform(60)).astype(float)
    assert np.abs(mass - due).sum() == pytest.approx(result.marginal_error, rel=0, abs=1e-6)
    assert result.converged or solver == "sinkhorn"


@pytest.mark.parametrize("rho", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("size", [1.0, 1e8, 1e300])
@EVERY_SOLVER
def test_starts_beyond_precision_do_no_harm(rho, size, solver):
    cost = points(40, 4)
    start = size * np.array([1.0, -1.0, 0.5, -0.3])
    result = solve(cost, 0.1, relaxation=rho, warm_start=start, solver=solver)
    assert result.converged
    expected = solve(cost, 0.1, relaxation=rho)
    np.testing.assert_allclose(result.shares(cost), expected.shares(cost), rtol=0, atol=1e-4)


@EVERY_SOLVER
@given(case=strategies.problems(), rho=RELAXATIONS)
def test_from_the_solution_no_step_is_taken(case, rho, solver):
    cold = solve(case.cost, **case.problem, relaxation=rho, tol=1e-9, solver=solver)
    warm = solve(
        case.cost, **case.problem, relaxation=rho, tol=1.1e-9, solver=solver,
        warm_start=cold.f + 3.0,
    )  # fmt: skip
    assert warm.n_iter == 0
    assert warm.n_sweeps == 1


# Budgets are about 1.5 times what it takes.
@pytest.mark.parametrize(
    ("rho", "sweeps"), [(1e-6, 30), (1e-2, 35), (0.1, 75), (1.0, 170), (1e6, 230)]
)
def test_passes_are_few(rho, sweeps):
    cost = points(400, 60)
    scale = float(np.median(cost))
    result = solve(cost, 0.01 * scale, relaxation=rho * scale, tol=1e-8)
    assert result.converged
    assert result.n_sweeps <= sweeps


@EVERY_SOLVER
@pytest.mark.parametrize("epsilon", [1.0, 1e-2])
def test_a_source_without_weight_is_as_if_left_out(solver, epsilon):
    rng = np.random.default_rng(0)
    cost, a, b = rng.random((30, 7)), rng.dirichlet(np.ones(5)), oracles.uniform(30)
    part = np.array([True, False, True, True, False, True, True])
    weights = np.zeros(7)
    weights[part] = a
    with Workers(1) as workers:
        result = solve_sweep(
            Sweep(ArrayCosts(cost), b, workers), Relaxed(weights, 0.3), epsilon,
            tol=1e-9, solver=solver, max_iter=None, warm_start=None,
        )  # fmt: skip
    expected = solve(cost[:, part], epsilon, source_weights=a, relaxation=0.3, tol=1e-9)
    assert result.converged
    np.testing.assert_array_equal(result.f[~part], -np.inf)
    np.testing.assert_allclose(result.f[part], expected.f, rtol=0, atol=1e-6)


@pytest.mark.parametrize("relaxation", [0, -1.0, np.nan, np.inf])
def test_relaxations_that_are_refused(relaxation):
    with pytest.raises(ValueError, match=r"relaxation must be None or a positive number.* got"):
        solve(np.eye(3), 0.1, relaxation=relaxation)


def test_both_rules_are_rules():
    names = {name for name in vars(Rows) if not name.startswith("_")}
    assert names == {name for name in vars(Relaxed) if not name.startswith("_")}
