"""What all baselines do with the rows, labels and numbers they are given."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

    from otprop.arrays import FloatArray, IntArray

_PRECISIONS = [np.float64, np.float32]


def read(model: BaseEstimator, X: ArrayLike, labels: IntArray) -> FloatArray:
    """Return the X of `fit` as an array, of double precision unless it is of single.

    `labels` are class numbers, of which one must be known.
    """
    table: FloatArray = validate_data(model, X, dtype=_PRECISIONS, order="C")
    check_consistent_length(table, labels)
    if not (labels >= 0).any():
        raise ValueError(
            "y has no labelled row: all entries are -1, None or NaN. Label at least one row of "
            "each class."
        )
    return table


def read_new(model: BaseEstimator, X: ArrayLike) -> FloatArray:
    """Return the X of `predict` as an array, of double precision unless it is of single."""
    check_is_fitted(model)
    table: FloatArray = validate_data(model, X, reset=False, dtype=_PRECISIONS, order="C")
    return table


def with_given(classes: NDArray[Any], labels: IntArray, found: IntArray) -> NDArray[Any]:
    """Return labels: those given as they were, the found ones for the other rows, in order."""
    codes = labels.copy()
    codes[labels < 0] = found
    return np.asarray(classes[codes])


def check_number(value: object, name: str, *, below: float = math.inf) -> None:
    """Raise if a parameter is not a number above 0 and below a bound."""
    what = "a number above 0" + ("" if math.isinf(below) else f" and below {below:g}")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {what}; got {value!r}.")
    if not 0.0 < float(value) < below:
        raise ValueError(f"{name} must be {what}; got {value!r}.")
