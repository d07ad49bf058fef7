"""The table that a choice was made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otprop.confidence import HeldOut


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


def scored(values: Mapping[str, Any], found: HeldOut) -> Candidate:
    """Return a line of the table."""
    return Candidate(dict(values), found.accuracy, float(found.losses.mean()))
