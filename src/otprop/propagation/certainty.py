"""How certain a distribution is, and who is certain enough to join the sources."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from otprop.propagation import kernels

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, DoubleArray

Stall = float | Literal["lowest-alpha"]


def certainty(distributions: DoubleArray) -> DoubleArray:
    """Return s = 1 − H(U_j) / log K for each row of U (Eq. 16); 0 is uniform, 1 is one class."""
    return np.asarray(kernels.certainties(distributions))


class Threshold(NamedTuple):
    """What a target's certainty must exceed, or reach where α was lowered to it."""

    alpha: float
    lowered: bool

    def accepts(self, scores: DoubleArray) -> BoolArray:
        """Return s > α, or s ≥ α for a lowered α: exact ties go together."""
        return scores >= self.alpha if self.lowered else scores > self.alpha


def threshold(scores: DoubleArray, alpha: float, stall: Stall) -> Threshold:
    """Return α as it stands if some target exceeds it, else α lowered for this round.

    "lowest-alpha" lowers it to the greatest certainty (Eq. 21); a fraction, to the certainty that
    this share of the targets reaches.
    """
    asked = Threshold(alpha, lowered=False)
    if asked.accepts(scores).any():
        return asked
    count = 1 if stall == "lowest-alpha" else math.ceil(float(stall) * len(scores))
    return Threshold(float(np.partition(scores, -count)[-count]), lowered=True)
