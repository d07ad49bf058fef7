"""Algorithm 3 by replay: a new row passes through the rounds and leaves in the first to accept it.

For a row of X_U that is what transduction did, so that Eq. 26 holds to the bit. A row that no
round accepts is decided by Eq. 27: the vote of all rows with weights exp(−cost/ε), that is f = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.propagation.certainty import certainty
from otprop.transport import block_rows
from otprop.transport import kernels as transport_kernels

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, DoubleArray, FloatArray, IntArray
    from otprop.geometry import Geometry
    from otprop.propagation.certainty import Threshold
    from otprop.transport import Workers


class Replay(NamedTuple):
    """What induction needs of a propagation."""

    epsilon: float
    labels: IntArray  # class numbers of the sources, in the order in which they came
    classes: int
    potentials: list[DoubleArray]
    thresholds: list[Threshold]


class Decision(NamedTuple):
    """What was decided for new rows, and when."""

    distributions: DoubleArray
    certainty: DoubleArray
    round: IntArray  # the round that accepted; 0 the vote of all rows; -1 out of every row's reach


def replay(geometry: Geometry, targets: int, model: Replay, workers: Workers) -> Decision:
    """Decide all targets of a geometry whose sources are the model's."""
    decision = Decision(
        np.full((targets, model.classes), 1.0 / model.classes),
        np.zeros(targets),
        np.full(targets, -1, np.intp),
    )
    size = block_rows(len(model.labels))

    def task(block: int) -> None:
        rows = np.arange(block * size, min((block + 1) * size, targets))
        cost = _costs(geometry, rows, len(model.labels))
        waiting = np.arange(len(rows))
        for number, (f, bound) in enumerate(
            zip(model.potentials, model.thresholds, strict=True), start=1
        ):
            if len(waiting) == 0:
                return
            able = waiting
            if geometry.may_forbid:
                able = waiting[_reachable(cost[waiting], f)]
            found, scores = _distributions(cost, able, f, model)
            accepted = bound.accepts(scores)
            _settle(decision, rows[able[accepted]], found[accepted], scores[accepted], number)
            waiting = np.setdiff1d(waiting, able[accepted], assume_unique=True)
        f = np.zeros(len(model.labels))
        able = waiting[_reachable(cost[waiting], f)]
        found, scores = _distributions(cost, able, f, model)
        _settle(decision, rows[able], found, scores, 0)

    workers.run(task, -(-targets // size))
    return decision


def explain(
    geometry: Geometry, decision: Decision, model: Replay, n: int
) -> tuple[IntArray, FloatArray]:
    """Return the n sources with the largest shares in each row's distribution, and the shares.

    Sources are counted in the order in which they came; rows out of reach have shares of 0.
    """
    targets = len(decision.round)
    n = min(n, len(model.labels))
    sources = np.zeros((targets, n), np.intp)
    largest = np.zeros((targets, n), geometry.dtype)
    size = block_rows(len(model.labels))
    for start in range(0, targets, size):
        rows = np.arange(start, min(start + size, targets))
        cost = _costs(geometry, rows, len(model.labels))
        for number in np.unique(decision.round[rows]):
            if number < 0:
                continue
            f = np.zeros(len(model.labels)) if number == 0 else model.potentials[number - 1]
            chosen = np.flatnonzero(decision.round[rows] == number)
            shares = np.empty((len(chosen), len(f)), cost.dtype)
            transport_kernels.share_block(cost, chosen, f, model.epsilon, shares)
            best = np.argsort(-shares, axis=1, kind="stable")[:, :n]
            sources[rows[chosen], : best.shape[1]] = best
            largest[rows[chosen], : best.shape[1]] = np.take_along_axis(shares, best, axis=1)
    return sources, largest


def _costs(geometry: Geometry, rows: IntArray, sources: int) -> FloatArray:
    cost = np.empty((len(rows), sources), geometry.dtype)
    geometry.fill(rows, 0, cost)
    return cost


def _reachable(cost: FloatArray, f: DoubleArray) -> BoolArray:
    """Whether some source that takes part has a finite cost."""
    return np.asarray((np.isfinite(cost[:, : len(f)]) & np.isfinite(f)).any(axis=1))


def _distributions(
    cost: FloatArray, rows: IntArray, f: DoubleArray, model: Replay
) -> tuple[DoubleArray, DoubleArray]:
    """Eq. 13 and 16 with the first len(f) sources."""
    found = np.empty((len(rows), model.classes))
    transport_kernels.class_block(cost, rows, f, model.epsilon, model.labels[: len(f)], found)
    return found, certainty(found)


def _settle(
    decision: Decision,
    rows: IntArray,
    distributions: DoubleArray,
    scores: DoubleArray,
    number: int,
) -> None:
    decision.distributions[rows] = distributions
    decision.certainty[rows] = scores
    decision.round[rows] = number
