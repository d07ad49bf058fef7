"""Entropic optimal transport through its semi-dual: arrays in, arrays out (Eq. 11).

The column-normalised plan of Eq. 12 depends on the sources' potentials f alone, so a solve looks
for one number a source. `solve` is the way in; `Sweep` is the one primitive that the solvers use.
"""

from otprop.transport.blocks import ArrayCosts, CostBlocks, block_rows
from otprop.transport.marginals import MarginalRule, Rows
from otprop.transport.plan import shares
from otprop.transport.result import TransportResult
from otprop.transport.solver import SOLVERS, solve, solve_sweep
from otprop.transport.sweep import Sweep
from otprop.transport.workers import Workers

__all__ = [
    "SOLVERS",
    "ArrayCosts",
    "CostBlocks",
    "MarginalRule",
    "Rows",
    "Sweep",
    "TransportResult",
    "Workers",
    "block_rows",
    "shares",
    "solve",
    "solve_sweep",
]
