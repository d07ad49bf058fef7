"""The regularisation that the labelled rows themselves ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.confidence import HeldOut
from otprop.propagation import certainty
from otprop.transport import block_rows
from otprop.transport import kernels as transport_kernels

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, FloatArray, IntArray
    from otprop.geometry import Geometry
    from otprop.transport import Workers

# Candidates: powers of two times the median cost between a labelled row and the nearest other.
EXPONENTS = range(3, -6, -1)
# The one taken where no label can be left out: with few labels the nearest labelled row is far.
_UNVALIDATED = -4


class Labelled(NamedTuple):
    """The labelled rows: their row numbers, their class numbers, and how many classes there are."""

    rows: IntArray
    labels: IntArray
    classes: int


class View(NamedTuple):
    """Costs that have not seen the labels of those labelled rows that are judged by them.

    Where costs depend on no label, all rows can be judged in one view.
    """

    geometry: Geometry
    labelled: Labelled  # rows as the geometry counts them
    judged: IntArray  # counted among the labelled rows


class EpsilonChoice(NamedTuple):
    """The ε chosen, and what the labelled rows got at it while left out; None if none could be."""

    epsilon: float
    held_out: HeldOut | None


def choose_epsilon(
    geometry: Geometry,
    labelled: Labelled,
    alpha: float,
    workers: Workers,
    views: list[View] | None = None,
) -> EpsilonChoice:
    """Choose ε by leaving out one labelled row at a time.

    The others vote on its class with weights exp(−cost/ε), as sources do before any of them has a
    price (f = 0). The ε is chosen at which the most rows would be accepted rightly: certain beyond
    α and right counts 1, certain and wrong −1/(K−1), so that guessing is worth nothing. Among
    equals Brier's score decides. Alone, such a score of calibration would choose larger ε, at which
    few targets are certain and the rounds stall (benchmarks/epsilon.py).

    `geometry` must have exactly the labelled rows as its sources, in their order, and so must those
    of the `views`, if rows are not to be judged by it. Where every class has a single label
    nothing can be left out: then ε is a sixteenth of the median cost to the nearest other labelled
    row.
    """
    scale = _nearest(geometry, labelled.rows, workers)
    judged = _can_be_left_out(labelled)
    if len(judged) == 0:
        return EpsilonChoice(scale * 2.0**_UNVALIDATED, None)
    candidates = scale * 2.0 ** np.array(EXPONENTS)
    views = views or [View(geometry, labelled, judged)]
    votes = _viewed(views, labelled, candidates, workers)[judged]
    gain, loss = leave_one_out(votes, labelled.labels[judged], alpha)
    # Rounded, so that the order in which equal gains were added up does not decide.
    best = np.lexsort((-loss.mean(axis=0), gain.mean(axis=0).round(9)))[-1]
    held_out = HeldOut(votes[:, best], labelled.labels[judged])
    return EpsilonChoice(float(candidates[best]), held_out)


def left_out_at(
    geometry: Geometry,
    labelled: Labelled,
    epsilon: float,
    workers: Workers,
    views: list[View] | None = None,
) -> HeldOut | None:
    """Return what the labelled rows get at an ε while left out; None if none can be."""
    judged = _can_be_left_out(labelled)
    if len(judged) == 0:
        return None
    views = views or [View(geometry, labelled, judged)]
    votes = _viewed(views, labelled, np.array([epsilon]), workers)[judged]
    return HeldOut(votes[:, 0], labelled.labels[judged])


def _viewed(
    views: list[View], labelled: Labelled, candidates: DoubleArray, workers: Workers
) -> DoubleArray:
    """Return the distributions of labelled rows, each in the view that judges it."""
    found = np.zeros((len(labelled.rows), len(candidates), labelled.classes))
    for geometry, seen, judged in views:
        found[judged] = held_out_votes(geometry, seen, judged, candidates, workers)
    return found


def _can_be_left_out(labelled: Labelled) -> IntArray:
    counts = np.bincount(labelled.labels, minlength=labelled.classes)
    return np.flatnonzero(counts[labelled.labels] > 1)


def held_out_votes(
    geometry: Geometry,
    labelled: Labelled,
    judged: IntArray,
    candidates: DoubleArray,
    workers: Workers,
) -> DoubleArray:
    """Return the distributions that judged rows get from all other labelled rows.

    One row a judged row, then one a candidate ε; uniform where no other row is within reach.
    `judged` counts the labelled rows.
    """
    given, labels, classes = labelled
    found = np.full((len(judged), len(candidates), classes), 1.0 / classes)
    size = block_rows(len(given))
    f = np.zeros(len(given))

    def task(block: int) -> None:
        span = slice(block * size, min((block + 1) * size, len(judged)))
        cost = _others(geometry, given, judged[span])
        able = np.flatnonzero(np.isfinite(cost).any(axis=1))
        votes = np.empty((len(able), classes))
        for c, epsilon in enumerate(candidates):
            transport_kernels.class_block(cost, able, f, epsilon, labels, votes)
            found[span.start + able, c] = votes

    workers.run(task, -(-len(judged) // size))
    return found


def leave_one_out(
    votes: DoubleArray, own: IntArray, alpha: float
) -> tuple[DoubleArray, DoubleArray]:
    """Return each judged row's gain and Brier's score of its vote, one column a candidate ε."""
    judged, candidates, classes = votes.shape
    scores = certainty(votes.reshape(-1, classes)).reshape(judged, candidates)
    right = np.where(votes.argmax(axis=2) == own[:, None], 1.0, -1.0 / (classes - 1))
    gain = np.where(scores > alpha, right, 0.0)
    loss = ((votes - np.eye(classes)[own][:, None]) ** 2).sum(axis=2)
    return gain, loss


def _nearest(geometry: Geometry, given: IntArray, workers: Workers) -> float:
    """Return the median positive cost between a labelled row and the nearest other, else 1."""
    nearest = np.empty(len(given))
    size = block_rows(len(given))

    def task(block: int) -> None:
        rows = np.arange(block * size, min((block + 1) * size, len(given)))
        nearest[rows] = _others(geometry, given, rows).min(axis=1)

    workers.run(task, -(-len(given) // size))
    positive = nearest[np.isfinite(nearest) & (nearest > 0)]
    return float(np.median(positive)) if len(positive) else 1.0


def _others(geometry: Geometry, given: IntArray, rows: IntArray) -> FloatArray:
    """Return the costs of some labelled rows to all labelled rows but themselves."""
    cost = np.empty((len(rows), len(given)), geometry.dtype)
    geometry.fill(given[rows], 0, cost)
    cost[np.arange(len(rows)), rows] = np.inf
    return cost
