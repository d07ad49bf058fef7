"""The table that a choice was made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otprop.arrays import BoolArray, DoubleArray, IntArray


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
        """Whether each row's largest share is that of its class."""
        return np.asarray(self.distributions.argmax(axis=1) == self.labels)

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
        """Whether more of the same rows are right, by more than a standard error.

        Unlike Brier's score this does not depend on how sure of themselves the two are.
        """
        gain = self.right.astype(np.float64) - other.right
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
        return bool(gain.mean() > error)


def scored(values: Mapping[str, Any], found: HeldOut) -> Candidate:
    """Return a line of the table."""
    return Candidate(dict(values), found.accuracy, float(found.losses.mean()))
