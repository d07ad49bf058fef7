"""Entropic optimal transport through its semi-dual: arrays in, arrays out (Eq. 11).

The column-normalised plan of Eq. 12 depends on the sources' potentials f alone, so a solve looks
for one number a source, or one a class. `solve` and `solve_classes` are the ways in; `Sweep` is the
one primitive that the solvers use.
"""

from otprop.transport.blocks import ArrayCosts, CostBlocks, block_rows
from otprop.transport.classes import solve_classes
from otprop.transport.marginals import MarginalRule, Relaxed, Rows
from otprop.transport.merging import class_costs
from otprop.transport.plan import shares
from otprop.transport.result import TransportResult
from otprop.transport.solver import SOLVERS, solve, solve_sweep
from otprop.transport.sweep import Sweep
from otprop.transport.totals import solve_totals
from otprop.transport.workers import Workers

__all__ = [
    "SOLVERS",
    "ArrayCosts",
    "CostBlocks",
    "MarginalRule",
    "Relaxed",
    "Rows",
    "Sweep",
    "TransportResult",
    "Workers",
    "block_rows",
    "class_costs",
    "shares",
    "solve",
    "solve_classes",
    "solve_sweep",
    "solve_totals",
]
