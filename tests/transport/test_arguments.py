"""What `solve` takes and what it refuses, where it starts and where it stops."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.transport import SOLVERS, ArrayCosts, Rows, Sweep, Workers, solve, solve_sweep
from otprop.transport import solver as solver_module
from tests import oracles, strategies

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
COST = np.random.default_rng(0).random((40, 12))
A, B = oracles.uniform(12), oracles.uniform(40)


def altered(place, value):
    cost = COST.copy()
    cost[place] = value
    return cost


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (COST[0], r"matrix with one row a target .* got 1 dimension"),
        (COST[None], r"got 3 dimension"),
        (np.float64(1), r"got 0 dimension"),
        (COST[:0], r"at least one target and one source; its shape is \(0, 12\)"),
        (COST[:, :0], r"its shape is \(40, 0\)"),
        (COST * 1j, r"real numbers; its dtype is complex128"),
        (COST.astype(object), r"real numbers; its dtype is object"),
        ([["a", "b"]], r"real numbers; its dtype is <U1"),
        (altered((3, 5), np.nan), r"cost\[3, 5\] is NaN"),
        (altered((3, 5), -np.inf), r"cost\[3, 5\] is -inf; only \+inf"),
        (altered(7, np.inf), r"target 7 has no finite cost.*leave it out"),
        (altered((slice(None), 4), np.inf), r"source 4 has no finite cost.*leave it out"),
    ],
)
def test_costs_that_are_refused(cost, message):
    with pytest.raises(ValueError, match=message):
        solve(cost, 0.1)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("source_weights", np.ones(40), r"source_weights must have shape \(12,\); got \(40,\)"),
        ("target_weights", np.ones((40, 1)), r"target_weights must have shape \(40,\); got"),
        ("source_weights", np.arange(12), r"source_weights must be positive and finite"),
        ("source_weights", [*[1] * 11, -1], r"source_weights must be positive and finite"),
        ("target_weights", [*[1] * 39, np.nan], r"target_weights must be positive and finite"),
        ("target_weights", [*[1] * 39, np.inf], r"target_weights must be positive and finite"),
        ("warm_start", np.ones(40), r"warm_start must have shape \(12,\); got \(40,\)"),
        ("warm_start", [*[1] * 11, np.nan], r"warm_start must be finite"),
        ("warm_start", [*[1] * 11, np.inf], r"warm_start must be finite"),
        ("epsilon", 0, r"epsilon must be a positive number; got 0"),
        ("epsilon", -0.1, r"epsilon must be a positive number; got -0.1"),
        ("epsilon", np.nan, r"epsilon must be a positive number; got nan"),
        ("epsilon", np.inf, r"epsilon must be a positive number; got inf"),
        ("tol", 0, r"tol must be a positive number; got 0"),
        ("tol", -1e-6, r"tol must be a positive number; got -1e-06"),
        ("tol", np.nan, r"tol must be a positive number; got nan"),
        ("tol", np.inf, r"tol must be a positive number; got inf"),
        ("solver", "lbfgs", r"solver must be one of \['newton', 'sinkhorn'\]; got 'lbfgs'"),
        ("max_iter", -1, r"max_iter must be at least 0; got -1"),
    ],
)
def test_arguments_that_are_refused(argument, value, message):
    with pytest.raises(ValueError, match=message):
        solve(COST, **({"epsilon": 0.1} | {argument: value}))


@pytest.mark.parametrize("name", ["source_weights", "target_weights"])
@pytest.mark.parametrize("small", [1e-300, 1e-9])
def test_weights_that_span_too_much_are_refused(name, small):
    """Scaled to sum to 1 they would round to 0, or lose their digits."""
    weights = np.ones(12 if name == "source_weights" else 40)
    weights[0], weights[1] = small, 1e300
    message = f"{name} span more than double precision holds"
    with pytest.raises(ValueError, match=message):
        solve(COST, 0.1, **{name: weights})


@EVERY_SOLVER
@pytest.mark.parametrize("name", ["source_weights", "target_weights"])
def test_weights_that_span_nearly_too_much_give_finite_numbers(name, solver):
    weights = np.ones(12 if name == "source_weights" else 40)
    weights[0], weights[1] = 1e-300, 1e5
    result = solve(COST, 0.1, **{name: weights}, solver=solver)
    assert result.converged
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.value)


def test_solve_sweep_checks_the_numbers_too():
    with Workers(1) as workers, pytest.raises(ValueError, match="epsilon must be a positive"):
        solve_sweep(
            Sweep(ArrayCosts(COST), B, workers), Rows(A), 0.0,
            tol=1e-6, solver="newton", max_iter=None, warm_start=None,
        )  # fmt: skip


WRITTEN = np.random.default_rng(1).integers(0, 9, (8, 5))


def read_only(cost):
    cost = cost.astype(float)
    cost.flags.writeable = False
    return cost


@EVERY_SOLVER
@pytest.mark.parametrize(
    "form",
    [
        lambda cost: cost.tolist(),
        lambda cost: cost.astype(np.int8),
        lambda cost: cost.astype(np.uint16),
        lambda cost: cost.astype(np.float16),
        lambda cost: cost.astype(">f8"),
        lambda cost: np.asfortranarray(cost, float),
        lambda cost: np.repeat(np.repeat(cost, 2, 0), 3, 1).astype(float)[::2, ::3],
        lambda cost: cost[::-1].astype(float)[::-1],
        lambda cost: np.ma.masked_array(cost, dtype=float),
        read_only,
    ],
    ids=["list", "int8", "uint16", "half", "big-endian", "fortran", "strided", "negative-strides",
         "masked", "read-only"],
)  # fmt: skip
def test_forms_of_the_same_cost(form, solver):
    cost = form(WRITTEN)
    expected = solve(WRITTEN.astype(float), 2.0, solver=solver)
    result = solve(cost, 2.0, solver=solver)
    np.testing.assert_array_equal(result.f, expected.f)
    shares = result.shares(cost)
    assert shares.dtype == np.float64
    np.testing.assert_array_equal(shares, expected.shares(WRITTEN))


@pytest.mark.parametrize(
    "form",
    [np.asfortranarray, lambda cost: np.repeat(cost, 2, axis=1)[:, ::2]],
    ids=["fortran", "strided"],
)
def test_single_precision_stays_single(form):
    cost = COST.astype(np.float32)
    expected = solve(cost, 0.1)
    result = solve(form(cost), 0.1)
    np.testing.assert_array_equal(result.f, expected.f)
    assert result.shares(form(cost)).dtype == np.float32
    np.testing.assert_array_equal(result.shares(form(cost)), expected.shares(cost))


def test_costs_of_yes_and_no():
    cost = WRITTEN > 4
    np.testing.assert_array_equal(solve(cost, 1.0).f, solve(cost.astype(float), 1.0).f)


@pytest.mark.parametrize(
    "form", [np.asfortranarray, lambda cost: np.repeat(cost, 2, axis=1)[:, ::2]]
)
def test_rows_are_contiguous_when_the_sums_begin(form, monkeypatch):
    seen = []
    monkeypatch.setattr(
        solver_module, "ArrayCosts", lambda cost: seen.append(cost) or ArrayCosts(cost)
    )
    solve(form(COST), 1.0)
    assert [cost.flags.c_contiguous for cost in seen] == [True]


def test_single_precision_takes_half_the_memory():
    peaks = {}
    for dtype in (np.float32, np.float64):
        cost = np.zeros((2_000, 300), dtype)
        solve(cost, 1.0)
        tracemalloc.start()
        solve(cost, 1.0)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[np.float32] <= 0.65 * peaks[np.float64]


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e8])
@EVERY_SOLVER
def test_the_error_is_that_of_the_potentials_returned(solver, shift):
    """Not of the same potentials before a shift, which rounds."""
    start = solve(COST, 0.1).f
    result = solve(COST, 0.1, warm_start=start + shift, max_iter=0, solver=solver, tol=1e-15)
    error = oracles.marginal_error(COST, result.f, 0.1, A, B)
    assert result.marginal_error == pytest.approx(error, rel=0, abs=1e-13)


@EVERY_SOLVER
def test_what_is_given_is_not_written_to(solver):
    cost, a, b, start = COST.copy(), A.copy(), B.copy(), np.zeros(12)
    given_arrays = (cost, a, b, start)
    before = [array.copy() for array in given_arrays]
    result = solve(cost, 0.1, source_weights=a, target_weights=b, warm_start=start, solver=solver)
    result.shares(cost)
    for array, copy in zip(given_arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert not any(np.shares_memory(result.f, array) for array in given_arrays)


def test_epsilon_may_be_any_real_number():
    expected = solve(COST, 1.0)
    for one in (1, np.float32(1), np.int64(1), np.array(1.0)):
        result = solve(COST, one)
        np.testing.assert_array_equal(result.f, expected.f)
        assert type(result.epsilon) is float


def test_the_report_holds_plain_numbers():
    result = solve(COST, 0.1)
    kinds = {
        "converged": bool, "marginal_error": float, "n_sweeps": int, "n_iter": int, "value": float
    }  # fmt: skip
    assert {name: type(getattr(result, name)) for name in kinds} == kinds


@EVERY_SOLVER
@pytest.mark.parametrize("max_iter", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [1.0, 0.02, 1e-3, 1e-5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stopped_early_it_says_so(solver, max_iter, epsilon, dtype):
    cost = COST.astype(dtype)
    result = solve(cost, epsilon, tol=1e-14, max_iter=max_iter, solver=solver)
    assert not result.converged
    assert result.n_iter == max_iter
    assert result.n_sweeps >= 1
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.value)
    error = oracles.marginal_error(cost, result.f, epsilon, A, B)
    slack = 1e-11 if dtype is np.float64 else 2e-6
    assert result.marginal_error == pytest.approx(error, rel=0, abs=slack)
    assert error > 1e-14


def test_more_steps_of_sinkhorn_are_no_worse():
    errors = [
        solve(COST, 0.02, max_iter=k, solver="sinkhorn", tol=1e-14).marginal_error
        for k in range(30)
    ]
    assert (np.diff(errors) <= 1e-15).all()


@EVERY_SOLVER
@given(case=strategies.problems())
def test_from_the_solution_no_step_is_taken(case, solver):
    cold = solve(case.cost, **case.problem, tol=1e-9, solver=solver)
    warm = solve(case.cost, **case.problem, tol=1.1e-9, solver=solver, warm_start=cold.f + 3.0)
    assert warm.converged
    assert warm.n_iter == 0
    assert warm.n_sweeps == 1
    np.testing.assert_allclose(warm.f, cold.f, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 1e-3])
def test_from_near_the_solution_newton_is_soon_there(epsilon):
    rng = np.random.default_rng(2)
    cold = solve(COST, epsilon, tol=1e-9)
    near = cold.f + 0.01 * epsilon * rng.standard_normal(12)
    warm = solve(COST, epsilon, tol=1e-9, warm_start=near)
    assert warm.converged
    assert warm.n_iter <= 3


@pytest.mark.parametrize(
    ("solver", "size"), [("newton", 1e-2), ("newton", 1e2), ("newton", 1e6), ("sinkhorn", 1e2)]
)
@given(direction=strategies.vectors(12, -1.0, 1.0), epsilon=st.sampled_from([1.0, 0.1, 0.03]))
def test_from_anywhere_the_solution_is_found(solver, size, direction, epsilon):
    expected = solve(COST, epsilon, tol=1e-9)
    warm = solve(COST, epsilon, tol=1e-9, solver=solver, warm_start=size * direction)
    assert warm.converged
    np.testing.assert_allclose(warm.shares(COST), expected.shares(COST), rtol=0, atol=1e-6)
    np.testing.assert_allclose(warm.f, expected.f, rtol=0, atol=1e-6)


@pytest.mark.parametrize("start", [np.full(12, 1e15), np.linspace(-1e12, 1e12, 12)])
@EVERY_SOLVER
def test_starts_beyond_precision_do_no_harm(solver, start):
    result = solve(COST, 0.1, warm_start=start, solver=solver, max_iter=200)
    assert np.isfinite(result.f).all()
    error = oracles.marginal_error(COST, result.f, 0.1, A, B)
    assert result.converged == (error <= 1e-6)
