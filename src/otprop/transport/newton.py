"""Newton's method with conjugate gradients on the semi-dual, annealed in ε."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from otprop.transport.problem import Point, Problem

# Annealing: from an ε at which the first error is moderate down to the one asked for. Halving ε,
# and solving each rung to one per cent, keeps Newton's full step acceptable all the way; larger
# strides cost more sweeps in line searches than they save.
_CLIMB = 4.0
_MODERATE_ERROR = 0.5
_HIGHEST_CLIMB = 60
_ANNEAL = 2.0
_RUNG_TOL = 1e-2

# A source that gives less than this part of its due is outside Newton's model, in which mass is
# linear in f: it first takes a step of Sinkhorn's.
_STARVED = 1e-2

_DAMPING = 1e-3
_SUFFICIENT_RISE = 1e-4
_ERROR_FALL = 0.9
_SHORTEST_STEP = 1e-5
_CG_STEPS = 500
_CG_SLACK = 0.1


def newton(
    problem: Problem, f: NDArray, epsilon: float, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Maximise the semi-dual from `f`; return the last point, at `epsilon`, and the steps taken."""
    point = _climb(problem, f, epsilon)
    rung, steps = point.epsilon, 0
    while rung > epsilon and steps < max_iter:
        point, taken = _solve_rung(problem, point, max(tol, _RUNG_TOL), max_iter - steps)
        steps += taken
        rung /= _ANNEAL
        point = problem.at(point.f, rung, _RUNG_TOL)
    if point.epsilon != epsilon:
        point = problem.at(point.f, epsilon)
    point, taken = _solve_rung(problem, point, tol, max_iter - steps)
    return point, steps + taken


def _climb(problem: Problem, f: NDArray, epsilon: float) -> Point:
    """Find an ε, a power of four times the one asked for, at which the error is moderate."""
    rung = epsilon
    point = problem.at(f, rung)
    for _ in range(_HIGHEST_CLIMB):
        if point.error <= _MODERATE_ERROR:
            break
        rung *= _CLIMB
        # f is kept in units of ε here: what makes a cold start (f = ε log a) good at a high ε.
        f = f * _CLIMB
        point = problem.at(f, rung)
    return point


def _solve_rung(problem: Problem, point: Point, tol: float, max_iter: int) -> tuple[Point, int]:
    """Take steps at one ε until the error is at most `tol` or no step helps."""
    for step in range(max_iter):
        if point.error <= tol:
            return point, step
        starved = point.mass < _STARVED * problem.rule.due(point.f)
        if starved.any():
            f = problem.sinkhorn_step(point, starved)
            point = problem.at(f, point.epsilon, point.error)
            continue
        better = _line_search(problem, point, _direction(problem, point, tol))
        if better is None:
            return point, step
        point = better
    return point, max_iter


def _direction(problem: Problem, point: Point, tol: float) -> NDArray:
    """Solve −∇²F x = ∇F, both sides times ε, to an accuracy that the error makes worthwhile."""
    scale = min(1.0, point.error)
    damping = _DAMPING * scale / len(point.f)
    diagonal = point.epsilon * problem.rule.stiffness(point.f) + point.mass + damping
    accuracy = max(min(_CG_SLACK, scale), _CG_SLACK * tol / point.error)
    gradient = problem.rule.due(point.f) - point.mass
    x = conjugate_gradients(
        lambda v: diagonal * v - problem.sweep.spread(v), diagonal, gradient, accuracy
    )
    return point.epsilon * x


def conjugate_gradients(
    apply: Callable[[NDArray], NDArray], diagonal: NDArray, right: NDArray, accuracy: float
) -> NDArray:
    """Solve a positive definite system, preconditioned by its diagonal."""
    x = np.zeros_like(right)
    residual = right.copy()
    z = residual / diagonal
    p = z.copy()
    rz = residual @ z
    goal = accuracy**2 * rz
    for _ in range(_CG_STEPS):
        image = apply(p)
        curvature = p @ image
        if curvature <= 0:  # only by rounding
            break
        length = rz / curvature
        x += length * p
        residual -= length * image
        z = residual / diagonal
        old, rz = rz, residual @ z
        if rz <= goal:
            break
        p = z + rz / old * p
    return x


def _line_search(problem: Problem, point: Point, x: NDArray) -> Point | None:
    """Halve the step until the value rises enough or the error falls; None if neither happens."""
    slope = (problem.rule.due(point.f) - point.mass) @ x
    length = 1.0
    while length >= _SHORTEST_STEP:
        candidate = problem.at(point.f + length * x, point.epsilon, point.error)
        if candidate.value >= point.value + _SUFFICIENT_RISE * length * slope:
            return candidate
        # Near the solution the rise drowns in rounding, the error does not.
        if candidate.error <= _ERROR_FALL * point.error:
            return candidate
        length /= 2
    return None
