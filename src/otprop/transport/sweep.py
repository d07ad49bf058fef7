"""One pass over the targets: value, mass and curvature of the semi-dual, block by block."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otprop.transport import elimination, kernels
from otprop.transport.blocks import block_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from otprop.arrays import FloatArray, IntArray
    from otprop.transport.blocks import CostBlocks
    from otprop.transport.workers import Workers

# Below this density a block's shares are kept as a list of entries, which then is the faster of the
# two forms to multiply with, and the smaller.
_LISTED_DENSITY = 0.06
# Below this density in every block the graph of the sources is worth assembling.
_SPARSE_DENSITY = 0.25

# Most runs of neighbouring blocks that are added up one by one; each run is a task.
_LANES = 32

# Tasks that the graph of the sources is assembled by.
_STRIPES = 8


class Evaluation(NamedTuple):
    """The targets' part of the semi-dual at f."""

    value: float  # Σ_j b_j g_j(f)
    mass: FloatArray  # r_i = Σ_j b_j P_ji


class _At(NamedTuple):
    """Where the sweep was evaluated last, and what was to be kept of it."""

    f: FloatArray
    epsilon: float
    keep_above: np.floating[Any]  # in the precision of the costs


class _SparseShares(NamedTuple):
    """The shares of a block's targets above a threshold."""

    starts: IntArray
    indices: NDArray[np.int32]
    values: FloatArray

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.indices.nbytes + self.values.nbytes)


class Sweep:
    """The one primitive of the solvers: reductions over fixed blocks of targets.

    `evaluate` passes over the costs. The shares it meets are kept for `spread`, in a form that
    depends on their density alone, as far as `memory` bytes go; the others are found again when
    they are needed. Sums are added up in lanes, runs of neighbouring blocks whose number depends
    on that of the blocks alone, and then in the order of the lanes. Hence the result does not
    depend on memory or threads, to the bit, and the room for sums does not grow with the blocks.
    """

    def __init__(
        self,
        costs: CostBlocks,
        target_weights: FloatArray,
        workers: Workers,
        memory: float = float("inf"),
    ) -> None:
        self.costs = costs
        self.count = 0
        self.sparse = False  # whether the shares of the last evaluation are few in every block
        self.target_weights = target_weights
        self._workers = workers
        self._memory = memory
        self._used = 0
        self._lock = threading.Lock()
        targets, sources = costs.shape
        self._size = block_rows(sources)
        self._blocks = -(-targets // self._size)
        self._lanes = min(self._blocks, _LANES)
        self._kept: list[FloatArray | _SparseShares | None] = [None] * self._blocks
        self._scratch = threading.local()
        self._at = _At(np.zeros(sources), 1.0, costs.dtype.type(0))

    def evaluate(self, f: FloatArray, epsilon: float, keep_above: float) -> Evaluation:
        """Return value and mass at `f`; remember the shares above `keep_above`."""
        # Rounded once, so that shares counted and shares kept are the same.
        self._at = _At(f, epsilon, self.costs.dtype.type(keep_above))
        values = np.zeros(self._blocks)
        sparse = np.zeros(self._blocks, bool)
        mass = np.zeros((self._lanes, self.costs.shape[1]))

        def task(block: int, lane: int) -> None:
            shares, values[block], count = self._shares(block, mass[lane])
            sparse[block] = count <= _SPARSE_DENSITY * shares.size
            self._keep(block, self._form(shares, count))

        self._run(task)
        self.sparse = bool(sparse.all())
        self.count += 1
        return Evaluation(-float(values.sum()), mass.sum(axis=0))

    def spread(self, v: FloatArray) -> FloatArray:
        """Return Σ_j b_j P_j (P_j · v), with the shares of the last evaluation."""
        out = np.zeros((self._lanes, self.costs.shape[1]))

        def task(block: int, lane: int) -> None:
            form = self._found(block)
            weights = self.target_weights[self._span(block)]
            if isinstance(form, _SparseShares):
                kernels.spread_sparse(*form, weights, v, out[lane])
            else:
                kernels.spread_dense(form, weights, v.astype(form.dtype), out[lane])

        self._run(task)
        self.count += 1
        return np.asarray(out.sum(axis=0))

    def joined(self) -> FloatArray:
        """Return Σ_j b_j P_j P_jᵀ, with the shares of the last evaluation, if they are sparse.

        One block at a time; each stripe of rows is a task of its own, so that no two add to one
        entry and every entry is added up in the order of the targets.
        """
        sources = self.costs.shape[1]
        graph = np.zeros((sources, sources))
        edges = np.linspace(0, sources, _STRIPES + 1).astype(np.intp)
        for block in range(self._blocks):
            form = self._found(block)
            if isinstance(form, np.ndarray):
                form = self._listed(form, int((form > self._at.keep_above).sum()))
            self._join(form, self.target_weights[self._span(block)], edges, graph)
        self.count += 1
        return graph

    def _join(
        self, form: _SparseShares, weights: FloatArray, edges: IntArray, graph: FloatArray
    ) -> None:
        def task(stripe: int) -> None:
            elimination.join_sources(*form, weights, edges[stripe], edges[stripe + 1], graph)

        self._workers.run(task, len(edges) - 1)

    def cost_range(self) -> float:
        """Return the largest difference between two finite costs of one target."""
        ranges = np.zeros(self._blocks)

        def task(block: int) -> None:
            span = self._span(block)
            cost, rows = self.costs.read(span.start, span.stop)
            ranges[block] = kernels.range_block(cost, rows, self.costs.shape[1])

        self._workers.run(task, self._blocks)
        self.count += 1
        return float(ranges.max())

    def log_mass(self, f: FloatArray, epsilon: float, sources: IntArray) -> FloatArray:
        """Return log r of some sources, free of underflow."""
        top = np.full((self._lanes, len(sources)), -np.inf)
        scaled = np.zeros_like(top)

        def task(block: int, lane: int) -> None:
            span = self._span(block)
            cost, rows = self.costs.read(span.start, span.stop)
            weights = self.target_weights[span]
            kernels.log_mass_block(
                cost, rows, f, epsilon, weights, sources, top[lane], scaled[lane]
            )

        self._run(task)
        self.count += 1
        best = top.max(axis=0)
        return np.asarray(best + np.log((scaled * np.exp(top - best)).sum(axis=0)))

    def _run(self, task: Callable[[int, int], None]) -> None:
        """Call ``task(block, lane)`` for each block, those of a lane one by one and in order."""

        def run_lane(lane: int) -> None:
            first = lane * self._blocks // self._lanes
            last = (lane + 1) * self._blocks // self._lanes
            for block in range(first, last):
                task(block, lane)

        self._workers.run(run_lane, self._lanes)

    def _span(self, block: int) -> slice:
        return slice(block * self._size, min((block + 1) * self._size, self.costs.shape[0]))

    def _shares(self, block: int, mass: FloatArray) -> tuple[FloatArray, float, int]:
        """Compute a block's shares into the block's own array or the thread's scratch."""
        f, epsilon, threshold = self._at
        span = self._span(block)
        cost, rows = self.costs.read(span.start, span.stop)
        own = self._kept[block]
        if not isinstance(own, np.ndarray):
            if not hasattr(self._scratch, "shares"):
                self._scratch.shares = np.empty((self._size, len(f)), cost.dtype)
            own = self._scratch.shares[: len(rows)]
        value, count = kernels.sweep_block(
            cost, rows, f, epsilon, self.target_weights[span], own, mass, threshold
        )
        return own, value, count

    def _found(self, block: int) -> FloatArray | _SparseShares:
        """Return a block's shares at the last evaluation, kept or found again."""
        form = self._kept[block]
        if form is None:
            shares, _, count = self._shares(block, np.zeros(self.costs.shape[1]))
            form = self._form(shares, count)
        return form

    def _form(self, shares: FloatArray, count: int) -> FloatArray | _SparseShares:
        """Return the shares above the threshold as a list if they are few, else all of them."""
        few = count <= _LISTED_DENSITY * shares.size
        return self._listed(shares, count) if few else shares

    def _listed(self, shares: FloatArray, count: int) -> _SparseShares:
        """Return the shares above the threshold, whose number is known, as a list."""
        starts = np.empty(len(shares) + 1, np.intp)
        indices, values = np.empty(count + 1, np.int32), np.empty(count + 1, shares.dtype)
        kernels.compress_block(shares, self._at.keep_above, starts, indices, values)
        return _SparseShares(starts, indices[:count], values[:count])

    def _keep(self, block: int, form: FloatArray | _SparseShares) -> None:
        """Keep a block's shares if the memory allows it."""
        old = self._kept[block]
        if form is old:
            return
        with self._lock:
            self._used -= 0 if old is None else old.nbytes
            self._kept[block] = None
            fits = self._used + form.nbytes <= self._memory
            self._used += form.nbytes if fits else 0
        if fits:
            self._kept[block] = form.copy() if isinstance(form, np.ndarray) else form
