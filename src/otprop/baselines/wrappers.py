"""scikit-learn's classifiers in the shape of the others: fitted with all rows, they label all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if

from otprop.baselines import rows
from otprop.labels import encode

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from otprop.arrays import DoubleArray, FloatArray, IntArray


def _gives_distributions(wrapper: _Wrapper) -> bool:
    return hasattr(getattr(wrapper, "estimator_", wrapper.estimator), "predict_proba")


class _Wrapper(ClassifierMixin, BaseEstimator, ABC):
    """A classifier that is given class numbers, and asked for those of rows without label."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the classifier, and label the rows that have no label.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            All rows.
        y : array of shape (n,)
            Labels; -1, None or NaN for rows without.

        Returns
        -------
        object
            Itself, fitted.
        """
        classes, labels = encode(y)
        table = rows.read(self, X, labels)
        self.estimator_ = self._fitted(clone(self.estimator), table, labels)
        missing = labels < 0
        # Classifiers refuse to label no row at all.
        found = self.estimator_.predict(table[missing]) if missing.any() else labels[missing]
        self.transduction_ = rows.with_given(classes, labels, found)
        self.classes_ = classes
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows by the fitted classifier.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        table = rows.read_new(self, X)
        return np.asarray(self.classes_[self.estimator_.predict(table)])

    @available_if(_gives_distributions)
    def predict_proba(self, X: ArrayLike) -> DoubleArray:
        """Return each row's probabilities by class, if the classifier gives them.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m, K)
            Distributions.
        """
        table = rows.read_new(self, X)
        return np.asarray(self.estimator_.predict_proba(table))

    @staticmethod
    @abstractmethod
    def _fitted(estimator: Any, table: FloatArray, labels: IntArray) -> Any:
        """Fit the classifier to rows and class numbers, -1 for rows without label."""


class LabelledOnly(_Wrapper):
    """Fit a classifier on the labelled rows alone; it then predicts the others.

    Parameters
    ----------
    estimator : classifier
        Any of scikit-learn's. It is given class numbers in place of labels.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    transduction_ : ndarray of shape (n,)
        A label for each row of `fit`: given labels as they were, the others predicted.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X had names that are all strings.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from otprop.baselines import LabelledOnly
    >>> nearest = LabelledOnly(KNeighborsClassifier(1))
    >>> nearest.fit([[0.0], [0.4], [2.6], [3.0]], ["a", None, None, "b"]).transduction_
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    """

    @staticmethod
    def _fitted(estimator: Any, table: FloatArray, labels: IntArray) -> Any:
        given = labels >= 0
        return estimator.fit(table[given], labels[given])


class Transductive(_Wrapper):
    """Fit a semi-supervised classifier on all rows; it then predicts those without label.

    For classifiers that leave some rows unlabelled, as SelfTrainingClassifier does with rows that
    never pass its threshold.

    Parameters
    ----------
    estimator : classifier
        Any of scikit-learn's that takes -1 for rows without label. It is given class numbers in
        place of labels.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    transduction_ : ndarray of shape (n,)
        A label for each row of `fit`: given labels as they were, the others predicted.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X had names that are all strings.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.semi_supervised import SelfTrainingClassifier
    >>> from otprop.baselines import Transductive
    >>> training = Transductive(SelfTrainingClassifier(KNeighborsClassifier(1)))
    >>> training.fit([[0.0], [0.4], [2.6], [3.0]], [0, -1, -1, 1]).transduction_
    array([0, 0, 1, 1])
    """

    @staticmethod
    def _fitted(estimator: Any, table: FloatArray, labels: IntArray) -> Any:
        return estimator.fit(table, labels)
