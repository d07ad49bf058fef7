"""Labels in and out: which rows have none, which classes there are."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNLABELLED = -1
# What astype(str), a file or an array of strings makes of the markers of rows without label.
_MARKERS_AS_TEXT = ("-1", "None", "nan", "NaN", "<NA>")


def encode(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes and each row's class number, -1 for a row without label.

    A row has no label if its entry is None, NaN or NA, or -1 where the labels are numbers. Labels
    are integers (also as floats without fraction), strings or booleans, and not a mixture. A string
    such as "-1" or "nan" is refused, because it was meant as no label.
    """
    known, labels = _given(_column(y))
    codes = np.full(len(known), UNLABELLED, np.intp)
    classes, codes[known] = np.unique(labels, return_inverse=True)
    return classes, codes


def given_labels(y: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return which rows have a label, by the rule of `encode`, and the labels of those."""
    return _given(_column(y))


def marked(labels: NDArray[Any], without: NDArray[np.bool_]) -> NDArray[Any]:
    """Return labels with the marker of rows without label in some: -1 among numbers, else None."""
    if labels.dtype.kind == "u":
        fits = labels.max(initial=0) <= np.iinfo(np.int64).max
        labels = labels.astype(np.int64 if fits else object)
    if labels.dtype.kind not in "if":
        labels = labels.astype(object)
    labels = labels.copy()
    labels[without] = None if labels.dtype == object else UNLABELLED
    return labels


def _given(column: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    known = ~_missing(column)
    labels = _plain(column[known])
    if labels.dtype.kind in "iuf":
        known[known] = labels != UNLABELLED
        labels = labels[labels != UNLABELLED]
    return known, labels


def _column(y: Any) -> NDArray[Any]:
    """Return y as one dimension: of its own dtype if that is plain, of objects if not."""
    if y is None:
        raise ValueError(
            "OTPropagation requires y to be passed, but the target y is None. Pass the labels of "
            "the rows that have one, and -1, None or NaN for the others."
        )
    if not isinstance(y, np.ndarray):
        # A column of a data frame, as a list, keeps integers beside missing entries.
        y = np.asarray(y.to_list() if hasattr(y, "to_list") else y, dtype=object)
    column: NDArray[Any] = y
    if column.ndim > 1 and column.shape == (len(column), 1):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as one label a "
            "row. Pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        column = column.ravel()
    if column.ndim != 1:
        raise ValueError(
            f"y should be a 1d array, one label a row; got an array of shape {column.shape} "
            "instead."
        )
    return column


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind == "O":
        return np.fromiter((_is_missing(value) for value in column), np.bool_, len(column))
    return np.zeros(len(column), np.bool_)


def _is_missing(value: object) -> bool:
    # NaN and NaT differ from themselves; pandas' NA does not answer, and is told by its type so
    # that pandas need not be there.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)  # noqa: PLR0124


def _plain(known: NDArray[Any]) -> NDArray[Any]:
    """Return labels as booleans, integers, floats without fraction, or strings."""
    if known.dtype.kind == "O":
        kinds = {_kind(value) for value in known}
        if len(kinds) > 1 and kinds != {"integer", "float"}:
            raise ValueError(
                f"y mixes labels of different kinds ({', '.join(sorted(kinds))}); use one kind, "
                "and None for rows without label: -1 marks them among numbers only."
            )
        if kinds == {"other"}:
            raise ValueError(
                f"Unknown label type: {type(known[0]).__name__}. Labels may be integers, strings "
                "or booleans."
            )
        known = np.array(known.tolist())
    if known.dtype.kind == "f":
        if np.isinf(known).any():
            raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
        if (known != np.floor(known)).any():
            raise ValueError(
                "Unknown label type: continuous. y holds numbers with a fraction; labels may be "
                "integers, strings or booleans. For a regression target, cut it into classes first."
            )
    elif known.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels may be integers, strings or booleans.")
    elif known.dtype.kind not in "iubU":
        raise ValueError(
            f"Unknown label type: {known.dtype}. Labels may be integers, strings or booleans."
        )
    elif known.dtype.kind == "U":
        _check_no_marker(known)
    return known


def _check_no_marker(words: NDArray[np.str_]) -> None:
    """Raise if a string is what becomes of -1, None or NaN among strings."""
    found = [word for word in _MARKERS_AS_TEXT if (words == word).any()]
    if found:
        raise ValueError(
            f"y holds the string {found[0]!r}. Among strings, None marks rows without label; an "
            "array of strings, astype(str) or a file turns -1, None and NaN into strings. Pass "
            "None in their place, in a list or in an array with dtype=object. If it is the name "
            "of a class, write it in another way."
        )


def _kind(value: object) -> str:
    for name, types in (
        ("boolean", (bool, np.bool_)),
        ("integer", (int, np.integer)),
        ("float", (float, np.floating)),
        ("string", (str,)),
    ):
        if isinstance(value, types):
            return name
    return "other"
