"""From a table and parameters to a fitted model: choose what was left open, spread the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from otprop import notices, validation
from otprop.confidence import HeldOut, calibrate
from otprop.geometry import Graph, local_scales
from otprop.models import FittedCosts, FittedGraph, geometry, twins
from otprop.propagation import (
    GraphSettings,
    Marginals,
    Prior,
    Replay,
    Settings,
    Solving,
    alike,
    propagate,
    spread,
)
from otprop.scaling import can_discriminate, fit_scaling
from otprop.selection import (
    CostsAsked,
    GraphAsked,
    Selection,
    Values,
    choose_costs,
    choose_graph,
    contradicted,
    scored,
    unvalidated_tolerance,
)
from otprop.selection.folds import enough_to_validate, folds, judged_rows
from otprop.validation import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from otprop.arrays import DoubleArray, IntArray
    from otprop.confidence import Calibration
    from otprop.propagation import Round
    from otprop.selection import Candidate, CostChoice, GraphChoice
    from otprop.transport import Workers

# Arrays of a number for each row and source that a plan by sources holds at a time.
_KERNELS = 5
GRAPHS = ("graph", "precomputed-graph")


class Task(NamedTuple):
    """Validated data and parameters."""

    table: Any  # rows; costs or affinities of all rows to all rows, if these are given
    labels: IntArray  # class numbers, -1 for rows without
    classes: NDArray[Any]  # their names
    parameters: Mapping[str, Any]
    workers: Workers
    report: Callable[[Round], None]

    def asked(self, name: str) -> Any:
        """Return a parameter; None if its choice is left to the labelled rows."""
        value = self.parameters[name]
        return None if isinstance(value, str) and value == "auto" else value


class Outcome(NamedTuple):
    """A fitted model and what it found; arrays have one entry for each row."""

    model: FittedCosts | FittedGraph
    distributions: DoubleArray
    certainty: DoubleArray
    round: IntArray
    trace: list[Round]
    epsilon: float
    selection: Selection
    calibration: Calibration


def fit(task: Task) -> Outcome:
    """Choose what was left open, and spread the labels."""
    _check_scaling(task)
    name = task.asked("geometry")
    if name is None and task.asked("epsilon") is not None:
        name = "euclidean"  # ε belongs to costs
    if name in GRAPHS:
        return _fit_graph(task, name, _graph_choice(task, name), [])
    if name is not None:
        return _fit_costs(task, name, _cost_choice(task, name), [])
    graph = _graph_choice(task, "graph")
    costs = None if graph.held_out is None else _usable_costs(task)
    if costs is None or graph.held_out is None:
        return _fit_graph(task, "graph", graph, [])
    lines = [
        line._replace(values={"geometry": "euclidean", **line.values}) for line in costs.candidates
    ]
    if costs.held_out is None or costs.held_out.accuracy <= graph.held_out.accuracy:
        return _fit_graph(task, "graph", graph, lines)
    # Left out one by one, labels are found more often; now as the graph had to find them.
    held_out = _hidden_from_costs(task, costs)
    lines.append(scored(lines[0].values, held_out))
    if held_out.surely_more_often_right(graph.held_out):
        costs = costs._replace(held_out=held_out, candidates=lines)
        return _fit_costs(task, "euclidean", costs, graph.selection.candidates)
    return _fit_graph(task, "graph", graph, lines)


def _usable_costs(task: Task) -> CostChoice | None:
    """Return what squared distances would be used with; None if they cannot be."""
    try:
        return _cost_choice(task, "euclidean")
    except ValueError:  # too small for the precision
        return None


def _hidden_from_costs(task: Task, choice: CostChoice) -> HeldOut:
    """Return what a fit with costs finds of labels while they are hidden, fold by fold."""
    found = np.zeros((len(task.labels), len(task.classes)))
    for hidden in folds(task.table, task.labels):
        seen = task.labels.copy()
        seen[hidden] = -1
        settings = _cost_settings(task, choice, _cost_tolerance(task, choice, seen), seen)
        costs = geometry(choice.points, choice.points)
        done = propagate(costs, seen, len(task.classes), settings, lambda _: None)
        found[hidden] = done.distributions[hidden]
    judged = judged_rows(task.labels)
    return HeldOut(found[judged], task.labels[judged])


def _check_scaling(task: Task) -> None:
    """Raise if the scaling that is asked for cannot be found."""
    name = task.asked("scaling")
    if name in {None, "none"} or task.parameters["geometry"] in RELATIONS:
        return
    if sparse.issparse(task.table):
        raise ValueError(
            f"scaling={name!r} would fill up a sparse X; take scaling='none', or hand in an array. "
            "sklearn.preprocessing.MaxAbsScaler scales sparse columns."
        )
    if name == "discriminant" and not can_discriminate(task.labels):
        raise ValueError(
            "scaling='discriminant' needs a class with two labelled rows, to see how far rows of a "
            "class lie apart. Label more rows, or take scaling='standard'."
        )


def _graph_choice(task: Task, name: str) -> GraphChoice:
    given = None
    if name in RELATIONS:
        # Affinities that are the same in both directions but for rounding are made so.
        given = Graph.of_affinity(_larger(task.table, task.table.T))
    by_classes = _marginal_rule(task) == "classes"
    diffusion = task.asked("diffusion")
    asked = GraphAsked(
        scaling="none" if given is not None else task.asked("scaling"),
        n_neighbors=task.asked("n_neighbors"),
        diffusion=None if diffusion is None else float(diffusion),
        tolerance=task.asked("class_tolerance") if by_classes else np.inf,
        rounds=task.asked("rounds"),
        prior=lambda labels, tolerance: _prior(task, labels, tolerance),
        prior_given=_class_prior(task) is not None,
        settings=lambda values, prior: _graph_settings(task, values, prior),
        workers=task.workers,
    )
    return choose_graph(task.table, given, task.labels, len(task.classes), asked)


def _fit_graph(task: Task, name: str, choice: GraphChoice, more: list[Candidate]) -> Outcome:
    _check_memory(task)
    values, ground, graph = choice.values, choice.ground, choice.graph
    prior = _prior(task, task.labels, values.tolerance)
    settings = _graph_settings(task, values, prior)
    found = spread(graph, task.labels, len(task.classes), settings, task.report)
    if ground is not None:
        found = alike(found, twins(ground.neighbours), task.labels)
    prices = found.prices
    if settings.marginals.rule == "classes":
        # A class speaks with one voice: each of its rows with a part of it.
        given = task.labels[task.labels >= 0]
        prices = prices - np.log(np.bincount(given))[given]
    scaling = fit_scaling("none", task.table, task.labels) if ground is None else ground.scaling
    scales = np.empty(0)
    if ground is not None:
        scales = local_scales(ground.neighbours.squared[:, : values.n_neighbors])
    model = FittedGraph(
        graph=graph,
        points=None if ground is None else ground.points,
        scales=scales,
        n_neighbors=values.n_neighbors,
        diffusion=values.diffusion,
        labels=task.labels,
        prices=prices,
        distributions=found.distributions,
        round=found.round,
        scaling=scaling,
        dtype=task.table.dtype,
    )
    chosen = {"geometry": name, "marginals": settings.marginals.rule, **choice.selection.chosen}
    return Outcome(
        model=model,
        distributions=found.distributions,
        certainty=found.certainty,
        round=found.round,
        trace=found.trace,
        epsilon=1.0,  # the kernel is exp(−cost/1)
        selection=choice.selection.extended(chosen, more),
        calibration=calibrate(choice.held_out),
    )


def _check_memory(task: Task) -> None:
    """Raise if sources that each have a price take more memory than is allowed."""
    sources = int((task.labels >= 0).sum())
    need = _KERNELS * 8.0 * len(task.labels) * sources
    limit = validation.memory_bytes(task.parameters["memory_limit"])
    if _marginal_rule(task) != "classes" and need > limit:
        raise ValueError(
            f"marginals={_marginal_rule(task)!r} on a graph of {len(task.labels):,} rows needs "
            f"about {need / 2**30:.1f} GiB for {sources:,} sources, and memory_limit is "
            f"{task.parameters['memory_limit']!r}. Take marginals='classes', or raise the limit."
        )


def _cost_choice(task: Task, name: str) -> CostChoice:
    epsilon = task.asked("epsilon")
    if epsilon is not None:
        validation.check_epsilon(float(epsilon), task.table.dtype, chosen=False)
    asked = CostsAsked(
        precomputed=name == "precomputed",
        scaling="none" if name in RELATIONS else task.asked("scaling"),
        epsilon=None if epsilon is None else float(epsilon),
        alpha=float(task.parameters["alpha"]),
    )
    choice = choose_costs(task.table, task.labels, len(task.classes), asked, task.workers)
    validation.check_epsilon(choice.epsilon, task.table.dtype, chosen=epsilon is None)
    return choice


def _fit_costs(task: Task, name: str, choice: CostChoice, more: list[Candidate]) -> Outcome:
    if choice.held_out is None and task.asked("epsilon") is None:
        notices.warn(
            "epsilon='auto' had nothing to choose by, as every class has a single label: it "
            "is a sixteenth of the median cost between nearest labelled rows, "
            f"{choice.epsilon:.4g}. Label more rows or give epsilon.",
            UserWarning,
        )
    points = None if name == "precomputed" else choice.points
    costs = geometry(choice.points, points)
    tolerance = _cost_tolerance(task, choice, task.labels, given=points is None)
    settings = _cost_settings(task, choice, tolerance, task.labels)
    found = propagate(costs, task.labels, len(task.classes), settings, task.report)
    replay = Replay(
        epsilon=choice.epsilon,
        labels=found.labels,
        classes=len(task.classes),
        potentials=found.potentials,
        thresholds=found.thresholds,
    )
    model = FittedCosts(
        replay=replay,
        source_rows=found.sources,
        points=None if points is None else points[found.sources],
        scaling=choice.scaling,
        dtype=task.table.dtype,
        rows=len(task.labels),
    )
    chosen = {
        "geometry": name,
        "marginals": settings.marginals.rule,
        "scaling": choice.scaling.name,
        "epsilon": choice.epsilon,
        "tolerance": tolerance,
    }
    reason = "too few labels to leave any out" if choice.held_out is None else "leaving labels out"
    return Outcome(
        model=model,
        distributions=found.distributions,
        certainty=found.certainty,
        round=found.round,
        trace=found.trace,
        epsilon=choice.epsilon,
        selection=Selection(chosen, reason, [*more, *choice.candidates]),
        calibration=calibrate(choice.held_out),
    )


def _cost_settings(task: Task, choice: CostChoice, tolerance: float, labels: IntArray) -> Settings:
    return Settings(
        epsilon=choice.epsilon,
        alpha=float(task.parameters["alpha"]),
        stall=task.parameters["stall"],
        marginals=_marginals(task, _prior(task, labels, tolerance), choice.epsilon),
        solving=_solving(task),
        memory=validation.memory_bytes(task.parameters["memory_limit"]),
    )


def _cost_tolerance(
    task: Task, choice: CostChoice, labels: IntArray, *, given: bool = False
) -> float:
    """Return the tolerance of the classes' totals, by the same rules as on a graph.

    Where pairs of `given` costs are forbidden, no plan may have the labels' totals.
    """
    asked = task.asked("class_tolerance")
    if _marginal_rule(task) != "classes":
        return np.inf
    if asked is not None:
        return float(asked)
    if _class_prior(task) is not None:
        return 0.0
    return _open_cost_tolerance(task, choice, labels, given=given)


def _open_cost_tolerance(task: Task, choice: CostChoice, labels: IntArray, *, given: bool) -> float:
    costs = geometry(choice.points, None if given else choice.points)
    if costs.may_forbid:
        return np.inf
    counts = np.bincount(labels[labels >= 0], minlength=len(task.classes))
    if choice.held_out is None or not enough_to_validate(labels):
        return unvalidated_tolerance(counts)
    if (labels >= 0).all():
        return 0.0
    vote = replace(_cost_settings(task, choice, np.inf, labels), alpha=0.0)
    found = propagate(costs, labels, len(task.classes), vote, lambda _: None)
    voted = found.distributions[labels < 0]
    return np.inf if contradicted(voted, counts, choice.held_out) else 0.0


def _graph_settings(task: Task, values: Values, prior: Prior) -> GraphSettings:
    return GraphSettings(
        diffusion=values.diffusion,
        rounds=values.rounds,
        marginals=_marginals(task, prior, 1.0),
        widened=_class_prior(task) is None and task.asked("class_tolerance") is None,
        solving=_solving(task),
    )


def _marginals(task: Task, prior: Prior, epsilon: float) -> Marginals:
    relaxation = task.asked("relaxation")
    return Marginals(
        rule=_marginal_rule(task),
        relaxation=epsilon if relaxation is None else float(relaxation),
        prior=prior,
    )


def _marginal_rule(task: Task) -> Any:
    return task.asked("marginals") or "classes"


def _class_prior(task: Task) -> Any:
    """Return the classes' parts that were asked for; other rules than theirs know of none."""
    return task.parameters["class_prior"] if _marginal_rule(task) == "classes" else None


def _solving(task: Task) -> Solving:
    parameters = task.parameters
    return Solving(
        tol=float(parameters["tol"]),
        solver=parameters["solver"],
        max_iter=parameters["max_iter"],
        workers=task.workers,
    )


def _prior(task: Task, labels: IntArray, tolerance: float) -> Prior:
    """Return the classes' parts as given, or those that they have among some labels."""
    given, classes = _class_prior(task), len(task.classes)
    if given is None or (isinstance(given, str) and given == "labels"):
        parts = np.bincount(labels[labels >= 0], minlength=classes).astype(np.float64)
    elif isinstance(given, str):
        parts = np.ones(classes)
    else:
        parts = np.array([given[name] for name in task.classes.tolist()], np.float64)
    return Prior(parts / parts.sum(), tolerance)


def _larger(one: Any, other: Any) -> Any:
    return one.maximum(other) if sparse.issparse(one) else np.maximum(one, other)
