"""Rows, their neighbours and their graphs; and the same by plain NumPy, through no `otprop`."""

import numpy as np
from scipy import sparse

from otprop.geometry import (
    Euclidean,
    Graph,
    Neighbours,
    SparseEuclidean,
    local_scales,
    nearest,
    self_tuned_affinity,
)
from otprop.transport.workers import Workers

ALONE = Workers(1)


def points(rows, columns=3, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(dtype)


def scattered(rows, columns=20, seed=0, dtype=np.float64):
    return sparse.random(rows, columns, 0.3, "csr", dtype, np.random.default_rng(seed))


def among(X, k, workers=ALONE):
    """Return the k nearest other rows of each row."""
    rows = np.arange(X.shape[0])
    return between(X, X, k, own=rows, workers=workers)


def between(new, X, k, own=None, workers=ALONE):
    """Return the k nearest rows of X of each new row."""
    geometry = (SparseEuclidean if sparse.issparse(X) else Euclidean)(new, X)
    geometry.add_sources(np.arange(X.shape[0]))
    rows = np.arange(new.shape[0])
    own = np.full(len(rows), -1) if own is None else own
    return nearest(geometry, rows, k, sources=X.shape[0], own=own, workers=workers)


def graph(X, k):
    neighbours = among(X, k)
    return Graph(self_tuned_affinity(neighbours, local_scales(neighbours.squared)))


def sorted_distances(squared, k, own=None):
    """Return the k least of each row of a matrix, of equal ones those of lower index."""
    squared = squared.astype(np.float64)
    if own is not None:
        squared[np.arange(len(squared)), own] = np.inf
    indices = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return Neighbours(indices, np.take_along_axis(squared, indices, axis=1))


def dense_affinity(X, k):
    """Return W pair by pair, for rows that are no duplicates and weights that do not underflow."""
    d = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    nearest_first = np.argsort(np.where(np.eye(len(X)), np.inf, d), axis=1, kind="stable")
    sigma = d[np.arange(len(X)), nearest_first[:, k - 1]]
    W = np.zeros_like(d)
    for i in range(len(X)):
        for j in nearest_first[i, :k]:
            W[i, j] = W[j, i] = np.exp(-4 * d[i, j] ** 2 / (sigma[i] * sigma[j]))
    return W
