"""Spectral clustering: affinity and eigenvectors against NumPy, known blocks, names of clusters."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from otprop.baselines import SpectralClustering, eigenvectors, matched_accuracy, spectral
from tests import tables

X, TRUE, Y = tables.blobs(90, 3, 3, seed=5, spread=0.3)


def matrix_by_hand(table, epsilon):
    A = np.exp(-tables.squared(table) / epsilon)
    np.fill_diagonal(A, 0.0)
    return A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))


def test_the_affinity_is_normalised_by_degrees():
    found = spectral.normalised_affinity(X, 0.7)
    np.testing.assert_allclose(found.matrix, matrix_by_hand(X, 0.7), rtol=1e-9)
    np.testing.assert_allclose(found.degrees, np.exp(-tables.squared(X) / 0.7).sum(axis=1) - 1)


def test_the_affinity_keeps_its_digits_far_from_the_origin():
    found = spectral.normalised_affinity(X + 1e6, 0.7).matrix
    np.testing.assert_allclose(found, matrix_by_hand(X, 0.7), rtol=1e-6)


@pytest.mark.parametrize("dense", [1000, 0])
def test_rings_are_told_apart(dense):
    table, true = make_circles(300, factor=0.4, noise=0.04, random_state=0)
    y = np.where(np.arange(300) < 10, true, -1)
    with mock.patch.object(eigenvectors, "_DENSE", dense):
        model = SpectralClustering(epsilon=0.03).fit(table, y)
    np.testing.assert_array_equal(model.transduction_, true)
    np.testing.assert_array_equal(np.unique(model.clusters_), [0, 1])
    np.testing.assert_array_equal(model.predict(table * [1.02, 0.98]), true)


def test_labels_give_names_and_nothing_else():
    few = np.where(np.arange(90) < 3, TRUE, -1)
    one = SpectralClustering(epsilon=0.5).fit(X, few)
    two = SpectralClustering(epsilon=0.5).fit(X, (TRUE + 1) % 3)
    np.testing.assert_array_equal(one.clusters_, two.clusters_)
    np.testing.assert_array_equal((one.transduction_ + 1) % 3, two.transduction_)
    assert matched_accuracy(TRUE, one.clusters_) == (one.transduction_ == TRUE).mean() > 0.9


def test_a_wrong_label_is_outvoted_by_its_cluster():
    y = np.where(np.arange(90) < 30, TRUE, -1)
    y[0] = (TRUE[0] + 1) % 3
    model = SpectralClustering(epsilon=0.5).fit(X, y)
    assert model.transduction_[0] == TRUE[0]


def test_fewer_clusters_than_classes():
    model = SpectralClustering(n_clusters=2, epsilon=0.5).fit(X, Y)
    assert len(np.unique(model.clusters_)) == len(np.unique(model.transduction_)) == 2


def test_new_rows_are_placed_by_nystroems_extension():
    model = SpectralClustering(epsilon=0.5).fit(X, Y)
    A = np.exp(-tables.squared(X + 0.1, X) / 0.5)
    degrees = np.exp(-tables.squared(X) / 0.5).sum(axis=1) - 1
    values, vectors = np.linalg.eigh(matrix_by_hand(X, 0.5))
    scaled = vectors[:, -3:] / np.sqrt(degrees)[:, None] / values[-3:]
    expected = spectral.unit_rows(A @ scaled)
    found = spectral.unit_rows(spectral.extend(X + 0.1, X, 0.5, model._extension))
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.transduction_)


def test_far_rows_are_placed_too():
    model = SpectralClustering(epsilon=0.5).fit(X, Y)
    nearest = tables.squared(X + 1e4, X).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X + 1e4), model.transduction_[nearest])


def test_the_same_seed_gives_the_same_clusters():
    one = SpectralClustering(epsilon=0.5, random_state=3).fit(X, Y)
    two = SpectralClustering(epsilon=0.5, random_state=3).fit(X, Y)
    np.testing.assert_array_equal(one.clusters_, two.clusters_)


def test_rows_without_affinity_are_told_of():
    table = np.append(X, [[1e3, 0.0, 0.0]], axis=0)
    with pytest.warns(UserWarning, match=r"1 row\(s\) have no affinity.*Raise epsilon") as told:
        model = SpectralClustering(epsilon=0.5).fit(table, np.append(Y, -1))
    assert told[0].filename == __file__
    assert matched_accuracy(TRUE, model.clusters_[:-1]) > 0.9


def test_eigenvectors_that_are_not_found_are_told_of():
    rng = np.random.default_rng(0)
    table = rng.uniform(size=(300, 2))
    with (
        mock.patch.multiple(eigenvectors, _DENSE=0, _BASES=1, _POWERS=1),
        pytest.warns(ConvergenceWarning, match="eigenvectors are known to .* Raise eps") as told,
    ):
        SpectralClustering(epsilon=0.01).fit(table, rng.integers(0, 3, 300))
    assert told[0].filename == __file__


def test_names_and_frames():
    names = np.array(["z", "a", "m"])
    frame = pd.DataFrame(X, columns=list("abc"))
    model = SpectralClustering(epsilon=0.5).fit(frame, tables.rename(Y, names))
    plain = SpectralClustering(epsilon=0.5).fit(X, Y)
    np.testing.assert_array_equal(model.transduction_, names[plain.transduction_])
    np.testing.assert_array_equal(model.predict(frame), names[plain.transduction_])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be a number above 0; got 0.0"),
        ({"epsilon": 1e-320}, ValueError, "epsilon must be at least"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be None or an integer of at least 1"),
        ({"n_clusters": 4}, ValueError, "at most the number of classes in y, 3.*got 4"),
        ({"n_clusters": 1.5}, TypeError, "n_clusters must be None or an integer"),
        ({"random_state": "x"}, ValueError, "'x' cannot be used to seed"),
    ],
)
def test_parameters_that_cannot_be(parameters, error, message):
    with pytest.raises(error, match=message):
        SpectralClustering(**parameters).fit(X, Y)


def test_tables_that_cannot_be():
    with pytest.raises(ValueError, match="no labelled row"):
        SpectralClustering().fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="too large"):
        SpectralClustering().fit(X * 1e200, Y)
    with pytest.raises(NotFittedError):
        SpectralClustering().predict(X)
