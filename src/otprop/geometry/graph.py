"""From nearest rows to a graph, and the matrices that diffusion on it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from otprop.geometry import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otprop.arrays import DoubleArray, IntArray
    from otprop.geometry.neighbours import Neighbours

# Least weight of a link, as a fraction of the weight that it had if both its rows had the scale of
# the row that lists it. Without it, a row far from a dense group is cut off from it: its weights
# underflow. Much less than any weight that a vote depends on, much more than rounding.
_LEAST_WEIGHT = 1e-9


def local_scales(squared: DoubleArray) -> DoubleArray:
    """Return σ of each row: the distance to the furthest of its neighbours.

    Parameters
    ----------
    squared : array of shape (n, k)
        Squared distances to the neighbours, finite, the largest last.

    Returns
    -------
    array of shape (n,)
        All above 0. A row whose neighbours are all its duplicates takes the smallest scale
        of the others, or 1 if there are none: then all distances are 0, and all weights 1.
    """
    if squared.shape[1] == 0:
        return np.ones(len(squared))
    scales = np.sqrt(squared[:, -1])
    positive = scales > 0
    return np.where(positive, scales, scales[positive].min(initial=np.inf) if positive.any() else 1)


def self_tuned_weights(
    neighbours: Neighbours, own: DoubleArray, scales: DoubleArray
) -> DoubleArray:
    """Return the weights exp(−4 d² / (σ_j σ_i)) of rows j to their neighbours i.

    Zelnik-Manor and Perona's local scaling. A weight does not depend on the units of the data,
    is never 0, and orders a row's neighbours of equal scale by distance. It depends on its row
    and neighbour alone, to the bit.

    Parameters
    ----------
    neighbours : Neighbours
        Of m rows.
    own : array of shape (m,)
        The scales of these rows, above 0.
    scales : array of shape (n,)
        The scales of the rows that are their neighbours, above 0.
    """
    weights = np.empty(neighbours.squared.shape)
    kernels.self_tuned(*neighbours, own, scales, _LEAST_WEIGHT, weights)
    return weights


def self_tuned_affinity(neighbours: Neighbours, scales: DoubleArray) -> csr_matrix:
    """Return W = max(V, Vᵀ), V the self-tuned weights of all rows to their neighbours."""
    weights = self_tuned_weights(neighbours, scales, scales)
    rows, k = weights.shape
    starts = np.arange(rows + 1) * k
    directed = csr_matrix((weights.ravel(), neighbours.indices.ravel(), starts), (rows, rows))
    return _in_order(directed.maximum(directed.T))


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph whose nodes are the rows, and the matrices made from its weights.

    Attributes
    ----------
    affinity : CSR matrix of shape (n, n)
        W: symmetric, in double precision, all entries above 0 and none on the diagonal.
    """

    affinity: csr_matrix

    @classmethod
    def of_affinity(cls, weights: csr_matrix | NDArray[np.generic]) -> Self:
        """Return the graph of a symmetric matrix of finite weights, none of them negative.

        Its diagonal is ignored, and a weight of 0 is no link.
        """
        entries = coo_matrix(weights, dtype=np.float64)
        linked = (entries.row != entries.col) & (entries.data != 0)
        places = entries.row[linked], entries.col[linked]
        return cls(_in_order(csr_matrix((entries.data[linked], places), entries.shape)))

    @cached_property
    def degrees(self) -> DoubleArray:
        """The sums of the rows of W."""
        return np.asarray(self.affinity.sum(axis=1), np.float64).ravel()

    @cached_property
    def normalised(self) -> csr_matrix:
        """S = D^(−1/2) W D^(−1/2), symmetric to the bit; 0 in the rows of isolated nodes."""
        roots = np.sqrt(self.degrees)
        return self._weighed(self.affinity.data / (roots[self._rows] * roots[self._columns]))

    @cached_property
    def walk(self) -> csr_matrix:
        """D^(−1) W, whose rows sum to 1; 0 in the rows of isolated nodes."""
        return self._weighed(self.affinity.data / self.degrees[self._rows])

    def components(self) -> IntArray:
        """Return the number of each node's connected component, counted from 0."""
        _, labels = connected_components(self.affinity, directed=False)
        return np.asarray(labels, np.intp)

    @property
    def _rows(self) -> IntArray:
        return np.repeat(np.arange(self.affinity.shape[0]), np.diff(self.affinity.indptr))

    @property
    def _columns(self) -> IntArray:
        return np.asarray(self.affinity.indices, np.intp)

    def _weighed(self, data: DoubleArray) -> csr_matrix:
        """Return a matrix with the links of W and other weights."""
        links = self.affinity
        return csr_matrix((data, links.indices, links.indptr), links.shape)


def _in_order(matrix: csr_matrix) -> csr_matrix:
    """Return the matrix as CSR with the entries of each row in order."""
    matrix = csr_matrix(matrix)
    matrix.sum_duplicates()
    return matrix
