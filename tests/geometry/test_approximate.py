"""Nearest rows by descent: nearly those of the exact search, and the same in each run."""

import importlib
import sys
import warnings

import numba
import numpy as np
import pytest
from scipy import sparse

from otprop.geometry import approximate, nearest_approximately
from otprop.transport.workers import Workers
from tests import tables
from tests.geometry import graphs

ROWS, K = 3000, 10


@pytest.fixture
def pynndescent():
    return pytest.importorskip("pynndescent")


def search(X, k=K, **how):
    return nearest_approximately(X, k, workers=graphs.ALONE, **how)


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.squared, expected.squared)


def recall(found, exact):
    hits = [np.isin(a, b).sum() for a, b in zip(found.indices, exact.indices, strict=True)]
    return sum(hits) / exact.indices.size


@pytest.mark.usefixtures("pynndescent")
@pytest.mark.parametrize("kind", ["double", "single", "sparse"])
def test_nearly_all_neighbours_are_found_and_the_same_in_each_run(kind):
    X = tables.blobs(ROWS, 12, 5)[0].astype(np.float64 if kind == "double" else np.float32)
    if kind == "sparse":
        X = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    found = search(X)
    exact = graphs.among(X, K)
    assert recall(found, exact) >= 0.95
    assert found.indices.dtype == np.intp
    assert found.squared.dtype == np.float64
    assert not (found.indices == np.arange(ROWS)[:, None]).any()
    assert (np.diff(np.sort(found.indices, axis=1), axis=1) > 0).all()  # none twice
    rows = np.asarray(X.todense() if kind == "sparse" else X, np.float64)
    squared = ((rows[:, None] - rows[found.indices]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.squared, squared, rtol=1e-12)
    assert (np.diff(found.squared, axis=1) >= 0).all()
    before = numba.get_num_threads()
    for threads in {1, before}:
        numba.set_num_threads(threads)
        try:
            assert_same(search(X), found)
            assert numba.get_num_threads() == threads
        finally:
            numba.set_num_threads(before)


@pytest.mark.usefixtures("pynndescent")
def test_duplicates_are_neighbours_and_the_row_itself_is_not():
    X = np.repeat(graphs.points(20, 12, dtype=np.float32), 50, axis=0)
    found = search(X, 5)
    assert not found.squared.any()
    np.testing.assert_array_equal(found.indices // 50, np.arange(1000)[:, None] // 50 + [0] * 5)
    assert not (found.indices == np.arange(1000)[:, None]).any()
    assert (np.diff(found.indices, axis=1) > 0).all()


@pytest.mark.usefixtures("pynndescent")
@pytest.mark.parametrize("rows", [1, 2, 5, 11])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_of_few_rows_all_others_are_neighbours(rows, kind):
    X = kind(graphs.points(rows))
    found = search(X)
    assert found.indices.shape == (rows, min(K, rows - 1))
    assert_same(found, graphs.among(X, K))


class Descent:
    """Stands in for a search that leaves some rows short, one of them not even with itself."""

    def __init__(self, X, **how):
        assert how["n_jobs"] == 1
        exact = graphs.among(X, how["n_neighbors"] - 1)
        listed = np.column_stack([np.arange(len(X)), exact.indices]).astype(np.int32)
        listed[3, -1] = listed[7, 2:] = -1
        listed[9] = -1
        listed[11] = exact.indices[11][[0, 1, 2, 3, 4, 4]]
        listed[11, -1] = 12 if 12 not in exact.indices[11] else 13  # too many: cut off
        self.neighbor_graph = listed, None
        warnings.warn("Failed to correctly find n_neighbors for some samples.", stacklevel=2)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_left_short_are_searched_for_exactly(monkeypatch, threads):
    class Package:
        NNDescent = Descent

    monkeypatch.setattr(approximate, "_pynndescent", lambda: Package)
    X = graphs.points(40)
    with Workers(threads) as workers:
        found = nearest_approximately(X, 5, workers=workers)
    exact = graphs.among(X, 5)
    np.testing.assert_array_equal(found.indices, exact.indices)
    np.testing.assert_allclose(found.squared, exact.squared, rtol=1e-14)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(ImportError, match=r"pip install 'otprop\[large\]'"):
        search(graphs.points(30))


def test_the_package_is_not_imported_before_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    importlib.reload(approximate)
