"""Newton's method on the semi-dual, annealed in ε."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.transport.linear import conjugate_gradients, solve_laplacian
from otprop.transport.sums import inner

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, FloatArray
    from otprop.transport.problem import Point, Problem

# Annealing: from an ε at which the first error is moderate down to the one asked for, each rung
# solved to one per cent. While sources starve a moderate error is not enough: a few that lie far
# from everything have little mass, and yet a long way to go.
_CLIMB = 4.0
_MODERATE_ERROR = 0.5
_MODERATE_ERROR_STARVED = 3e-2
_ANNEAL = 3.0
_RUNG_TOL = 1e-2

# A source that gives less than this part of its due is outside Newton's model, in which mass is
# linear in f: it first takes a step of Sinkhorn's.
_STARVED = 1e-2

_DAMPING = 1e-3
_CG_SLACK = 0.1
_CG_STEPS = 500
# The system is solved directly when conjugate gradients take longer than that would. It needs a
# matrix of this many rows at the most, and part of it once more: 128 to 256 MB.
_LARGEST_GRAPH = 4096
_FEWEST_CG_STEPS = 50

_STEEP = 0.5
_SUFFICIENT_RISE = 1e-4
_ERROR_FALL = 0.9
_SHORTEST_STEP = 1e-5
_LONGEST_STEP = 2.0**20
# Steps without a new least error after which the solver has done what rounding allows.
_STALL = 40


def newton(
    problem: Problem, f: FloatArray | None, epsilon: float, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Maximise the semi-dual from `f`, or from a cold start.

    Returns the best point, at `epsilon`, and the steps taken.
    """
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
    """Find an ε, from the one asked for up, at which Newton's method may start.

    Above the range of the costs a higher ε changes nothing, whatever the error.
    """
    point, epsilon = start, start.epsilon
    if _is_near(problem, start):
        return start
    highest = problem.sweep.cost_range()
    while not _is_near(problem, point) and epsilon < highest:
        epsilon *= _CLIMB
        point = problem.at(problem.rule.lift(start.f, epsilon - start.epsilon), epsilon)
    return point


def _is_near(problem: Problem, point: Point) -> bool:
    """Tell whether Newton's method may start at the point."""
    starves = bool(_starved(problem, point).any())
    return point.error <= (_MODERATE_ERROR_STARVED if starves else _MODERATE_ERROR)


def _starved(problem: Problem, point: Point) -> BoolArray:
    return np.asarray(point.mass < _STARVED * problem.rule.due(point.f))


def _solve_rung(problem: Problem, point: Point, tol: float, max_iter: int) -> tuple[Point, int]:
    """Take steps at one ε until the error is at most `tol` or no step helps; return the best."""
    best, since, fed = point, 0, False
    for step in range(max_iter):
        if point.error <= tol:
            return point, step
        starved = _starved(problem, point)
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


def _direction(problem: Problem, point: Point, tol: float) -> FloatArray:
    """Solve −∇²F x = ∇F, both sides times ε, and shorten what is long.

    The curvature is a graph's Laplacian, so any increasing function of its solution is a direction
    of ascent too (the sum over the edges has no negative term). This one grows like a logarithm,
    because the mass that crosses a weak edge grows exponentially with f.
    """
    due = problem.rule.due(point.f)
    scale = min(1.0, point.error)
    # Sources of weight 0 have no curvature at all.
    damping = np.maximum(_DAMPING * scale * due, np.finfo(float).tiny)
    excess = point.epsilon * problem.rule.stiffness(point.f) + damping
    gradient = due - point.mass
    direct = problem.sweep.sparse and len(gradient) <= _LARGEST_GRAPH
    x, accurate = conjugate_gradients(
        problem.sweep.spread,
        point.mass + excess,
        gradient,
        accuracy=max(min(_CG_SLACK, scale), _CG_SLACK * tol / point.error),
        max_iter=_cg_steps(len(gradient)) if direct else _CG_STEPS,
    )
    if direct and not accurate:
        x = solve_laplacian(problem.sweep.joined(), excess, gradient)
    return np.asarray(point.epsilon * np.arcsinh(x))


def _cg_steps(sources: int) -> int:
    """Return how many steps of conjugate gradients about match the direct solution in time."""
    return max(_FEWEST_CG_STEPS, int(_CG_STEPS * (sources / _LARGEST_GRAPH) ** 2))


def _line_search(problem: Problem, point: Point, x: FloatArray) -> Point | None:
    """Double the step while the slope stays steep, or halve it until it helps, if it ever does."""

    def at(length: float) -> tuple[Point, float]:
        there = problem.at(point.f + length * x, point.epsilon, point.error)
        return there, inner(problem.rule.due(there.f) - there.mass, x)

    steep = _STEEP * inner(problem.rule.due(point.f) - point.mass, x)
    length = 1.0
    candidate, slope = at(length)
    while slope > steep and length < _LONGEST_STEP:
        length *= 2
        farther, slope = at(length)
        if slope < -steep:
            # Too far. The sweep must remember the shares of the point that is returned.
            return at(length / 2)[0]
        candidate = farther
    while length >= _SHORTEST_STEP:
        # A concave function has risen where its slope is not negative, even if the rise drowns in
        # rounding; so may a fall of the error show what the value cannot.
        risen = candidate.value >= point.value + _SUFFICIENT_RISE * length * steep
        if risen or slope >= 0 or candidate.error <= _ERROR_FALL * point.error:
            return candidate
        length /= 2
        candidate, slope = at(length)
    return None
