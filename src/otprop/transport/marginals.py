"""Marginal rules: what the sources must give, as the concave term A(f) of the semi-dual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from otprop.transport.sums import inner

if TYPE_CHECKING:
    from otprop.arrays import FloatArray


# A weighted mean is known to this part of the weighted mean size.
_ROUNDING = 1e-14


class MarginalRule(Protocol):
    """A separable concave term A(f), with what the solvers ask of it: a new rule is one class."""

    def value(self, f: FloatArray) -> float:
        """Return A(f)."""
        ...

    def due(self, f: FloatArray) -> FloatArray:
        """Return ∇A(f): the mass that each source should give at `f`."""
        ...

    def stiffness(self, f: FloatArray) -> FloatArray:
        """Return the diagonal of −∇²A(f)."""
        ...

    def gauge(self, f: FloatArray) -> FloatArray:
        """Return the representative of `f` among the potentials that give the same plan.

        It is −∞ where a source takes no part.
        """
        ...

    def lift(self, f: FloatArray, rise: float) -> FloatArray:
        """Return what `f` becomes where ε is larger by `rise`; 0 lifted by ε is a cold start."""
        ...

    def fixed_point(self, f: FloatArray, epsilon: float, log_mass: FloatArray) -> FloatArray:
        """Return Sinkhorn's update of each source: the f' whose due is mass · exp((f' − f)/ε)."""
        ...


class Rows:
    """Every source gives its weight exactly (Eq. 8): A(f) = Σ a_i f_i.

    A source of weight 0 takes no part; its potential is −∞.
    """

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self._part = weights > 0
        self._log_weights = np.log(np.where(self._part, weights, 1.0))

    def value(self, f: FloatArray) -> float:
        """Return Σ a_i f_i."""
        return inner(self.weights, np.where(self._part, f, 0.0))

    def due(self, f: FloatArray) -> FloatArray:  # noqa: ARG002 - the rule's shape
        """Return a."""
        return self.weights

    def stiffness(self, f: FloatArray) -> FloatArray:
        """Return 0: A is linear."""
        return np.zeros_like(f)

    def gauge(self, f: FloatArray) -> FloatArray:
        """Shift `f` to a weighted mean of 0, but for what is rounding itself; −∞ at weight 0."""
        mean = self.value(f)
        size = inner(self.weights, np.abs(np.where(self._part, f, 0.0)))
        shift = 0.0 if abs(mean) <= _ROUNDING * size else mean
        return np.where(self._part, f - shift, -np.inf)

    def lift(self, f: FloatArray, rise: float) -> FloatArray:
        """Return f + rise log a: the shares are a themselves where ε outweighs every cost."""
        return np.asarray(f + rise * self._log_weights)

    def fixed_point(self, f: FloatArray, epsilon: float, log_mass: FloatArray) -> FloatArray:
        """Return f + ε log(a / mass)."""
        return np.asarray(f + epsilon * (self._log_weights - log_mass))


class Relaxed:
    """Giving more or less than the weight costs ρ·KL: A(f) = −ρ Σ a_i (exp(−f_i/ρ) − 1).

    ρ → ∞ is `Rows`, ρ → 0 the plain vote of the kernel. A source of weight 0 takes no part; its
    potential is −∞.
    """

    def __init__(self, weights: FloatArray, relaxation: float) -> None:
        self.weights = weights
        self.relaxation = relaxation
        self._part = weights > 0
        self._log_weights = np.log(np.where(self._part, weights, 1.0))

    def value(self, f: FloatArray) -> float:
        """Return −ρ Σ a_i (exp(−f_i/ρ) − 1)."""
        scaled = np.where(self._part, f, 0.0) / self.relaxation
        return -self.relaxation * inner(self.weights, np.expm1(-scaled))

    def due(self, f: FloatArray) -> FloatArray:
        """Return a exp(−f/ρ)."""
        scaled = np.where(self._part, f, 0.0) / self.relaxation
        return np.asarray(self.weights * np.exp(-scaled))

    def stiffness(self, f: FloatArray) -> FloatArray:
        """Return the mass that is due, over ρ."""
        return np.asarray(self.due(f) / self.relaxation)

    def gauge(self, f: FloatArray) -> FloatArray:
        """Shift `f` to where Σ due = 1, the best of its shifts; −∞ at weight 0.

        The shift is f + ρ log Σ a_i exp(−f_i/ρ), taken from the least potential up so that it
        loses no digits, and left out where it is rounding itself.
        """
        least = f[self._part].min()
        above = np.where(self._part, f - least, 0.0)
        rise = self._rise(above)
        gauged = above + rise
        widest = min(self.relaxation, above.max())
        size = inner(self.due(gauged), np.abs(gauged)) + widest
        return np.where(self._part, f if abs(rise - least) <= _ROUNDING * size else gauged, -np.inf)

    def _rise(self, above: FloatArray) -> float:
        """Return ρ log Σ a_i exp(−f_i/ρ), for potentials of which the least is 0."""
        scaled = above / self.relaxation
        if scaled.max() <= 1.0:
            return float(self.relaxation * np.log1p(inner(self.weights, np.expm1(-scaled))))
        terms = np.where(self._part, self._log_weights - scaled, -np.inf)
        top = terms.max()
        return float(self.relaxation * (top + np.log(np.exp(terms - top).sum())))

    def lift(self, f: FloatArray, rise: float) -> FloatArray:
        """Return f + ρ rise / (ρ + rise) log a: a cold start is exact where ε outweighs costs."""
        return np.asarray(f + rise / (1.0 + rise / self.relaxation) * self._log_weights)

    def fixed_point(self, f: FloatArray, epsilon: float, log_mass: FloatArray) -> FloatArray:
        """Return (f + ε log(a / mass)) ρ / (ρ + ε)."""
        fixed = f + epsilon * (self._log_weights - log_mass)
        return np.asarray(fixed / (1.0 + epsilon / self.relaxation))
