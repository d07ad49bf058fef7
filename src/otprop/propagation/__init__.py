"""Algorithms 2 and 3 in the paper's words: rounds, certainty, induction by replay."""

from otprop.propagation.certainty import Threshold, certainty, threshold
from otprop.propagation.induction import Decision, Replay, explain, replay
from otprop.propagation.record import Propagation, Round
from otprop.propagation.rounds import Settings, propagate

__all__ = [
    "Decision",
    "Propagation",
    "Replay",
    "Round",
    "Settings",
    "Threshold",
    "certainty",
    "explain",
    "propagate",
    "replay",
    "threshold",
]
