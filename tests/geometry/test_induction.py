"""Rows that are not in the graph: averages of their neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.geometry import Neighbours, local_scales, new_row_weights
from tests.geometry import graphs


def new_rows(neighbours, scales, values):
    """Return what new rows take of the values of the fitted rows, added up one by one."""
    weights = new_row_weights(neighbours, scales)
    out = np.zeros((len(weights), values.shape[1]))
    for i in range(weights.shape[1]):
        out += weights[:, i, None] * values[neighbours.indices[:, i]]
    return out


def fitted(rows=60, k=5, seed=0):
    X = graphs.points(rows, 3, seed)
    F = np.random.default_rng(seed + 1).random((rows, 4))
    return X, local_scales(graphs.among(X, k).squared), F


@given(seed=st.integers(0, 999), k=st.integers(1, 9))
def test_new_rows_are_the_weighted_average_of_the_definition(seed, k):
    X, scales, F = fitted(seed=seed)
    new = graphs.points(10, 3, seed + 5000)
    neighbours = graphs.between(new, X, k)
    d2 = ((new[:, None] - X) ** 2).sum(axis=2)
    expected = np.zeros((10, 4))
    for i in range(10):
        near = np.argsort(d2[i])[:k]
        w = np.exp(-4 * d2[i, near] / (np.sqrt(d2[i, near[-1]]) * scales[near]))
        expected[i] = w @ F[near] / w.sum()
    np.testing.assert_allclose(new_rows(neighbours, scales, F), expected, rtol=1e-5)


def test_weights_sum_to_one_and_none_is_zero():
    X, scales, _ = fitted()
    far = np.concatenate([graphs.points(20, 3, 7), np.full((1, 3), 1e6)])
    weights = new_row_weights(graphs.between(far, X, 6), scales)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-15)
    assert weights.min() > 0


def test_weights_have_no_units():
    X, scales, F = fitted()
    new = graphs.points(9, 3, 7)
    found = new_rows(graphs.between(new * 1e-3, X * 1e-3, 5), scales * 1e-3, F)
    np.testing.assert_allclose(found, new_rows(graphs.between(new, X, 5), scales, F), rtol=1e-9)


def test_a_fitted_row_takes_its_own_values_to_the_bit():
    X, scales, F = fitted()
    np.testing.assert_array_equal(new_rows(graphs.between(X, X, 5), scales, F), F)


@pytest.mark.parametrize("copies", [2, 5, 9])
def test_of_several_equal_fitted_rows_the_first_one_counts(copies):
    """With five copies and more, all neighbours are at no distance."""
    X, _, F = fitted()
    X[10 : 10 + copies] = X[10]
    scales = local_scales(graphs.among(X, 5).squared)
    found = new_rows(graphs.between(X[[12, 10]], X, 5), scales, F)
    np.testing.assert_array_equal(found, F[[12 if copies == 2 else 10, 10]])


def test_a_row_does_not_depend_on_the_others():
    X, scales, F = fitted()
    new = np.concatenate([graphs.points(50, 3, 7), X[:3]])
    for k in (1, 5, 30):
        neighbours = graphs.between(new, X, k)
        whole = new_rows(neighbours, scales, F)
        for some in ([0], [52], [4, 3], list(range(7, 40))):
            part = Neighbours(neighbours.indices[some], neighbours.squared[some])
            np.testing.assert_array_equal(new_rows(part, scales, F), whole[some])


def test_one_fitted_row_is_all_that_a_new_row_can_follow():
    F = np.array([[0.25, 0.75]])
    neighbours = graphs.between(graphs.points(3), np.zeros((1, 3)), 5)
    np.testing.assert_array_equal(new_rows(neighbours, np.ones(1), F), np.tile(F, (3, 1)))
    assert new_rows(graphs.between(graphs.points(0), np.zeros((1, 3)), 5), np.ones(1), F).size == 0
