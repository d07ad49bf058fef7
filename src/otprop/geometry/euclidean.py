"""Squared Euclidean distances (Eq. 9), for arrays and for sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otprop.geometry import kernels

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from otprop.arrays import DoubleArray, FloatArray, IntArray


class Euclidean:
    """Squared distances between the rows of two arrays of the same precision."""

    may_forbid = False

    def __init__(self, targets: FloatArray, points: FloatArray) -> None:
        self.dtype: np.dtype[Any] = points.dtype
        self._targets = np.ascontiguousarray(targets)
        self._points = points
        self._sources = 0
        # One source a column, so that the sums over coordinates run along memory.
        self._columns = np.zeros((points.shape[1], 0), points.dtype)

    def add_sources(self, points: IntArray) -> None:
        """Append sources, given as row numbers among the points."""
        total = self._sources + len(points)
        if total > self._columns.shape[1]:
            # Room for a quarter more, in whole tiles: sources often come one by one.
            room = total if self._sources == 0 else total + total // 4
            tiles = -(-room // kernels.TILE)
            grown = np.zeros((self._columns.shape[0], tiles * kernels.TILE), self.dtype)
            grown[:, : self._sources] = self._columns[:, : self._sources]
            self._columns = grown
        self._columns[:, self._sources : total] = self._points[points].T
        self._sources = total

    def fill(self, targets: IntArray, first: int, out: FloatArray) -> None:
        """Write the costs of `targets` to the sources from `first` on, one row a target."""
        kernels.squared_distances(self._targets, targets, self._columns, first, out)


class SparseEuclidean:
    """Squared distances between the rows of two CSR matrices.

    Found as |x|² + |s|² − 2 x·s in double precision: sparse rows are near the origin by nature.
    SciPy adds up each product in the order of the row's entries, whatever the other rows.
    """

    may_forbid = False

    def __init__(self, targets: csr_matrix, points: csr_matrix) -> None:
        self.dtype: np.dtype[Any] = points.dtype
        self._targets = targets.astype(np.float64)
        self._points = self._targets if points is targets else points.astype(np.float64)
        self._target_norms = _squared_norms(self._targets)
        self._point_norms = (
            self._target_norms if points is targets else _squared_norms(self._points)
        )
        self._sources = np.empty(0, np.intp)
        # The transposed sources that the last call asked for, by their first.
        self._columns: tuple[int, csr_matrix] | None = None

    def add_sources(self, points: IntArray) -> None:
        """Append sources, given as row numbers among the points."""
        self._sources = np.concatenate([self._sources, points])
        self._columns = None

    def fill(self, targets: IntArray, first: int, out: FloatArray) -> None:
        """Write the costs of `targets` to the sources from `first` on, one row a target."""
        cached = self._columns
        if cached is None or cached[0] != first:
            cached = first, self._points[self._sources[first:]].T.tocsr()
            self._columns = cached
        products = (self._targets[targets] @ cached[1]).toarray()
        norms = self._point_norms[self._sources[first:]]
        distances = self._target_norms[targets][:, None] + norms - 2.0 * products
        out[:] = np.maximum(distances, 0.0)


def _squared_norms(matrix: csr_matrix) -> DoubleArray:
    return np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel()
