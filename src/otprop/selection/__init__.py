"""Parameters that the labelled rows themselves ask for."""

from otprop.selection.candidates import Candidate, HeldOut, Selection, scored
from otprop.selection.costs import CostChoice, CostsAsked, choose_costs
from otprop.selection.graph import GraphAsked, GraphChoice, Values, choose_graph

__all__ = [
    "Candidate",
    "CostChoice",
    "CostsAsked",
    "GraphAsked",
    "GraphChoice",
    "HeldOut",
    "Selection",
    "Values",
    "choose_costs",
    "choose_graph",
    "scored",
]
