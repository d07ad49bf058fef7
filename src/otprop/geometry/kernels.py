"""Compiled squared distances (Eq. 9).

An entry depends on its two rows alone, to the bit: not on its place in a block, on the other rows
or on threads. Matrix products by a BLAS library do not promise that, and lose digits when the data
are far from the origin; sums of squared differences lose none.
"""

import numpy as np
from numba import njit

# Sources are worked on in tiles of fixed width, coordinates in runs that keep a tile in cache.
TILE = 256
_RUN = 64

_unsigned = np.uint64


@njit(fastmath={"contract"})
def _add_one(sums, columns, k, first, x):
    for i in range(_unsigned(TILE)):
        a = x - columns[k, first + i]
        sums[i] += a * a


@njit(fastmath={"contract"})
def _add_four(sums, columns, k, first, x0, x1, x2, x3):
    one, two, three = _unsigned(1), _unsigned(2), _unsigned(3)
    for i in range(_unsigned(TILE)):
        a = x0 - columns[k, first + i]
        b = x1 - columns[k + one, first + i]
        c = x2 - columns[k + two, first + i]
        d = x3 - columns[k + three, first + i]
        sums[i] = sums[i] + a * a + b * b + c * c + d * d


@njit
def _move(sums, totals, j):
    for i in range(_unsigned(TILE)):
        totals[j, i] += sums[i]
        sums[i] = 0


@njit(nogil=True, cache=True)
def squared_distances(points, rows, columns, first, out):
    """Fill out[j, i] with the squared distance of points[rows[j]] to source first + i.

    `columns` holds one source a column, their number padded to whole tiles. Runs of coordinates
    are summed in the data's precision, the runs' sums in double.
    """
    sources = first + out.shape[1]
    dimensions = columns.shape[0]
    totals = np.empty((rows.shape[0], TILE))
    sums = np.zeros(TILE, out.dtype)
    for tile in range(first // TILE, (sources + TILE - 1) // TILE):
        start = _unsigned(tile * TILE)
        totals[:] = 0
        for run in range(0, dimensions, _RUN):
            end = min(run + _RUN, dimensions)
            fours = run + (end - run) // 4 * 4
            for j in range(rows.shape[0]):
                x = points[rows[j]]
                for k in range(run, fours, 4):
                    _add_four(
                        sums, columns, _unsigned(k), start, x[k], x[k + 1], x[k + 2], x[k + 3]
                    )
                for k in range(fours, end):
                    _add_one(sums, columns, _unsigned(k), start, x[k])
                _move(sums, totals, _unsigned(j))
        lo, hi = max(first, tile * TILE), min(sources, (tile + 1) * TILE)
        for j in range(rows.shape[0]):
            for i in range(lo, hi):
                out[j, i - first] = totals[j, i - tile * TILE]
