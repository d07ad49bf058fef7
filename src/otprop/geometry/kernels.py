"""Compiled squared distances (Eq. 9).

An entry depends on its two rows alone, to the bit: not on its place in a block, on the other rows
or on threads. Matrix products by a BLAS library do not promise that, and lose digits when the data
are far from the origin; sums of squared differences lose none.
"""

import numpy as np
from numba import njit

# Sources are worked on in tiles of fixed width: wide ones where most of a tile is wanted, narrow
# ones where a round brings a few sources only. Each lane is a source, summed on its own in the
# same order, so that both give the same bits. Coordinates come in runs that keep a tile in cache,
# targets in chunks that keep their sums there.
TILE = 256
NARROW = 32
WIDE = 128  # sources in a tile beyond which it is computed whole
_RUN = 64
_CHUNK = 64

_unsigned = np.uint64


def _loops_of(width):
    """Return the loops over the sources of a tile, whose number is known to the compiler."""
    lanes = _unsigned(width)
    one, two, three = _unsigned(1), _unsigned(2), _unsigned(3)

    @njit(fastmath={"contract"})
    def add_one(sums, columns, k, first, x):
        for i in range(lanes):
            a = x - columns[k, first + i]
            sums[i] += a * a

    @njit(fastmath={"contract"})
    def add_four(sums, columns, k, first, x0, x1, x2, x3):
        for i in range(lanes):
            a = x0 - columns[k, first + i]
            b = x1 - columns[k + one, first + i]
            c = x2 - columns[k + two, first + i]
            d = x3 - columns[k + three, first + i]
            sums[i] = sums[i] + a * a + b * b + c * c + d * d

    @njit
    def move(sums, totals, j):
        for i in range(lanes):
            totals[j, i] += sums[i]
            sums[i] = 0

    return add_one, add_four, move


def _tiles_of(width):
    """Return the loop over tiles of a width that is known to the compiler."""
    add_one, add_four, move = _loops_of(width)

    @njit
    def fill(points, rows, columns, first, lo, hi, sums, totals, out):
        """Fill in the sources from lo to hi for one chunk of rows."""
        dimensions = columns.shape[0]
        for tile in range(lo // width * width, hi, width):
            start = _unsigned(tile)
            totals[: rows.shape[0], :width] = 0
            for run in range(0, dimensions, _RUN):
                end = min(run + _RUN, dimensions)
                fours = run + (end - run) // 4 * 4
                for j in range(rows.shape[0]):
                    x = points[rows[j]]
                    for k in range(run, fours, 4):
                        add_four(
                            sums, columns, _unsigned(k), start, x[k], x[k + 1], x[k + 2], x[k + 3]
                        )
                    for k in range(fours, end):
                        add_one(sums, columns, _unsigned(k), start, x[k])
                    move(sums, totals, _unsigned(j))
            for j in range(rows.shape[0]):
                for i in range(max(lo, tile), min(hi, tile + width)):
                    out[j, i - first] = totals[j, i - tile]

    return fill


_wide_tiles = _tiles_of(TILE)
_narrow_tiles = _tiles_of(NARROW)


@njit(nogil=True, cache=True)
def squared_distances(points, rows, columns, first, out):
    """Fill out[j, i] with the squared distance of points[rows[j]] to source first + i.

    `columns` holds one source a column, their number padded to whole tiles. Runs of coordinates
    are summed in the data's precision, the runs' sums in double.
    """
    sources = first + out.shape[1]
    totals = np.empty((_CHUNK, TILE))
    sums = np.zeros(TILE, out.dtype)
    for tile in range(first // TILE * TILE, sources, TILE):
        lo, hi = max(first, tile), min(sources, tile + TILE)
        for start in range(0, rows.shape[0], _CHUNK):
            chunk, part = rows[start : start + _CHUNK], out[start : start + _CHUNK]
            if hi - lo > WIDE:
                _wide_tiles(points, chunk, columns, first, lo, hi, sums, totals, part)
            else:
                _narrow_tiles(points, chunk, columns, first, lo, hi, sums, totals, part)
