"""Whether the labels know how many rows of each class there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.confidence import calibrate

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, IntArray
    from otprop.confidence import HeldOut


def unvalidated_tolerance(counts: IntArray) -> float:
    """Return the tolerance of the classes' totals where no label can be hidden.

    The same number of labels for each class is a design, and equal parts the best guess. Other
    numbers came by chance: few labels say too little of the parts, and nothing is asked.
    """
    return 0.0 if counts.min() == counts.max() else np.inf


def contradicted(voted: DoubleArray, counts: IntArray, held_out: HeldOut) -> bool:
    """Whether open rows' classes seem not to have the parts that they have among the labels.

    `voted` are the open rows' distributions by a vote without any prior, `held_out` what it found
    of labels while they were hidden. The vote's totals may differ from those of the labels,
    `counts`, by as many rows as it must be expected to err in. If they differ by more, the labels
    do not tell the parts: a few labels are a poor sample, and so are those of rows that were
    labelled because they were in doubt.
    """
    parts = counts / counts.sum()
    totals = np.bincount(voted.argmax(axis=1), minlength=len(counts)) / len(voted)
    errors = float((1.0 - calibrate(held_out).confidence(voted)).mean())
    return bool(np.abs(totals - parts).sum() / 2.0 > errors)
