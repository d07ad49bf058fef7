"""The graph of nearest rows: its weights, and the matrices made from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from otprop.geometry import Graph, Neighbours, local_scales, self_tuned_affinity
from otprop.geometry.graph import _LEAST_WEIGHT
from tests.geometry import graphs

SEEDS = st.integers(0, 999)


def affinity(X, k):
    return graphs.graph(X, k).affinity.toarray()


@given(rows=st.integers(2, 40), k=st.integers(1, 8), seed=SEEDS)
def test_weights_are_those_of_the_definition(rows, k, seed):
    X = graphs.points(rows, 2, seed)
    k = min(k, rows - 1)
    expected = graphs.dense_affinity(X, k)
    np.testing.assert_allclose(affinity(X, k), expected, rtol=1e-10, atol=2 * _LEAST_WEIGHT)


def test_links_are_those_of_the_lists_of_neighbours():
    neighbours = graphs.among(graphs.points(60), 4)
    W = self_tuned_affinity(neighbours, local_scales(neighbours.squared))
    listed = np.zeros((60, 60), np.bool_)
    listed[np.arange(60)[:, None], neighbours.indices] = True
    np.testing.assert_array_equal(W.toarray() > 0, listed | listed.T)
    assert W.format == "csr"
    assert W.dtype == np.float64
    assert W.has_canonical_format
    assert (np.diff(W.indices)[np.diff(np.repeat(np.arange(60), np.diff(W.indptr))) == 0] > 0).all()


@given(seed=SEEDS)
def test_a_permutation_of_the_rows_permutes_the_graph(seed):
    X = graphs.points(30, 3, seed)
    order = np.random.default_rng(seed).permutation(30)
    np.testing.assert_array_equal(affinity(X[order], 5), affinity(X, 5)[np.ix_(order, order)])


@given(
    seed=SEEDS,
    factor=st.sampled_from([1e-9, 0.3, 7.0, 1e12]),
    shift=st.integers(-1000, 1000),
)
def test_units_and_origin_do_not_matter(seed, factor, shift):
    X = np.round(graphs.points(25, 3, seed), 6)
    np.testing.assert_allclose(affinity(X * factor, 4), affinity(X, 4), rtol=1e-9)
    np.testing.assert_allclose(affinity(X + shift, 4), affinity(X, 4), rtol=1e-6, atol=1e-15)
    np.testing.assert_array_equal(affinity(X * 2.0**-40, 4), affinity(X, 4))


@pytest.mark.parametrize("factor", [2.0**-500, 2.0**500])
def test_scales_whose_product_underflows_or_overflows_do_no_harm(factor):
    X = graphs.points(20)
    np.testing.assert_array_equal(affinity(X * factor, 3), affinity(X, 3))


def test_a_row_far_from_a_dense_group_stays_linked_to_it():
    X = np.concatenate([graphs.points(50) * 1e-6, [[1e3, 0.0, 0.0]]])
    neighbours = graphs.among(X, 5)
    W = self_tuned_affinity(neighbours, local_scales(neighbours.squared))
    weights = W.toarray()[50, neighbours.indices[50]]
    assert (weights >= _LEAST_WEIGHT * np.exp(-4) * 0.99).all()
    assert (weights <= _LEAST_WEIGHT).all()
    assert Graph(W).components().max() == 0


def test_the_least_weights_tell_a_nearer_neighbour_from_a_further_one():
    """The third row lists two of scales so small that both weights underflow."""
    neighbours = Neighbours(np.array([[1], [0], [0]]), np.array([[1e-12], [1e-12], [1.0]]))
    scales = np.array([1e-6, 1e-6, 2.0])
    W = self_tuned_affinity(neighbours, scales).toarray()
    assert W[0, 2] == pytest.approx(_LEAST_WEIGHT * np.exp(-1))
    further = Neighbours(neighbours.indices, np.array([[1e-12], [1e-12], [4.0]]))
    W = self_tuned_affinity(further, scales).toarray()
    assert W[0, 2] == pytest.approx(_LEAST_WEIGHT * np.exp(-4))


def test_rows_all_equal_have_weights_of_one():
    W = affinity(np.ones((6, 2)), 3)
    assert set(np.unique(W)) == {0.0, 1.0}
    np.testing.assert_array_equal(np.diag(W), 0)
    np.testing.assert_array_equal(W[0, 1:4], 1)


def test_rows_with_many_duplicates_take_the_smallest_scale_of_the_others():
    squared = np.array([[0.0, 0.0], [0.0, 9.0], [1.0, 4.0]])
    np.testing.assert_array_equal(local_scales(squared), [2.0, 3.0, 2.0])
    np.testing.assert_array_equal(local_scales(np.zeros((4, 2))), np.ones(4))
    np.testing.assert_array_equal(local_scales(np.zeros((1, 0))), [1.0])
    X = np.concatenate([np.zeros((5, 2)), graphs.points(20, 2) + 3])
    W = affinity(X, 3)
    assert np.isfinite(W).all()
    np.testing.assert_array_equal(W[0, 1:4], 1)


def test_two_rows_are_a_graph_and_one_is_too():
    np.testing.assert_allclose(affinity(graphs.points(2), 7), np.exp(-4) * (1 - np.eye(2)))
    lonely = graphs.graph(graphs.points(1), 3)
    assert lonely.affinity.shape == (1, 1)
    assert lonely.normalised.nnz == lonely.walk.nnz == 0


def test_sparse_and_single_precision_rows_have_the_graph_of_dense_ones():
    X = graphs.scattered(80)
    expected = affinity(X.toarray(), 6)
    np.testing.assert_allclose(affinity(X, 6), expected, rtol=1e-9)
    X = X.astype(np.float32)
    np.testing.assert_allclose(affinity(X.toarray(), 6), expected, rtol=1e-3, atol=1e-6)


@given(seed=SEEDS, rows=st.integers(2, 30))
def test_matrices_are_those_of_dense_algebra(seed, rows):
    graph = graphs.graph(graphs.points(rows, 2, seed), 3)
    W = graph.affinity.toarray()
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_array_equal(np.diag(W), 0)
    D = W.sum(axis=1)
    np.testing.assert_allclose(graph.degrees, D, rtol=1e-14)
    S = graph.normalised.toarray()
    np.testing.assert_allclose(S, W / np.sqrt(D[:, None] * D), rtol=1e-13)
    np.testing.assert_array_equal(S, S.T)
    assert np.abs(np.linalg.eigvalsh(S)).max() <= 1 + 1e-12
    np.testing.assert_allclose(graph.walk.toarray(), W / D[:, None], rtol=1e-13)
    assert graph.walk is graph.walk
    assert graph.normalised is graph.normalised


@given(
    half=arrays(np.float64, (7, 7), elements=st.sampled_from([0.0, 0.0, 0.5, 2.0])),
    kind=st.sampled_from([np.asarray, sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array]),
)
def test_a_graph_can_be_made_from_any_symmetric_weights(half, kind):
    weights = half + half.T
    given_weights = kind(weights)
    graph = Graph.of_affinity(given_weights)
    expected = weights * (1 - np.eye(7))
    np.testing.assert_array_equal(graph.affinity.toarray(), expected)
    assert (graph.affinity.data > 0).all()
    assert graph.affinity.has_canonical_format
    assert graph.affinity.dtype == np.float64
    kept = given_weights if kind is np.asarray else given_weights.toarray()
    np.testing.assert_array_equal(kept, weights)
    isolated = expected.sum(axis=1) == 0
    assert not graph.normalised.toarray()[isolated].any()
    assert not graph.walk.toarray()[isolated].any()
    np.testing.assert_allclose(graph.walk.sum(axis=1).ravel()[0, ~isolated], 1.0)


def test_explicit_zeros_and_parts_of_weights_are_put_in_order():
    parts = ([1.0, 2.0, 3.0, 0.0, 0.0, 5.0], ([0, 0, 1, 2, 1, 2], [1, 1, 0, 1, 2, 2]))
    graph = Graph.of_affinity(sparse.coo_matrix(parts, (3, 3)).tocsr())
    np.testing.assert_array_equal(graph.affinity.toarray(), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
    assert graph.affinity.nnz == 2


def test_components_are_what_is_linked():
    W = np.zeros((6, 6))
    W[0, 3] = W[3, 0] = W[3, 5] = W[5, 3] = W[1, 4] = W[4, 1] = 0.1
    labels = Graph.of_affinity(W).components()
    assert labels[0] == labels[3] == labels[5]
    assert labels[1] == labels[4]
    assert len(set(labels[[0, 1, 2]])) == 3
    assert labels.dtype == np.intp


def test_the_weight_of_neighbours_of_each_other_is_the_larger_of_the_two():
    """Lists that disagree on a distance, as approximate ones may by rounding."""
    neighbours = Neighbours(np.array([[1], [0]]), np.array([[1.0], [1.21]]))
    W = self_tuned_affinity(neighbours, np.array([1.0, 1.1])).toarray()
    np.testing.assert_allclose(W, np.exp(-4 / 1.1) * (1 - np.eye(2)), rtol=1e-14)
