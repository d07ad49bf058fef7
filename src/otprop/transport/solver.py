"""The way in: check the problem, run a solver, report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from otprop.transport.blocks import ArrayCosts
from otprop.transport.marginals import Rows
from otprop.transport.newton import newton
from otprop.transport.problem import Problem
from otprop.transport.result import TransportResult
from otprop.transport.sinkhorn import sinkhorn
from otprop.transport.sums import inner
from otprop.transport.sweep import Sweep
from otprop.transport.workers import Workers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otprop.arrays import DoubleArray, FloatArray
    from otprop.transport.marginals import MarginalRule


SolverName = Literal["newton", "sinkhorn"]
SOLVERS = {"newton": newton, "sinkhorn": sinkhorn}
_DEFAULT_MAX_ITER = {"newton": 1_000, "sinkhorn": 100_000}


def solve(
    cost: ArrayLike,
    epsilon: float,
    *,
    source_weights: ArrayLike | None = None,
    target_weights: ArrayLike | None = None,
    tol: float = 1e-6,
    solver: SolverName = "newton",
    max_iter: int | None = None,
    warm_start: ArrayLike | None = None,
) -> TransportResult:
    """Solve the entropic transport problem of Eq. 11 through its semi-dual.

    All the cores that this process may use work on it; their number does not change the result.

    Parameters
    ----------
    cost : array of shape (u, l)
        What it takes to carry mass to target j (a row) from source i (a column). float32 is kept
        and halves the memory; all else becomes float64. +inf forbids a pair.
    epsilon : float
        Regularisation, > 0, on the scale of the cost.
    source_weights, target_weights : array of shape (l,) or (u,), optional
        Positive masses, scaled to sum to 1. Equal if not given (Eq. 8).
    tol : float
        The L1 error of the sources' marginal at which the solve has converged. Double precision
        reaches 1e-9, single 1e-6.
    solver : {"newton", "sinkhorn"}
        Newton's method with conjugate gradients, annealed in ε; or Algorithm 1 in the log domain.
    max_iter : int, optional
        Most steps; by default 1,000 of Newton's or 100,000 of Sinkhorn's.
    warm_start : array of shape (l,), optional
        Potentials to start from.

    Returns
    -------
    TransportResult
        With ``converged=False`` if the error did not come down to `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop.transport import solve
    >>> result = solve(np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.6]]), epsilon=0.5)
    >>> result.converged
    True
    """
    matrix = _check_cost(cost)
    targets, sources = matrix.shape
    weights = _check_weights(source_weights, sources, "source_weights")
    received = _check_weights(target_weights, targets, "target_weights")
    start = None if warm_start is None else _check_warm_start(warm_start, sources)
    with Workers() as workers:
        sweep = Sweep(ArrayCosts(matrix), received, workers)
        return solve_sweep(
            sweep,
            Rows(weights),
            epsilon,
            tol=tol,
            solver=solver,
            max_iter=max_iter,
            warm_start=start,
        )


def solve_sweep(
    sweep: Sweep,
    rule: MarginalRule,
    epsilon: float,
    *,
    tol: float,
    solver: SolverName,
    max_iter: int | None,
    warm_start: DoubleArray | None,
) -> TransportResult:
    """Solve for a sweep that the caller has built, wherever its costs are."""
    _check_numbers(epsilon, tol, solver, max_iter)
    smallest = float(np.finfo(sweep.costs.dtype).tiny)
    if epsilon < smallest:
        raise ValueError(
            f"epsilon must be at least {smallest:.2g}, the smallest number that "
            f"{sweep.costs.dtype} holds in full; got {epsilon!r}."
        )
    steps = _DEFAULT_MAX_ITER[solver] if max_iter is None else max_iter
    epsilon = float(epsilon)
    point, taken = SOLVERS[solver](Problem(sweep, rule), warm_start, epsilon, tol, steps)
    received = sweep.target_weights
    entropy = epsilon * (inner(received, np.log(received)) - 1.0)
    return TransportResult(
        f=np.asarray(point.f, np.float64),
        epsilon=epsilon,
        converged=point.error <= tol,
        marginal_error=point.error,
        n_sweeps=sweep.count,
        n_iter=taken,
        value=point.value + entropy,
        solver=solver,
    )


def _check_cost(cost: ArrayLike) -> FloatArray:
    matrix = np.asarray(cost)
    if matrix.ndim != 2:  # noqa: PLR2004 - a matrix has two
        raise ValueError(
            f"cost must be a matrix with one row a target and one column a source; "
            f"got {matrix.ndim} dimension(s)."
        )
    if 0 in matrix.shape:
        raise ValueError(
            f"cost needs at least one target and one source; its shape is {matrix.shape}."
        )
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"cost must hold real numbers; its dtype is {matrix.dtype}.")
    if matrix.dtype.newbyteorder("=") != np.float32:
        matrix = matrix.astype(np.float64)
    matrix = np.ascontiguousarray(matrix)
    if np.isnan(matrix).any():
        target, source = np.argwhere(np.isnan(matrix))[0]
        raise ValueError(f"cost[{target}, {source}] is NaN.")
    if np.isneginf(matrix).any():
        target, source = np.argwhere(np.isneginf(matrix))[0]
        raise ValueError(
            f"cost[{target}, {source}] is -inf; only +inf (a forbidden pair) is allowed."
        )
    finite = np.isfinite(matrix)
    for name, axis in (("target", 1), ("source", 0)):
        alone = np.flatnonzero(~finite.any(axis=axis))
        if len(alone):
            raise ValueError(
                f"{name} {alone[0]} has no finite cost, so no plan serves it; leave it out."
            )
    return matrix


def _check_weights(weights: ArrayLike | None, size: int, name: str) -> DoubleArray:
    if weights is None:
        return np.full(size, 1.0 / size)
    array = np.asarray(weights, np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},); got {array.shape}.")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{name} must be positive and finite.")
    array = array / array.max()
    array = np.asarray(array / array.sum())
    if array.min() < np.finfo(float).tiny:
        raise ValueError(f"{name} span more than double precision holds.")
    return array


def _check_warm_start(f: ArrayLike, size: int) -> DoubleArray:
    array = np.asarray(f, np.float64)
    if array.shape != (size,):
        raise ValueError(f"warm_start must have shape ({size},); got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError("warm_start must be finite.")
    return array


def _check_numbers(epsilon: float, tol: float, solver: str, max_iter: object) -> None:
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be a positive number; got {epsilon!r}.")
    if not (np.isfinite(tol) and tol > 0):
        raise ValueError(f"tol must be a positive number; got {tol!r}.")
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {sorted(SOLVERS)}; got {solver!r}.")
    if max_iter is None:
        return
    if not isinstance(max_iter, int | np.integer):
        raise TypeError(f"max_iter must be None or an integer of at least 0; got {max_iter!r}.")
    if max_iter < 0:
        raise ValueError(f"max_iter must be at least 0; got {max_iter!r}.")
