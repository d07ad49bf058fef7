"""Algorithms 2 and 3 in the paper's words: rounds, certainty, induction by replay."""

from otprop.propagation.certainty import Threshold, certainty, threshold
from otprop.propagation.induction import Decision, explain, replay
from otprop.propagation.rounds import Propagation, Round, propagate

__all__ = [
    "Decision",
    "Propagation",
    "Round",
    "Threshold",
    "certainty",
    "explain",
    "propagate",
    "replay",
    "threshold",
]
