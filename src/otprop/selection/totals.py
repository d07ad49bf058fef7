"""Whether the labels know how many rows of each class there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import IntArray


def unvalidated_tolerance(counts: IntArray) -> float:
    """Return the tolerance of the classes' totals where no label can be hidden.

    The same number of labels for each class is a design, and equal parts the best guess. Other
    numbers came by chance: few labels say too little of the parts, and nothing is asked.
    """
    return 0.0 if counts.min() == counts.max() else np.inf


def contradicted(guess: IntArray, counts: IntArray, errors: float) -> bool:
    """Whether open rows' classes cannot have the parts that they have among the labels.

    `guess` are the open rows' classes by a vote without any prior. It may err in as many rows as
    it does among hidden labels, `errors`; beyond that and the chance of sampling labels and open
    rows, its totals contradict those of the labels, `counts`.
    """
    parts = counts / counts.sum()
    voted = np.bincount(guess, minlength=len(counts)) / len(guess)
    variance = parts * (1.0 - parts) * (1.0 / counts.sum() + 1.0 / len(guess))
    return bool(np.abs(voted - parts).sum() / 2.0 > errors + np.sqrt(variance).sum())
