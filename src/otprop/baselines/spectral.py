"""Spectral clustering after Ng, Jordan and Weiss (2001), with clusters named by the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state

from otprop import notices, validation
from otprop.baselines import rows
from otprop.baselines.eigenvectors import leading
from otprop.baselines.matching import match
from otprop.geometry import Euclidean
from otprop.labels import encode
from otprop.transport import block_rows, shares

if TYPE_CHECKING:
    from numpy.random import RandomState
    from numpy.typing import ArrayLike, NDArray

    from otprop.arrays import DoubleArray, IntArray
    from otprop.baselines.eigenvectors import Eigenvectors


class Affinity(NamedTuple):
    """D^-1/2 A D^-1/2, and the rows' degrees, the diagonal of D."""

    matrix: DoubleArray
    degrees: DoubleArray


class SpectralClustering(ClassifierMixin, BaseEstimator):
    """Cluster all rows by the leading eigenvectors of their affinity, whatever their labels.

    Ng, Jordan and Weiss, *On spectral clustering: analysis and an algorithm*, NIPS 2001: affinities
    exp(−‖x_i − x_j‖²/ε) with a zero diagonal, scaled to D^-1/2 A D^-1/2; its K largest
    eigenvectors, rows made to unit length; k-means on these. Only then the labels give names:
    each cluster gets a class of its own, so that as many labelled rows as possible keep theirs.

    New rows are placed among the eigenvectors by Nyström's extension, and go to the nearest centre.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most that of the classes in y, which is the default.
    epsilon : float, default=1.0
        Width of the affinity as in OTPropagation, on the scale of squared distances (2 σ²).
    random_state : int, RandomState or None, default=0
        For the centres that k-means begins with, ten times.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    clusters_ : ndarray of shape (n,)
        A cluster number for each row of `fit`.
    transduction_ : ndarray of shape (n,)
        The class of each row's cluster, also for rows whose given label is another.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X had names that are all strings.

    Notes
    -----
    Above 2,000 rows the time is that of n³/3 operations, and the memory 8 n² bytes, whatever ε.

    Examples
    --------
    >>> from otprop.baselines import SpectralClustering
    >>> model = SpectralClustering(epsilon=0.5).fit([[0.0], [0.4], [2.6], [3.0]], [0, -1, -1, 1])
    >>> model.transduction_
    array([0, 0, 1, 1])
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        epsilon: float = 1.0,
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Cluster the rows of X, and name the clusters by the labels.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            All rows.
        y : array of shape (n,)
            Labels; -1, None or NaN for rows without.

        Returns
        -------
        SpectralClustering
            Itself, fitted.
        """
        rows.check_number(self.epsilon, "epsilon")
        random = check_random_state(self.random_state)
        classes, labels = encode(y)
        table = np.asarray(rows.read(self, X, labels), np.float64)
        validation.check_range(table)
        validation.check_epsilon(float(self.epsilon), table.dtype, chosen=False)
        count = self._count(len(classes))
        matrix, degrees = normalised_affinity(table, float(self.epsilon))
        found = leading(matrix, count, random)
        self._means = KMeans(count, n_init=10, random_state=random).fit(unit_rows(found.vectors))
        self._points, self._epsilon = table, float(self.epsilon)
        self._extension = _extension(found, degrees)
        self.clusters_ = np.asarray(self._means.labels_, np.intp)
        self._names = _names(self.clusters_, labels, (count, len(classes)))
        self.transduction_ = np.asarray(classes[self._names[self.clusters_]])
        self.classes_ = classes
        if not found.converged:
            notices.warn(
                f"The eigenvectors are known to {found.error:.2g} only: too many eigenvalues are "
                "next to one another. Raise epsilon.",
                ConvergenceWarning,
            )
        isolated = int((degrees == 0).sum())
        if isolated:
            notices.warn(
                f"{isolated} row(s) have no affinity to any other: their cluster means nothing. "
                "Raise epsilon.",
                UserWarning,
            )
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows by the class of their cluster.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        table = np.asarray(rows.read_new(self, X), np.float64)
        validation.check_range(table)
        placed = extend(table, self._points, self._epsilon, self._extension)
        return np.asarray(self.classes_[self._names[self._means.predict(unit_rows(placed))]])

    def _count(self, classes: int) -> int:
        if self.n_clusters is None:
            return classes
        what = "None or an integer of at least 1"
        validation.check_count(self.n_clusters, "n_clusters", what=what)
        if self.n_clusters > classes:
            raise ValueError(
                f"n_clusters must be at most the number of classes in y, {classes}, so that each "
                f"cluster has a name; got {self.n_clusters}."
            )
        return int(self.n_clusters)


def normalised_affinity(table: DoubleArray, epsilon: float) -> Affinity:
    """Return D^-1/2 A D^-1/2 and D's diagonal, in the memory of one matrix.

    A row without any affinity has zeros.
    """
    # scikit-learn finds squared distances by products, which lose digits far from the origin.
    matrix: DoubleArray = rbf_kernel(table - table.mean(axis=0), gamma=1.0 / epsilon)
    np.fill_diagonal(matrix, 0.0)
    degrees = matrix.sum(axis=1)
    scale = _inverse_root(degrees)
    matrix *= scale[:, None]
    matrix *= scale
    return Affinity(matrix, degrees)


def unit_rows(vectors: DoubleArray) -> DoubleArray:
    """Return rows made to unit length; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))


def extend(
    table: DoubleArray, points: DoubleArray, epsilon: float, extension: DoubleArray
) -> DoubleArray:
    """Return new rows' places among the eigenvectors, but for each row's length.

    u(x) = Σ_j a(x, x_j) u_j / (λ √(d(x) d_j)), of which √d(x) and the largest a(x, x_j) are
    lengths only, so that nothing underflows.
    """
    geometry = Euclidean(table, points)
    geometry.add_sources(np.arange(len(points)))
    free = np.zeros(len(points))
    placed = np.empty((len(table), extension.shape[1]))
    size = block_rows(len(points))
    for start in range(0, len(table), size):
        block = np.arange(start, min(start + size, len(table)))
        cost = np.empty((len(block), len(points)))
        geometry.fill(block, 0, cost)
        placed[block] = shares(cost, free, epsilon) @ extension
    return placed


def _extension(found: Eigenvectors, degrees: DoubleArray) -> DoubleArray:
    """u_j / (λ √d_j); 0 for eigenvalues of 0, which cannot be extended."""
    scaled = found.vectors * _inverse_root(degrees)[:, None]
    return np.divide(scaled, found.values, out=np.zeros_like(scaled), where=found.values != 0)


def _inverse_root(degrees: DoubleArray) -> DoubleArray:
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


def _names(clusters: IntArray, labels: IntArray, shape: tuple[int, int]) -> IntArray:
    """Return each cluster's class number, by the best matching on the labelled rows."""
    table = np.zeros(shape, np.int64)
    given = labels >= 0
    np.add.at(table, (clusters[given], labels[given]), 1)
    names = np.empty(shape[0], np.intp)
    matched, classes = match(table)
    names[matched] = classes
    return names
