"""Rounds on a graph: labels diffuse along it, classes share it out, the certain lead the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.geometry import diffuse, walk_steps
from otprop.propagation.certainty import certainty
from otprop.propagation.marginals import Sources, prices
from otprop.propagation.prior import between, remaining
from otprop.propagation.record import Round
from otprop.propagation.stages import ROUNDS, Stage
from otprop.transport import ArrayCosts, shares, solve_totals

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_matrix

    from otprop.arrays import DoubleArray, IntArray
    from otprop.geometry import Graph
    from otprop.propagation.marginals import Marginals, Solving
    from otprop.propagation.prior import Bounds
    from otprop.transport import TransportResult

# A class's evidence below e^-28 of the strongest counts as that much, so that every plan exists.
_FARTHEST = 28.0
# Relative residual at which a diffusion has converged, and its most steps.
_DIFFUSED = 1e-9
_MAX_STEPS = 5_000


@dataclass(frozen=True)
class GraphSettings:
    """Parameters of the rounds on a graph, of the solver, and the means at hand."""

    diffusion: float  # κ of the first plan's kernel
    rounds: str  # a key of ROUNDS
    marginals: Marginals
    widened: bool  # whether later rounds may go as far from the prior as the first labelling went
    solving: Solving


class Spread(NamedTuple):
    """What the rounds on a graph found: one entry for each row, unless it says otherwise."""

    distributions: DoubleArray
    certainty: DoubleArray
    round: IntArray  # since when a row has its label: 0 given, -1 in no given row's reach
    prices: DoubleArray  # of the given rows in the first plan
    trace: list[Round]


def spread(
    graph: Graph,
    labels: IntArray,
    classes: int,
    settings: GraphSettings,
    report: Callable[[Round], None],
) -> Spread:
    """Spread labels along a graph from the rows that have one (≥ 0) to those that have none (-1).

    The first plan carries the given labels over the diffusion kernel. Then come the rounds: rows
    speak for the class they have, and all that were not given their label decide anew. Rows in
    parts of the graph without a given label keep the uniform distribution and certainty 0.
    `report` is told of each round when it is done.
    """
    field = _Field(graph, labels, classes, settings)
    if len(field.open_rows) == 0:
        return field.nothing_found()
    plan = field.first_plan()
    found = field.settled(field.nothing_found(), plan, labels, report)
    bounds = field.bounds
    if settings.widened:
        bounds = between(bounds, plan.distributions.argmax(axis=1))
    kept = labels
    for stage in ROUNDS[settings.rounds]:
        for _ in range(stage.times):
            before = found.distributions.argmax(axis=1)
            speaking = field.speaking(found, kept, stage)
            kept = speaking if stage.keeps else kept
            plan = field.balanced(field.carried(speaking, stage), bounds)
            found = field.settled(found, plan, speaking, report, kept)
            if (found.distributions.argmax(axis=1) == before).all():
                break
    return found


def alike(found: Spread, groups: IntArray, labels: IntArray) -> Spread:
    """Let open rows that are the same as one another have the mean of their distributions.

    A new row that is the same as they are has one answer, and so must they. On the graph they
    need not be alike: of many rows that are the same, each has but a few for neighbours.
    """
    open_rows = np.flatnonzero((labels < 0) & (found.round >= 0))
    own, sizes = np.unique(groups[open_rows], return_inverse=True, return_counts=True)[1:]
    several = sizes[own] > 1
    rows, own = open_rows[several], own[several]
    distributions, scores = found.distributions.copy(), found.certainty.copy()
    since = found.round.copy()
    summed = np.zeros((len(sizes), distributions.shape[1]))
    np.add.at(summed, own, distributions[rows])
    latest = np.zeros(len(sizes), np.intp)
    np.maximum.at(latest, own, since[rows])
    distributions[rows] = (summed / sizes[:, None])[own]
    scores[rows] = certainty(distributions[rows])
    since[rows] = latest[own]
    return found._replace(distributions=distributions, certainty=scores, round=since)


class _Evidence(NamedTuple):
    """How much of each class reaches the open rows, and whether the diffusion converged."""

    values: DoubleArray
    diffused: bool


class _Plan(NamedTuple):
    """Distributions of the open rows, the given rows' prices, and what the solvers said."""

    distributions: DoubleArray
    prices: DoubleArray
    solved: TransportResult
    diffused: bool


class _Field:
    """A graph with the given labels on it: what every round needs."""

    def __init__(
        self, graph: Graph, labels: IntArray, classes: int, settings: GraphSettings
    ) -> None:
        self._graph = graph
        self._labels = labels
        self._classes = classes
        self._settings = settings
        self._given = np.flatnonzero(labels >= 0)
        parts = graph.components()
        reached = np.isin(parts, parts[self._given])
        self.open_rows = np.flatnonzero(reached & (labels < 0))
        self._reached = int(reached.sum())

    @cached_property
    def bounds(self) -> Bounds:
        """What the prior leaves to the open rows, if there are any."""
        counts = np.bincount(self._labels[self._given], minlength=self._classes)
        return remaining(self._settings.marginals.prior, counts, self._reached)

    def nothing_found(self) -> Spread:
        """Return the given labels, and nothing of the others."""
        labels = self._labels
        distributions = np.full((len(labels), self._classes), 1.0 / self._classes)
        distributions[self._given] = np.eye(self._classes)[labels[self._given]]
        return Spread(
            distributions=distributions,
            certainty=(labels >= 0).astype(np.float64),
            round=np.where(labels >= 0, 0, -1),
            prices=np.zeros(len(self._given)),
            trace=[],
        )

    def first_plan(self) -> _Plan:
        """Carry the given labels over the diffusion kernel, by the rule of the marginals."""
        settings, given = self._settings, self._labels[self._given]
        if settings.marginals.rule == "classes":
            first = Stage(1.0, diffusion=settings.diffusion)
            plan = self.balanced(self.carried(self._labels, first), self.bounds)
            return plan._replace(prices=plan.prices[given])
        voices = np.zeros((len(self._labels), len(given)))
        voices[self._given, np.arange(len(given))] = 1.0
        kernel = self._diffused(voices, settings.diffusion)
        costs = _costs(kernel.values)
        every = np.ones(len(given), np.bool_)
        f, solved = prices(
            ArrayCosts(costs),
            1.0,
            Sources(every, given, self._classes, start=None),
            settings.marginals,
            settings.solving,
            memory=np.inf,
        )
        each = np.asarray(shares(costs, f, 1.0), np.float64)
        by_class = [each[:, given == k].sum(axis=1) for k in range(self._classes)]
        return _Plan(np.stack(by_class, axis=1), f, solved, kernel.diffused)

    def speaking(self, found: Spread, kept: IntArray, stage: Stage) -> IntArray:
        """Return for which class each row speaks in a round, -1 for those that are silent.

        Of each class its most certain rows, as many as are its due, and exact ties together; those
        whose label is given or kept always speak.
        """
        said = kept.copy()
        asked = self.open_rows[kept[self.open_rows] < 0]
        guess = found.distributions[asked].argmax(axis=1)
        if stage.part >= 1.0:
            said[asked] = guess
            return said
        # Sizes are known to the tolerance of a solve: a quota that is a whole number counts as one.
        slack = 2.0 * self._settings.solving.tol * len(self.open_rows)
        sizes = found.distributions[self.open_rows].sum(axis=0) + slack
        scores = found.certainty[asked]
        for k in range(self._classes):
            places = int(stage.part * sizes[k]) + 1 - int((kept[self.open_rows] == k).sum())
            mine = np.flatnonzero(guess == k)
            if 0 < places < len(mine):
                mine = mine[scores[mine] >= np.partition(scores[mine], -places)[-places]]
            if places > 0:
                said[asked[mine]] = k
        return said

    def carried(self, speaking: IntArray, stage: Stage) -> _Evidence:
        """Let what the speakers say diffuse; each class speaks with one voice, however many do."""
        who = np.flatnonzero(speaking >= 0)
        voices = np.zeros((len(speaking), self._classes))
        voices[who, speaking[who]] = 1.0
        if stage.steps is None:
            voices /= np.maximum(voices.sum(axis=0), 1.0)
            return self._diffused(voices, stage.diffusion)
        held = voices[self._given]
        walked = walk_steps(self._graph.walk, voices, self._given, held, stage.steps)
        return _Evidence(walked[self.open_rows], diffused=True)

    def balanced(self, evidence: _Evidence, bounds: Bounds) -> _Plan:
        """Share the open rows out among the classes, within the bounds of their totals (Eq. 11)."""
        costs, solving = _costs(evidence.values), self._settings.solving
        solved = solve_totals(
            ArrayCosts(costs),
            np.full(len(costs), 1.0 / len(costs)),
            solving.workers,
            bounds.least,
            bounds.most,
            1.0,
            tol=solving.tol,
            solver=solving.solver,
            max_iter=solving.max_iter,
        )
        found = np.asarray(shares(costs, solved.f, 1.0), np.float64)
        return _Plan(found, solved.f, solved, evidence.diffused)

    def settled(
        self,
        before: Spread,
        plan: _Plan,
        speaking: IntArray,
        report: Callable[[Round], None],
        kept: IntArray | None = None,
    ) -> Spread:
        """Let the open rows take what a plan gives them, but for those that keep their label."""
        rows = self.open_rows
        deciding = np.ones(len(rows), np.bool_) if kept is None else kept[rows] < 0
        distributions, scores = before.distributions.copy(), before.certainty.copy()
        distributions[rows[deciding]] = plan.distributions[deciding]
        scores[rows[deciding]] = certainty(plan.distributions[deciding])
        new = distributions[rows].argmax(axis=1) != before.distributions[rows].argmax(axis=1)
        since = before.round.copy()
        since[rows[new | (since[rows] < 0)]] = len(before.trace) + 1
        prices = before.prices if before.trace else plan.prices
        done = Round(
            round=len(before.trace) + 1,
            sources=int((speaking >= 0).sum()),
            targets=int(deciding.sum()),
            accepted=int(new.sum()) if before.trace else len(rows),
            alpha=float(scores[rows].min()),
            lowered=False,
            unreachable=int((since < 0).sum()),
            converged=plan.solved.converged and plan.diffused,
            marginal_error=plan.solved.marginal_error,
            n_sweeps=plan.solved.n_sweeps,
            n_iter=plan.solved.n_iter,
            value=plan.solved.value,
        )
        report(done)
        return Spread(distributions, scores, since, prices, [*before.trace, done])

    def _diffused(self, voices: DoubleArray, kappa: float) -> _Evidence:
        normalised = self._graph.normalised
        found = diffuse(
            normalised,
            voices,
            kappa,
            workers=self._settings.solving.workers,
            tol=_DIFFUSED,
            max_iter=_MAX_STEPS,
        )
        noise = _DIFFUSED * np.sqrt((voices * voices).sum(axis=0))
        heard = _passed_on(found.values, noise, self._graph.walk)
        return _Evidence(heard[self.open_rows], bool(found.converged.all()))


def _passed_on(evidence: DoubleArray, noise: DoubleArray, walk: csr_matrix) -> DoubleArray:
    """Let rows too far for the diffusion's precision hear what their neighbours hear, hop by hop.

    Rows that hear more than noise keep their evidence, relative to its largest; those in no part
    of the graph with such a row hear nothing.
    """
    heard = np.asarray((evidence > noise).any(axis=1))
    relative = np.zeros_like(evidence)
    relative[heard] = evidence[heard] / evidence[heard].max(axis=1, keepdims=True)
    latest = np.flatnonzero(heard)
    while not heard.all() and len(latest):
        beside = np.unique(walk[latest].indices)
        latest = beside[~heard[beside]]
        mean = np.asarray(walk[latest] @ relative)
        relative[latest] = mean / mean.max(axis=1, keepdims=True)
        heard[latest] = True
    return relative


def _costs(evidence: DoubleArray) -> DoubleArray:
    """Return what it costs to carry mass over a kernel: its negative logarithm, rows from 0."""
    best = evidence.max(axis=1, keepdims=True)
    relative = np.divide(evidence, best, out=np.ones_like(evidence), where=best > 0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(-np.log(relative), _FARTHEST))
