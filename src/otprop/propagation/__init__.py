"""Algorithms 2 and 3 in the paper's words, and rounds on a graph.

`rounds` is Algorithm 2, `induction` Algorithm 3 by replay; `spreading` runs rounds on a graph.
"""

from otprop.propagation.certainty import Threshold, certainty, threshold
from otprop.propagation.induction import Decision, Replay, explain, replay
from otprop.propagation.marginals import Marginals, Solving
from otprop.propagation.prior import Prior
from otprop.propagation.record import Propagation, Round
from otprop.propagation.rounds import Settings, propagate
from otprop.propagation.spreading import GraphSettings, Spread, alike, spread
from otprop.propagation.stages import ROUNDS

__all__ = [
    "ROUNDS",
    "Decision",
    "GraphSettings",
    "Marginals",
    "Prior",
    "Propagation",
    "Replay",
    "Round",
    "Settings",
    "Solving",
    "Spread",
    "Threshold",
    "alike",
    "certainty",
    "explain",
    "propagate",
    "replay",
    "spread",
    "threshold",
]
