"""The plain kernel vote: what is left of OTPropagation when no source has a price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from otprop import validation
from otprop.baselines import rows
from otprop.geometry import Euclidean
from otprop.labels import encode
from otprop.propagation import Replay, replay
from otprop.transport import Workers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from otprop.arrays import DoubleArray, FloatArray


class KernelVote(ClassifierMixin, BaseEstimator):
    """Let the labelled rows vote with weights exp(−‖x_i − x_j‖²/ε), in one step.

    That is Eq. 12 and 13 with all potentials 0: no marginals, no rounds. The weights are
    normalised before they are rounded, so that far rows are decided too. Memory is bounded: costs
    are computed in blocks.

    Parameters
    ----------
    epsilon : float, default=1.0
        Regularisation as in OTPropagation, on the scale of squared distances (2 σ²).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    transduction_ : ndarray of shape (n,)
        A label for each row of `fit`; given labels as they were.
    label_distributions_ : ndarray of shape (n, K)
        Votes by class; all for the given label where there is one.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X had names that are all strings.

    Examples
    --------
    >>> from otprop.baselines import KernelVote
    >>> model = KernelVote(epsilon=0.5).fit([[0.0], [0.4], [2.6], [3.0]], [0, -1, -1, 1])
    >>> model.transduction_
    array([0, 0, 1, 1])
    """

    def __init__(self, *, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Keep the labelled rows, and let them vote on the others.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            All rows. float32 stays float32, all else becomes float64.
        y : array of shape (n,)
            Labels; -1, None or NaN for rows without.

        Returns
        -------
        KernelVote
            Itself, fitted.
        """
        rows.check_number(self.epsilon, "epsilon")
        classes, labels = encode(y)
        table = rows.read(self, X, labels)
        validation.check_range(table)
        validation.check_epsilon(float(self.epsilon), table.dtype, chosen=False)
        given = labels >= 0
        self._points = table[given]
        self._vote = Replay(
            epsilon=float(self.epsilon),
            labels=labels[given],
            classes=len(classes),
            potentials=[],
            thresholds=[],
        )
        votes = self._votes(table[~given])
        self.label_distributions_ = np.eye(len(classes))[labels]
        self.label_distributions_[~given] = votes
        self.transduction_ = rows.with_given(classes, labels, votes.argmax(axis=1))
        self.classes_ = classes
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows by the vote of the labelled rows of `fit`.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        votes = self.predict_proba(X)
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> DoubleArray:
        """Return each row's votes by class.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m, K)
            Distributions; rows sum to one.
        """
        table = rows.read_new(self, X)
        table = validation.in_precision(table, self._points.dtype)
        validation.check_range(table)
        return self._votes(table)

    def _votes(self, table: FloatArray) -> DoubleArray:
        """Algorithm 3 without any round: Eq. 27, the vote of all sources with f = 0."""
        geometry = Euclidean(table, self._points)
        geometry.add_sources(np.arange(len(self._points)))
        return replay(geometry, len(table), self._vote, Workers(1)).distributions
