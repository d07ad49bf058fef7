"""The rule `classes`: what the sources of a class give together is fixed or bounded."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

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

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
TOL = 1e-9


@dataclass(frozen=True)
class Classes:
    """A problem with totals that are within the bounds."""

    cost: np.ndarray
    labels: np.ndarray
    epsilon: float
    target_weights: np.ndarray
    totals: np.ndarray
    least: np.ndarray
    most: np.ndarray

    def solve(self, **options):
        bounds = {"least": self.least, "most": self.most, "target_weights": self.target_weights}
        return solve_classes(
            self.cost, self.labels, self.epsilon, **({"tol": TOL} | bounds | options)
        )

    def fixed(self, **options):
        return self.solve(**({"least": self.totals, "most": self.totals} | options))

    @property
    def merged(self):
        """The costs of the classes, in extended precision."""
        columns = [
            oracles.softmin(self.cost[:, self.labels == k], 0.0, self.epsilon)
            for k in range(len(self.totals))
        ]
        return np.stack(columns, axis=1)

    def masses(self, prices):
        """What each class gives, from the shares of the sources."""
        each = self.target_weights @ shares(self.cost, prices[self.labels], self.epsilon)
        return np.bincount(self.labels, each, len(self.totals))


def widened(totals, down, up):
    """Bounds around the totals; 0 leaves none, 1 leaves all room."""
    return totals * (1 - down), totals + (1 - totals) * up


@st.composite
def problems(draw, classes=4, moderation=(0.05, 5.0)):
    case = draw(strategies.problems(largest=7, moderation=moderation))
    count = draw(st.integers(1, min(classes, case.cost.shape[1])))
    rest = case.cost.shape[1] - count
    further = draw(st.lists(st.integers(0, count - 1), min_size=rest, max_size=rest))
    labels = np.array(draw(st.permutations([*range(count), *further])), np.intp)
    totals = draw(strategies.weights(count))
    room = st.one_of(st.just(0.0), st.just(1.0), strategies.numbers(0.0, 1.0))
    down, up = (np.array([draw(room) for _ in range(count)]) for _ in range(2))
    least, most = widened(totals, down, up)
    return Classes(case.cost, labels, case.epsilon, case.target_weights, totals, least, most)


def random_classes(seed, *, targets=60, sources=30, classes=6, room=0.2, scale=0.1):
    rng = np.random.default_rng(seed)
    x, y = rng.random((targets, 3)), rng.random((sources, 3))
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    labels = rng.permutation(np.arange(sources) % classes)
    totals = rng.dirichlet(np.ones(classes))
    least, most = widened(totals, *(room * rng.random((2, classes))))
    return Classes(cost, labels, scale, rng.dirichlet(np.ones(targets)), totals, least, most)


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


def assert_optimal(result, case, tol=TOL):
    """Check the conditions of Karush, Kuhn and Tucker, from the sources' shares."""
    h = result.f
    assert result.converged
    assert np.isfinite(h[case.most > 0]).all()
    mass = case.masses(h)
    assert (mass >= case.least - tol - 1e-12).all()
    assert (mass <= case.most + tol + 1e-12).all()
    if case.least.sum() > 1 - 1e-9 or case.most.sum() < 1 + 1e-9:
        return
    loose = case.least < case.most
    np.testing.assert_allclose(mass[loose & (h > 0)], case.least[loose & (h > 0)], atol=2 * tol)
    np.testing.assert_allclose(mass[loose & (h < 0)], case.most[loose & (h < 0)], atol=2 * tol)


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


@pytest.mark.parametrize("room", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_tight_bounds_are_kept(room, scale, seed):
    case = random_classes(seed, room=room, scale=scale, classes=3 + seed)
    result = case.solve()
    assert_optimal(result, case)
    again = case.solve(warm_start=result.f, tol=1.01 * TOL)
    assert again.n_iter == 0
    assert again.n_sweeps == 3  # over the classes to merge the free ones, for these, and for all
    np.testing.assert_allclose(again.f, result.f, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_the_sure_order_ends_at_the_same_prices(seed, monkeypatch):
    """It is what is left when guesses do not end, which is too rare to wait for."""
    case = random_classes(seed, room=[0.05, 0.5][seed % 2], classes=2 + seed % 9)
    guessed = case.solve()
    monkeypatch.setattr("otprop.transport.totals._GUESSES", 0)
    result = case.solve()
    assert_optimal(result, case)
    np.testing.assert_allclose(result.f, guessed.f, rtol=0, atol=1e-6)


def test_guesses_spare_passes():
    """The budget is about 1.2 times what it takes; in the sure order it takes 1.6 times that."""
    cases = [random_classes(seed, room=0.05, classes=12) for seed in range(20)]
    results = [case.solve(tol=1e-6) for case in cases]
    assert all(result.converged for result in results)
    assert sum(result.n_sweeps for result in results) <= 1_600


def test_classes_held_without_need_are_soon_let_go():
    """From the prices of narrower bounds; the budget is about 1.2 times what it takes."""
    passes = 0
    for seed in range(20):
        narrow, wide = (random_classes(seed, room=room, classes=8) for room in (0.05, 0.5))
        result = wide.solve(tol=1e-6, warm_start=narrow.solve(tol=1e-6).f)
        assert result.converged
        passes += result.n_sweeps
    assert passes <= 1_000


@pytest.mark.parametrize("seed", range(10))
def test_from_anywhere_the_same_prices_are_found(seed):
    case = random_classes(seed, room=0.3)
    rng = np.random.default_rng(seed)
    start = rng.choice([0.0, 1.0, -1.0, 1e3, -np.inf], 6) * rng.random()
    start[np.isnan(start)] = 0.0
    result = case.solve(warm_start=start)
    assert_optimal(result, case)
    np.testing.assert_allclose(result.f, case.solve().f, rtol=0, atol=1e-6)


def test_prices_of_a_near_problem_save_steps():
    case = random_classes(4, targets=300)
    start = case.solve().f
    near = Classes(**(vars(case) | {"epsilon": 0.099}))
    assert near.solve(warm_start=start).n_sweeps < 0.7 * near.solve().n_sweeps


@EVERY_SOLVER
def test_a_class_that_may_give_nothing_gives_nothing(solver):
    case = random_classes(1, classes=4)
    for least, most in (([0, 0.5, 0.2, 0.3], [0, 0.5, 0.2, 0.3]), ([0, 0, 0.6, 0], [0, 1, 1, 1])):
        result = case.solve(least=least, most=most, solver=solver)
        assert result.converged
        assert np.isneginf(result.f[0])
        assert np.isfinite(result.f[1:]).all()
        assert case.masses(result.f)[0] <= 1e-300
        again = case.solve(least=least, most=most, solver=solver, warm_start=result.f)
        assert again.converged
        # What gave nothing may give again.
        anew = case.solve(least=np.full(4, 0.2), most=np.ones(4), warm_start=result.f)
        assert_optimal(
            anew, Classes(**(vars(case) | {"least": np.full(4, 0.2), "most": np.ones(4)}))
        )


@EVERY_SOLVER
@given(case=problems())
def test_single_precision_keeps_totals(case, solver):
    """But for what its shares are rounded by, where costs are many ε."""
    single = Classes(**(vars(case) | {"cost": case.cost.astype(np.float32)}))
    assert_optimal(single.solve(solver=solver, tol=1e-6), single, tol=1.2e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_merged_costs_of_either_precision(dtype):
    case = random_classes(2, targets=300)
    cost, b = case.merged.astype(dtype), case.target_weights
    with Workers(2) as workers:
        result = solve_totals(
            ArrayCosts(cost), b, workers, case.least, case.most, case.epsilon, tol=1e-6
        )
    assert result.converged
    np.testing.assert_allclose(result.f, case.solve().f, rtol=0, atol=1e-5)
    off = b @ result.shares(cost)
    assert (off >= case.least - 2e-6).all()
    assert (off <= case.most + 2e-6).all()


def test_single_precision_does_not_round_a_class():
    """Costs of 1,000 ε, where rounding once more would move the totals by 1e-6."""
    rng = np.random.default_rng(0)
    cost = (3.0 + rng.random((50, 90))).astype(np.float32)
    labels, totals = np.arange(90) % 3, np.array([0.3, 0.3, 0.4])
    result = solve_classes(cost, labels, 3e-3, least=totals, most=totals, tol=1e-8)
    assert result.converged
    each = shares(cost.astype(float), result.f[labels], 3e-3).mean(axis=0)
    np.testing.assert_allclose(np.bincount(labels, each), totals, rtol=0, atol=5e-8)


def test_single_precision_does_not_round_the_free_classes():
    """Costs of 10,000 ε, where their soft-min has to be exact to be worth what they are."""
    rng = np.random.default_rng(0)
    cost = (30.0 + 0.01 * rng.random((50, 4))).astype(np.float32)
    with Workers(1) as workers:
        result = solve_totals(
            ArrayCosts(cost), oracles.uniform(50), workers, [0.5, 0, 0, 0], np.ones(4), 3e-3,
            tol=2e-6,
        )  # fmt: skip
    assert result.converged
    assert result.f[0] > 0


def test_threads_and_memory_change_no_bit():
    rng = np.random.default_rng(0)
    cost, b = rng.random((200_000, 3)), oracles.uniform(200_000)
    bounds = np.array([0.1, 0.4, 0.2]), np.array([0.3, 0.8, 0.3])
    found = []
    for count, memory in ((1, np.inf), (3, np.inf), (2, 0.0)):
        with Workers(count) as workers:
            found.append(solve_totals(ArrayCosts(cost), b, workers, *bounds, 0.3, memory=memory))
    for other in found[1:]:
        np.testing.assert_array_equal(other.f, found[0].f)
        assert other.value == found[0].value


FORBIDDEN = np.array([[0.0, np.inf, 1.0], [0.5, np.inf, 0.5], [1.0, np.inf, 0.0], [1.0, 0.2, 0.3]])


@EVERY_SOLVER
@pytest.mark.parametrize(
    ("least", "most", "missing"),
    [
        ([0.0, 0.5, 0.0], [1.0, 1.0, 1.0], 0.25),  # reaches a fourth only
        ([0.2, 0.5, 0.3], [0.2, 0.5, 0.3], 0.25),
        ([0.0, 0.0, 0.0], [0.1, 1.0, 0.1], 0.5),  # three fourths need them
        ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], 0.75),
        ([0.0, 0.3, 0.1], [0.0, 0.5, 1.0], 0.05),
    ],
)
def test_forbidden_pairs_that_leave_no_plan_are_told(least, most, missing, solver):
    result = solve_classes(
        FORBIDDEN, [0, 1, 2], 0.2, least=least, most=most, solver=solver, max_iter=500
    )
    assert not result.converged
    assert result.marginal_error >= missing - 1e-9
    assert not np.isnan(result.f).any()
    assert np.isfinite(result.value)
    assert np.isfinite(shares(FORBIDDEN, result.f, 0.2)).all()


@pytest.mark.parametrize("least", [[0.0, 0.5, 0.0], [0.3, 0.3, 0.3]])
def test_where_there_is_no_plan_that_is_soon_found(least):
    """Newton's method sees in 40 steps that it gets no further; once is enough to know."""
    result = solve_classes(FORBIDDEN, [0, 1, 2], 0.2, least=least, most=np.ones(3))
    assert not result.converged
    assert result.n_iter <= 120


def least_violation(case):
    """By how much the bounds have to be missed, by SciPy's linear programming."""
    targets, classes = case.cost.shape
    flows = targets * classes
    received = np.hstack(
        [np.kron(np.eye(targets), np.ones(classes)), np.zeros((targets, 2 * classes))]
    )
    gives = np.kron(np.ones(targets), np.eye(classes))
    bounds = np.hstack([np.vstack([-gives, gives]), -np.eye(2 * classes)])
    open_pairs = [(0, None if np.isfinite(cost) else 0) for cost in case.cost.ravel()]
    found = linprog(
        np.concatenate([np.zeros(flows), np.ones(2 * classes)]),
        A_ub=bounds, b_ub=np.concatenate([-case.least, case.most]),
        A_eq=received, b_eq=case.target_weights, bounds=open_pairs + [(0, None)] * 2 * classes,
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize("seed", range(60))
def test_it_converges_if_forbidden_pairs_leave_a_plan(seed):
    case = random_classes(seed, targets=6, sources=4, classes=4, room=0.7)
    cost = case.cost.copy()
    cost[np.random.default_rng(seed).random(cost.shape) < 0.45] = np.inf
    cost[np.arange(6), np.arange(6) % 3] = case.cost[np.arange(6), np.arange(6) % 3]
    case = Classes(**(vars(case) | {"cost": cost}))
    with Workers(1) as workers:
        result = solve_totals(
            ArrayCosts(cost), case.target_weights, workers, case.least, case.most, 0.1
        )
    violation = least_violation(case)
    assert result.converged == (violation < 1e-9)
    assert result.marginal_error >= violation - 1e-9
    assert not (np.isnan(result.f) | np.isposinf(result.f)).any()
    assert np.isfinite(shares(cost, result.f, 0.1)).all()


def test_a_class_that_must_give_all_may():
    """Though its least is less, when no other class reaches a target."""
    cost = np.array([[0.0, np.inf], [1.0, np.inf]])
    with Workers(1) as workers:
        result = solve_totals(
            ArrayCosts(cost), oracles.uniform(2), workers, [0.4, 0.0], [1.0, 0.5], 0.1
        )
    assert result.converged
    np.testing.assert_array_equal(result.f, [0.0, -np.inf])


def test_forbidden_pairs_that_leave_a_plan_are_obeyed():
    least, most = np.array([0.5, 0.2, 0.0]), np.array([0.9, 0.9, 0.05])
    result = solve_classes(FORBIDDEN, [0, 1, 2], 0.2, least=least, most=most, tol=TOL)
    assert result.converged
    given_away = shares(FORBIDDEN, result.f, 0.2)
    assert (given_away[:3, 1] <= 1e-300).all()
    mass = given_away.mean(axis=0)
    assert (mass >= least - TOL).all()
    assert (mass <= most + TOL).all()


def test_a_class_that_reaches_no_target_is_told():
    cost = np.array([[0.0, 1.0, np.inf], [1.0, 0.0, np.inf]])
    with Workers(1) as workers:
        for least in ([0.0, 0.0, 0.3], [0.3, 0.4, 0.3]):
            result = solve_totals(
                ArrayCosts(cost), oracles.uniform(2), workers, least, [0.7, 0.7, 0.3], 0.1
            )
            assert not result.converged
            assert result.marginal_error >= 0.3
            assert np.isfinite(result.f[:2]).all()
        result = solve_totals(
            ArrayCosts(cost), oracles.uniform(2), workers, [0.6, 0.0, 0.0], [1.0, 1.0, 1.0], 0.1
        )
        assert result.converged
        assert result.f[0] > 0


@EVERY_SOLVER
@pytest.mark.parametrize("max_iter", [0, 1, 2, 5])
@pytest.mark.parametrize("room", [0.0, 0.1])
def test_stopped_early_it_says_so(solver, max_iter, room):
    case = random_classes(3, room=room, scale=0.02)
    result = case.solve(solver=solver, max_iter=max_iter, tol=1e-12)
    assert not result.converged
    assert result.n_iter == max_iter
    mass = case.masses(result.f)
    outside = np.maximum(0, np.maximum(case.least - mass, mass - case.most)).sum()
    assert result.marginal_error >= outside - 1e-12
    assert np.isfinite(result.f).all()


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
