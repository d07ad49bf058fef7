"""Squared distances: right, and the same to the bit wherever they are asked for."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from otprop import OTPropagation
from otprop.geometry import Euclidean, SparseEuclidean
from otprop.geometry.kernels import NARROW, TILE, WIDE
from tests import tables

RELATIVE = {np.float64: 1e-12, np.float32: 1e-6}
PRECISION = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def points(rows, columns, dtype=np.float64, seed=0, middle=0.0):
    return (middle + np.random.default_rng(seed).normal(size=(rows, columns))).astype(dtype)


def filled(geometry, targets, sources, first=0):
    out = np.full((len(targets), sources - first), np.nan, geometry.dtype)
    geometry.fill(np.asarray(targets, np.intp), first, out)
    return out


def between(x, s, kind=Euclidean):
    geometry = kind(x, s)
    geometry.add_sources(np.arange(s.shape[0]))
    return filled(geometry, np.arange(x.shape[0]), s.shape[0])


@PRECISION
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 63, 64, 65, 67, 130, 784])
@pytest.mark.parametrize("sources", [1, TILE - 1, TILE, TILE + 1, 2 * TILE + 3])
def test_distances_are_those_of_scipy(columns, sources, dtype):
    x, s = points(5, columns, dtype, 1), points(sources, columns, dtype, 2)
    expected = tables.squared(x.astype(np.float64), s.astype(np.float64))
    np.testing.assert_allclose(between(x, s), expected, rtol=RELATIVE[dtype])
    assert between(x, s).dtype == dtype


@PRECISION
def test_the_distance_of_equal_rows_is_zero(dtype):
    x = points(40, 11, dtype) * 1e3
    assert not np.diag(between(x, x.copy())).any()


def test_data_far_from_the_origin_lose_no_digits():
    x = np.round(points(30, 6), 6)
    far = x + 2.0**20
    exact = tables.squared(far - 2.0**20)  # what the shift has left of the digits
    np.testing.assert_allclose(between(far, far), exact, rtol=1e-12)


@PRECISION
def test_an_entry_is_the_same_in_every_block(dtype):
    """Whatever block, first source, order of targets or way the sources came."""
    rng = np.random.default_rng(0)
    x, s = points(90, 70, dtype, 1), points(3 * TILE, 70, dtype, 2)
    whole = between(x, s)

    one_by_one = Euclidean(x, s)
    for source in range(TILE + 20):
        one_by_one.add_sources(np.array([source]))
    np.testing.assert_array_equal(
        filled(one_by_one, np.arange(90), TILE + 20), whole[:, : TILE + 20]
    )

    shuffled = rng.permutation(3 * TILE)
    mixed = Euclidean(x, s)
    for part in np.split(shuffled, [1, 5, TILE, TILE + 100]):
        mixed.add_sources(part)
    for first in (0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE - 1):
        targets = rng.permutation(90)[: rng.integers(1, 90)]
        found = filled(mixed, targets, 3 * TILE, first)
        np.testing.assert_array_equal(found, whole[np.ix_(targets, shuffled[first:])])


@PRECISION
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 63, 66, 127, 130, 785])
def test_narrow_tiles_give_the_bits_of_whole_ones(columns, dtype):
    """As when a round brings a few sources: whatever their first and their number."""
    x, s = points(70, columns, dtype, 1, middle=0.3), points(2 * TILE, columns, dtype, 2)
    geometry = Euclidean(x, s)
    geometry.add_sources(np.arange(2 * TILE))
    whole = filled(geometry, np.arange(70), 2 * TILE)
    spans = [
        (0, 1),
        (TILE - 1, 1),
        (TILE - 1, 2),
        (NARROW - 1, NARROW + 2),
        (3, WIDE),
        (3, WIDE + 1),
    ]
    for first, number in [*spans, (TILE - 5, WIDE), (2 * TILE - 1, 1), (TILE + 31, 65)]:
        found = np.full((70, number), np.nan, dtype)
        geometry.fill(np.arange(70), first, found)
        np.testing.assert_array_equal(found, whole[:, first : first + number])


def processor_time(geometry, rows, first, number):
    out = np.empty((rows, number))
    times = []
    for _ in range(5):
        start = time.process_time()
        geometry.fill(np.arange(rows), first, out)
        times.append(time.process_time() - start)
    return min(times)


def test_one_new_source_costs_far_less_than_a_tile_of_them():
    x = points(3000, 300)
    geometry = Euclidean(x, x)
    geometry.add_sources(np.arange(TILE))
    assert processor_time(geometry, 3000, 3, 1) < processor_time(geometry, 3000, 0, TILE) / 2


def test_sums_are_kept_for_a_chunk_of_rows_alone():
    """One new source and many rows: no tile of sums for each of them."""
    x = points(30_000, 2)
    geometry = Euclidean(x, x)
    geometry.add_sources(np.arange(1))
    resource = pytest.importorskip("resource")
    filled(geometry, np.arange(30_000), 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        filled(geometry, np.tile(np.arange(30_000), 40), 1)  # 2.3 GiB of sums, else
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KiB


def test_rows_in_any_memory_order_give_the_same_bits():
    x, s = points(20, 9), points(30, 9, seed=1)
    whole = between(x, s)
    np.testing.assert_array_equal(between(np.asfortranarray(x), np.asfortranarray(s)), whole)
    locked_x, locked_s = x.copy(), s.copy()
    locked_x.flags.writeable = locked_s.flags.writeable = False
    np.testing.assert_array_equal(between(locked_x, locked_s), whole)
    np.testing.assert_array_equal(between(np.repeat(x, 2, axis=0)[::2], s), whole)


def scattered(rows, columns, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return sparse.random(rows, columns, 0.2, "csr", dtype, rng)


@PRECISION
@given(shape=st.tuples(st.integers(1, 30), st.integers(1, 30)), seed=st.integers(0, 999))
def test_sparse_rows_have_the_distances_of_dense_ones(shape, seed, dtype):
    x, s = scattered(shape[0], 17, dtype, seed), scattered(shape[1], 17, dtype, seed + 1)
    found = between(x, s, SparseEuclidean)
    expected = between(x.toarray().astype(float), s.toarray().astype(float))
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, expected, rtol=RELATIVE[dtype], atol=1e-10 if dtype == np.float64 else 1e-6
    )


def test_sparse_distances_are_never_negative():
    x = scattered(50, 30)
    found = between(x, x.copy(), SparseEuclidean)
    assert found.min() >= 0
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-14)


@PRECISION
@pytest.mark.parametrize("columns", [3, 40, 700])
def test_the_distance_of_equal_sparse_rows_is_zero(columns, dtype):
    x = scattered(60, columns, dtype, 5)
    assert not np.diag(between(x, x.copy(), SparseEuclidean)).any()
    # The same rows with their entries in another order, and some entries in two parts.
    shuffled = x.copy()
    for row in range(60):
        span = slice(x.indptr[row], x.indptr[row + 1])
        shuffled.indices[span], shuffled.data[span] = x.indices[span][::-1], x.data[span][::-1]
    halves = sparse.csr_matrix(
        (np.repeat(x.data / 2, 2), np.repeat(x.indices, 2), 2 * x.indptr), x.shape
    )
    for other in (shuffled, halves):
        order, data = other.indices.copy(), other.data.copy()
        assert not np.diag(between(x, other, SparseEuclidean)).any()
        assert not np.diag(between(other, x, SparseEuclidean)).any()
        np.testing.assert_array_equal(other.indices, order)  # the caller's, untouched
        np.testing.assert_array_equal(other.data, data)


def test_what_rounding_leaves_of_equal_sparse_rows_is_zero():
    """Equal but for the last bit: the difference of norms and product is rounding alone."""
    x = scattered(200, 30, seed=3)
    near = x.copy()
    near.data = np.nextafter(near.data, 2.0)
    assert not np.diag(between(x, near, SparseEuclidean)).any()
    # ... but a difference above rounding stays.
    near.data = x.data * (1 + 1e-6)
    assert (np.diag(between(x, near, SparseEuclidean)) > 0)[np.diff(x.indptr) > 0].all()


@PRECISION
def test_a_sparse_table_with_labelled_duplicates_has_the_epsilon_of_the_dense_one(dtype):
    x = scattered(30, 40, dtype, 7).toarray()
    x = np.repeat(x, 3, axis=0)  # nearest rows are duplicates, at a cost of 0
    y = np.where(np.arange(90) % 9 == 8, -1, np.arange(90) // 3 % 2)
    dense = OTPropagation.paper().fit(x, y).epsilon_
    assert OTPropagation.paper().fit(sparse.csr_matrix(x), y).epsilon_ == pytest.approx(
        dense, rel=1e-5
    )


def test_some_sparse_sources_can_be_asked_for():
    x, s = scattered(40, 25), scattered(50, 25, seed=1)
    whole = between(x, s, SparseEuclidean)
    geometry = SparseEuclidean(x, s)
    geometry.add_sources(np.arange(50))
    for first, number in [(0, 7), (7, 1), (8, 42), (0, 7), (0, 50), (3, 30), (7, 1)]:
        out = np.empty((40, number))
        geometry.fill(np.arange(40), first, out)
        np.testing.assert_array_equal(out, whole[:, first : first + number])
        assert sum(b - a for a, b in geometry._columns) <= 50


def test_an_entry_between_sparse_rows_is_the_same_in_every_block():
    x, s = scattered(40, 25), scattered(50, 25, seed=1)
    whole = between(x, s, SparseEuclidean)
    mixed = SparseEuclidean(x, s)
    order = np.random.default_rng(0).permutation(50)
    for part in np.split(order, [3, 4, 20]):
        mixed.add_sources(part)
        asked_before_the_next = filled(mixed, [7], len(mixed._sources))
        np.testing.assert_array_equal(asked_before_the_next[0], whole[7, mixed._sources])
    for first in (0, 1, 30, 49):
        found = filled(mixed, [5, 39, 0], 50, first)
        np.testing.assert_array_equal(found, whole[np.ix_([5, 39, 0], order[first:])])


def test_nothing_is_forbidden_between_points():
    assert not Euclidean(points(2, 2), points(2, 2)).may_forbid
    assert not SparseEuclidean(scattered(2, 2), scattered(2, 2)).may_forbid
