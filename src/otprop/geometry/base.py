"""What a geometry offers to the rounds and to induction, and what it asks of its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from otprop.arrays import FloatArray, IntArray


class Geometry(Protocol):
    """Costs between target rows and a growing list of sources.

    Targets and points are counted as in the arrays that the geometry was made from; sources in
    the order in which they were added. The cost of a pair must not depend, to the bit, on what
    else is asked for: induction repeats what the rounds did.
    """

    dtype: np.dtype[Any]
    may_forbid: bool  # whether a cost can be +inf

    def add_sources(self, points: IntArray) -> None:
        """Append sources, given as row numbers among the points."""
        ...

    def fill(self, targets: IntArray, first: int, out: FloatArray) -> None:
        """Write the costs of `targets` to the sources from `first` on, one row a target.

        As many sources as `out` has columns: not all need be asked for.
        """
        ...


class Workers(Protocol):
    """Threads, or one thread, that share out the blocks of a task."""

    def run(self, task: Callable[[int], None], count: int, /) -> None:
        """Call ``task(block)`` once for each block below `count`, in any order."""
        ...
