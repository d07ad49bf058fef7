"""Squared Euclidean distances (Eq. 9), for arrays and for sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otprop.geometry import kernels

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from otprop.arrays import DoubleArray, FloatArray, IntArray


# Differences of squared norms and products below this fraction are rounding.
_ROUNDING = 8 * np.finfo(np.float64).eps


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
    SciPy adds up each product in the order of the row's entries, whatever the other rows. What
    is left of equal rows by rounding is taken for 0.
    """

    may_forbid = False

    def __init__(self, targets: csr_matrix, points: csr_matrix) -> None:
        self.dtype: np.dtype[Any] = points.dtype
        self._targets = _canonical(targets)
        self._points = self._targets if points is targets else _canonical(points)
        self._target_norms = _squared_norms(self._targets)
        self._point_norms = (
            self._target_norms if points is targets else _squared_norms(self._points)
        )
        self._sources = np.empty(0, np.intp)
        # Transposed sources by the first and the last asked for: blocks ask for the same ones.
        self._columns: dict[tuple[int, int], csr_matrix] = {}

    def add_sources(self, points: IntArray) -> None:
        """Append sources, given as row numbers among the points."""
        self._sources = np.concatenate([self._sources, points])
        self._columns = {}

    def fill(self, targets: IntArray, first: int, out: FloatArray) -> None:
        """Write the costs of `targets` to the sources from `first` on, one row a target."""
        last = first + out.shape[1]
        products = (self._targets[targets] @ self._transposed(first, last)).toarray()
        sizes = self._target_norms[targets][:, None] + self._point_norms[self._sources[first:last]]
        distances = sizes - 2.0 * products
        out[:] = np.where(distances > _ROUNDING * sizes, distances, 0.0)

    def _transposed(self, first: int, last: int) -> csr_matrix:
        kept = self._columns
        found = kept.get((first, last))
        if found is None:
            found = self._points[self._sources[first:last]].T.tocsr()
            # No more is kept than all sources once.
            if sum(b - a for a, b in list(kept)) + last - first > len(self._sources):
                kept = self._columns = {}
            kept[first, last] = found
        return found


def _canonical(matrix: csr_matrix) -> csr_matrix:
    """Return a copy in double precision, with the entries of a row in order and none twice."""
    copy = matrix.astype(np.float64, copy=True)
    copy.sum_duplicates()
    return copy


def _squared_norms(matrix: csr_matrix) -> DoubleArray:
    """Add up squares one by one, in the order in which products are added up."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.asarray(np.bincount(rows, matrix.data**2, matrix.shape[0]), np.float64)
