"""Nearest rows of large data by nearest-neighbour descent: nearly all of them, far sooner."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from otprop.geometry import kernels
from otprop.geometry.euclidean import Euclidean, SparseEuclidean
from otprop.geometry.neighbours import Neighbours, nearest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from otprop.arrays import BoolArray, DoubleArray, FloatArray, IntArray
    from otprop.geometry.base import Workers

# Rows of a sparse matrix whose differences from their neighbours are in memory at once.
_SPARSE_ROWS = 1024


def nearest_approximately(
    X: FloatArray | csr_matrix, k: int, *, workers: Workers, seed: int = 0
) -> Neighbours:
    """Return k other rows for each row of X, which are nearly all among its nearest.

    The search runs on one thread: its result depends on their number. Rows for which it finds
    fewer than k are searched for exactly.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Searched in single precision; the distances returned are computed in double.
    k : int
        Neighbours wanted. All other rows are returned where there are fewer.
    workers : Workers
        Who works on the rows that are searched for exactly.
    seed : int
        Of the random numbers of the search.

    Raises
    ------
    ImportError
        If pynndescent is not installed.
    """
    package = _pynndescent()
    rows = np.arange(X.shape[0])
    if k + 1 >= len(rows):
        return _exact(X, k, rows, workers)
    listed = _descend(package, X, k + 1, seed)
    indices, complete = _others(listed, k)
    squared = np.zeros(indices.shape)
    if issparse(X):
        _listed_sparse_distances(X, indices, squared)
    else:
        kernels.listed_distances(np.ascontiguousarray(X), indices, squared)
    order = np.lexsort((indices, squared))
    found = Neighbours(
        np.take_along_axis(indices, order, axis=1), np.take_along_axis(squared, order, axis=1)
    )
    if not complete.all():
        short = rows[~complete]
        found.indices[short], found.squared[short] = _exact(X, k, short, workers)
    return found


def _pynndescent() -> Any:  # noqa: ANN401 - a module without types
    try:
        return importlib.import_module("pynndescent")
    except ImportError as error:
        raise ImportError(
            "Approximate nearest neighbours need the package pynndescent, which is not "
            "installed. Run: pip install 'otprop[large]'"
        ) from error


def _descend(package: Any, X: FloatArray | csr_matrix, count: int, seed: int) -> IntArray:  # noqa: ANN401
    """Return for each row the `count` nearest found, itself among them, and −1 for none."""
    with warnings.catch_warnings():
        # Rows that lack neighbours are completed.
        warnings.filterwarnings("ignore", "Failed to correctly find n_neighbors", UserWarning)
        index = package.NNDescent(
            X, metric="euclidean", n_neighbors=count, random_state=seed, n_jobs=1
        )
    listed, _ = index.neighbor_graph
    return np.asarray(listed, np.intp)


def _others(listed: IntArray, k: int) -> tuple[IntArray, BoolArray]:
    """Return k neighbours of each row, itself left out, and whether the row has so many.

    Where it has not, the row itself takes the places left.
    """
    rows = np.arange(len(listed))[:, None]
    is_other = (listed >= 0) & (listed != rows)
    # Neighbours to the front, each row's in the order found.
    front = np.argsort(~is_other, axis=1, kind="stable")[:, :k]
    chosen = np.take_along_axis(is_other, front, axis=1)
    indices = np.where(chosen, np.take_along_axis(listed, front, axis=1), rows)
    return indices, np.asarray(chosen.all(axis=1), np.bool_)


def _listed_sparse_distances(X: csr_matrix, indices: IntArray, out: DoubleArray) -> None:
    """Fill out[j, i] with the squared distance of row j to row indices[j, i]."""
    X = X.astype(np.float64)
    for start in range(0, len(indices), _SPARSE_ROWS):
        block = indices[start : start + _SPARSE_ROWS]
        own = np.repeat(np.arange(start, start + len(block)), block.shape[1])
        difference = X[own] - X[block.ravel()]
        out[start : start + _SPARSE_ROWS] = np.asarray(
            difference.multiply(difference).sum(axis=1)
        ).reshape(block.shape)


def _exact(X: FloatArray | csr_matrix, k: int, rows: IntArray, workers: Workers) -> Neighbours:
    geometry = SparseEuclidean(X, X) if issparse(X) else Euclidean(X, X)
    sources = X.shape[0]
    geometry.add_sources(np.arange(sources))
    return nearest(geometry, rows, k, sources=sources, own=rows, workers=workers)
