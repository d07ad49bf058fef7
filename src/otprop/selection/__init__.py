"""Parameters that the labelled rows themselves ask for."""

from otprop.selection.candidates import Candidate, Selection, scored
from otprop.selection.costs import CostChoice, CostsAsked, choose_costs
from otprop.selection.graph import GraphAsked, GraphChoice, Values, choose_graph
from otprop.selection.totals import contradicted, unvalidated_tolerance

__all__ = [
    "Candidate",
    "CostChoice",
    "CostsAsked",
    "GraphAsked",
    "GraphChoice",
    "Selection",
    "Values",
    "choose_costs",
    "choose_graph",
    "contradicted",
    "scored",
    "unvalidated_tolerance",
]
