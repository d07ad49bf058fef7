"""What the sources of a round must give: each its part, about its part, or each class its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from otprop.propagation.prior import remaining
from otprop.transport import (
    ArrayCosts,
    Relaxed,
    Rows,
    Sweep,
    class_costs,
    solve_sweep,
    solve_totals,
)

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, DoubleArray, IntArray
    from otprop.propagation.prior import Prior
    from otprop.transport import CostBlocks, TransportResult, Workers
    from otprop.transport.solver import SolverName


class Marginals(NamedTuple):
    """A rule for the sources, with its parameters."""

    rule: Literal["rows", "relaxed", "classes"]
    relaxation: float  # ρ of "relaxed"
    prior: Prior  # of "classes"


class Solving(NamedTuple):
    """How transport problems are solved, and the means at hand."""

    tol: float
    solver: SolverName
    max_iter: int | None
    workers: Workers


class Sources(NamedTuple):
    """Those who give in a round."""

    giving: BoolArray  # which of them reach a target
    labels: IntArray  # class numbers of all
    classes: int
    start: DoubleArray | None  # prices to start from


def prices(
    costs: CostBlocks,
    epsilon: float,
    sources: Sources,
    marginals: Marginals,
    solving: Solving,
    *,
    memory: float,
) -> tuple[DoubleArray, TransportResult]:
    """Solve Eq. 11 with equal weights of the targets (Eq. 8); return the sources' potentials."""
    targets = costs.shape[0]
    received = np.full(targets, 1.0 / targets)
    if marginals.rule == "classes":
        labels, classes = sources.labels, sources.classes
        merged = class_costs(costs, labels, classes, epsilon, solving.workers, dtype=np.float64)
        counts = np.bincount(labels, minlength=classes)
        bounds = remaining(marginals.prior, counts, len(labels) + targets)
        solved = solve_totals(
            ArrayCosts(merged),
            received,
            solving.workers,
            bounds.least,
            bounds.most,
            epsilon,
            tol=solving.tol,
            solver=solving.solver,
            max_iter=solving.max_iter,
        )
        return solved.f[labels], solved
    weights = sources.giving / sources.giving.sum()
    rule = Rows(weights) if marginals.rule == "rows" else Relaxed(weights, marginals.relaxation)
    sweep = Sweep(costs, received, solving.workers, memory)
    solved = solve_sweep(
        sweep,
        rule,
        epsilon,
        tol=solving.tol,
        solver=solving.solver,
        max_iter=solving.max_iter,
        warm_start=sources.start,
    )
    return solved.f, solved
