"""Scalings of the columns, so that squared distances count what matters."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from otprop.scaling import kernels

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, FloatArray, IntArray

SCALINGS = ("none", "minmax", "standard", "discriminant")
# Rows projected at a time, so that their copy in double precision stays small.
_CHUNK = 4_096


class Scaling(NamedTuple):
    """What is taken from each column and what it is multiplied with, and directions to add.

    With directions, the scaled columns stand first, divided by the root of their number, and the
    coordinates along the directions after them, divided by the root of theirs: both halves have
    about the same say in a squared distance, however many columns there are.
    """

    name: str
    shift: DoubleArray
    factor: DoubleArray
    directions: DoubleArray | None = None  # one a column, of the scaled columns

    def apply(self, X: Any) -> Any:
        """Return the rows of X scaled, in their precision; a row's result is its own alone."""
        if self.name == "none":
            return X
        columns, directions = len(self.factor), self.directions
        used = max(1, int(np.count_nonzero(self.factor)))
        width = columns + (0 if directions is None else directions.shape[1])
        out = np.empty((X.shape[0], width), X.dtype)
        for start in range(0, X.shape[0], _CHUNK):
            rows = (X[start : start + _CHUNK].astype(np.float64) - self.shift) * self.factor
            part = out[start : start + _CHUNK]
            if directions is None:
                part[:] = rows
            else:
                part[:, :columns] = rows / np.sqrt(used)
                part[:, columns:] = kernels.project(rows, directions) / np.sqrt(directions.shape[1])
        return out


def fit_scaling(name: str, X: Any, labels: IntArray) -> Scaling:
    """Find a scaling by all rows and, for "discriminant", by the labelled ones (labels ≥ 0).

    Columns of one value are left out, by the factor 0.

    "discriminant" adds the directions in which the labelled classes lie apart in comparison with
    their spread (Fisher's, with Ledoit and Wolf's covariance), in units of that spread. It needs
    more labelled rows than classes.
    """
    columns = X.shape[1]
    if name == "none":
        return Scaling(name, np.zeros(columns), np.ones(columns))
    low = X.min(axis=0).astype(np.float64)
    width = X.max(axis=0).astype(np.float64) - low
    if name == "minmax":
        return Scaling(name, low, _inverse(width))
    mean = X.mean(axis=0, dtype=np.float64)
    # A column of one value may deviate from its mean by rounding.
    factor = _inverse(np.where(width > 0, X.std(axis=0, dtype=np.float64), 0.0))
    if name == "standard":
        return Scaling(name, mean, factor)
    given = np.flatnonzero(labels >= 0)
    rows = (X[given].astype(np.float64) - mean) * factor
    return Scaling(name, mean, factor, _directions(rows, labels[given]))


def can_discriminate(labels: IntArray) -> bool:
    """Whether some class has two labels, so that its spread can be seen."""
    given = labels[labels >= 0]
    return len(given) > len(np.unique(given))


def _inverse(size: DoubleArray) -> DoubleArray:
    return np.divide(1.0, size, out=np.zeros_like(size), where=size >= np.finfo(np.float64).tiny)


def _directions(rows: FloatArray, labels: IntArray) -> DoubleArray:
    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    # One thread: the factors of a decomposition differ in the last bits with their number.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(rows, labels)
        except np.linalg.LinAlgError:
            seen = 0
        else:
            # By rounding, a decomposition may succeed that should not: with two rows of each class,
            # say, whose covariance nothing shrinks.
            seen = np.linalg.matrix_rank(model.covariance_, hermitian=True)
    if seen < rows.shape[1]:
        raise ValueError(
            "scaling='discriminant' needs labelled rows that show how those of a class differ from "
            "one another; here they are the same, or too few. Label at least three rows of a class "
            "or take scaling='standard'."
        )
    kept = min(len(model.classes_) - 1, rows.shape[1])
    return np.ascontiguousarray(model.scalings_[:, :kept], np.float64)
