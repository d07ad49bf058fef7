"""The marginal rule `classes`: only what the sources of a class give together is bounded.

They merge by soft-min into one, and the solver sees one source a class, with one price h_k; the
potential of a source is the price of its class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.transport.arguments import check_bounds, check_cost, check_labels, check_weights
from otprop.transport.blocks import ArrayCosts
from otprop.transport.merging import class_costs
from otprop.transport.solver import check_numbers
from otprop.transport.totals import solve_totals
from otprop.transport.workers import Workers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otprop.arrays import DoubleArray, IntArray
    from otprop.transport.result import TransportResult
    from otprop.transport.solver import SolverName


def solve_classes(
    cost: ArrayLike,
    labels: ArrayLike,
    epsilon: float,
    *,
    least: ArrayLike,
    most: ArrayLike,
    target_weights: ArrayLike | None = None,
    tol: float = 1e-6,
    solver: SolverName = "newton",
    max_iter: int | None = None,
    warm_start: ArrayLike | None = None,
) -> TransportResult:
    """Solve Eq. 11 with bounds on what the sources of each class give together.

    A class gives its total through whichever of its sources is nearest to a target; what a single
    source gives is not bounded. All the cores that this process may use work on it; their number
    does not change the result.

    Parameters
    ----------
    cost : array of shape (u, l)
        What it takes to carry mass to target j (a row) from source i (a column), as in `solve`.
    labels : array of shape (l,)
        The sources' class numbers, 0 to K−1.
    epsilon : float
        Regularisation, > 0, on the scale of the cost.
    least, most : array of shape (K,)
        Bounds on the classes' totals, as parts of the targets' mass: 0 <= least <= most, and least
        sums to at most 1, most to at least 1. Where they are equal the total is fixed; 0 and 1
        leave a class free.
    target_weights : array of shape (u,), optional
        Positive masses, scaled to sum to 1. Equal if not given (Eq. 8).
    tol : float
        The L1 error of the totals at which the solve has converged.
    solver : {"newton", "sinkhorn"}
        As in `solve`.
    max_iter : int, optional
        Most steps in all; by default 1,000 of Newton's or 100,000 of Sinkhorn's.
    warm_start : array of shape (K,), optional
        Prices to start from; those of an earlier result also say which bounds may hold.

    Returns
    -------
    TransportResult
        Its `f` holds the classes' prices h, as `solve_totals` describes them. A source's potential
        is ``h[labels]``: the shares of the sources are ``shares(cost, result.f[labels], epsilon)``.
        With ``converged=False`` if the error did not come down to `tol`, or if forbidden pairs
        leave no totals within the bounds.

    Examples
    --------
    Two targets of three are near class 0, which may have half of the mass:

    >>> import numpy as np
    >>> from otprop.transport import solve_classes
    >>> cost = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 3.0], [4.0, 4.0, 0.0]])
    >>> result = solve_classes(cost, [0, 0, 1], 0.5, least=[0, 0], most=[0.5, 1])
    >>> result.converged, bool(result.f[0] < 0), float(result.f[1])
    (True, True, 0.0)
    """
    matrix = check_cost(cost)
    targets, sources = matrix.shape
    low, high = check_bounds(least, most)
    numbers = check_labels(labels, sources, len(low))
    _check_sources(numbers, low)
    received = check_weights(target_weights, targets, "target_weights")
    check_numbers(epsilon, matrix.dtype, tol, solver, max_iter)
    with Workers() as workers:
        merged = class_costs(
            ArrayCosts(matrix), numbers, len(low), float(epsilon), workers, dtype=np.float64
        )
        return solve_totals(
            ArrayCosts(merged),
            received,
            workers,
            low,
            high,
            epsilon,
            tol=tol,
            solver=solver,
            max_iter=max_iter,
            warm_start=warm_start,
        )


def _check_sources(labels: IntArray, least: DoubleArray) -> None:
    sources = np.bincount(labels, minlength=len(least))
    empty = np.flatnonzero((sources == 0) & (least > 0))
    if len(empty):
        k = empty[0]
        raise ValueError(f"class {k} has no source, but is to give {least[k]} at least.")
