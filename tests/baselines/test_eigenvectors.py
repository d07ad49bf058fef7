"""Leading eigenvectors by both ways, against NumPy and against parts that are known."""

from unittest import mock

import numpy as np
import pytest

from otprop.baselines import eigenvectors
from tests import tables


def normalised(table, epsilon, part=None):
    """Return D^-1/2 A D^-1/2, with no affinity between different parts."""
    A = np.exp(-tables.squared(table) / epsilon)
    np.fill_diagonal(A, 0.0)
    if part is not None:
        A[part[:, None] != part] = 0.0
    return A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))


@pytest.fixture(params=["all of them", "a few"], autouse=True)
def way(request):
    """Let each test find them by LAPACK, and by the inverse."""
    with mock.patch.object(eigenvectors, "_DENSE", 2000 if request.param == "all of them" else 0):
        yield


def leading(matrix, count, seed=0):
    return eigenvectors.leading(matrix.copy(), count, np.random.RandomState(seed))


@pytest.mark.parametrize("epsilon", [0.02, 0.2, 2.0, 200.0])
def test_they_are_those_of_the_largest_values(epsilon):
    matrix = normalised(np.random.default_rng(0).uniform(size=(250, 2)), epsilon)
    values, vectors = np.linalg.eigh(matrix)
    found = leading(matrix, 4)
    assert found.converged
    np.testing.assert_allclose(found.values, values[-4:], atol=1e-12)
    # Each may have either sign.
    aligned = np.abs(vectors[:, -4:].T @ found.vectors)
    np.testing.assert_allclose(aligned, np.eye(4), atol=1e-6)
    residuals = matrix @ found.vectors - found.vectors * found.values
    assert np.linalg.norm(residuals, axis=0).max() <= 1e-9


@pytest.mark.parametrize("sizes", [(90, 50, 80), (50,) * 6, (20,) * 12])
def test_each_separate_part_has_one_of_value_one(sizes):
    part = np.repeat(np.arange(len(sizes)), sizes)
    table = np.random.default_rng(0).normal(size=(len(part), 2))
    found = leading(normalised(table, 2.0, part), len(sizes))
    assert found.converged
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-12)
    # Rows of a part are in one direction, those of others at right angles.
    places = found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(places @ places.T, part[:, None] == part, atol=1e-6)


def test_parts_that_barely_touch():
    part = np.repeat(np.arange(3), 80)
    table = 0.1 * np.random.default_rng(0).normal(size=(240, 2)) + 1.4 * part[:, None]
    matrix = normalised(table, 0.2)
    assert 1e-9 < 1 - np.linalg.eigvalsh(matrix)[-3] < 1e-5
    places = leading(matrix, 3).vectors
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    np.testing.assert_allclose(places @ places.T, part[:, None] == part, atol=1e-2)


def test_more_parts_than_vectors():
    part = np.repeat(np.arange(60), 5)
    table = np.random.default_rng(0).normal(size=(300, 2))
    matrix = normalised(table, 2.0, part)
    found = leading(matrix, 3)
    assert found.converged
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-9)
    np.testing.assert_allclose(matrix @ found.vectors, found.vectors, atol=1e-9)


def test_the_seed_does_not_matter_beyond_rounding():
    matrix = normalised(np.random.default_rng(0).uniform(size=(250, 2)), 0.2)
    one, two = leading(matrix, 3).vectors, leading(matrix, 3, seed=1).vectors
    np.testing.assert_allclose(np.abs(one.T @ two), np.eye(3), atol=1e-6)
