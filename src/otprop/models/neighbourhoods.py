"""Nearest rows and graphs of them, for features of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from otprop.geometry import (
    Euclidean,
    Graph,
    Neighbours,
    Precomputed,
    SparseEuclidean,
    local_scales,
    nearest,
    nearest_approximately,
    self_tuned_affinity,
)

if TYPE_CHECKING:
    from otprop.arrays import IntArray
    from otprop.geometry import Geometry
    from otprop.transport import Workers

# Beyond this the nearest rows of all rows are searched for by descent.
_EXACT_ROWS = 20_000


def geometry(X: Any, points: Any) -> Geometry:
    """Return the costs of the rows of X to `points`; those in X itself where there are none."""
    if points is None:
        return Precomputed(X)
    if sparse.issparse(points):
        return SparseEuclidean(sparse.csr_matrix(X), points)
    return Euclidean(X.toarray() if sparse.issparse(X) else X, points)


def nearest_others(points: Any, k: int, workers: Workers) -> Neighbours:
    """Return k near other rows of each row: the nearest, of large data nearly all of them.

    Rows that are the same as many others would see these alone, and a graph fall to pieces: where
    a quarter of a row's neighbours are its twins, one of them stays, and the others are the nearest
    rows that differ.
    """
    count = points.shape[0]
    if count > _EXACT_ROWS:
        found = nearest_approximately(points, k, workers=workers)
    else:
        found = _nearest(points, points, k, np.arange(count), workers)
    width = found.squared.shape[1]
    if width > 1:
        crowded = found.squared[:, max(1, width // 4) - 1] == 0
        if crowded.any():
            _look_past_twins(points, found, crowded, workers)
    return found


def _look_past_twins(points: Any, found: Neighbours, crowded: Any, workers: Workers) -> None:
    """Let one twin of each crowded row stand for all of them."""
    _, first, group = np.unique(twins(found), return_index=True, return_inverse=True)
    rows = np.flatnonzero(crowded)
    stands_for_all = first[group] == np.arange(len(crowded))
    kept = np.flatnonzero(~crowded | stands_for_all)
    width = found.squared.shape[1]
    others = min(width - 1, len(kept) - 1)
    if others == 0:
        return
    asking = np.unique(first[group[rows]])
    own = np.searchsorted(kept, asking)
    past = _nearest(points[asking], points[kept], others, own, workers)
    answer = np.searchsorted(asking, first[group[rows]])
    found.indices[rows, width - others :] = kept[past.indices[answer]]
    found.squared[rows, width - others :] = past.squared[answer]


def nearest_fitted(table: Any, points: Any, k: int, workers: Workers) -> Neighbours:
    """Return the k nearest of the fitted rows for new rows."""
    return _nearest(table, points, k, np.full(table.shape[0], -1), workers)


def twins(neighbours: Neighbours) -> IntArray:
    """Return for each row of fit the number of its group of rows at no distance from one another.

    Most are alone in theirs.
    """
    rows, places = np.nonzero(neighbours.squared == 0)
    shape = (len(neighbours.squared),) * 2
    same = sparse.csr_matrix(
        (np.ones(len(rows)), (rows, neighbours.indices[rows, places])), shape=shape
    )
    _, groups = connected_components(same, directed=False)
    return np.asarray(groups, np.intp)


def graph_of(neighbours: Neighbours, k: int) -> Graph:
    """Return the self-tuned graph of each row's first k neighbours."""
    first = Neighbours(neighbours.indices[:, :k], neighbours.squared[:, :k])
    return Graph(self_tuned_affinity(first, local_scales(first.squared)))


def _nearest(
    table: Any,
    points: Any,
    k: int,
    own: Any,
    workers: Workers,
) -> Neighbours:
    rows, count = geometry(table, points), points.shape[0]
    rows.add_sources(np.arange(count))
    new = np.arange(table.shape[0])
    found = nearest(rows, new, k, sources=count, own=own, workers=workers)
    # A row that overflows has no neighbour at all, at no finite distance.
    return Neighbours(np.minimum(found.indices, count - 1), found.squared)
