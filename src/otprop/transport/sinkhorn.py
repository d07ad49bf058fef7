"""Sinkhorn's algorithm (Algorithm 1) in the log domain: the paper's reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otprop.arrays import FloatArray
    from otprop.transport.problem import Point, Problem


def sinkhorn(
    problem: Problem, f: FloatArray, epsilon: float, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Repeat f ← f + ε log(a / r(f)); return the last point and the number of steps.

    The softmax in r(f) is the second line of the loop, v ← b / Kᵀu: the targets' marginals hold
    exactly at every step.
    """
    point = problem.start(f, epsilon)
    for step in range(max_iter):
        if point.error <= tol:
            return point, step
        due = problem.rule.due(point.f)
        point = problem.at(problem.sinkhorn_step(point, due > 0), epsilon, point.error)
    return point, max_iter
