"""The primitive against dense NumPy, and to the bit against itself."""

import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from otprop.transport import (
    ArrayCosts,
    Rows,
    Sweep,
    Workers,
    block_rows,
    blocks,
    solve,
    solve_sweep,
)
from otprop.transport import sweep as sweeps
from tests import oracles

TARGETS = 333
BOTH_PRECISIONS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
# At these ε the shares are kept as a list in all blocks, in some and in none.
FORMS = pytest.mark.parametrize("epsilon", [2e-3, 3e-2, 1.0], ids=["sparse", "mixed", "dense"])
CLOSE = {np.float64: 1e-14, np.float32: 2e-6}


@pytest.fixture(autouse=True)
def _many_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_ENTRIES", 1)
    # Between the densities of the blocks at the middle one of the epsilons.
    monkeypatch.setattr(sweeps, "_LISTED_DENSITY", 0.25)
    assert block_rows(5) == 64


@pytest.fixture
def workers():
    with Workers(2) as two:
        yield two


class Given:
    """A problem in which ε alone decides how many shares matter."""

    def __init__(self, dtype=np.float64, sources=150):
        rng = np.random.default_rng(0)
        # The later a target, the sharper its shares: blocks differ in their density.
        contrast = np.linspace(0.2, 2.0, TARGETS)[:, None]
        self.cost = (contrast * rng.random((TARGETS, sources))).astype(dtype)
        self.f = 0.1 * rng.standard_normal(sources)
        self.b = rng.dirichlet(np.full(TARGETS, 3.0))
        self.a = rng.dirichlet(np.full(sources, 3.0))
        self.v = rng.standard_normal(sources)

    def sweep(self, workers, memory=float("inf")):
        return Sweep(ArrayCosts(self.cost), self.b, workers, memory)


def forms(sweep):
    return {type(form).__name__ for form in sweep._kept}


@pytest.mark.parametrize("sources", [1, 5, 127, 128, 129, 300])
@FORMS
@BOTH_PRECISIONS
def test_evaluation_is_that_of_numpy(dtype, epsilon, sources, workers):
    case = Given(dtype, sources)
    value, mass = case.sweep(workers).evaluate(case.f, epsilon, 1e-4)
    expected = oracles.mass(case.cost, case.f, epsilon, case.b).astype(float)
    np.testing.assert_allclose(mass, expected, rtol=0, atol=CLOSE[dtype])
    no_sources = np.zeros(sources)
    expected = oracles.semi_dual(case.cost, case.f, epsilon, no_sources, case.b)
    assert value == pytest.approx(expected, rel=0, abs=CLOSE[dtype])


@FORMS
@BOTH_PRECISIONS
def test_spread_is_that_of_numpy(dtype, epsilon, workers):
    case = Given(dtype)
    sweep = case.sweep(workers)
    sweep.evaluate(case.f, epsilon, 1e-12)
    p = oracles.shares(case.cost, case.f, epsilon)
    expected = (case.b[:, None] * p).T @ (p @ case.v)
    np.testing.assert_allclose(
        sweep.spread(case.v), expected.astype(float), rtol=0, atol=max(CLOSE[dtype], 1e-11)
    )


def test_the_epsilons_of_these_tests_give_both_forms(workers):
    case = Given()
    seen = []
    for epsilon in (2e-3, 3e-2, 1.0):
        sweep = case.sweep(workers)
        sweep.evaluate(case.f, epsilon, 1e-4)
        seen.append(forms(sweep))
    assert seen == [{"_SparseShares"}, {"_SparseShares", "ndarray"}, {"ndarray"}]


@BOTH_PRECISIONS
@pytest.mark.parametrize("listed", [0.0, 0.25], ids=["dense", "lists"])
def test_joined_is_the_matrix_of_spread(dtype, workers, listed, monkeypatch):
    monkeypatch.setattr(sweeps, "_LISTED_DENSITY", listed)
    case = Given(dtype)
    sweep = case.sweep(workers)
    sweep.evaluate(case.f, 2e-3, 1e-4)
    assert sweep.sparse
    assert forms(sweep) == ({"_SparseShares"} if listed else {"ndarray"})
    graph = sweep.joined()
    # A dense block spreads the shares below the threshold too.
    atol = 1e-8 if listed else 1e-5
    np.testing.assert_allclose(graph @ case.v, sweep.spread(case.v), rtol=0, atol=atol)
    p = oracles.shares(case.cost, case.f, 2e-3).astype(float)
    p[p <= 1e-4] = 0.0
    expected = (case.b[:, None] * p).T @ p
    np.testing.assert_allclose(graph, expected, rtol=0, atol=CLOSE[dtype])


def test_sparse_is_said_when_every_block_is(workers):
    case = Given()
    sweep = case.sweep(workers)
    assert not sweep.sparse
    for epsilon, sparse in ((2e-3, True), (3e-2, False), (2e-3, True), (1.0, False)):
        sweep.evaluate(case.f, epsilon, 1e-4)
        assert sweep.sparse == sparse


@BOTH_PRECISIONS
def test_range_of_the_costs_is_that_within_a_target(dtype, workers):
    case = Given(dtype)
    case.cost[200] += 50.0
    case.cost[300, 3] += 7.0
    case.cost[7, 9] = np.inf
    finite = np.where(np.isfinite(case.cost), case.cost, case.cost[:, [0]])
    expected = np.ptp(finite, axis=1).max()
    assert case.sweep(workers).cost_range() == pytest.approx(expected, rel=1e-6)
    assert Sweep(ArrayCosts(np.ones((3, 1), dtype)), np.ones(3) / 3, workers).cost_range() == 0


@pytest.mark.parametrize("memory", [0, float("inf")])
def test_spread_leaves_out_the_shares_below_the_threshold(memory, workers):
    case = Given()
    sweep = case.sweep(workers, memory)
    for threshold in (1e-2, 1e-5, 1e-1):
        sweep.evaluate(case.f, 2e-3, threshold)
        p = oracles.shares(case.cost, case.f, 2e-3).astype(float)
        p[p <= threshold] = 0.0
        expected = (case.b[:, None] * p).T @ (p @ case.v)
        np.testing.assert_allclose(sweep.spread(case.v), expected, rtol=0, atol=1e-13)


def test_spread_of_ones_is_the_mass(workers):
    """The curvature does not change when all potentials do."""
    case = Given()
    sweep = case.sweep(workers)
    mass = sweep.evaluate(case.f, 1.0, 0.0).mass
    np.testing.assert_allclose(sweep.spread(np.ones(150)), mass, rtol=0, atol=1e-15)


def test_spread_is_the_derivative_of_the_mass(workers):
    case, step = Given(), 1e-5
    sweep = case.sweep(workers)
    up = sweep.evaluate(case.f + step * case.v, 0.1, 0.0).mass
    down = sweep.evaluate(case.f - step * case.v, 0.1, 0.0).mass
    mass = sweep.evaluate(case.f, 0.1, 0.0).mass
    derivative = (mass * case.v - sweep.spread(case.v)) / 0.1
    np.testing.assert_allclose((up - down) / (2 * step), derivative, rtol=0, atol=1e-8)


def test_spread_is_that_of_the_last_evaluation(workers):
    case = Given()
    fresh = case.sweep(workers)
    fresh.evaluate(case.f, 0.03, 1e-4)
    used = case.sweep(workers)
    for epsilon in (1.0, 2e-3, 0.03):
        used.evaluate(case.f, epsilon, 1e-4)
    np.testing.assert_array_equal(used.spread(case.v), fresh.spread(case.v))


@BOTH_PRECISIONS
@pytest.mark.parametrize("depth", [1.0, 100.0, 1e4])
def test_log_mass_is_that_of_numpy_where_shares_underflow(dtype, depth, workers):
    case = Given(dtype)
    wanted = np.array([149, 3, 70])
    f = case.f.copy()
    f[wanted] -= depth
    got = case.sweep(workers).log_mass(f, 0.05, wanted)
    log_shares = (f + oracles.softmin(case.cost, f, 0.05)[:, None] - case.cost) / 0.05
    expected = oracles.log_sum_exp(log_shares + np.log(case.b)[:, None], axis=0)[wanted]
    rtol = 1e-14 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(got, expected.astype(float), rtol=rtol, atol=1e-6)
    if depth > 100:
        assert (oracles.mass(case.cost, f, 0.05, case.b).astype(float)[wanted] == 0).all()


def test_log_mass_with_forbidden_pairs(workers):
    """Of a source that reaches no target of some blocks, and one that reaches none."""
    case = Given()
    case.cost[:300, 7] = np.inf
    case.cost[:, 8] = np.inf
    with np.errstate(divide="ignore"):
        expected = np.log(oracles.mass(case.cost, case.f, 0.05, case.b).astype(float))
    got = case.sweep(workers).log_mass(case.f, 0.05, np.array([7]))
    np.testing.assert_allclose(got, expected[[7]], rtol=0, atol=1e-12)


def test_passes_are_counted(workers):
    case = Given()
    sweep = case.sweep(workers)
    sweep.evaluate(case.f, 1.0, 0.0)
    sweep.spread(case.v)
    sweep.spread(case.v)
    sweep.log_mass(case.f, 1.0, np.array([0]))
    sweep.evaluate(case.f, 2e-3, 1e-4)
    sweep.joined()
    sweep.cost_range()
    assert sweep.count == 7


def run_all(case, workers, memory, epsilon):
    """Everything that a sweep computes, on a path on which blocks change their form."""
    sweep = case.sweep(workers, memory)
    out = []
    for e in (epsilon, 1.0, epsilon, 2e-3, 0.1, epsilon):
        value, mass = sweep.evaluate(case.f, e, 1e-4)
        out += [[value], mass, sweep.spread(case.v), sweep.spread(mass)]
        out += [sweep.log_mass(case.f, e, np.array([0, 5])), [sweep.cost_range()]]
        out += [sweep.joined().ravel()] if sweep.sparse else []
    return np.concatenate(out)


@FORMS
@BOTH_PRECISIONS
def test_memory_and_threads_change_no_bit(dtype, epsilon):
    case = Given(dtype)
    with Workers(1) as one:
        expected = run_all(case, one, float("inf"), epsilon)
    for count in (1, 2, 3, 7):
        for memory in (0, 20_000, 200_000, float("inf")):
            with Workers(count) as workers:
                np.testing.assert_array_equal(run_all(case, workers, memory, epsilon), expected)


@pytest.mark.parametrize("solver", ["newton", "sinkhorn"])
@pytest.mark.parametrize("epsilon", [0.3, 0.02])
@BOTH_PRECISIONS
def test_memory_and_threads_change_no_bit_of_a_solution(dtype, epsilon, solver):
    case = Given(dtype)
    seen = set()
    for count in (1, 2, 3):
        for memory in (0, 100_000, float("inf")):
            with Workers(count) as workers:
                result = solve_sweep(
                    case.sweep(workers, memory),
                    Rows(case.a),
                    epsilon,
                    tol=1e-6,
                    solver=solver,
                    max_iter=300,
                    warm_start=None,
                )
            assert result.converged
            report = (result.value, result.marginal_error, result.n_iter, result.n_sweeps)
            seen.add((result.f.tobytes(), *report))
    assert len(seen) == 1


@pytest.mark.parametrize("solver", ["newton", "sinkhorn"])
def test_threads_of_blas_change_no_bit(solver):
    """OpenBLAS shares out the inner product of more than 10,000 numbers among threads."""
    rng = np.random.default_rng(0)
    cost, a, b = rng.random((300, 12_000)), rng.random(12_000), rng.random(300)
    start = 0.1 * rng.standard_normal(12_000)
    seen = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads, "blas"):
            result = solve(
                cost, 0.05, source_weights=a, target_weights=b, solver=solver, max_iter=8,
                tol=1e-12, warm_start=start,
            )  # fmt: skip
        seen.add((result.f.tobytes(), result.value, result.marginal_error, result.n_sweeps))
    assert len(seen) == 1


def test_the_room_for_sums_does_not_grow_with_the_blocks():
    case = Given(sources=60)
    targets = 64 * 1000
    costs = ArrayCosts(np.broadcast_to(case.cost[0], (targets, 60)))
    with Workers(2) as workers:
        sweep = Sweep(costs, np.full(targets, 1 / targets), workers, memory=0)
        for work in (
            lambda: sweep.evaluate(case.f, 1.0, 0.0),
            lambda: sweep.spread(case.v),
            lambda: sweep.log_mass(case.f, 1.0, np.arange(60)),
        ):
            work()
            tracemalloc.start()
            work()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 0.5 * 8 * 1000 * 60


@pytest.mark.parametrize("targets", [1, 64, 64 * 31, 64 * 32 + 1, 64 * 33, 64 * 100 + 7])
def test_each_block_is_in_one_lane(targets):
    rng = np.random.default_rng(0)
    cost, b, f = rng.random((targets, 5)), oracles.uniform(targets), rng.random(5)
    expected = oracles.mass(cost, f, 0.1, b).astype(float)
    for count in (1, 2, 5):
        with Workers(count) as workers:
            sweep = Sweep(ArrayCosts(cost), b, workers)
            np.testing.assert_allclose(
                sweep.evaluate(f, 0.1, 0.0).mass, expected, rtol=0, atol=1e-14
            )
            np.testing.assert_allclose(sweep.spread(np.ones(5)), expected, rtol=0, atol=1e-14)
            got = np.exp(sweep.log_mass(f, 0.1, np.arange(5)))
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("memory", [0, 20_000, 200_000, float("inf")])
def test_no_more_is_kept_than_memory_allows(memory, workers):
    case = Given()
    sweep = case.sweep(workers, memory)
    for epsilon in (1.0, 0.03, 2e-3, 0.1, 1.0):
        sweep.evaluate(case.f, epsilon, 1e-4)
        kept = sum(form.nbytes for form in sweep._kept if form is not None)
        assert kept <= memory
        assert kept == sweep._used
        assert (kept == 0) == (memory == 0)


class WiderRows:
    """Costs as they may come from elsewhere: rows in another order, in longer arrays."""

    def __init__(self, cost):
        targets, sources = cost.shape
        self.shape, self.dtype = cost.shape, cost.dtype
        self._order = np.random.default_rng(1).permutation(targets)
        self._wide = np.full((targets, sources + 37), np.nan, cost.dtype)
        self._wide[self._order, :sources] = cost

    def read(self, start, stop):
        return self._wide, self._order[start:stop]


@pytest.mark.parametrize("memory", [0, float("inf")])
@BOTH_PRECISIONS
def test_where_costs_come_from_changes_no_bit(dtype, memory, workers):
    case = Given(dtype)
    expected = run_all(case, workers, memory, 0.03)
    case.sweep = lambda workers, memory: Sweep(WiderRows(case.cost), case.b, workers, memory)
    np.testing.assert_array_equal(run_all(case, workers, memory, 0.03), expected)


def test_errors_of_the_costs_reach_the_caller(workers):
    case = Given()

    class Broken(ArrayCosts):
        def read(self, start, stop):
            if start == 128:
                raise OSError("disk gone")
            return super().read(start, stop)

    sweep = Sweep(Broken(case.cost), case.b, workers)
    with pytest.raises(OSError, match="disk gone"):
        sweep.evaluate(case.f, 1.0, 0.0)


def test_the_size_of_a_block_depends_on_the_sources_alone(monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_ENTRIES", 1 << 19)
    assert [block_rows(n) for n in (0, 1, 1024, 1 << 30)] == [1 << 19, 1 << 19, 512, 64]


@pytest.mark.parametrize("entries", [1, 150 * 100, 1 << 19])
def test_the_size_of_a_block_changes_only_the_rounding(entries, monkeypatch, workers):
    monkeypatch.setattr(blocks, "_BLOCK_ENTRIES", entries)
    case = Given()
    _, mass = case.sweep(workers).evaluate(case.f, 0.1, 0.0)
    expected = oracles.mass(case.cost, case.f, 0.1, case.b).astype(float)
    np.testing.assert_allclose(mass, expected, rtol=0, atol=1e-16 * 30)
