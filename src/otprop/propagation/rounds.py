"""Algorithm 2: solve, certify, accept the certain, until no target is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otprop.propagation.certainty import Stall, certainty, threshold
from otprop.propagation.costs import OpenCosts
from otprop.propagation.marginals import Sources, prices
from otprop.propagation.record import Propagation, Round
from otprop.transport import block_rows
from otprop.transport import kernels as transport_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from otprop.arrays import BoolArray, DoubleArray, IntArray
    from otprop.geometry import Geometry
    from otprop.propagation.marginals import Marginals, Solving
    from otprop.transport import CostBlocks, Workers


@dataclass(frozen=True)
class Settings:
    """Parameters of Algorithm 2, of its solver, and the means at hand."""

    epsilon: float
    alpha: float
    stall: Stall
    marginals: Marginals
    solving: Solving
    memory: float

    @property
    def workers(self) -> Workers:
        """Threads for what is done block by block."""
        return self.solving.workers


def propagate(
    geometry: Geometry,
    labels: IntArray,
    classes: int,
    settings: Settings,
    report: Callable[[Round], None],
) -> Propagation:
    """Spread labels from the rows that have one (≥ 0) to those that have none (-1).

    The paper's Algorithm 2, with Eq. 21 where no target is certain enough. Rows that no source
    reaches are left with the uniform distribution and certainty 0. `report` is told of each round
    when it is done.
    """
    found = Propagation.of_given(labels, classes)
    costs = OpenCosts(
        geometry, np.flatnonzero(labels < 0), found.sources, settings.workers, settings.memory
    )
    start = None
    while len(costs.targets):
        # Only precomputed costs can leave targets out of reach, or sources without a target.
        reached, giving = costs.reach()
        if not reached.any():
            break
        open_costs, rows = costs.chosen(reached), costs.targets[reached]
        # Eq. 11, with the equal weights of Eq. 8 or another rule for the sources.
        f, solved = prices(
            open_costs,
            settings.epsilon,
            Sources(giving, found.labels, classes, start),
            settings.marginals,
            settings.solving,
            memory=costs.memory_left,
        )
        # Eq. 12 and 13, then Eq. 16.
        distributions = _distributions(open_costs, f, found.labels, classes, settings)
        scores = certainty(distributions)
        # s > α; where no target is that certain, Eq. 21 for this round only.
        bound = threshold(scores, settings.alpha, settings.stall)
        accepted = bound.accepts(scores)
        start = _with_joining(open_costs, f, accepted, settings)
        done = Round(
            round=len(found.trace) + 1,
            sources=len(found.sources),
            targets=len(costs.targets),
            accepted=int(accepted.sum()),
            alpha=bound.alpha,
            lowered=bound.lowered,
            unreachable=int((~reached).sum()),
            converged=solved.converged,
            marginal_error=solved.marginal_error,
            n_sweeps=solved.n_sweeps,
            n_iter=solved.n_iter,
            value=solved.value,
        )
        found.accept(rows[accepted], distributions[accepted], scores[accepted])
        found.end_round(f, bound, done)
        joining = reached.copy()
        joining[reached] = accepted
        costs.accept(joining)
        report(done)
    return found


def _distributions(
    costs: CostBlocks, f: DoubleArray, labels: IntArray, classes: int, settings: Settings
) -> DoubleArray:
    """Return U of Eq. 13: each target's shares added up by the sources' class."""
    targets, sources = costs.shape
    out = np.empty((targets, classes))
    size = block_rows(sources)

    def task(block: int) -> None:
        start, stop = block * size, min((block + 1) * size, targets)
        cost, rows = costs.read(start, stop)
        transport_kernels.class_block(cost, rows, f, settings.epsilon, labels, out[start:stop])

    settings.workers.run(task, -(-targets // size))
    return out


def _with_joining(
    costs: CostBlocks, f: DoubleArray, accepted: BoolArray, settings: Settings
) -> DoubleArray:
    """Extend f to the targets that join, as a start for the next round.

    Each takes the mean price of the sources that gave to it.
    """
    prices = np.where(np.isfinite(f), f, 0.0)
    targets, sources = costs.shape
    size = block_rows(sources)
    blocks = -(-targets // size)
    chosen = np.flatnonzero(accepted)
    edges = np.searchsorted(chosen, size * np.arange(blocks + 1))
    joining = np.empty(len(chosen))

    def task(block: int) -> None:
        here = slice(edges[block], edges[block + 1])
        start, stop = block * size, min((block + 1) * size, targets)
        if here.start < here.stop:
            cost, rows = costs.read(start, stop)
            transport_kernels.price_block(
                cost, rows[chosen[here] - start], f, settings.epsilon, prices, joining[here]
            )

    settings.workers.run(task, blocks)
    return np.concatenate([prices, joining])
