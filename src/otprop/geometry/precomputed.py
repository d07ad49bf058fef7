"""The caller's own costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import FloatArray, IntArray


class Precomputed:
    """Costs read from a matrix with one row a target and one column a point."""

    def __init__(self, cost: FloatArray) -> None:
        self.dtype: np.dtype[Any] = cost.dtype
        # Row by row: no mask as large as the matrix.
        self.may_forbid = any(bool(np.isposinf(row).any()) for row in cost)
        self._cost = cost
        self._sources = np.empty(0, np.intp)

    def add_sources(self, points: IntArray) -> None:
        """Append sources, given as column numbers."""
        self._sources = np.concatenate([self._sources, points])

    def fill(self, targets: IntArray, first: int, out: FloatArray) -> None:
        """Write the costs of `targets` to the sources from `first` on, one row a target."""
        chosen = self._sources[first : first + out.shape[1]]
        out[:] = self._cost[np.ix_(targets, chosen)]
