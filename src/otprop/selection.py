"""The regularisation that the labelled rows themselves ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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


class EpsilonChoice(NamedTuple):
    """The ε chosen and whether leaving out labels had a say in it."""

    epsilon: float
    validated: bool


def choose_epsilon(
    geometry: Geometry, labelled: Labelled, alpha: float, workers: Workers
) -> EpsilonChoice:
    """Choose ε by leaving out one labelled row at a time.

    The others vote on its class with weights exp(−cost/ε), as sources do before any of them has a
    price (f = 0). The ε is chosen at which the most rows would be accepted rightly: certain beyond
    α and right counts 1, certain and wrong −1/(K−1), so that guessing is worth nothing. Among
    equals Brier's score decides. Alone, such a score of calibration would choose larger ε, at which
    few targets are certain and the rounds stall (benchmarks/epsilon.py).

    `geometry` must have exactly the labelled rows as its sources, in their order. Where every
    class has a single label nothing can be left out: then ε is the median cost to the nearest
    other labelled row.
    """
    scale = _nearest(geometry, labelled.rows, workers)
    counts = np.bincount(labelled.labels, minlength=labelled.classes)
    judged = np.flatnonzero(counts[labelled.labels] > 1)
    if len(judged) == 0:
        return EpsilonChoice(scale * 2.0**_UNVALIDATED, validated=False)
    candidates = scale * 2.0 ** np.array(EXPONENTS)
    gain, loss = leave_one_out(geometry, labelled, judged, candidates, alpha, workers)
    # Rounded, so that the order in which equal gains were added up does not decide.
    best = np.lexsort((-loss.mean(axis=0), gain.mean(axis=0).round(9)))[-1]
    return EpsilonChoice(float(candidates[best]), validated=True)


def leave_one_out(  # noqa: PLR0917 - arrays first, as in the compiled loops
    geometry: Geometry,
    labelled: Labelled,
    judged: IntArray,
    candidates: DoubleArray,
    alpha: float,
    workers: Workers,
) -> tuple[DoubleArray, DoubleArray]:
    """Return each judged row's gain and Brier's score of its vote, one column a candidate ε."""
    given, labels, classes = labelled
    gain = np.zeros((len(judged), len(candidates)))
    loss = np.full_like(gain, 1.0 - 1.0 / classes)  # of a uniform vote
    size = block_rows(len(given))
    f = np.zeros(len(given))

    def task(block: int) -> None:
        span = slice(block * size, min((block + 1) * size, len(judged)))
        cost = _others(geometry, given, judged[span])
        able = np.flatnonzero(np.isfinite(cost).any(axis=1))
        own = labels[judged[span][able]]
        votes = np.empty((len(able), classes))
        for c, epsilon in enumerate(candidates):
            transport_kernels.class_block(cost, able, f, epsilon, labels, votes)
            accepted = certainty(votes) > alpha
            right = np.where(votes.argmax(axis=1) == own, 1.0, -1.0 / (classes - 1))
            gain[span.start + able, c] = np.where(accepted, right, 0.0)
            loss[span.start + able, c] = ((votes - np.eye(classes)[own]) ** 2).sum(axis=1)

    workers.run(task, -(-len(judged) // size))
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
