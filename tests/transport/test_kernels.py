"""The compiled loops against NumPy in extended precision, and to the bit against themselves."""

import itertools

import numpy as np
import pytest
from numba import njit

from otprop.transport import kernels
from tests import oracles

BOTH_PRECISIONS = pytest.mark.parametrize("dtype", [np.float64, np.float32])
LOWEST = {np.float64: -1022.0, np.float32: -126.0}
# The polynomial has ten terms in double precision, six in single.
EXP2 = {np.float64: 2e-15, np.float32: 3e-7}
ULP = {np.float64: 2.0**-52, np.float32: 2.0**-23}
# Up to this, a share is known however the exponent is rounded (ε = 0.05, differences up to 41 ε).
CLOSE = {np.float64: 1e-14, np.float32: 5e-6}


@njit
def exp2_each(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = kernels.exp2(x[i])
    return out


def made(dtype, targets=40, sources=300, seed=0):
    rng = np.random.default_rng(seed)
    cost = rng.random((targets, sources)).astype(dtype)
    return cost, 0.1 * rng.standard_normal(sources), rng.dirichlet(np.ones(targets))


def swept(cost, rows, f, epsilon, weights):
    shares = np.full((len(rows), len(f)), np.nan, cost.dtype)
    mass = np.zeros(len(f))
    value, kept = kernels.sweep_block(cost, rows, f, epsilon, weights, shares, mass, 1e-3)
    return value, kept, shares, mass


@BOTH_PRECISIONS
def test_exp2_over_its_whole_range(dtype):
    low = LOWEST[dtype]
    rng = np.random.default_rng(0)
    halves = np.arange(2 * low, 1) / 2
    x = np.concatenate(
        [
            np.linspace(low, 0, 200_001),
            -(10.0 ** rng.uniform(-20, np.log10(-low), 100_000)),
            *(np.nextafter(halves, side) for side in (-np.inf, np.inf)),
            halves,
            [-0.0, -np.finfo(dtype).tiny, np.nextafter(low, 0)],
        ]
    ).astype(dtype)
    x = x[(x >= low) & (x <= 0)]
    expected = np.exp2(x.astype(np.longdouble))
    got = exp2_each(x)
    assert got.dtype == dtype
    relative = np.abs(got / expected - 1)
    assert relative.max() <= EXP2[dtype]


@BOTH_PRECISIONS
def test_exp2_of_whole_numbers(dtype):
    x = np.arange(LOWEST[dtype], 1, dtype=dtype)
    np.testing.assert_allclose(exp2_each(x), np.exp2(x), rtol=EXP2[dtype])
    assert abs(exp2_each(np.zeros(1, dtype))[0] - 1) <= EXP2[dtype]


@BOTH_PRECISIONS
def test_exp2_below_its_range_is_next_to_nothing(dtype):
    x = np.array([LOWEST[dtype] - 0.1, 2 * LOWEST[dtype], -1e30, -np.inf], dtype)
    got = exp2_each(x)
    assert (got >= 0).all()
    assert (got <= 2 * np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("sources", [1, 2, 7, 127, 128, 129, 256, 300])
@BOTH_PRECISIONS
def test_sweep_of_a_block(dtype, sources):
    cost, f, b = made(dtype, sources=sources)
    rows = np.random.default_rng(1).permutation(40)[:30]
    value, kept, shares, mass = swept(cost, rows, f, 0.05, b[:30])
    expected = oracles.shares(cost[rows], f, 0.05).astype(float)
    np.testing.assert_allclose(shares, expected, rtol=0, atol=CLOSE[dtype])
    np.testing.assert_allclose(mass, b[:30] @ shares.astype(float), rtol=0, atol=1e-15)
    assert kept == (shares > 1e-3).sum()
    del value  # what it is in units of is the business of Sweep.evaluate, which has an oracle


@BOTH_PRECISIONS
def test_a_share_at_the_threshold_is_not_counted(dtype):
    shares, mass = np.zeros((1, 4), dtype), np.zeros(4)
    block = np.zeros((1, 4), dtype), np.arange(1), np.zeros(4), 1.0, np.ones(1), shares, mass
    kernels.sweep_block(*block, 0.0)
    at = float(shares[0, 0])
    assert [kernels.sweep_block(*block, t)[1] for t in (at * 0.999, at, at * 1.001)] == [4, 0, 0]


@BOTH_PRECISIONS
def test_sweep_adds_to_the_mass(dtype):
    cost, f, b = made(dtype)
    mass = np.full(300, 10.0)
    kernels.sweep_block(cost, np.arange(40), f, 0.05, b, np.empty_like(cost), mass, 0.0)
    np.testing.assert_allclose(mass - 10, swept(cost, np.arange(40), f, 0.05, b)[3], atol=1e-14)


@pytest.mark.parametrize("gap", [0.0, 20.0, 26.5, 27.5, 40.5, 41.5, 200.0, 1e5])
@BOTH_PRECISIONS
def test_a_group_that_is_skipped_has_nothing_to_give(dtype, gap):
    """A group of 128 sources that is `gap` times ε worse than the others."""
    cost, f, b = made(dtype)
    cost[::2, 128:256] += dtype(gap * 0.05 + 1)
    _, _, shares, mass = swept(cost, np.arange(40), f, 0.05, b)
    expected = oracles.shares(cost, f, 0.05).astype(float)
    np.testing.assert_allclose(shares, expected, rtol=0, atol=CLOSE[dtype])
    np.testing.assert_allclose(mass, b @ expected, rtol=0, atol=CLOSE[dtype])
    np.testing.assert_allclose(shares.sum(axis=1, dtype=float), 1, rtol=0, atol=40 * ULP[dtype])


@BOTH_PRECISIONS
def test_forbidden_pairs_and_sources_without_part(dtype):
    cost, f, b = made(dtype)
    cost[3, 5:] = np.inf
    cost[4, :299] = np.inf
    f[[0, 130]] = -np.inf
    value, _, shares, mass = swept(cost, np.arange(40), f, 0.05, b)
    expected = oracles.shares(cost, f, 0.05).astype(float)
    np.testing.assert_allclose(shares, expected, rtol=0, atol=CLOSE[dtype])
    assert np.isfinite(value)
    assert np.isfinite(mass).all()
    np.testing.assert_allclose(shares[4], np.eye(300)[299], rtol=0, atol=np.finfo(dtype).tiny)


@BOTH_PRECISIONS
def test_shares_of_a_block(dtype):
    cost, f, _ = made(dtype)
    rows = np.random.default_rng(1).permutation(40)[:30]
    shares = np.full((30, 300), np.nan, dtype)
    kernels.share_block(cost, rows, f, 0.05, shares)
    expected = oracles.shares(cost[rows], f, 0.05).astype(float)
    np.testing.assert_allclose(shares, expected, rtol=0, atol=CLOSE[dtype])


@BOTH_PRECISIONS
@pytest.mark.parametrize("sources", [3, 20, 128, 300])
def test_a_row_does_not_depend_on_its_block(dtype, sources):
    cost, f, b = made(dtype, sources=sources)
    together = swept(cost, np.arange(40), f, 0.05, b)[2]
    shares = np.full_like(cost, np.nan)
    kernels.share_block(cost, np.arange(40), f, 0.05, shares)
    labels = np.arange(sources) % 3
    by_class = np.full((40, 3), np.nan)
    kernels.class_block(cost, np.arange(40), f, 0.05, labels, by_class)
    for j in range(40):
        row = np.array([j])
        np.testing.assert_array_equal(swept(cost, row, f, 0.05, b[row])[2][0], together[j])
        alone = np.full((1, sources), np.nan, dtype)
        kernels.share_block(cost[[j]], np.array([0]), f, 0.05, alone)
        np.testing.assert_array_equal(alone[0], shares[j])
        alone = np.full((1, 3), np.nan)
        kernels.class_block(cost[[j]], np.array([0]), f, 0.05, labels, alone)
        np.testing.assert_array_equal(alone[0], by_class[j])


def laid_out(arrays, order, gap):
    """The same arrays, `gap` bytes from one another in one piece of memory."""
    arena = np.zeros(sum(a.nbytes for a in arrays) + gap * len(arrays) + 64, np.uint8)
    placed, at = [None] * len(arrays), 0
    for k in order:
        a = arrays[k]
        at = -(-at // a.itemsize) * a.itemsize
        placed[k] = np.frombuffer(arena.data, a.dtype, a.size, at).reshape(a.shape)
        placed[k][...] = a
        at += a.nbytes + gap
    return placed


@pytest.mark.parametrize("sources", [3, 6, 13, 20, 31])
@BOTH_PRECISIONS
def test_a_row_does_not_depend_on_where_its_arrays_lie(dtype, sources):
    """Compilers fall back to another order of summation where arrays may overlap."""
    cost, f, b = made(dtype, targets=3, sources=sources)
    rows = np.arange(3)
    arrays = [cost, f, b, np.zeros_like(cost), np.zeros(sources)]
    value, _, shares, mass = swept(cost, rows, f, 0.05, b)
    for order, gap in itertools.product(itertools.permutations(range(5)), (0, 8, 48, 112, 500)):
        cost_, f_, b_, shares_, mass_ = laid_out(arrays, order, gap)
        value_, _ = kernels.sweep_block(cost_, rows, f_, 0.05, b_, shares_, mass_, 1e-3)
        np.testing.assert_array_equal(shares_, shares)
        np.testing.assert_array_equal(mass_, mass)
        assert value_ == value


@BOTH_PRECISIONS
def test_shares_by_class(dtype):
    cost, f, _ = made(dtype)
    rows, labels = np.arange(40)[::-1].copy(), np.random.default_rng(2).integers(0, 4, 300)
    got = np.full((40, 5), np.nan)  # the last class has no source
    kernels.class_block(cost, rows, f, 0.05, labels, got)
    p = oracles.shares(cost[rows], f, 0.05).astype(float)
    expected = np.stack([p[:, labels == k].sum(axis=1) for k in range(5)], axis=1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=CLOSE[dtype])
    np.testing.assert_allclose(got.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert (got[:, 4] == 0).all()


@pytest.mark.parametrize("sources", [1, 127, 300])
@BOTH_PRECISIONS
def test_prices_are_means_under_the_shares(dtype, sources):
    cost, f, _ = made(dtype, sources=sources)
    prices = np.random.default_rng(1).standard_normal(sources)
    rows = np.array([30, 2, 7])
    got = np.full(3, np.nan)
    kernels.price_block(cost, rows, f, 0.05, prices, got)
    expected = oracles.shares(cost[rows], f, 0.05) @ prices
    np.testing.assert_allclose(got, expected.astype(float), rtol=0, atol=CLOSE[dtype] * 10)


@BOTH_PRECISIONS
def test_log_mass_joins_the_scales_of_targets(dtype):
    """Targets in rising and in falling order of what they take, over hundreds of orders."""
    cost, f, b = made(dtype, sources=10)
    cost[:, 2] += np.linspace(0, 300, 40).astype(dtype)
    cost[:, 6] += np.linspace(300, 20, 40).astype(dtype)
    wanted, top, scaled = np.array([6, 2]), np.full(2, -np.inf), np.zeros(2)
    kernels.log_mass_block(cost, np.arange(40), f, 0.05, b, wanted, top, scaled)
    log_shares = (f + oracles.softmin(cost, f, 0.05)[:, None] - cost) / 0.05
    expected = oracles.log_sum_exp(log_shares + np.log(b)[:, None], axis=0)[wanted]
    rtol = 1e-14 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(top + np.log(scaled), expected.astype(float), rtol=rtol, atol=1e-6)


def _lists(count, dtype):
    """Room for the lists of 20 rows, with one entry to spare."""
    return np.empty(21, np.intp), np.empty(count + 1, np.int32), np.empty(count + 1, dtype)


@BOTH_PRECISIONS
@pytest.mark.parametrize("threshold", [0.0, 1e-3, 0.5, 2.0])
def test_compressed_shares_are_those_above_the_threshold(dtype, threshold):
    shares = np.random.default_rng(0).dirichlet(np.full(50, 0.1), 20).astype(dtype)
    count = int((shares > dtype(threshold)).sum())
    starts, indices, values = _lists(count, dtype)
    kernels.compress_block(shares, dtype(threshold), starts, indices, values)
    back = np.zeros_like(shares)
    back[np.repeat(np.arange(20), np.diff(starts)), indices[:count]] = values[:count]
    assert (starts[0], starts[-1]) == (0, count)
    np.testing.assert_array_equal(back, np.where(shares > dtype(threshold), shares, 0))


@BOTH_PRECISIONS
@pytest.mark.parametrize("sources", [1, 3, 50, 300])
def test_spread_of_a_block_in_both_forms(dtype, sources):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(sources, 0.5), 20).astype(dtype)
    b, v = rng.random(20), rng.standard_normal(sources)
    wide = shares.astype(float)
    expected = 1.0 + wide.T @ (b * (wide @ v))
    dense, sparse = np.ones(sources), np.ones(sources)
    kernels.spread_dense(shares, b, v.astype(dtype), dense)
    count = int((shares > 0).sum())
    form = _lists(count, dtype)
    kernels.compress_block(shares, dtype(0), *form)
    kernels.spread_sparse(*form, b, v, sparse)
    atol = 1e-13 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(dense, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(sparse, expected, rtol=0, atol=atol)
