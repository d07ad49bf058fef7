"""Scaling and ε of costs, chosen by leaving out one labelled row at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from otprop.models import geometry
from otprop.scaling import fit_scaling
from otprop.selection.candidates import Candidate, scored
from otprop.selection.epsilon import Labelled, View, choose_epsilon, left_out_at
from otprop.selection.folds import folds, scaling_by_seen

if TYPE_CHECKING:
    from otprop.arrays import IntArray
    from otprop.confidence import HeldOut
    from otprop.scaling import Scaling
    from otprop.transport import Workers

# Those that need no labels: a label left out has no part in them.
_SCALINGS = ("none", "minmax", "standard")


class CostsAsked(NamedTuple):
    """What the caller wants; None leaves the choice to the labelled rows."""

    precomputed: bool
    scaling: str | None
    epsilon: float | None
    alpha: float


class CostChoice(NamedTuple):
    """What was chosen, and what was found of labels left out with it."""

    scaling: Scaling
    points: Any  # all rows, scaled; the costs themselves if these were given
    epsilon: float
    held_out: HeldOut | None
    candidates: list[Candidate]  # the one chosen first


def choose_costs(
    table: Any,
    labels: IntArray,
    classes: int,
    asked: CostsAsked,
    workers: Workers,
) -> CostChoice:
    """Choose the scaling whose votes have the least Brier score, each at the ε chosen for it.

    An ε that is given belongs to the columns as they are.
    """
    open_scaling = asked.scaling is None and asked.epsilon is None and not asked.precomputed
    names: tuple[str, ...]
    if not open_scaling:
        names = (asked.scaling or "none",)
    elif sparse.issparse(table):
        names = ("none",)
    else:
        names = _SCALINGS
    tried = [_tried(table, labels, classes, name, asked, workers) for name in names]
    able = [choice for choice in tried if choice.held_out is not None]
    if not able:
        return tried[0]
    able.sort(key=_loss)
    return able[0]._replace(candidates=[line for choice in able for line in choice.candidates])


def _loss(choice: CostChoice) -> float:
    return choice.candidates[0].brier


def _tried(  # noqa: PLR0917 - as `choose_costs`, with a name
    table: Any,
    labels: IntArray,
    classes: int,
    name: str,
    asked: CostsAsked,
    workers: Workers,
) -> CostChoice:
    given = np.flatnonzero(labels >= 0)
    scaling = fit_scaling(name, table, labels)
    points = scaling.apply(table)
    costs = geometry(points, None if asked.precomputed else points)
    costs.add_sources(given)
    labelled = Labelled(given, labels[given], classes)
    views = _views(table, labels, classes) if name == "discriminant" else None
    if asked.epsilon is None:
        epsilon, held_out = choose_epsilon(costs, labelled, asked.alpha, workers, views)
    else:
        epsilon = asked.epsilon
        held_out = left_out_at(costs, labelled, epsilon, workers, views)
    values = {"scaling": name, "epsilon": epsilon}
    lines = [] if held_out is None else [scored(values, held_out)]
    return CostChoice(scaling, points, epsilon, held_out, lines)


def _views(table: Any, labels: IntArray, classes: int) -> list[View]:
    """Return costs in scalings that have not seen the labels of the rows judged by them."""
    given, found = np.flatnonzero(labels >= 0), []
    labelled = Labelled(np.arange(len(given)), labels[given], classes)
    for hidden in folds(table, labels):
        seen = labels.copy()
        seen[hidden] = -1
        points = scaling_by_seen("discriminant", table, seen).apply(table[given])
        costs = geometry(points, points)
        costs.add_sources(labelled.rows)
        found.append(View(costs, labelled, np.searchsorted(given, hidden)))
    return found
