"""Algorithm 3 by replay: a new row passes through the rounds and leaves in the first to accept it.

For a row of X_U that is what transduction did, so that Eq. 26 holds to the bit. A row that no
round accepts is decided by Eq. 27: the vote of all rows with weights exp(−cost/ε), that is f = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.propagation.certainty import certainty
from otprop.transport import Workers, block_rows
from otprop.transport import kernels as transport_kernels

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, DoubleArray, FloatArray, IntArray
    from otprop.geometry import Geometry
    from otprop.propagation.certainty import Threshold


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
        costs = _Costs(geometry, rows, len(model.labels))
        waiting = np.ones(len(rows), np.bool_)
        for number, (f, bound) in enumerate(
            zip(model.potentials, model.thresholds, strict=True), start=1
        ):
            able = np.flatnonzero(waiting)
            if len(able) == 0:
                return
            cost = costs.to(able, len(f))
            if geometry.may_forbid:
                able = able[_reachable(cost[able, : len(f)], f)]
            found, scores = _distributions(cost, able, f, model)
            accepted = bound.accepts(scores)
            leaving = able[accepted]
            _settle(decision, rows[leaving], found[accepted], scores[accepted], number)
            waiting[leaving] = False
        able = np.flatnonzero(waiting)
        f = np.zeros(len(model.labels))
        cost = costs.to(able, len(f))
        able = able[_reachable(cost[able], f)]
        found, scores = _distributions(cost, able, f, model)
        _settle(decision, rows[able], found, scores, 0)

    workers.run(task, -(-targets // size))
    return decision


def explain(
    geometry: Geometry,
    decision: Decision,
    model: Replay,
    n: int,
    workers: Workers | None = None,
) -> tuple[IntArray, FloatArray]:
    """Return the n sources with the largest shares in each row's distribution, and the shares.

    Sources are counted in the order in which they came. Where a row's round had fewer than n
    sources, and for rows out of reach, the remaining ones are -1, with shares of 0.
    """
    targets = len(decision.round)
    n = min(n, len(model.labels))
    sources = np.full((targets, n), -1, np.intp)
    largest = np.zeros((targets, n), geometry.dtype)
    size = block_rows(len(model.labels))

    def task(block: int) -> None:
        rounds = decision.round[block * size : (block + 1) * size]
        for number in np.unique(rounds[rounds >= 0]):
            f = np.zeros(len(model.labels)) if number == 0 else model.potentials[number - 1]
            rows = block * size + np.flatnonzero(rounds == number)
            cost = np.empty((len(rows), len(f)), geometry.dtype)
            geometry.fill(rows, 0, cost)
            shares = np.empty_like(cost)
            transport_kernels.share_block(cost, np.arange(len(rows)), f, model.epsilon, shares)
            best = np.argsort(-shares, axis=1, kind="stable")[:, :n]
            sources[rows, : best.shape[1]] = best
            largest[rows, : best.shape[1]] = np.take_along_axis(shares, best, axis=1)

    (Workers(1) if workers is None else workers).run(task, -(-targets // size))
    return sources, largest


class _Costs:
    """Costs of a block of rows, computed as the rounds ask for them.

    Most rows leave in the first round: they need not know what they cost to later sources.
    """

    # Where single sources join, costs are computed for a few rounds at once.
    _AHEAD = 32

    def __init__(self, geometry: Geometry, rows: IntArray, sources: int) -> None:
        self._geometry = geometry
        self._rows = rows
        self._cost = np.empty((len(rows), sources), geometry.dtype)
        self._known = 0

    def to(self, waiting: IntArray, sources: int) -> FloatArray:
        """Return the block's costs, good for the rows still waiting and the first sources.

        Rows that no longer wait must not come back.
        """
        if sources > self._known:
            known, total = self._known, self._cost.shape[1]
            self._known = min(max(sources, known + self._AHEAD), total)
            new = np.empty((len(waiting), self._known - known), self._cost.dtype)
            self._geometry.fill(self._rows[waiting], known, new)
            self._cost[waiting, known : self._known] = new
        return self._cost


def _reachable(cost: FloatArray, f: DoubleArray) -> BoolArray:
    """Whether some source that takes part has a finite cost."""
    return np.asarray((np.isfinite(cost) & np.isfinite(f)).any(axis=1))


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
