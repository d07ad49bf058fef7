"""Sinkhorn's algorithm (Algorithm 1) in the log domain: the paper's reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import FloatArray
    from otprop.transport.problem import Point, Problem


def sinkhorn(
    problem: Problem, f: FloatArray | None, epsilon: float, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Repeat f ← f + ε log(a / r(f)), or the like of another rule; return the last point.

    The second number returned is that of the steps.

    The softmax in r(f) is the second line of the loop, v ← b / Kᵀu: the targets' marginals hold
    exactly at every step.
    """
    point = problem.start(f, epsilon)
    for step in range(max_iter):
        if point.error <= tol:
            return point, step
        every = np.ones(len(point.f), bool)
        point = problem.at(problem.sinkhorn_step(point, every), epsilon, point.error)
    return point, max_iter
