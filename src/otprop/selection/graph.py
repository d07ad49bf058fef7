"""Scaling, neighbours and diffusion of a graph, chosen by labels that are hidden and found again.

With few labels nothing can be hidden. Then the choice falls on values that held up on data sets
kept for this purpose (docs/defaults.md), and rounds are run if their outcome can be reproduced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from otprop.confidence import HeldOut
from otprop.models import graph_of, nearest_others
from otprop.propagation import GraphSettings, spread
from otprop.scaling import SCALINGS, can_discriminate, fit_scaling
from otprop.selection.candidates import Candidate, Selection, scored
from otprop.selection.folds import (
    enough_to_validate,
    folds,
    judged_rows,
    places,
    scaling_by_seen,
)
from otprop.selection.totals import contradicted, unvalidated_tolerance

if TYPE_CHECKING:
    from collections.abc import Callable

    from otprop.arrays import DoubleArray, IntArray
    from otprop.geometry import Graph, Neighbours
    from otprop.propagation import Prior, Spread
    from otprop.scaling import Scaling
    from otprop.transport import Workers

NEIGHBOURS = 20
_DIFFUSION = 0.9
# What else may be, if it is surely better.
_ALTERNATIVES = ({"n_neighbors": 10}, {"diffusion": 0.8}, {"diffusion": 0.97})
# With few labels these must be heard farther, and the scaling cannot be judged.
_FEW_SCALING, _FEW_DIFFUSION = "minmax", 0.99
# With at most so many labels a class, rounds are run if this part of the first labelling is found
# again from other rows of it.
_FEW_OF_A_CLASS = 20
_REPRODUCED = 0.9
_DRAWS = 3


class Values(NamedTuple):
    """A candidate: all that a fit on a graph needs to be told."""

    scaling: str
    n_neighbors: int
    diffusion: float
    tolerance: float  # of the classes' totals; infinity: no prior
    rounds: str


@dataclass(frozen=True)
class GraphAsked:
    """What the caller wants; None leaves the choice to the labelled rows."""

    scaling: str | None
    n_neighbors: int | None
    diffusion: float | None
    tolerance: float | None
    rounds: str | None
    prior: Callable[[IntArray, float], Prior]  # from labels, with a tolerance
    prior_given: bool
    settings: Callable[[Values, Prior], GraphSettings]
    workers: Workers


class Ground(NamedTuple):
    """All rows in a scaling, and their nearest others."""

    scaling: Scaling
    points: Any
    neighbours: Neighbours


class GraphChoice(NamedTuple):
    """What was chosen, and what of it has been made."""

    values: Values
    selection: Selection
    ground: Ground | None  # None if the graph was given
    graph: Graph
    held_out: HeldOut | None


def choose_graph(
    table: Any,
    given_graph: Graph | None,
    labels: IntArray,
    classes: int,
    asked: GraphAsked,
) -> GraphChoice:
    """Choose what was left open, by cross-validation on the labelled rows where they suffice.

    In each of five folds (two with many labels) a part of the labels is hidden, and its rows play
    unlabelled ones. First the scaling of the least Brier score is taken; then whatever else is
    surely right more often.
    """
    judge = _Judge(table, given_graph, labels, classes, asked)
    validated = enough_to_validate(labels)
    chosen = judge.with_rounds(judge.validated() if validated else judge.unvalidated())
    reason = "cross-validation on the labelled rows" if validated else "too few labels to hide any"
    held_out = judge.held_out(chosen) if validated else None
    in_use = chosen._asdict()
    if given_graph is not None:
        del in_use["n_neighbors"]
    return GraphChoice(
        values=chosen,
        selection=Selection(in_use, reason, judge.candidates),
        ground=None if given_graph is not None else judge.ground(chosen.scaling),
        graph=judge.graph(chosen),
        held_out=held_out,
    )


class _Judge:
    """Tries candidates, and keeps what several of them share."""

    def __init__(
        self,
        table: Any,
        given_graph: Graph | None,
        labels: IntArray,
        classes: int,
        asked: GraphAsked,
    ) -> None:
        self._table = table
        self._given_graph = given_graph
        self._labels = labels
        self._classes = classes
        self._asked = asked
        self._grounds: dict[tuple[str, bytes], Ground] = {}
        self._graphs: dict[tuple[str, bytes, int], Graph] = {}
        self._found: dict[Values, HeldOut] = {}
        self._told_apart = table if given_graph is None else _strongest(given_graph)
        self._folds = folds(self._told_apart, labels)
        self._counts = np.bincount(labels[labels >= 0], minlength=classes)
        self.candidates: list[Candidate] = []

    def validated(self) -> Values:
        """Choose by hidden labels."""
        asked = self._asked
        first = Values(
            scaling="none",
            n_neighbors=NEIGHBOURS if asked.n_neighbors is None else asked.n_neighbors,
            diffusion=_DIFFUSION if asked.diffusion is None else asked.diffusion,
            tolerance=0.0 if asked.tolerance is None else asked.tolerance,
            rounds="none" if asked.rounds is None else asked.rounds,
        )
        tried = [first._replace(scaling=name) for name in self._scalings()]
        chosen = min(tried, key=lambda values: self._tried(values).brier)
        for change in _ALTERNATIVES:
            if self._given_graph is not None and "n_neighbors" in change:
                continue
            if all(getattr(asked, name) is None for name in change):
                chosen = self._better(chosen, chosen._replace(**change))
        if asked.tolerance is None and not asked.prior_given:
            free = chosen._replace(tolerance=np.inf)
            chosen = self._better(chosen, free)
            chosen = free if self._contradicted(free) else chosen
        return chosen

    def unvalidated(self) -> Values:
        """Choose without hiding any label."""
        asked = self._asked
        return Values(
            scaling=_FEW_SCALING if _FEW_SCALING in self._scalings() else self._scalings()[0],
            n_neighbors=NEIGHBOURS if asked.n_neighbors is None else asked.n_neighbors,
            diffusion=_FEW_DIFFUSION if asked.diffusion is None else asked.diffusion,
            tolerance=self._unvalidated_tolerance(),
            rounds="none" if asked.rounds is None else asked.rounds,
        )

    def _unvalidated_tolerance(self) -> float:
        asked = self._asked
        if asked.tolerance is not None:
            return asked.tolerance
        return 0.0 if asked.prior_given else unvalidated_tolerance(self._counts)

    def with_rounds(self, chosen: Values) -> Values:
        """Run rounds where labels are few and the first labelling can be reproduced."""
        few = (self._labels >= 0).sum() <= _FEW_OF_A_CLASS * self._classes
        open_choice = self._asked.rounds is None
        if open_choice and few and self._reproduced(chosen) >= _REPRODUCED:
            return chosen._replace(rounds="annealed")
        return chosen

    def held_out(self, values: Values) -> HeldOut:
        """Return what is found of labels while they are hidden."""
        if values not in self._found:
            found = np.zeros((len(self._labels), self._classes))
            for hidden in self._folds:
                seen = self._labels.copy()
                seen[hidden] = -1
                found[hidden] = self._spread(values, seen).distributions[hidden]
            judged = judged_rows(self._labels)
            self._found[values] = HeldOut(found[judged], self._labels[judged])
        return self._found[values]

    def ground(self, scaling: str, labels: IntArray | None = None) -> Ground:
        """Return all rows in a scaling that has seen all labels, or some."""
        key = self._key(scaling, labels)
        if key not in self._grounds:
            found = (
                fit_scaling(scaling, self._table, self._labels)
                if labels is None
                else scaling_by_seen(scaling, self._table, labels)
            )
            points = found.apply(self._table)
            k = NEIGHBOURS if self._asked.n_neighbors is None else self._asked.n_neighbors
            neighbours = nearest_others(points, k, self._asked.workers)
            self._grounds[key] = Ground(found, points, neighbours)
        return self._grounds[key]

    def graph(self, values: Values, labels: IntArray | None = None) -> Graph:
        """Return the graph of a candidate that has seen all labels, or some."""
        if self._given_graph is not None:
            return self._given_graph
        key = *self._key(values.scaling, labels), values.n_neighbors
        if key not in self._graphs:
            neighbours = self.ground(values.scaling, labels).neighbours
            self._graphs[key] = graph_of(neighbours, values.n_neighbors)
        return self._graphs[key]

    @staticmethod
    def _key(scaling: str, labels: IntArray | None) -> tuple[str, bytes]:
        """Tell apart what has seen different labels, if the scaling looks at any."""
        if labels is None or scaling != "discriminant":
            return scaling, b""
        return scaling, labels.tobytes()

    def _scalings(self) -> tuple[str, ...]:
        if self._asked.scaling is not None:
            return (self._asked.scaling,)
        if self._given_graph is not None or sparse.issparse(self._table):
            return ("none",)
        able = can_discriminate(self._labels) and self._table.shape[1] > 0
        return SCALINGS if able else tuple(s for s in SCALINGS if s != "discriminant")

    def _tried(self, values: Values) -> Candidate:
        line = scored(values._asdict(), self.held_out(values))
        self.candidates.append(line)
        return line

    def _better(self, chosen: Values, other: Values) -> Values:
        """Return the other candidate if it is surely more often right."""
        self._tried(other)
        sure = self.held_out(other).surely_more_often_right(self.held_out(chosen))
        return other if sure else chosen

    def _contradicted(self, free: Values) -> bool:
        """Whether the vote of the kernel contradicts the labels' parts."""
        found = self._spread(free, self._labels)
        open_rows = found.round > 0
        if not open_rows.any():
            return False
        return contradicted(found.distributions[open_rows], self._counts, self.held_out(free))

    def _reproduced(self, values: Values) -> float:
        """Return how much of a first labelling is found again from rows that it labelled.

        From each class as many rows speak as were given, at several places in the order of their
        certainty: where classes are clusters, it does not matter which of a cluster's rows speak.
        """
        first = self._spread(values, self._labels)
        found, reached = first.distributions.argmax(axis=1), first.round >= 0
        # Given rows are all as certain, others nearly so: their values decide, not their numbers.
        certain, places_of_rows = first.certainty.round(6), places(self._told_apart)
        agreed = []
        for draw in range(_DRAWS):
            speaking = np.full(len(found), -1)
            for k, count in enumerate(self._counts):
                mine = np.flatnonzero((found == k) & reached)
                mine = mine[np.lexsort((places_of_rows[mine], certain[mine]))]
                spread_out = (np.arange(count) + (draw + 1) / (_DRAWS + 1)) / count * len(mine)
                speaking[mine[spread_out.astype(np.intp)]] = k
            again = self._spread(values, speaking).distributions.argmax(axis=1)
            agreed.append(float((again == found)[reached].mean()))
        return float(np.mean(agreed))

    def _spread(self, values: Values, labels: IntArray) -> Spread:
        """Spread some labels with a candidate, whose scaling sees these labels alone."""
        asked = self._asked
        graph = self.graph(values, None if labels is self._labels else labels)
        settings = asked.settings(values, asked.prior(labels, values.tolerance))
        return spread(graph, labels, self._classes, settings, lambda _: None)


def _strongest(graph: Graph) -> DoubleArray:
    """Return each row's greatest affinities, in falling order: they tell rows apart by no number.

    Rows of an affinity itself would change their order with that of its columns.
    """
    links = graph.affinity
    counts = np.diff(links.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    falling = np.lexsort((-links.data, rows))
    place = np.arange(len(rows)) - np.repeat(links.indptr[:-1], counts)
    kept = place < NEIGHBOURS
    strongest = np.zeros((len(counts), NEIGHBOURS))
    strongest[rows[kept], place[kept]] = links.data[falling][kept]
    return strongest
