"""Which labels are hidden together, so that each labelled row is judged once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from otprop.scaling import fit_scaling

if TYPE_CHECKING:
    from otprop.arrays import IntArray
    from otprop.scaling import Scaling

# With more labels than this, halves tell enough.
_MANY = 500
_FOLDS = 5
# With fewer labels, or fewer of a class, what is hidden is missed too much to judge by it.
LEAST_LABELS = 20
LEAST_OF_A_CLASS = 3
# Columns looked at first when rows are put in order; few rows are the same in so many.
_FIRST_COLUMNS = 16


def judged_rows(labels: IntArray) -> IntArray:
    """Return the labelled rows (labels ≥ 0) that can be hidden: those of classes with enough."""
    counts = np.bincount(labels[labels >= 0])
    return np.flatnonzero((labels >= 0) & (counts[np.maximum(labels, 0)] >= LEAST_OF_A_CLASS))


def enough_to_validate(labels: IntArray) -> bool:
    """Whether so many labels can be hidden, of two classes or more, that they tell something."""
    judged = judged_rows(labels)
    return len(judged) >= LEAST_LABELS and len(np.unique(labels[judged])) > 1


def folds(X: Any, labels: IntArray) -> list[IntArray]:
    """Deal the rows that are judged out, class by class, to five folds, or two if they are many.

    Rows of a class are dealt in the order of their values, so that each fold has some of all
    parts of it. Neither the order of the rows nor the names of the classes matter.
    """
    given = judged_rows(labels)
    count = _FOLDS if len(given) <= _MANY else 2
    order = given[_in_turn(places(X[given]), labels[given])]
    dealt = np.arange(len(given)) % count
    return [np.sort(order[dealt == fold]) for fold in range(count)]


def scaling_by_seen(name: str, X: Any, seen: IntArray) -> Scaling:
    """Find a scaling by the labels seen; "standard" where they are too few to show directions."""
    try:
        return fit_scaling(name, X, seen)
    except ValueError:
        return fit_scaling("standard", X, seen)


def places(rows: Any) -> IntArray:
    """Return how many rows come before each in the order of their values, column by column.

    Further columns are looked at only for rows that are the same in those before, so that a wide
    sparse matrix is never written out.
    """
    if sparse.issparse(rows):
        rows = rows[:, np.unique(rows.indices)]
    found = np.zeros(rows.shape[0], np.intp)
    tied = np.arange(len(found))
    start, width = 0, _FIRST_COLUMNS
    while len(tied) and start < rows.shape[1]:
        part = rows[tied, start : start + width]
        part = part.toarray() if sparse.issparse(part) else part
        order = np.lexsort((*part.T[::-1], found[tied]))
        before, part = found[tied[order]], part[order]
        group = np.append(True, before[1:] != before[:-1])
        new = group | np.append(True, (part[1:] != part[:-1]).any(axis=1))
        place = np.arange(len(order))
        since = np.maximum.accumulate(np.where(new, place, 0))
        found[tied[order]] = before + since - np.maximum.accumulate(np.where(group, place, 0))
        tied = np.flatnonzero(np.bincount(found, minlength=len(found))[found] > 1)
        start, width = start + width, 2 * width
    return found


def _in_turn(order: IntArray, labels: IntArray) -> IntArray:
    """Return rows by class, small ones first, then the one whose first row comes first."""
    present, own, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    first = np.full(len(present), len(labels))
    np.minimum.at(first, own, order)
    turn = np.empty(len(present), np.intp)
    turn[np.lexsort((first, sizes))] = np.arange(len(present))
    return np.lexsort((order, turn[own]))
