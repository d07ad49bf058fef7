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
