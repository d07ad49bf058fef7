"""Parameters that the labelled rows themselves ask for."""

from otprop.selection.candidates import Candidate, HeldOut, Selection, scored
from otprop.selection.costs import CostChoice, CostsAsked, choose_costs
from otprop.selection.folds import enough_to_validate, folds, judged_rows
from otprop.selection.graph import GraphAsked, GraphChoice, Values, choose_graph
from otprop.selection.totals import contradicted, unvalidated_tolerance

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
    "contradicted",
    "enough_to_validate",
    "folds",
    "judged_rows",
    "scored",
    "unvalidated_tolerance",
]
