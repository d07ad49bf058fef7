"""The table that a choice was made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otprop.arrays import BoolArray, DoubleArray, IntArray

# Rows by which a candidate must lead.
_LEAST_LEAD = 2


class Candidate(NamedTuple):
    """What was tried, and how well it found the labels that were hidden from it."""

    values: Mapping[str, Any]
    accuracy: float
    brier: float  # mean squared distance from the right class; lower is better


@dataclass(frozen=True)
class Selection:
    """The values in use for all that was "auto", and how they came about."""

    chosen: dict[str, Any]
    reason: str
    candidates: list[Candidate] = field(default_factory=list)

    def extended(self, chosen: dict[str, Any], more: list[Candidate]) -> Selection:
        """Return the same with other values in use and more candidates."""
        return Selection(chosen, self.reason, [*self.candidates, *more])


class HeldOut(NamedTuple):
    """Distributions of labelled rows found while their labels were hidden, and the labels."""

    distributions: DoubleArray
    labels: IntArray

    @property
    def right(self) -> BoolArray:
        """Whether each row's largest share is that of its class; no row that knows nothing is."""
        knows = self.distributions.max(axis=1) > self.distributions.min(axis=1)
        return np.asarray(knows & (self.distributions.argmax(axis=1) == self.labels))

    @property
    def accuracy(self) -> float:
        """Part of the rows whose largest share is that of their class."""
        return float(self.right.mean())

    @property
    def losses(self) -> DoubleArray:
        """Return each row's squared distance from the right class (Brier's score)."""
        right = np.eye(self.distributions.shape[1])[self.labels]
        return np.asarray(((self.distributions - right) ** 2).sum(axis=1))

    def surely_more_often_right(self, other: HeldOut) -> bool:
        """Whether more of the same rows are right: by two at the least, and by more than chance.

        Of the rows in which the two differ, as many more must be won than lost as the standard
        deviation of a fair coin's tosses. Unlike Brier's score this does not depend on how sure of
        themselves the two are.
        """
        won = int((self.right & ~other.right).sum())
        lost = int((other.right & ~self.right).sum())
        return won - lost >= _LEAST_LEAD and (won - lost) ** 2 > won + lost


def scored(values: Mapping[str, Any], found: HeldOut) -> Candidate:
    """Return a line of the table."""
    return Candidate(dict(values), found.accuracy, float(found.losses.mean()))
