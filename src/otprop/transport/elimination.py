"""Compiled elimination of a graph's Laplacian, diag(W 1 + excess) − W, by additions alone.

A pivot is the sum of a source's weights and its excess, never a difference (Grassmann, Taksar and
Heyman 1985). Hence the factors keep nearly all their digits, however ill-conditioned the system.
"""

import numpy as np
from numba import njit

from otprop.transport.kernels import FAST, add_scaled, dot

# A source with neighbours among more than this part of those left is eliminated faster in a dense
# matrix.
_DENSE = 1 / 8
# Rows of the dense matrix that are eliminated at a time, so that they stay in cache.
_PANEL = 16


@njit(fastmath=FAST)
def _sum(a):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
    return total


@njit(nogil=True, cache=True)
def join_sources(starts, indices, values, weights, first, last, graph):
    """Add Σ_j b_j P_ji P_jk, over the shares kept, to the rows `first` to `last` of `graph`."""
    for j in range(starts.shape[0] - 1):
        for n in range(starts[j], starts[j + 1]):
            i = indices[n]
            if first <= i < last:
                row, factor = graph[i], weights[j] * values[n]
                for m in range(starts[j], starts[j + 1]):
                    row[indices[m]] += factor * values[m]


@njit
def _degrees(graph):
    degree = np.zeros(graph.shape[0], np.int64)
    for i in range(graph.shape[0]):
        graph[i, i] = 0.0
        for k in range(graph.shape[0]):
            degree[i] += graph[i, k] > 0
    return degree


@njit
def _fewest(degree, order, step):
    least = step
    for n in range(step, order.shape[0]):
        if degree[order[n]] < degree[order[least]]:
            least = n
    return least


@njit
def _neighbours(row, left, near):
    count = 0
    for k in left:
        if row[k] > 0:
            near[count] = k
            count += 1
    return near[:count]


@njit(error_model="numpy")
def _join_neighbours(graph, pivot, total, near, degree, excess, right):
    row = graph[pivot]
    for i in near:
        part = row[i] / total
        excess[i] += part * excess[pivot]
        right[i] += part * right[pivot]
        degree[i] -= 1
        for k in near:
            if k != i:
                degree[i] += graph[i, k] == 0
                graph[i, k] += part * row[k]


@njit(nogil=True, error_model="numpy", cache=True)
def eliminate_sparse(graph, excess, right):
    """Eliminate sources, those of fewest neighbours first, until even these have many.

    Returns the order (the sources left stand at its end), the pivots, and how many are eliminated.
    An eliminated source's row keeps its weights at that time; those left are up to date.
    """
    size = graph.shape[0]
    order, pivots = np.arange(size), np.empty(size)
    degree, near = _degrees(graph), np.empty(size, np.int64)
    for step in range(size):
        least = _fewest(degree, order, step)
        pivot = order[least]
        if degree[pivot] > _DENSE * (size - step):
            return order, pivots, step
        order[least], order[step] = order[step], pivot
        joined = _neighbours(graph[pivot], order[step + 1 :], near)
        pivots[step] = excess[pivot] + graph[pivot][joined].sum()
        _join_neighbours(graph, pivot, pivots[step], joined, degree, excess, right)
    return order, pivots, size


@njit(nogil=True, error_model="numpy", cache=True)
def solve_dense(graph, excess, right):
    """Solve for sources most of which are joined; uses the upper triangle only."""
    size = graph.shape[0]
    pivots = np.empty(size)
    for first in range(0, size, _PANEL):
        last = min(first + _PANEL, size)
        for i in range(first, size):
            for k in range(first, min(i, last)):
                part = graph[k, i] / pivots[k]
                excess[i] += part * excess[k]
                right[i] += part * right[k]
                add_scaled(graph[i, i + 1 :], part, graph[k, i + 1 :])
            if i < last:
                pivots[i] = excess[i] + _sum(graph[i, i + 1 :])
    for k in range(size - 1, -1, -1):
        right[k] = (right[k] + dot(graph[k, k + 1 :], right[k + 1 :])) / pivots[k]
    return right


@njit(nogil=True, error_model="numpy", cache=True)
def substitute_back(graph, order, pivots, x):
    """Find the eliminated sources' part of the solution, last to first; `x` holds the others'."""
    later = np.ones(graph.shape[0], np.bool_)
    later[order] = False
    for n in range(order.shape[0] - 1, -1, -1):
        pivot = order[n]
        total = x[pivot]
        for k in range(graph.shape[0]):
            if later[k]:
                total += graph[pivot, k] * x[k]
        x[pivot] = total / pivots[n]
        later[pivot] = True
