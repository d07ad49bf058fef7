"""Totals of the classes, fixed or bounded, by an exact active-set method around the solver.

A class is held at its least, held at its most, or free. Free classes have one price, so they merge
by soft-min into one pseudo-class that gives what the others leave: what remains is the rule `Rows`.

A class's mass grows with its own price and falls with every other's. Hence a class that has too
little when others are raised has still less, and holding one never turns the sign of the price of
another: classes are held at their least until none is short. If one then has too much, it has so
still more when those at their least are let go: it is held at its most for good. So both loops end
after K steps at the most, and a class stays free throughout unless the bounds leave no choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.transport.arguments import check_bounds, check_prices, without_slack
from otprop.transport.blocks import ArrayCosts, block_rows
from otprop.transport.marginals import Rows
from otprop.transport.merging import class_costs
from otprop.transport.result import TransportResult
from otprop.transport.solver import (
    DEFAULT_MAX_ITER,
    check_numbers,
    solve_sweep,
    targets_entropy,
)
from otprop.transport.sums import inner
from otprop.transport.sweep import Sweep

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otprop.arrays import BoolArray, DoubleArray, IntArray
    from otprop.transport.blocks import CostBlocks
    from otprop.transport.solver import SolverName
    from otprop.transport.workers import Workers

# Of the tolerance, what the classes held, those that have too little, and those that have too
# much may each take. The rest is for rounding.
_PART = 0.25
# What a class may give that should give nothing, but which some target cannot do without; and the
# least that the free classes are solved for.
_NEXT_TO_NOTHING = 1e-12

# Steps of a search that holds all classes on the side where most is amiss, and lets go of all that
# are held unwillingly. Mostly that is soon right, but nothing says that it ends.
_GUESSES = 8

_LEAST, _FREE, _MOST = 1, 0, -1


class _Bounds(NamedTuple):
    least: DoubleArray
    most: DoubleArray

    @property
    def fixed(self) -> BoolArray:
        return np.asarray(self.least == self.most)

    def held(self, side: IntArray) -> DoubleArray:
        """Return the totals that classes are held at."""
        return np.where(side == _MOST, self.most, self.least)


class _State(NamedTuple):
    """What was found with some classes held at a bound."""

    side: IntArray
    prices: DoubleArray  # 0 for free classes
    mass: DoubleArray
    error: float
    value: float
    solved: bool  # whether those held are where they are held
    unwilling: BoolArray  # held by a price of the wrong sign, which was set to 0


def solve_totals(  # noqa: PLR0917 - the problem stands first, then how to solve it
    costs: CostBlocks,
    received: DoubleArray,
    workers: Workers,
    least: ArrayLike,
    most: ArrayLike,
    epsilon: float,
    *,
    tol: float = 1e-6,
    solver: SolverName = "newton",
    max_iter: int | None = None,
    warm_start: ArrayLike | None = None,
    memory: float = float("inf"),
) -> TransportResult:
    """Solve Eq. 11 with bounds on what each column of the costs gives.

    Parameters
    ----------
    costs : CostBlocks
        Costs between u targets and K classes, as `class_costs` merges them; every target has a
        finite one. A class without any gives nothing.
    received : array of shape (u,)
        Positive masses of the targets that sum to 1.
    workers : Workers
        They share out the blocks of targets.
    least, most, epsilon, tol, solver, max_iter, warm_start
        As in `solve_classes`.
    memory : float
        Bytes that the shares kept between passes may take.

    Returns
    -------
    TransportResult
        `f` holds the prices: 0 for a class within its bounds, at least 0 for one held at its least,
        at most 0 for one held at its most, any for a fixed total, and −inf for a total of 0. Where
        the bounds leave one choice of totals only, the prices have a weighted mean of 0.
        `marginal_error` is how far the classes held are from their bound, and the others outside
        of theirs, added up. `n_iter` counts the steps of all solves.
    """
    check_numbers(epsilon, costs.dtype, tol, solver, max_iter)
    given = _Bounds(*check_bounds(least, most))
    classes = costs.shape[1]
    if len(given.least) != classes:
        raise ValueError(f"least and most must have shape ({classes},); got {given.least.shape}.")
    start = np.zeros(classes) if warm_start is None else check_prices(warm_start, classes)
    steps = DEFAULT_MAX_ITER[solver] if max_iter is None else int(max_iter)
    search = _Search(
        sweep=Sweep(costs, received, workers, memory),
        workers=workers,
        memory=memory,
        given=given,
        bounds=_attainable(given, costs, workers),
        epsilon=float(epsilon),
        tol=tol,
        solver=solver,
        steps_left=steps,
    )
    found = search.run(start)
    return TransportResult(
        f=found.prices,
        epsilon=float(epsilon),
        converged=found.error <= tol,
        marginal_error=found.error,
        n_sweeps=search.passes + search.sweep.count,
        n_iter=steps - search.steps_left,
        value=found.value + targets_entropy(received, float(epsilon)),
        solver=solver,
    )


@dataclass
class _Search:
    """The semi-dual for any choice of classes held, and the search for the right choice."""

    sweep: Sweep
    workers: Workers
    memory: float
    given: _Bounds
    bounds: _Bounds  # as far as forbidden pairs leave them
    epsilon: float
    tol: float
    solver: SolverName
    steps_left: int
    passes: int = 0  # over merged costs

    def run(self, start: DoubleArray) -> _State:
        """Find which classes to hold, beginning with those that the prices to start from say."""
        start = np.where(np.isfinite(start), start, 0.0)
        fixed = self.bounds.fixed
        if fixed.all():
            return self._hold(np.full(len(start), _LEAST), start)
        side = np.where(fixed, _LEAST, np.sign(start).astype(np.intp))
        for _ in range(_GUESSES):
            if not self._leaves_mass(side):
                break
            state = self._hold(side, start)
            if state.error <= self.tol or not self.steps_left:
                return state
            if not state.solved:
                break
            start = state.prices
            side = np.where(state.unwilling, _FREE, side)
            short, over = self._outside(state)
            if short.sum() >= over.sum():
                side = np.where(short > 0, _LEAST, side)
            else:
                side = np.where(over > 0, _MOST, side)
        return self._search(start)

    def _leaves_mass(self, side: IntArray) -> bool:
        """Tell whether the classes held leave some mass, and some class to give it."""
        held = side != _FREE
        return not held.all() and float(self.bounds.held(side)[held].sum()) < 1.0

    def _search(self, start: DoubleArray) -> _State:
        """Hold classes in the order that is sure to end."""
        fixed = np.where(self.bounds.fixed, _LEAST, _FREE)
        state = self._hold(fixed, start)
        while True:
            short, over = self._outside(state)
            if short.any():
                side = np.where(short > 0, _LEAST, state.side)
            elif over.any():
                # With one more class held for good, the others are raised anew.
                side = np.where((over > 0) | (state.side == _MOST), _MOST, fixed)
            else:
                return state
            state = self._hold(side, state.prices)

    def _outside(self, state: _State) -> tuple[DoubleArray, DoubleArray]:
        """Return what free classes have too little, and too much, unless it is next to nothing.

        Where the solver failed nothing can be learned from the masses.
        """
        free = (state.side == _FREE) & state.solved
        short = np.where(free, np.maximum(self.bounds.least - state.mass, 0.0), 0.0)
        over = np.where(free, np.maximum(state.mass - self.bounds.most, 0.0), 0.0)
        limit = _PART * self.tol
        return short * (short.sum() > limit), over * (over.sum() > limit)

    def _hold(self, side: IntArray, start: DoubleArray) -> _State:
        """Solve with classes held, from prices to start from."""
        held = side != _FREE
        prices, solved = (
            self._solve_all(side, start) if held.all() else self._solve_held(side, start)
        )
        unwilling = ~self.bounds.fixed & (prices * side < 0)
        prices = np.where(unwilling, 0.0, prices)
        # No share is above 1, so none is kept.
        value, mass = self.sweep.evaluate(prices, self.epsilon, 1.0)
        bound = np.clip(self.bounds.held(side), self.given.least, self.given.most)
        goal = np.where(held, bound, np.clip(mass, self.given.least, self.given.most))
        return _State(
            side=side,
            prices=prices,
            mass=np.asarray(mass, np.float64),
            error=float(np.abs(mass - goal).sum()),
            value=value + inner(bound, np.where(np.isfinite(prices), prices, 0.0)),
            solved=solved,
            unwilling=np.asarray(unwilling),
        )

    def _solve_all(self, side: IntArray, start: DoubleArray) -> tuple[DoubleArray, bool]:
        """Return prices where no class is free."""
        result = self._solve(self.sweep, self.bounds.held(side), start, self.tol)
        return result.f, result.converged

    def _solve_held(self, side: IntArray, start: DoubleArray) -> tuple[DoubleArray, bool]:
        """Return prices relative to that of the free classes, which are merged."""
        held = side != _FREE
        count = int(held.sum())
        place = np.where(held, np.cumsum(held) - 1, count)
        merged = class_costs(
            self.sweep.costs, place, count + 1, self.epsilon, self.workers, dtype=np.float64
        )
        sweep = Sweep(ArrayCosts(merged), self.sweep.target_weights, self.workers, self.memory)
        totals = self.bounds.held(side)[held]
        totals = np.append(totals, max(1.0 - totals.sum(), _NEXT_TO_NOTHING))
        result = self._solve(sweep, totals, np.append(start[held], 0.0), _PART * self.tol)
        self.passes += 1 + sweep.count
        prices = np.zeros(len(side))
        prices[held] = result.f[:count] - result.f[count]
        return prices, result.converged

    def _solve(
        self, sweep: Sweep, totals: DoubleArray, start: DoubleArray, tol: float
    ) -> TransportResult:
        result = solve_sweep(
            sweep,
            Rows(totals / totals.sum()),
            self.epsilon,
            tol=tol,
            solver=self.solver,
            max_iter=self.steps_left,
            warm_start=start,
        )
        self.steps_left -= result.n_iter
        return result


def _attainable(given: _Bounds, costs: CostBlocks, workers: Workers) -> _Bounds:
    """Return bounds that forbidden pairs do not rule out at once.

    A class that reaches no target gives nothing; one that should give nothing, but that a target
    cannot do without, gives next to nothing, so that its price is finite.
    """
    reached, needed = _reach(costs, given.most > 0, workers)
    most = np.where(needed, _NEXT_TO_NOTHING, np.where(reached, given.most, 0.0))
    least = np.where(needed, _NEXT_TO_NOTHING, np.minimum(given.least, most))
    return _Bounds(*without_slack(least, most))


def _reach(costs: CostBlocks, giving: BoolArray, workers: Workers) -> tuple[BoolArray, BoolArray]:
    """Tell which classes reach a target, and which reach one that no class giving does."""
    targets, classes = costs.shape
    size = block_rows(classes)
    blocks = -(-targets // size)
    reached, needed = np.zeros((blocks, classes), bool), np.zeros((blocks, classes), bool)

    def task(block: int) -> None:
        cost, rows = costs.read(block * size, min((block + 1) * size, targets))
        finite = np.isfinite(cost[rows, :classes])
        alone = ~finite[:, giving].any(axis=1)
        reached[block] = finite.any(axis=0)
        needed[block] = finite[alone].any(axis=0)

    workers.run(task, blocks)
    return np.asarray(reached.any(axis=0)), np.asarray(needed.any(axis=0))
