"""Newton's method on the semi-dual, annealed in ε."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.transport.linear import conjugate_gradients, solve_laplacian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otprop.transport.problem import Point, Problem
import os

E_ = lambda k, d: float(os.environ.get(k, d))
# Annealing: from an ε at which the first error is moderate down to the one asked for, each rung
# solved to one per cent.
_CLIMB = 4.0
_MODERATE_ERROR = E_("MOD", 0.03)
_HIGHEST_CLIMB = 60
_ANNEAL = E_("AN", 3)
_RUNG_TOL = E_("RT", 1e-2)

# A source that gives less than this part of its due is outside Newton's model, in which mass is
# linear in f: it first takes a step of Sinkhorn's.
_STARVED = E_("ST", 1e-2)

# Newton's model holds for steps of about ε. Longer ones are shortened to their logarithm.
_TRUSTED = E_("C", 1)

_DAMPING = 1e-3
_CG_SLACK = 0.1
# When conjugate gradients take longer, the system is solved directly if it is not too large.
_CG_STEPS = int(E_("CG", 50))
_LARGEST_GRAPH = 4096
_PATIENT_CG_STEPS = 500

_SUFFICIENT_RISE = 1e-4
_ERROR_FALL = 0.9
_SHORTEST_STEP = 1e-5
_STILL_STEEP = E_("STEEP", 0.5)
_STALL = int(E_("STALL", 20))


def newton(
    problem: Problem, f: NDArray, epsilon: float, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Maximise the semi-dual from `f`; return the best point, at `epsilon`, and the steps taken."""
    point = _climb(problem, problem.start(f, epsilon))
    rung, steps = point.epsilon, 0
    while rung > epsilon and steps < max_iter:
        point, taken = _solve_rung(problem, point, max(tol, _RUNG_TOL), max_iter - steps)
        steps += taken
        rung = max(rung / _ANNEAL, epsilon)
        point = problem.at(point.f, rung, _RUNG_TOL)
    if point.epsilon != epsilon:
        point = problem.at(point.f, epsilon)
    point, taken = _solve_rung(problem, point, tol, max_iter - steps)
    return point, steps + taken


def _climb(problem: Problem, start: Point) -> Point:
    """Find an ε, at least the one asked for, at which the error is moderate."""
    point, epsilon = start, start.epsilon
    if start.error <= _MODERATE_ERROR:
        return start
    highest = problem.sweep.cost_range()
    while point.error > _MODERATE_ERROR and epsilon < highest:
        epsilon *= _CLIMB
        point = problem.at(problem.rule.lift(start.f, epsilon - start.epsilon), epsilon)
    return point


def _solve_rung(problem: Problem, point: Point, tol: float, max_iter: int) -> tuple[Point, int]:
    """Take steps at one ε until the error is at most `tol` or no step helps; return the best."""
    best, since, fed = point, 0, False
    for step in range(max_iter):
        if point.error <= tol:
            return point, step
        starved = point.mass < _STARVED * problem.rule.due(point.f)
        # Two sources that live on the same targets would starve one another for ever.
        fed = bool(starved.any()) and not fed
        if fed:
            f = problem.sinkhorn_step(point, starved)
            better: Point | None = problem.at(f, point.epsilon, point.error)
        else:
            better = _line_search(problem, point, _direction(problem, point, tol))
        if better is None or since == _STALL:
            return best, step
        point = better
        since += 1
        if point.error < best.error:
            best, since = point, 0
    return best, max_iter


def _direction(problem: Problem, point: Point, tol: float) -> NDArray:
    """Solve −∇²F x = ∇F, both sides times ε, to an accuracy that the error makes worthwhile.

    The curvature is a graph Laplacian, so any increasing function of its exact solution is a
    direction of ascent too (the sum over the edges has no negative term): here, one that grows
    like the logarithm, because the mass across a weak edge grows exponentially with f.
    """
    scale = min(1.0, point.error)
    due = problem.rule.due(point.f)
    damping = E_("DA", 1e-3) * scale * np.maximum(due, np.finfo(float).tiny)
    excess = point.epsilon * problem.rule.stiffness(point.f) + damping
    diagonal = point.mass + excess
    gradient = due - point.mass
    accuracy = max(min(_CG_SLACK, scale), _CG_SLACK * tol / point.error)
    x, accurate = conjugate_gradients(
        lambda v: diagonal * v - problem.sweep.spread(v), diagonal, gradient, accuracy, _CG_STEPS
    )
    if not accurate and len(x) <= _LARGEST_GRAPH:
        graph = problem.sweep.joined()
        if graph is not None:
            x = solve_laplacian(graph, excess, gradient)
    return point.epsilon * _TRUSTED * np.arcsinh(x / _TRUSTED)


def _line_search(problem: Problem, point: Point, x: NDArray) -> Point | None:
    """Find a step that helps: lengthen it while the slope stays steep, else halve it."""

    def at(length: float) -> tuple[Point, float]:
        there = problem.at(point.f + length * x, point.epsilon, point.error)
        return there, float((problem.rule.due(there.f) - there.mass) @ x)

    steepest = float((problem.rule.due(point.f) - point.mass) @ x)
    length = 1.0
    candidate, slope = at(length)
    while slope > _STILL_STEEP * steepest:
        length *= 2
        farther, slope = at(length)
        if slope < -_STILL_STEEP * steepest:
            # the sweep's shares belong to the point that is returned
            return problem.at(candidate.f, point.epsilon, point.error)
        candidate = farther
    while length >= _SHORTEST_STEP:
        # A function that is concave has risen where its slope is not negative, even if the rise
        # drowns in rounding.
        risen = candidate.value >= point.value + _SUFFICIENT_RISE * length * steepest
        if risen or slope >= 0 or candidate.error <= _ERROR_FALL * point.error:
            return candidate
        length /= 2
        candidate, slope = at(length)
    return None
