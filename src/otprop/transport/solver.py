"""The way in: check the problem, run a solver, report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from otprop.transport.arguments import (
    check_cost,
    check_relaxation,
    check_warm_start,
    check_weights,
)
from otprop.transport.blocks import ArrayCosts
from otprop.transport.marginals import Relaxed, Rows
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
DEFAULT_MAX_ITER = {"newton": 1_000, "sinkhorn": 100_000}


def solve(
    cost: ArrayLike,
    epsilon: float,
    *,
    source_weights: ArrayLike | None = None,
    target_weights: ArrayLike | None = None,
    relaxation: float | None = None,
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
    relaxation : float, optional
        What it costs a source to give more or less than its weight: this number, > 0 and on the
        scale of the cost, times the Kullback-Leibler divergence of the masses given from the
        weights. Towards 0 the sources give what the targets ask of them, softmax(−M/ε). Without
        it they give their weights exactly (Eq. 8).
    tol : float
        The L1 error of the sources' marginal at which the solve has converged: against their
        weights or, relaxed, what is due at their potentials. Double precision reaches 1e-9,
        single 1e-6.
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
    matrix = check_cost(cost)
    targets, sources = matrix.shape
    weights = check_weights(source_weights, sources, "source_weights")
    received = check_weights(target_weights, targets, "target_weights")
    rule = Rows(weights) if relaxation is None else Relaxed(weights, check_relaxation(relaxation))
    start = None if warm_start is None else check_warm_start(warm_start, sources)
    with Workers() as workers:
        sweep = Sweep(ArrayCosts(matrix), received, workers)
        return solve_sweep(
            sweep,
            rule,
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
    check_numbers(epsilon, sweep.costs.dtype, tol, solver, max_iter)
    steps = DEFAULT_MAX_ITER[solver] if max_iter is None else max_iter
    epsilon = float(epsilon)
    point, taken = SOLVERS[solver](Problem(sweep, rule), warm_start, epsilon, tol, steps)
    return TransportResult(
        f=np.asarray(point.f, np.float64),
        epsilon=epsilon,
        converged=point.error <= tol,
        marginal_error=point.error,
        n_sweeps=sweep.count,
        n_iter=taken,
        value=point.value + targets_entropy(sweep.target_weights, epsilon),
        solver=solver,
    )


def targets_entropy(received: FloatArray, epsilon: float) -> float:
    """Return ε Σ_j b_j (log b_j − 1): what Eq. 11 has and the semi-dual leaves out."""
    return epsilon * (inner(received, np.log(received)) - 1.0)


def check_numbers(
    epsilon: float, dtype: np.dtype[Any], tol: float, solver: str, max_iter: object
) -> None:
    """Refuse what no solve can do with, for costs of a precision."""
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be a positive number; got {epsilon!r}.")
    smallest = float(np.finfo(dtype).tiny)
    if epsilon < smallest:
        raise ValueError(
            f"epsilon must be at least {smallest:.2g}, the smallest number that "
            f"{dtype} holds in full; got {epsilon!r}."
        )
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
