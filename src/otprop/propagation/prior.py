"""What the classes may take in all: a prior, and how far they may be from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, IntArray


class Prior(NamedTuple):
    """The classes' parts of all rows, and the tolerance t: from p·(1 − t) to p·(1 + t)."""

    parts: DoubleArray
    tolerance: float


class Bounds(NamedTuple):
    """The least and the most that each class may take of the targets' mass."""

    least: DoubleArray
    most: DoubleArray


def remaining(prior: Prior, counts: IntArray, rows: int) -> Bounds:
    """Return what the prior leaves to the open targets when `counts` of all rows are decided.

    A class that has had its share already takes nothing more. There must be open rows.
    """
    if np.isinf(prior.tolerance):
        return Bounds(np.zeros(len(counts)), np.ones(len(counts)))
    open_rows = rows - int(counts.sum())
    low, high = (
        # No class has more than all rows, however wide the tolerance.
        np.maximum(0.0, (np.minimum(parts, 1.0) * rows - counts) / open_rows)
        for parts in (
            prior.parts * max(0.0, 1.0 - prior.tolerance),
            prior.parts * (1.0 + prior.tolerance),
        )
    )
    # What is cut off at 0 is missing elsewhere: there must be room for a mass of 1.
    if low.sum() >= 1.0:
        return Bounds(low / low.sum(), low / low.sum())
    if high.sum() <= 1.0:
        return Bounds(high / high.sum(), high / high.sum())
    return Bounds(low, np.minimum(high, 1.0))


def between(bounds: Bounds, labels: IntArray) -> Bounds:
    """Widen bounds to the parts that a first labelling of the targets found."""
    found = np.bincount(labels, minlength=len(bounds.least)) / len(labels)
    return Bounds(np.minimum(bounds.least, found), np.maximum(bounds.most, found))
