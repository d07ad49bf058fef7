"""Label propagation through linear neighbourhoods (Wang and Zhang 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from otprop import notices, validation
from otprop.baselines import kernels, rows
from otprop.labels import encode

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from otprop.arrays import BoolArray, DoubleArray, IntArray


class Spread(NamedTuple):
    """What the iteration came to."""

    scores: DoubleArray  # F, one row a row of the weights
    n_iter: int
    change: float  # the largest relative to a row's scores that the last step may leave undone


class LinearNeighborhoodPropagation(ClassifierMixin, BaseEstimator):
    """Spread labels along weights with which rows are rebuilt from their neighbours (LNP).

    Each row is rebuilt from its nearest neighbours by weights that are not negative and sum to one
    (Wang and Zhang, *Label propagation through linear neighborhoods*, ICML 2006, TKDE 2008). Labels
    flow along the weights, F ← α W F + (1 − α) Y, until they stand; a row takes the class of its
    largest entry of F. New rows take the mean of their neighbours' F by the weights that rebuild
    them, as in the paper.

    The parameters of the method are the number of neighbours and α; there is no width of a kernel.

    Parameters
    ----------
    n_neighbors : int, default=7
        How many neighbours rebuild a row; below the number of rows.
    alpha : float, default=0.99
        How much a row takes from its neighbours, above 0 and below 1; the rest is its own label.
    tol : float, default=1e-6
        The iteration stops when a step changes the scores of each row by at most
        ``tol * (1 - alpha) / alpha`` of its largest. The steps to come are each smaller by the
        factor α, so that they add up to about `tol`.
    max_iter : int, default=10_000
        Most steps. About log(tol (1 − α)) / log(α) are needed: 1,800 with the defaults.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    transduction_ : ndarray of shape (n,)
        A label for each row of `fit`; given labels as they were.
    label_distributions_ : ndarray of shape (n, K)
        F, made to sum to one in each row; uniform for rows that no label reaches.
    reached_ : ndarray of shape (n,)
        Whether some label reaches the row along the weights. Where none does, which a warning
        tells, the label means nothing: it is the first class.
    n_iter_ : int
        Steps taken.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X had names that are all strings.

    Notes
    -----
    Weights are those of least squared error but for a ridge of 1e-8 of the neighbours' mean squared
    distance, which makes them unique where neighbours are more than columns, or equal. Rows that
    are equal rebuild one another alone; it is the ridge that lets labels in, as a trace of the
    scores.

    Examples
    --------
    >>> from otprop.baselines import LinearNeighborhoodPropagation
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3]]
    >>> LinearNeighborhoodPropagation(n_neighbors=2).fit(X, [0, -1, -1, -1, -1, 1]).transduction_
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 7,
        alpha: float = 0.99,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Label the rows of X that have no label.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            All rows.
        y : array of shape (n,)
            Labels; -1, None or NaN for rows without.

        Returns
        -------
        LinearNeighborhoodPropagation
            Itself, fitted.
        """
        self._check_parameters()
        classes, labels = encode(y)
        table = np.asarray(rows.read(self, X, labels), np.float64)
        validation.check_range(table)
        if self.n_neighbors >= len(table):
            raise ValueError(
                f"n_neighbors must be below the number of rows; got n_neighbors={self.n_neighbors} "
                f"and n_samples={len(table)}."
            )
        self._points = table
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors).fit(table)
        weights = neighbourhood(table, table, self._search.kneighbors(return_distance=False))
        found = spread(
            weights, labels, len(classes), float(self.alpha), float(self.tol), self.max_iter
        )
        self._scores = found.scores
        self.n_iter_ = found.n_iter
        self.label_distributions_, self.reached_ = distributions(found.scores)
        best = self.label_distributions_.argmax(axis=1)
        self.transduction_ = rows.with_given(classes, labels, best[labels < 0])
        self.classes_ = classes
        if found.change > self.tol:
            notices.warn(
                f"The labels did not stand after max_iter={self.max_iter} steps: scores may be off "
                f"by {found.change:.2g} of a row's largest, and tol={self.tol:g}. Raise max_iter, "
                "or lower alpha.",
                ConvergenceWarning,
            )
        _warn_unreached(self.reached_)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows by the F of the neighbours that rebuild them.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        found = self._decide(X)
        return np.asarray(self.classes_[found.argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> DoubleArray:
        """Return the F of the neighbours that rebuild each row, made to sum to one.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m, K)
            Distributions; rows sum to one.
        """
        return self._decide(X)

    def _decide(self, X: ArrayLike) -> DoubleArray:
        table = np.asarray(rows.read_new(self, X), np.float64)
        validation.check_range(table)
        near = self._search.kneighbors(table, return_distance=False)
        found, reached = distributions(neighbourhood(table, self._points, near) @ self._scores)
        _warn_unreached(reached)
        return found

    def _check_parameters(self) -> None:
        for name in ("n_neighbors", "max_iter"):
            what = "an integer of at least 1"
            validation.check_count(getattr(self, name), name, what=what)
        rows.check_number(self.alpha, "alpha", below=1.0)
        rows.check_number(self.tol, "tol", below=1.0)


def neighbourhood(table: DoubleArray, points: DoubleArray, near: IntArray) -> csr_matrix:
    """Return the weights that rebuild rows from their nearest points, one row a row.

    Parameters
    ----------
    table : array of shape (m, d)
        Rows to rebuild.
    points : array of shape (n, d)
        Points to rebuild them from.
    near : array of shape (m, k)
        The numbers of each row's points, none twice.

    Returns
    -------
    csr_matrix of shape (m, n)
        Weights from 0 to 1; rows sum to one.
    """
    weights = np.empty(near.shape)
    kernels.neighbour_weights(table, points, near, weights)
    ends = np.arange(0, near.size + 1, near.shape[1])
    found = csr_matrix((weights.ravel(), near.ravel(), ends), shape=(len(table), len(points)))
    found.eliminate_zeros()
    return found


def spread(  # noqa: PLR0917 - arrays first, then numbers
    weights: csr_matrix,
    labels: IntArray,
    classes: int,
    alpha: float,
    tol: float,
    max_iter: int,
) -> Spread:
    """Iterate F ← α W F + (1 − α) Y from F = (1 − α) Y until it stands.

    No score ever falls. They differ by orders of magnitude between rows near labels and far from
    them, so that each row is measured by its own largest.
    """
    given = np.zeros((len(labels), classes))
    known = np.flatnonzero(labels >= 0)
    given[known, labels[known]] = 1.0 - alpha
    # A row that a label reaches only now has changed by all it has: it keeps the iteration going.
    to_come = max(1.0, alpha / (1.0 - alpha))
    scores, change, step = given, np.inf, 0
    while change > tol and step < max_iter:
        step += 1
        before, scores = scores, weights @ scores
        scores *= alpha
        scores += given
        largest = scores.max(axis=1)
        changed = (scores - before).max(axis=1)
        change = to_come * float((changed[largest > 0] / largest[largest > 0]).max())
    return Spread(scores, step, change)


def distributions(scores: DoubleArray) -> tuple[DoubleArray, BoolArray]:
    """Return scores made to sum to one in each row, and which rows have any; uniform elsewhere."""
    totals = scores.sum(axis=1)
    reached = totals > 0
    out = np.full(scores.shape, 1.0 / scores.shape[1])
    out[reached] = scores[reached] / totals[reached, None]
    return out, reached


def _warn_unreached(reached: BoolArray) -> None:
    """Say how many rows are out of reach, if any."""
    if not reached.all():
        notices.warn(
            f"No label reaches {int((~reached).sum())} row(s) along the neighbours: their "
            "distribution is uniform, and their label means nothing. Label a row in each part of "
            "the data, or raise n_neighbors.",
            UserWarning,
        )
