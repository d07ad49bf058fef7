"""The rule `classes`: what the sources of a class give together is fixed or bounded."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from otprop.transport import (
    SOLVERS,
    ArrayCosts,
    Workers,
    class_costs,
    shares,
    solve,
    solve_classes,
    solve_totals,
)
from tests import oracles, strategies
from tests.transport.class_problems import TOL, Classes, assert_optimal, problems

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))


def highest_dual(case):
    """The maximum of Σ least p − most n + Σ b_j g_j(p − n) over p, n ≥ 0, by SciPy."""
    cost, size = case.merged.astype(float), len(case.totals)

    def negative(x):
        prices = x[:size] - x[size:]
        mass = oracles.mass(cost, prices, case.epsilon, case.target_weights).astype(float)
        value = case.least @ x[:size] - case.most @ x[size:]
        value += case.target_weights @ oracles.softmin(cost, prices, case.epsilon).astype(float)
        return -value, -np.concatenate([case.least - mass, mass - case.most])

    found = minimize(
        negative, np.zeros(2 * size), jac=True, bounds=[(0, None)] * 2 * size, method="L-BFGS-B",
        options={"maxiter": 5_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    b = case.target_weights
    return -found.fun + case.epsilon * (b @ np.log(b) - 1)


@given(case=problems(moderation=(1e-3, 20.0)))
def test_costs_of_a_class_are_the_soft_min(case):
    cost = np.vstack([case.cost, case.cost + 1e3])
    with Workers(1) as workers:
        merged = class_costs(ArrayCosts(cost), case.labels, len(case.totals), case.epsilon, workers)
    expected = np.vstack([case.merged, case.merged + 1e3]).astype(float)
    np.testing.assert_allclose(merged, expected, rtol=1e-14, atol=1e-13 * (1 + case.epsilon))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [1, 3])
def test_costs_of_a_class_do_not_depend_on_the_block(dtype, count):
    rng = np.random.default_rng(0)
    cost = rng.random((700, 3_000)).astype(dtype)
    labels = rng.integers(0, 5, 3_000)
    with Workers(count) as workers:
        merged = class_costs(ArrayCosts(cost), labels, 6, 0.01, workers)
        some = class_costs(ArrayCosts(cost[37:60]), labels, 6, 0.01, workers)
        double = class_costs(ArrayCosts(cost), labels, 6, 0.01, workers, dtype=np.float64)
    assert merged.dtype == dtype
    assert double.dtype == np.float64
    np.testing.assert_array_equal(merged[37:60], some)
    np.testing.assert_array_equal(double.astype(dtype), merged)
    assert np.isposinf(merged[:, 5]).all()
    expected = [oracles.softmin(cost[:, labels == k], 0.0, 0.01) for k in range(5)]
    np.testing.assert_allclose(
        double[:, :5], np.stack(expected, 1).astype(float), rtol=0,
        atol=1e-15 if dtype is np.float64 else 1e-8,
    )  # fmt: skip


def test_forbidden_pairs_are_left_out_of_a_class():
    cost = np.array([[1.0, np.inf, np.inf], [np.inf, np.inf, 2.0]])
    for dtype in (np.float64, np.float32):
        with Workers(1) as workers:
            merged = class_costs(
                ArrayCosts(cost.astype(dtype)), np.array([0, 0, 1]), 2, 0.1, workers
            )
        np.testing.assert_allclose(merged, [[1.0, np.inf], [np.inf, 2.0]], rtol=1e-6)


@EVERY_SOLVER
@given(case=problems())
def test_fixed_totals_are_given(case, solver):
    result = case.fixed(solver=solver)
    assert result.converged
    np.testing.assert_allclose(case.masses(result.f), case.totals, rtol=0, atol=TOL + 1e-13)
    off = np.abs(case.masses(result.f) - case.totals).sum()
    assert result.marginal_error == pytest.approx(off, rel=0, abs=1e-12)
    assert abs(case.totals @ result.f) <= 1e-13 * (1 + case.epsilon + np.abs(result.f).max())


@EVERY_SOLVER
@given(case=strategies.problems())
def test_classes_of_one_source_are_rows(case, solver):
    order = np.arange(len(case.source_weights))[::-1]
    a = case.source_weights
    result = solve_classes(
        case.cost, order, case.epsilon, least=a[order], most=a[order],
        target_weights=case.target_weights, tol=TOL, solver=solver,
    )  # fmt: skip
    expected = solve(case.cost, **case.problem, tol=TOL, solver=solver)
    np.testing.assert_allclose(result.f[order], expected.f, rtol=0, atol=1e-6)
    assert result.value == pytest.approx(expected.value, rel=0, abs=1e-8)


@EVERY_SOLVER
@given(case=strategies.two_by_two())
def test_two_classes_of_two_targets_are_a_quadratic(case, solver):
    """Each class of twice the same source, so that a source gives half of the class's share."""
    cost, a = np.repeat(case.cost, 2, axis=1), case.source_weights
    labels = np.array([0, 0, 1, 1])
    result = solve_classes(
        cost, labels, case.epsilon, least=a, most=a, target_weights=case.target_weights, tol=TOL,
        solver=solver,
    )  # fmt: skip
    each = shares(cost, result.f[labels], case.epsilon)
    np.testing.assert_allclose(2 * each[:, ::2], case.shares, rtol=0, atol=1e-6)
    np.testing.assert_allclose(each[:, ::2], each[:, 1::2], rtol=0, atol=1e-12)


@EVERY_SOLVER
def test_one_target_and_two_classes_by_hand(solver):
    """r = (1 − t, t): h_1 − h_0 = ε log(t/(1 − t)) + C_1 − C_0."""
    cost, epsilon = np.array([[0.3, 0.3, 1.0]]), 0.4
    dearer = 1.0 - (0.3 - epsilon * np.log(2.0))
    for most, part in ((0.01, 0.01), (0.05, 0.05), (1.0, None)):
        result = solve_classes(
            cost, [0, 0, 1], epsilon, least=[0, 0], most=[1, most], tol=TOL, solver=solver
        )
        vote = 1 / (1 + np.exp(dearer / epsilon))
        price = 0.0 if part is None else epsilon * np.log(part / (1 - part)) + dearer
        assert (price < 0) == (part is not None and part < vote)
        np.testing.assert_allclose(result.f, [0.0, price], rtol=0, atol=1e-7)


@EVERY_SOLVER
@given(case=problems())
def test_the_value_is_the_maximum_of_the_dual(case, solver):
    result = case.solve(solver=solver)
    assert_optimal(result, case)
    assert result.value == pytest.approx(highest_dual(case), rel=0, abs=2e-6)


@EVERY_SOLVER
@given(case=problems())
def test_the_value_is_that_of_the_plan(case, solver):
    """So that no other plan within the bounds is cheaper."""
    result = case.solve(solver=solver)
    plan = case.target_weights[:, None] * shares(case.cost, result.f[case.labels], case.epsilon)
    value = oracles.primal(plan, case.cost, case.epsilon)
    slack = 1e-8 * (1 + np.abs(result.f).max() + case.epsilon)
    assert result.value == pytest.approx(value, rel=0, abs=slack)


@given(case=problems())
def test_equal_bounds_are_fixed_totals(case):
    result = case.solve(least=case.totals, most=np.nextafter(case.totals, 1))
    np.testing.assert_allclose(result.f, case.fixed().f, rtol=0, atol=1e-6)


@EVERY_SOLVER
@given(case=problems())
def test_without_bounds_the_vote_is_the_kernel_s(case, solver):
    free = np.zeros_like(case.totals), np.ones_like(case.totals)
    result = case.solve(least=free[0], most=free[1], solver=solver)
    np.testing.assert_array_equal(result.f, 0.0)
    assert result.converged
    assert result.n_iter == 0


@given(case=problems())
def test_bounds_that_do_not_bind_do_not_matter(case):
    vote = case.masses(np.zeros(len(case.totals)))
    result = case.solve(least=0.9 * vote, most=np.minimum(1, 1.1 * vote + 1e-6))
    np.testing.assert_allclose(result.f, 0.0, rtol=0, atol=1e-12)


@given(case=problems(), copies=st.integers(2, 4), data=st.data())
def test_a_class_of_many_copies_is_a_class_at_a_discount(case, copies, data):
    """k copies of each of its sources are worth ε log k, which its price takes back."""
    of = data.draw(st.integers(0, len(case.totals) - 1))
    again = np.flatnonzero(case.labels == of)
    more = np.concatenate([np.arange(len(case.labels)), np.repeat(again, copies - 1)])
    result = solve_classes(
        case.cost[:, more], case.labels[more], case.epsilon, least=case.totals, most=case.totals,
        target_weights=case.target_weights, tol=TOL,
    )  # fmt: skip
    expected = case.fixed().f
    expected[of] -= case.epsilon * np.log(copies)
    expected -= case.totals @ expected
    np.testing.assert_allclose(result.f, expected, rtol=0, atol=1e-6)


@EVERY_SOLVER
@given(case=problems(), data=st.data())
def test_the_names_of_the_classes_do_not_matter(case, data, solver):
    name = np.array(data.draw(st.permutations(range(len(case.totals)))), np.intp)
    least, most = np.empty_like(case.least), np.empty_like(case.most)
    least[name], most[name] = case.least, case.most
    renamed = case.solve(solver=solver)
    result = solve_classes(
        case.cost, name[case.labels], case.epsilon, least=least, most=most,
        target_weights=case.target_weights, tol=TOL, solver=solver,
    )  # fmt: skip
    mass = case.masses(renamed.f)
    np.testing.assert_allclose(case.masses(result.f[name]), mass, rtol=0, atol=1e-6)
    assert result.value == pytest.approx(renamed.value, rel=0, abs=1e-7)


@given(case=problems(), data=st.data())
def test_a_fee_on_a_target_does_not_matter(case, data):
    fee = data.draw(strategies.vectors(len(case.cost)))
    dearer = Classes(**(vars(case) | {"cost": case.cost + fee[:, None]}))
    np.testing.assert_allclose(dearer.solve().f, case.solve().f, rtol=0, atol=1e-6)


THREE = {"least": [0.2, 0.3, 0.1], "most": [0.5, 0.5, 1.0]}
COST = np.random.default_rng(0).random((8, 5))
LABELS = [0, 1, 2, 0, 1]


@example(solver="newton")
@given(solver=st.sampled_from(sorted(SOLVERS)))
def test_what_is_given_is_not_written_to(solver):
    cost, labels = COST.copy(), np.array(LABELS)
    least, most, start = np.array(THREE["least"]), np.array(THREE["most"]), np.zeros(3)
    arrays = (cost, labels, least, most, start)
    before = [array.copy() for array in arrays]
    result = solve_classes(
        cost, labels, 0.1, least=least, most=most, warm_start=start, solver=solver
    )
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert not np.shares_memory(result.f, start)
    assert type(result.converged) is bool
    assert type(result.marginal_error) is float
    assert type(result.value) is float


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": [0, 1, 2, 0]}, r"labels must have shape \(5,\); got \(4,\)"),
        ({"labels": [0.0, 1, 2, 0, 1]}, r"labels must be class numbers; their dtype is float64"),
        ({"labels": [0, 1, 3, 0, 1]}, r"labels must be from 0 to 2, .*; got 0 to 3"),
        ({"labels": [0, 1, 2, -1, 1]}, r"labels must be from 0 to 2, .*; got -1 to 2"),
        ({"labels": [0, 1, 1, 0, 1]}, r"class 2 has no source, but is to give 0\.1 at least"),
        ({"least": [0.2, 0.3]}, r"one entry a class; their shapes are \(2,\) and \(3,\)"),
        ({"least": [], "most": []}, r"one entry a class; their shapes are \(0,\)"),
        ({"least": 0.1, "most": 0.5}, r"one entry a class; their shapes are \(\)"),
        ({"least": [0.2, -0.1, 0.1]}, r"0 <= least <= most; those of class 1 are -0\.1 and 0\.5"),
        ({"least": [0.2, 0.3, np.nan]}, r"those of class 2 are nan and 1\.0"),
        ({"most": [0.1, 0.5, 1.0]}, r"those of class 0 are 0\.2 and 0\.1"),
        ({"most": [0.5, np.inf, 1.0]}, r"those of class 1 are 0\.3 and inf"),
        ({"least": [0.5, 0.5, 0.1]}, r"the sums are 1\.1 and 2\.0"),
        ({"most": [0.2, 0.3, 0.1]}, r"most to at least 1.*the sums are 0\.6"),
        ({"warm_start": np.zeros(5)}, r"warm_start must have shape \(3,\); got \(5,\)"),
        ({"warm_start": [0, 0, np.nan]}, r"warm_start must be finite, or -inf"),
        ({"epsilon": 0.0}, r"epsilon must be a positive number"),
        ({"tol": 0.0}, r"tol must be a positive number"),
        ({"target_weights": np.zeros(8)}, r"target_weights must be positive and finite"),
        ({"cost": COST[0]}, r"cost must be a matrix"),
    ],
)
def test_arguments_that_are_refused(changed, message):
    arguments = {"cost": COST, "labels": LABELS, "epsilon": 0.1} | THREE | changed
    with pytest.raises(ValueError, match=message):
        solve_classes(**arguments)


def test_bounds_are_for_the_columns_of_the_costs():
    with Workers(1) as workers, pytest.raises(ValueError, match=r"must have shape \(5,\); got \(3"):
        solve_totals(
            ArrayCosts(COST), oracles.uniform(8), workers, THREE["least"], THREE["most"], 0.1
        )


def test_bounds_may_miss_one_by_rounding():
    """And where they leave one choice only, it is taken for fixed totals."""
    third = np.full(3, 1 / 3)
    for part in (1 - 1e-12, 1.0, 1 + 1e-12):
        for least, most in ((part, part), (part, 3.0), (0.0, part)):
            result = solve_classes(
                COST, LABELS, 0.1, least=least * third, most=most * third, tol=TOL
            )
            assert result.converged
            assert abs(third @ result.f) <= 1e-14
