"""Algorithm 2: solve, certify, accept the certain, until no target is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.propagation.certainty import Stall, Threshold, certainty, threshold
from otprop.propagation.costs import ChosenCosts, OpenCosts
from otprop.transport import Rows, Sweep, block_rows, solve_sweep
from otprop.transport import kernels as transport_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from otprop.geometry import Geometry
    from otprop.transport import CostBlocks, TransportResult, Workers
    from otprop.transport.blocks import IntArray
    from otprop.transport.solver import SolverName


class Round(NamedTuple):
    """What a round did: a row of the trace (Eq. 19-20, and the solver's report)."""

    round: int  # t, from 1
    sources: int  # m_{t-1}, labelled when the round began
    targets: int  # n_{t-1}, unlabelled when the round began
    accepted: int  # ζ_t
    alpha: float  # what the accepted exceeded, or reached where it was lowered
    lowered: bool  # whether α was lowered for this round (Eq. 21)
    unreachable: int  # targets without a finite cost to any source
    converged: bool
    marginal_error: float
    n_sweeps: int
    n_iter: int
    value: float


@dataclass(frozen=True)
class Settings:
    """Parameters of Algorithm 2 and of its solver."""

    epsilon: float
    alpha: float
    stall: Stall
    tol: float
    solver: SolverName
    max_iter: int | None


@dataclass
class Propagation:
    """All that the rounds found, in a form that induction can replay.

    Sources stand in the order in which they came: the given rows, then each round's.
    """

    epsilon: float
    sources: IntArray  # row numbers
    labels: IntArray  # class numbers of the sources
    given: int  # how many sources were given
    potentials: list[NDArray[np.float64]]  # f of each round
    thresholds: list[Threshold]
    trace: list[Round]
    distributions: NDArray[np.float64]  # of all rows, U of Eq. 13
    certainty: NDArray[np.float64]  # of all rows, s of Eq. 16
    round: IntArray  # of all rows: 0 given, t accepted in round t, -1 never reached


def propagate(
    geometry: Geometry,
    labels: IntArray,
    classes: int,
    settings: Settings,
    *,
    workers: Workers,
    memory: float,
    report: Callable[[Round], None],
) -> Propagation:
    """Spread labels from the rows that have one (≥ 0) to those that have none (-1).

    The paper's Algorithm 2, with Eq. 21 where no target is certain enough. Rows that no source
    reaches are left with the uniform distribution.
    """
    found = _start(labels, classes, settings.epsilon)
    costs = OpenCosts(geometry, np.flatnonzero(labels < 0), found.sources, workers, memory)
    warm_start = None
    while len(costs.targets):
        reached, giving = _reach(geometry, costs, workers)
        if not reached.any():
            break
        rows = costs.targets[reached]
        open_costs = costs if reached.all() else ChosenCosts(costs, np.flatnonzero(reached))
        solved = _solve(open_costs, giving, settings, workers, costs.memory_left, None)
        # Eq. 12 and 13: shares by class; Eq. 16: their certainty.
        distributions = _distributions(open_costs, solved.f, found, classes, workers)
        scores = certainty(distributions)
        bound = threshold(scores, settings.alpha, settings.stall)
        accepted = bound.accepts(scores)
        warm_start = _potentials_of_joining(open_costs, solved.f, settings.epsilon, accepted)
        _record(found, rows, distributions, scores, accepted, bound, solved, ~reached, report)
        joining = np.zeros(len(reached), np.bool_)
        joining[np.flatnonzero(reached)[accepted]] = True
        costs.accept(joining)
    return found


def _start(labels: IntArray, classes: int, epsilon: float) -> Propagation:
    """Given rows are certain of their label, all others of nothing."""
    given = np.flatnonzero(labels >= 0)
    distributions = np.full((len(labels), classes), 1.0 / classes)
    distributions[given] = np.eye(classes)[labels[given]]
    return Propagation(
        epsilon=epsilon,
        sources=given,
        labels=labels[given],
        given=len(given),
        potentials=[],
        thresholds=[],
        trace=[],
        distributions=distributions,
        certainty=(labels >= 0).astype(np.float64),
        round=np.where(labels >= 0, 0, -1),
    )


def _solve(
    costs: CostBlocks,
    giving: NDArray[np.bool_],
    settings: Settings,
    workers: Workers,
    memory: float,
    warm_start: NDArray[np.float64] | None,
) -> TransportResult:
    """Eq. 11 with equal weights (Eq. 8); a source that can give to no target takes no part."""
    targets = costs.shape[0]
    received = np.full(targets, 1.0 / targets)
    sweep = Sweep(costs, received, workers, memory)
    return solve_sweep(
        sweep,
        Rows(giving / giving.sum()),
        received,
        settings.epsilon,
        settings.tol,
        settings.solver,
        settings.max_iter,
        warm_start,
    )


def _distributions(
    costs: CostBlocks,
    f: NDArray[np.float64],
    found: Propagation,
    classes: int,
    workers: Workers,
) -> NDArray[np.float64]:
    """Return U of Eq. 13: each target's shares added up by the sources' class."""
    targets, sources = costs.shape
    out = np.empty((targets, classes))
    size = block_rows(sources)

    def task(worker: int, block: int) -> None:  # noqa: ARG001 - the task's shape
        start, stop = block * size, min((block + 1) * size, targets)
        cost, rows = costs.read(start, stop)
        transport_kernels.class_block(cost, rows, f, found.epsilon, found.labels, out[start:stop])

    workers.run(task, -(-targets // size))
    return out


def _potentials_of_joining(
    costs: CostBlocks, f: NDArray[np.float64], epsilon: float, accepted: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Extend f to the targets that join: at first each takes the mean price of its own sources."""
    prices = np.where(np.isfinite(f), f, 0.0)
    joining = [prices]
    chosen = np.flatnonzero(accepted)
    size = block_rows(len(f))
    for start in range(0, len(chosen), size):
        part = chosen[start : start + size]
        lo, hi = part[0], part[-1] + 1
        cost, rows = costs.read(int(lo), int(hi))
        shares = np.empty((len(part), len(f)), cost.dtype)
        transport_kernels.share_block(cost, rows[part - lo], f, epsilon, shares)
        joining.append(shares @ prices)
    return np.concatenate(joining)


def _record(
    found: Propagation,
    rows: IntArray,
    distributions: NDArray[np.float64],
    scores: NDArray[np.float64],
    accepted: NDArray[np.bool_],
    bound: Threshold,
    solved: TransportResult,
    unreached: NDArray[np.bool_],
    report: Callable[[Round], None],
) -> None:
    """Write down a round: the accepted take the class of their largest share (Eq. 14)."""
    number = len(found.trace) + 1
    joining = rows[accepted]
    found.distributions[joining] = distributions[accepted]
    found.certainty[joining] = scores[accepted]
    found.round[joining] = number
    row = Round(
        round=number,
        sources=len(found.sources),
        targets=len(unreached),
        accepted=len(joining),
        alpha=bound.alpha,
        lowered=bound.lowered,
        unreachable=int(unreached.sum()),
        converged=solved.converged,
        marginal_error=solved.marginal_error,
        n_sweeps=solved.n_sweeps,
        n_iter=solved.n_iter,
        value=solved.value,
    )
    found.potentials.append(solved.f)
    found.thresholds.append(bound)
    found.trace.append(row)
    found.sources = np.concatenate([found.sources, joining])
    found.labels = np.concatenate([found.labels, distributions[accepted].argmax(axis=1)])
    report(row)


def _reach(
    geometry: Geometry, costs: OpenCosts, workers: Workers
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which open targets some source reaches, and which sources reach some target."""
    targets, sources = costs.shape
    if not geometry.may_forbid:
        return np.ones(targets, np.bool_), np.ones(sources, np.bool_)
    size = block_rows(sources)
    blocks = -(-targets // size)
    reached = np.zeros(targets, np.bool_)
    giving = np.zeros((blocks, sources), np.bool_)

    def task(worker: int, block: int) -> None:  # noqa: ARG001 - the task's shape
        start, stop = block * size, min((block + 1) * size, targets)
        cost, rows = costs.read(start, stop)
        finite = np.isfinite(cost[rows, :sources])
        reached[start:stop] = finite.any(axis=1)
        giving[block] = finite.any(axis=0)

    workers.run(task, blocks)
    return reached, giving.any(axis=0)
