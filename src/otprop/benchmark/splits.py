"""Which rows are labelled: the recorded splits that all methods share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import train_test_split

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, IntArray

PERCENTS = (15, 25, 35)
SEEDS = tuple(range(10))
UNLABELLED = -1


def labelled_rows(truth: IntArray, percent: int, seed: int) -> BoolArray:
    """Return which rows are labelled: this percentage of each class, drawn by the seed."""
    chosen, _ = train_test_split(
        np.arange(len(truth)), train_size=percent / 100, random_state=seed, stratify=truth
    )
    known = np.zeros(len(truth), np.bool_)
    known[chosen] = True
    return known


def hidden(truth: IntArray, known: BoolArray) -> IntArray:
    """Return the labels that a method may see: -1 where a row is not labelled."""
    return np.where(known, truth, UNLABELLED)
