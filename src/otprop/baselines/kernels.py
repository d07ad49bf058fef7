"""Compiled quadratic programs: weights that rebuild a row from its neighbours.

The weights are non-negative, sum to one and minimise w'Gw, where G holds the inner products of the
neighbours' differences from the row. Hence Gw = μ1 on the weights above 0 and Gw ≥ μ1 elsewhere,
and z = w/μ minimises z'Gz/2 − Σz over z ≥ 0: no sum to keep to. That is found by the active set of
Lawson and Hanson (1974), exactly but for rounding.
"""

import math

import numpy as np
from numba import njit

from otprop.transport.kernels import dot

# Added to G's diagonal, as a part of its mean. With more neighbours than columns, or with equal
# rows, many weights rebuild a row equally well; so the most even of them are found, whatever the
# order of the neighbours. The mean squared error of rebuilding exceeds the least by less than this
# part of the neighbours' mean squared distance. Less would leave rounding to decide.
RIDGE = 1e-8

_ROUNDING = 16 * np.finfo(np.float64).eps


@njit
def _factor(gram, chosen, first, count, lower):
    """Find rows `first` to `count` of Cholesky's factor of the chosen rows and columns."""
    for a in range(first, count):
        for b in range(a + 1):
            rest = gram[chosen[a], chosen[b]]
            for c in range(b):
                rest -= lower[a, c] * lower[b, c]
            lower[a, b] = math.sqrt(rest) if a == b else rest / lower[b, b]


@njit
def _solve_for_ones(lower, count, out):
    for a in range(count):
        rest = 1.0
        for c in range(a):
            rest -= lower[a, c] * out[c]
        out[a] = rest / lower[a, a]
    for a in range(count - 1, -1, -1):
        rest = out[a]
        for c in range(a + 1, count):
            rest -= lower[c, a] * out[c]
        out[a] = rest / lower[a, a]


@njit
def _steepest(gram, z):
    """Return which zero of z is best raised, or -1 if none is beyond rounding."""
    steepest, best = 0.0, -1
    for j in range(z.shape[0]):
        if z[j] == 0.0:
            slope, size = 1.0, 1.0
            for i in range(z.shape[0]):
                slope -= gram[j, i] * z[i]
                size += abs(gram[j, i]) * z[i]
            if slope > steepest and slope > _ROUNDING * size:
                steepest, best = slope, j
    return best


@njit
def _part_of_way(held, aim):
    """How far one can go from `held` ≥ 0 to `aim` ≤ 0 without passing 0."""
    return held / (held - aim) if held > 0.0 else 0.0


@njit
def _step(z, chosen, count, aim):
    """Go towards `aim` until something reaches 0; what has is no longer chosen.

    Returns how many are chosen, and where the first was dropped (`count` if none was).
    """
    way = 1.0
    for a in range(count):
        if aim[a] <= 0.0:
            way = min(way, _part_of_way(z[chosen[a]], aim[a]))
    kept, dropped = 0, count
    for a in range(count):
        i = chosen[a]
        if aim[a] <= 0.0:
            blocks = _part_of_way(z[i], aim[a]) <= way
            z[i] += way * (aim[a] - z[i])
            if blocks or z[i] <= 0.0:
                z[i] = 0.0
                dropped = min(dropped, a)
                continue
        else:
            z[i] += way * (aim[a] - z[i])
        chosen[kept] = i
        kept += 1
    return kept, dropped


@njit
def _minimise(gram, z):
    """Minimise z'Gz/2 − Σz over z ≥ 0, which at a solution is −Σz/2, for G positive definite.

    An exchange must raise Σz, so that no set of chosen entries comes twice and rounding cannot
    keep this going round.
    """
    size = z.shape[0]
    lower, aim, before = np.empty((size, size)), np.empty(size), np.empty(size)
    chosen = np.empty(size, np.int64)
    count, total = 0, 0.0
    z[:] = 0.0
    while True:
        entering = _steepest(gram, z)
        if entering < 0:
            return
        before[:] = z
        chosen[count] = entering
        first = count
        count += 1
        while True:
            _factor(gram, chosen, first, count, lower)
            _solve_for_ones(lower, count, aim)
            kept, dropped = _step(z, chosen, count, aim)
            if kept == count:
                z[chosen[:count]] = aim[:count]  # to the bit, so that none rounds to 0
                break
            count, first = kept, dropped
        reached = aim[:count].sum()
        if not reached > total:
            z[:] = before
            return
        total = reached


@njit(nogil=True, cache=True)
def simplex_weights(gram, out):
    """Find w ≥ 0, Σw = 1, that minimises w'Gw with the ridge added; `gram` is overwritten."""
    size = gram.shape[0]
    mean = 0.0
    for a in range(size):
        mean += gram[a, a] / size
    if mean == 0.0:  # all neighbours are where the row is
        out[:] = 1.0 / size
        return
    for a in range(size):
        for b in range(size):
            gram[a, b] /= mean
        gram[a, a] += RIDGE
    _minimise(gram, out)
    out /= out.sum()


@njit(nogil=True, cache=True)
def neighbour_weights(rows, points, neighbours, out):
    """Fill out[i] with the weights with which points[neighbours[i]] rebuild rows[i]."""
    size = neighbours.shape[1]
    differences = np.empty((size, rows.shape[1]))
    gram = np.empty((size, size))
    for i in range(rows.shape[0]):
        for a in range(size):
            point = points[neighbours[i, a]]
            for c in range(rows.shape[1]):
                differences[a, c] = rows[i, c] - point[c]
            for b in range(a + 1):
                gram[a, b] = gram[b, a] = dot(differences[a], differences[b])
        simplex_weights(gram, out[i])
