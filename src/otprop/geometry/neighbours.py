"""The exact nearest rows of each row, whatever the number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.geometry import kernels

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, IntArray
    from otprop.geometry.base import Geometry, Workers

# Rows and sources of a block of distances: it stays in cache until the nearest are picked from it.
_BLOCK_ROWS = 128
_BLOCK_SOURCES = 8 * kernels.TILE


class Neighbours(NamedTuple):
    """The nearest sources of some rows and the squared distances to them, one row a row.

    Sorted by distance, and by index among equal distances.
    """

    indices: IntArray
    squared: DoubleArray


def nearest(
    geometry: Geometry,
    targets: IntArray,
    k: int,
    *,
    sources: int,
    own: IntArray,
    workers: Workers,
) -> Neighbours:
    """Return the k nearest sources of each target, of equal ones those of lower index.

    Parameters
    ----------
    geometry : Geometry
        With finite costs, and all its sources added.
    targets : array of shape (m,)
        Rows to find the neighbours of, as numbers among the geometry's targets.
    k : int
        Neighbours wanted. All are returned where there are fewer, and each row is left out once.
    sources : int
        Number of sources that the geometry has.
    own : array of shape (m,)
        The source that is the target itself, and no neighbour of it; −1 where there is none.
    workers : Workers
        Who works on the blocks. A row's neighbours do not depend on them, nor on other rows.
    """
    k = max(0, min(k, sources - int((own >= 0).any())))
    shape = (len(targets), k)
    # No neighbour yet: further, and of a higher index, than any source.
    found = Neighbours(np.full(shape, sources, np.intp), np.full(shape, np.inf))

    def pick(block: int) -> None:
        rows = slice(block * _BLOCK_ROWS, (block + 1) * _BLOCK_ROWS)
        height = len(targets[rows])
        room = np.empty(height * min(sources, _BLOCK_SOURCES), geometry.dtype)
        for first in range(0, sources, _BLOCK_SOURCES):
            width = min(_BLOCK_SOURCES, sources - first)
            costs = room[: height * width].reshape(height, width)
            geometry.fill(targets[rows], first, costs)
            kernels.keep_nearest(costs, first, own[rows], found.squared[rows], found.indices[rows])

    if k > 0:
        workers.run(pick, -(-len(targets) // _BLOCK_ROWS))
    return found
