"""The semi-dual at a point: what Newton's and Sinkhorn's method both look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, FloatArray
    from otprop.transport.marginals import MarginalRule
    from otprop.transport.sweep import Sweep

# Shares below this part of the expected error, a source, do not matter to the curvature.
_SHARES_KEPT = 1e-2
# Below this part of its due a source's mass has lost digits to underflow and is found in logs.
_UNDERFLOWN = 1e-6
# A warm start with an error up to this is not compared with a cold one, unless a source has been
# priced out of sight.
_GOOD_START = 0.1


class Point(NamedTuple):
    """Potentials with the value, the mass that the sources give, and the L1 error there."""

    f: FloatArray
    epsilon: float
    value: float
    mass: FloatArray
    error: float


class Problem:
    """Maximise A(f) + Σ_j b_j g_j(f): a marginal rule and a sweep, at any f and ε."""

    def __init__(self, sweep: Sweep, rule: MarginalRule) -> None:
        self.sweep = sweep
        self.rule = rule

    def at(self, f: FloatArray, epsilon: float, expected_error: float = 1.0) -> Point:
        """Evaluate at `f`, keeping the shares that matter for an error as small as expected.

        The shift of `f` is part of the evaluation: it rounds, and the error reported is that of
        the potentials reported.
        """
        f = self.rule.gauge(f)
        keep_above = _SHARES_KEPT * min(1.0, expected_error) / len(f)
        value, mass = self.sweep.evaluate(f, epsilon, keep_above)
        error = float(np.abs(self.rule.due(f) - mass).sum())
        return Point(f, epsilon, self.rule.value(f) + value, mass, error)

    def start(self, f: FloatArray | None, epsilon: float) -> Point:
        """Evaluate at `f`, or at a cold start if there is no `f` or the value there is higher."""
        cold = self.rule.lift(np.zeros(self.sweep.costs.shape[1]), epsilon)
        if f is None:
            return self.at(cold, epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            warm = self.at(f, epsilon)
        fed = bool((warm.mass >= _UNDERFLOWN * self.rule.due(warm.f)).all())
        if fed and warm.error <= _GOOD_START:
            return warm
        point = self.at(cold, epsilon)
        return self.at(f, epsilon) if warm.value > point.value else point

    def sinkhorn_step(self, point: Point, chosen: BoolArray) -> FloatArray:
        """Return the rule's fixed point for the sources chosen (Algorithm 1, both lines at once).

        The step never lowers the value, whichever sources are chosen.
        """
        due = self.rule.due(point.f)
        log_mass = np.log(np.maximum(point.mass, np.finfo(float).tiny))
        lost = np.flatnonzero(chosen & (point.mass < _UNDERFLOWN * due))
        if len(lost):
            log_mass[lost] = self.sweep.log_mass(point.f, point.epsilon, lost)
        fixed = self.rule.fixed_point(point.f, point.epsilon, log_mass)
        return np.where(chosen, fixed, point.f)
