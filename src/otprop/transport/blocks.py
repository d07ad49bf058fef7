"""Costs read a block of targets at a time: what a sweep needs to know of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from otprop.arrays import FloatArray, IntArray

# Entries of the cost that one task works on: large enough to hide the call, small enough that the
# block's shares stay in cache.
_BLOCK_ENTRIES = 1 << 19


def block_rows(sources: int) -> int:
    """Return how many targets make a block. It depends on nothing but the number of sources."""
    return max(64, _BLOCK_ENTRIES // max(sources, 1))


class CostBlocks(Protocol):
    """Costs between targets and sources, wherever they are: in memory, recomputed, elsewhere."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of targets and of sources."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Single or double precision."""
        ...

    def read(self, start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """Return an array and the rows of it that hold targets `start` to `stop`.

        The rows may be longer than the number of sources; what stands behind is ignored.
        """
        ...


class ArrayCosts:
    """A cost matrix in memory, one row a target."""

    def __init__(self, cost: FloatArray) -> None:
        self._cost = cost
        self._rows = np.arange(cost.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of targets and of sources."""
        targets, sources = self._cost.shape
        return targets, sources

    @property
    def dtype(self) -> np.dtype[Any]:
        """Single or double precision."""
        return self._cost.dtype

    def read(self, start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """Return the matrix and the rows `start` to `stop`."""
        return self._cost, self._rows[start:stop]
