"""The costs of the targets still open to the sources so far, from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otprop.transport import block_rows

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, FloatArray, IntArray
    from otprop.geometry import Geometry
    from otprop.transport import CostBlocks, Workers


class OpenCosts:
    """Costs kept in memory while they fit, else recomputed in blocks; the same to the bit.

    A round moves targets to the sources: only their columns are computed anew. Rows of targets
    that have left stay in the array until it has to grow; while it grows, both arrays together
    keep to the memory allowed.
    """

    def __init__(
        self,
        geometry: Geometry,
        targets: IntArray,
        sources: IntArray,
        workers: Workers,
        memory: float,
    ) -> None:
        self.targets = targets
        self._geometry = geometry
        self._workers = workers
        self._memory = memory
        self._sources = 0
        self._buffer: FloatArray | None = None
        self._kept: FloatArray | None = None  # rows of the buffer
        self._rows = np.empty(0, np.intp)
        self._add(sources)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of open targets and of sources."""
        return len(self.targets), self._sources

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data's precision."""
        return self._geometry.dtype

    @property
    def memory_left(self) -> float:
        """Bytes that the kept costs leave for others."""
        return self._memory - (0 if self._buffer is None else self._buffer.nbytes)

    def read(self, start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """Return an array and the rows of it that hold the open targets `start` to `stop`."""
        return self.read_rows(np.arange(start, stop))

    def read_rows(self, chosen: IntArray) -> tuple[FloatArray, IntArray]:
        """Return an array and the rows of it that hold the chosen open targets."""
        if self._kept is not None:
            return self._kept, self._rows[chosen]
        out = np.empty((len(chosen), self._sources), self.dtype)
        self._geometry.fill(self.targets[chosen], 0, out)
        return out, np.arange(len(chosen))

    def reach(self) -> tuple[BoolArray, BoolArray]:
        """Return which open targets some source reaches, and which sources reach some target."""
        targets, sources = self.shape
        if not self._geometry.may_forbid:
            return np.ones(targets, np.bool_), np.ones(sources, np.bool_)
        size = block_rows(sources)
        reached = np.zeros(targets, np.bool_)
        giving = np.zeros(sources, np.bool_)
        for start in range(0, targets, size):
            stop = min(start + size, targets)
            cost, rows = self.read(start, stop)
            finite = np.isfinite(cost[rows, :sources])
            reached[start:stop] = finite.any(axis=1)
            giving |= finite.any(axis=0)
        return reached, giving

    def chosen(self, mask: BoolArray) -> CostBlocks:
        """Return the costs of some open targets."""
        return self if mask.all() else ChosenCosts(self, np.flatnonzero(mask))

    def accept(self, mask: BoolArray) -> None:
        """Move some of the open targets to the sources, in their order."""
        joining, self.targets = self.targets[mask], self.targets[~mask]
        if self._kept is not None:
            self._rows = self._rows[~mask]
        self._add(joining)

    def _add(self, joining: IntArray) -> None:
        known, self._sources = self._sources, self._sources + len(joining)
        if len(self.targets) == 0:
            self._buffer = self._kept = None
            return
        self._geometry.add_sources(joining)
        if self._kept is None or self._kept.shape[1] < self._sources:
            known = self._make_room(known)
        if self._kept is not None:
            self._fill(self._kept, known)

    def _make_room(self, known: int) -> int:
        """Find room for all sources if it fits, and keep the costs known if that fits as well.

        Return how many sources' costs are known.
        """
        targets, least = self.shape
        if self._kept is None or self._buffer is None:
            if targets * least * self.dtype.itemsize <= self._memory:
                self._allocate(least)
            return 0
        # A quarter more than needed: in a stall sources come one by one.
        wanted = least + least // 4
        old = self._kept
        if (len(self._buffer) + targets * wanted) * self.dtype.itemsize <= self._memory:
            left = self._rows
            kept = self._allocate(wanted)
            size = block_rows(known)
            for start in range(0, targets, size):
                kept[start : start + size, :known] = old[left[start : start + size], :known]
        elif targets * least <= len(self._buffer):
            width = min(wanted, len(self._buffer) // targets)
            self._kept = self._buffer[: targets * width].reshape(targets, width)
            _move(old, self._rows, self._kept, known)
        else:
            del old
            self._buffer = self._kept = None
            fitting = int(self._memory / self.dtype.itemsize) // targets
            if least <= fitting:
                self._allocate(min(wanted, fitting))
            return 0
        self._rows = np.arange(targets)
        return known

    def _allocate(self, sources: int) -> FloatArray:
        """Make a new array for the open targets; nothing is in it."""
        targets = len(self.targets)
        self._buffer = np.empty(targets * sources, self.dtype)
        self._kept = self._buffer.reshape(targets, sources)
        self._rows = np.arange(targets)
        return self._kept

    def _fill(self, kept: FloatArray, first: int) -> None:
        """Compute the columns from `first` on, block by block."""
        size = block_rows(self._sources - first)

        def task(block: int) -> None:
            span = slice(block * size, (block + 1) * size)
            targets, rows = self.targets[span], self._rows[span]
            out = np.empty((len(targets), self._sources - first), self.dtype)
            self._geometry.fill(targets, first, out)
            kept[rows, first : self._sources] = out

        self._workers.run(task, -(-len(self.targets) // size))


def _move(old: FloatArray, rows: IntArray, new: FloatArray, known: int) -> None:
    """Move ascending rows of `old` to the rows of `new`, which is the same memory in longer rows.

    Those that move towards the start go first, from the start on; then those that move towards
    the end, from the end on. So none is overwritten before it has moved.
    """
    back = rows * old.shape[1] >= np.arange(len(rows)) * new.shape[1]
    for row in [*np.flatnonzero(back), *np.flatnonzero(~back)[::-1]]:
        new[row, :known] = old[rows[row], :known]


class ChosenCosts:
    """Some of the open targets, as costs of their own."""

    def __init__(self, costs: OpenCosts, chosen: IntArray) -> None:
        self._costs = costs
        self._chosen = chosen

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chosen targets and of sources."""
        return len(self._chosen), self._costs.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data's precision."""
        return self._costs.dtype

    def read(self, start: int, stop: int) -> tuple[FloatArray, IntArray]:
        """Return an array and the rows of it that hold the chosen targets `start` to `stop`."""
        return self._costs.read_rows(self._chosen[start:stop])
