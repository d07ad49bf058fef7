"""Rows that are the same, and costs for features of any kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from otprop.geometry import Euclidean, Precomputed, SparseEuclidean
from otprop.models import geometry, graph_of, nearest_others, neighbourhoods, twins
from otprop.transport import Workers
from tests import tables

KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}


@pytest.fixture(scope="module")
def alone():
    with Workers(1) as workers:
        yield workers


@pytest.mark.parametrize("kind", KINDS)
@given(table=tables.tables(), k=st.integers(1, 6))
def test_rows_that_are_the_same_are_of_one_group(kind, table, k):
    """However few neighbours are looked at."""
    X, _ = table
    with Workers(1) as workers:
        groups = twins(nearest_others(KINDS[kind](X), k, workers))
    same = (X[:, None] == X).all(axis=2)
    np.testing.assert_array_equal(groups[:, None] == groups, same)


def test_without_neighbours_each_row_is_alone(alone):
    np.testing.assert_array_equal(twins(nearest_others(np.zeros((1, 2)), 5, alone)), [0])


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_the_nearest_other_rows(kind, alone):
    X, _, _ = tables.blobs(60, 3, 3)
    found = nearest_others(KINDS[kind](X), 7, alone)
    cost = tables.squared(X)
    np.fill_diagonal(cost, np.inf)
    order = np.argsort(cost, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_allclose(found.squared, np.take_along_axis(cost, order, axis=1), atol=1e-9)


def test_beyond_a_number_of_rows_the_search_is_not_exact(alone, monkeypatch):
    X, _, _ = tables.blobs(60, 5, 3)
    asked, exact = [], nearest_others(X, 10, alone)

    def search(points, k, *, workers):
        asked.append((points.shape, k, workers))
        return exact

    monkeypatch.setattr(neighbourhoods, "nearest_approximately", search)
    nearest_others(X, 10, alone)
    assert not asked
    monkeypatch.setattr(neighbourhoods, "_EXACT_ROWS", 59)
    assert nearest_others(X, 10, alone) is exact
    assert asked == [((60, 5), 10, alone)]


# ---- rows with many twins


def crowd():
    """Rows on a grid, in disorder: at each place so many that they would see no other."""
    places = np.array([[a, b] for a in range(5) for b in range(4)], float)
    return np.random.default_rng(0).permutation(np.repeat(places, 12, axis=0)), places


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_many_twins_keep_one_and_see_the_nearest_that_differ(kind, alone):
    X, _ = crowd()
    found = nearest_others(KINDS[kind](X), 6, alone)
    first = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in X]
    for row in range(len(X)):
        twin, others = found.indices[row, 0], found.indices[row, 1:]
        assert twin != row
        assert (X[twin] == X[row]).all()
        assert twin == first[row] or row == first[row]
        distinct = np.unique(first)
        distinct = distinct[distinct != first[row]]
        cost = tables.squared(X[[row]], X[distinct])[0]
        expected = np.sort(cost)[:5]
        np.testing.assert_array_equal(found.squared[row], [0.0, *expected])
        np.testing.assert_array_equal(tables.squared(X[[row]], X[others])[0], expected)
        assert set(others) <= set(distinct)


@pytest.mark.parametrize("k", [2, 5, 6, 10, 20, 24, 60])
@pytest.mark.parametrize("kept", [1.0, 0.5])
def test_a_graph_of_rows_with_many_twins_is_one_piece(k, kept, alone):
    """Also one of half of the neighbours that were looked for."""
    X, _ = crowd()
    used = max(2, int(kept * k))
    graph = graph_of(nearest_others(X, k, alone), used)
    places = np.unique(X, axis=0)
    if used > 2:  # with one other place each, places may pair up
        assert len(set(graph.components())) == 1
    assert len(set(graph.components())) < len(places)


def test_where_all_rows_are_the_same_there_is_nothing_past_them(alone):
    found = nearest_others(np.ones((30, 2)), 5, alone)
    assert not found.squared.any()
    assert len(set(graph_of(found, 5).components())) == 1


def test_two_places_see_each_other_once(alone):
    X = np.repeat([[0.0], [3.0]], 15, axis=0)
    found = nearest_others(X, 5, alone)
    np.testing.assert_array_equal(found.squared, [[0, 0, 0, 0, 9]] * 30)
    assert all(len(set(row)) == 5 for row in found.indices.tolist())


def test_few_twins_are_neighbours_as_others_are(alone):
    X, _, _ = tables.blobs(60, 3, 3)
    X = np.vstack([X, X[:20], X[:20]])
    found = nearest_others(X, 12, alone)
    cost = tables.squared(X)
    np.fill_diagonal(cost, np.inf)
    order = np.argsort(cost, axis=1, kind="stable")[:, :12]
    np.testing.assert_array_equal(found.squared[:, :2] == 0, np.sort(cost, axis=1)[:, :2] == 0)
    np.testing.assert_array_equal(found.indices, order)


def test_a_graph_of_fewer_neighbours_is_that_of_the_first_ones(alone):
    X, _, _ = tables.blobs(60, 3, 3)
    few = graph_of(nearest_others(X, 5, alone), 5)
    cut = graph_of(nearest_others(X, 20, alone), 5)
    assert (few.affinity != cut.affinity).nnz == 0


def test_costs_are_those_of_the_features_that_were_fitted():
    X = np.eye(3)
    assert isinstance(geometry(X, X), Euclidean)
    assert isinstance(geometry(sparse.csr_matrix(X), X), Euclidean)
    assert isinstance(geometry(X, sparse.csr_matrix(X)), SparseEuclidean)
    assert isinstance(geometry(X, None), Precomputed)
