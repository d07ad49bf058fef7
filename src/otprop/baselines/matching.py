"""Names for clusters: the best one-to-one matching with classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from otprop.arrays import IntArray


def best_matching(true: ArrayLike, clusters: ArrayLike) -> dict[Any, Any]:
    """Return the class of each cluster, so that as many rows as possible are in their own.

    No two clusters have the same class. Where there are more clusters than classes, some have
    none and are left out.

    Parameters
    ----------
    true : array of shape (n,)
        True labels.
    clusters : array of shape (n,)
        Cluster numbers, or names.

    Returns
    -------
    dict
        From clusters to classes.
    """
    # The rows of the table are the sorted classes, its columns the sorted clusters.
    classes, groups = np.unique(true), np.unique(clusters)
    matched, names = match(contingency_matrix(true, clusters).T)
    return dict(zip(groups[matched].tolist(), classes[names].tolist(), strict=True))


def matched_accuracy(true: ArrayLike, clusters: ArrayLike) -> float:
    """Return the share of rows in the cluster of their class, by the best matching.

    Parameters
    ----------
    true : array of shape (n,)
        True labels.
    clusters : array of shape (n,)
        Cluster numbers, or names.

    Returns
    -------
    float
        Accuracy; rows in clusters without class count as wrong.
    """
    table = contingency_matrix(true, clusters)
    return float(table.T[match(table.T)].sum() / table.sum())


def match(table: NDArray[np.int64]) -> tuple[IntArray, IntArray]:
    """Return clusters and their classes, from a table of row counts by cluster and class."""
    clusters, classes = linear_sum_assignment(table, maximize=True)
    return clusters, classes
