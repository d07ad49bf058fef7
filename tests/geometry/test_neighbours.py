"""Nearest rows: those of a sorted distance matrix, to the bit, however the work is shared out."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.neighbors import NearestNeighbors

from otprop.geometry import Euclidean, Precomputed, nearest, neighbours
from otprop.transport.workers import Workers
from tests import tables
from tests.geometry import graphs

PRECISION = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def of_matrix(cost, k, own=None, workers=graphs.ALONE):
    geometry = Precomputed(cost)
    geometry.add_sources(np.arange(cost.shape[1]))
    own = np.full(len(cost), -1) if own is None else own
    rows = np.arange(len(cost))
    return nearest(geometry, rows, k, sources=cost.shape[1], own=own, workers=workers)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.squared, expected.squared)


@given(data=st.data(), rows=st.integers(1, 9), sources=st.integers(1, 30), k=st.integers(1, 32))
def test_neighbours_are_those_of_the_sorted_matrix(data, rows, sources, k):
    """Few values, so that most are equal to others: the lower index comes first."""
    cost = data.draw(arrays(np.float64, (rows, sources), elements=st.integers(0, 3).map(float)))
    assert_same(of_matrix(cost, k), graphs.sorted_distances(cost, k))
    if sources > 1:
        own = data.draw(arrays(np.intp, rows, elements=st.integers(0, sources - 1)))
        k = min(k, sources - 1)
        assert_same(of_matrix(cost, k, own), graphs.sorted_distances(cost, k, own))


@PRECISION
@pytest.mark.parametrize("rows", [2, 130, neighbours._BLOCK_SOURCES + 3])
def test_neighbours_over_several_blocks_are_those_of_the_sorted_matrix(rows, dtype):
    """Descending costs: each source is nearer than all before it."""
    cost = np.random.default_rng(0).integers(0, 50, (150, rows)).astype(dtype)
    cost[::3] = np.arange(rows)[::-1]
    found = of_matrix(cost, 20)
    assert_same(found, graphs.sorted_distances(cost, 20))
    assert found.indices.dtype == np.intp
    assert found.squared.dtype == np.float64


@PRECISION
def test_neighbours_are_those_of_scikit_learn(dtype):
    X = graphs.points(400, 7, dtype=dtype)
    found = graphs.among(X, 12)
    distances, indices = NearestNeighbors(n_neighbors=13).fit(X).kneighbors(X)
    np.testing.assert_array_equal(found.indices, indices[:, 1:])
    np.testing.assert_allclose(np.sqrt(found.squared), distances[:, 1:], rtol=1e-5)


@PRECISION
def test_sparse_rows_have_the_neighbours_of_dense_ones(dtype):
    X = graphs.scattered(150, dtype=dtype)
    found, expected = graphs.among(X, 8), graphs.among(X.toarray(), 8)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.squared, expected.squared, rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_blocks_and_other_rows_change_no_bit(monkeypatch, threads, sparse):
    X = graphs.scattered(333) if sparse else graphs.points(333, 5, dtype=np.float32)
    whole = graphs.among(X, 9)
    with Workers(threads) as workers:
        assert_same(graphs.among(X, 9, workers), whole)
    some = np.random.default_rng(0).permutation(333)[:40]
    assert_same(
        graphs.between(X[some], X, 9, own=some),
        neighbours.Neighbours(whole.indices[some], whole.squared[some]),
    )
    monkeypatch.setattr(neighbours, "_BLOCK_ROWS", 7)
    monkeypatch.setattr(neighbours, "_BLOCK_SOURCES", 11)
    with Workers(threads) as workers:
        assert_same(graphs.among(X, 9, workers), whole)


@pytest.mark.parametrize("k", [4, 5, 100])
def test_there_are_no_more_neighbours_than_other_rows(k):
    X = graphs.points(5)
    found = graphs.among(X, k)
    assert found.indices.shape == (5, 4)
    expected = graphs.sorted_distances(tables.squared(X), 4, np.arange(5))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.squared, expected.squared, rtol=1e-14)
    assert graphs.between(graphs.points(3, seed=1), X, k).indices.shape == (3, min(k, 5))


def test_some_targets_may_be_sources_and_others_not():
    X = graphs.points(6)
    found = graphs.between(X, X, 9, own=np.array([0, -1, 2, -1, 4, 5]))
    assert found.indices.shape == (6, 5)
    np.testing.assert_array_equal(found.indices[[1, 3], 0], [1, 3])
    assert not (found.indices[[0, 2, 4, 5]] == np.array([[0], [2], [4], [5]])).any()


def test_a_single_row_has_no_neighbours():
    found = graphs.among(graphs.points(1), 3)
    assert found.indices.shape == found.squared.shape == (1, 0)
    assert graphs.between(graphs.points(0), graphs.points(4), 3).indices.shape == (0, 3)

    class Forbidden:
        def run(self, *_):
            raise AssertionError  # nothing is to be done

    assert graphs.among(graphs.points(1), 3, Forbidden()).indices.size == 0


def test_equal_rows_are_neighbours_in_their_order():
    found = graphs.among(np.ones((6, 2)), 3)
    assert not found.squared.any()
    np.testing.assert_array_equal(found.indices[:2], [[1, 2, 3], [0, 2, 3]])
    np.testing.assert_array_equal(found.indices[5], [0, 1, 2])


def test_distances_beyond_the_range_of_numbers_come_last():
    cost = np.array([[np.inf, 1.0, np.inf, np.inf, 0.0]])
    np.testing.assert_array_equal(of_matrix(cost, 4).indices, [[4, 1, 0, 2]])


def test_memory_is_that_of_a_block():
    X = graphs.points(20_000, 2)
    geometry = Euclidean(X, X)
    geometry.add_sources(np.arange(20_000))
    rows = np.arange(600)
    tracemalloc.start()
    try:
        nearest(geometry, rows, 5, sources=20_000, own=rows, workers=graphs.ALONE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**23  # 92 MiB for all rows at once, 20 MiB for a block of rows
