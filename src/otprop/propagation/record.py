"""What the rounds leave behind: the trace, and all that induction needs to replay them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, IntArray
    from otprop.propagation.certainty import Threshold


class Round(NamedTuple):
    """What a round did: a row of the trace (Eq. 19-20, and the solver's report)."""

    round: int  # t, from 1
    sources: int  # m_{t-1}, labelled when the round began
    targets: int  # n_{t-1}, unlabelled when the round began
    accepted: int  # ζ_t
    alpha: float  # what the accepted exceeded, or reached where it was lowered; least on a graph
    lowered: bool  # whether α was lowered for this round (Eq. 21)
    unreachable: int  # targets without a finite cost to any source
    converged: bool
    marginal_error: float
    n_sweeps: int
    n_iter: int
    value: float


@dataclass
class Propagation:
    """All that the rounds found.

    Sources stand in the order in which they came: the given rows, then each round's. The other
    arrays have one entry for each row of the data.
    """

    sources: IntArray  # row numbers
    labels: IntArray  # class numbers of the sources
    distributions: DoubleArray  # U of Eq. 13
    certainty: DoubleArray  # s of Eq. 16
    round: IntArray  # 0 given, t accepted in round t, -1 never reached
    potentials: list[DoubleArray] = field(default_factory=list)  # f of each round
    thresholds: list[Threshold] = field(default_factory=list)  # and its α
    trace: list[Round] = field(default_factory=list)

    @classmethod
    def of_given(cls, labels: IntArray, classes: int) -> Propagation:
        """Start from given labels (≥ 0): those rows are certain, the others know nothing."""
        given = np.flatnonzero(labels >= 0)
        distributions = np.full((len(labels), classes), 1.0 / classes)
        distributions[given] = np.eye(classes)[labels[given]]
        return cls(
            sources=given,
            labels=labels[given],
            distributions=distributions,
            certainty=(labels >= 0).astype(np.float64),
            round=np.where(labels >= 0, 0, -1),
        )

    def accept(self, rows: IntArray, distributions: DoubleArray, scores: DoubleArray) -> None:
        """Let rows join the sources with the class of their largest share (Eq. 14)."""
        self.distributions[rows] = distributions
        self.certainty[rows] = scores
        self.round[rows] = len(self.trace) + 1
        self.sources = np.concatenate([self.sources, rows])
        self.labels = np.concatenate([self.labels, distributions.argmax(axis=1)])

    def end_round(self, f: DoubleArray, bound: Threshold, done: Round) -> None:
        """Keep what the round was done with, for induction and for the reader."""
        self.potentials.append(f)
        self.thresholds.append(bound)
        self.trace.append(done)
