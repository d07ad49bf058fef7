"""Diffusion on a graph, H = (1 − κ) (I − κ S)⁻¹, by sparse solves; and walks with held rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otprop.geometry import kernels

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from otprop.arrays import BoolArray, DoubleArray, IntArray
    from otprop.geometry.base import Workers

# Columns solved for together, the last ones with columns of 0 beside them: enough to share the
# reading of the matrix, few enough that a few columns more keep another thread busy.
_LANES = 16


class Diffusion(NamedTuple):
    """What came of each column: the solution, and how its solve ended.

    `residuals` are relative: |B − (I − κ S) F / (1 − κ)| / |B|, as conjugate gradients keep them.
    """

    values: DoubleArray
    residuals: DoubleArray
    converged: BoolArray
    iterations: IntArray


def diffuse(
    normalised: csr_matrix,
    right: DoubleArray,
    kappa: float,
    *,
    workers: Workers,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Diffusion:
    """Solve (I − κ S) F = (1 − κ) B by conjugate gradients, column by column.

    A column's result depends on that column alone, to the bit. Rows that no entry of a column
    reaches, because it has none in their component, are exactly 0.

    Parameters
    ----------
    normalised : CSR matrix of shape (n, n)
        S: symmetric, with eigenvalues in [−1, 1], and no entry negative.
    right : array of shape (n, m)
        B, not negative. Neither is F: what rounding, or a solve cut short, leaves below 0 is
        set to 0.
    kappa : float
        Above 0 and below 1: how far the diffusion goes.
    workers : Workers
        Who works on the groups of columns. Each holds some n × 64 numbers.
    tol : float
        The relative residual at which a column is done.
    max_iter : int
        Most iterations. Some √(1 / (1 − κ)) · log(1 / tol) are needed.
    """
    columns = right.shape[1]
    found = Diffusion(
        np.empty(right.shape),
        np.empty(columns),
        np.empty(columns, np.bool_),
        np.empty(columns, np.intp),
    )

    def solve(group: int) -> None:
        some = slice(group * _LANES, (group + 1) * _LANES)
        part = right[:, some]
        width = part.shape[1]
        lanes = np.zeros((len(right), _LANES))
        lanes[:, :width] = (1.0 - kappa) * part
        solved = _conjugate_gradients(normalised, lanes, kappa, tol, max_iter)
        np.maximum(solved.values[:, :width], 0.0, out=found.values[:, some])
        found.residuals[some] = solved.residuals[:width]
        found.converged[some] = solved.converged[:width]
        found.iterations[some] = solved.iterations[:width]

    workers.run(solve, -(-columns // _LANES))
    return found


def walk_steps(
    walk: csr_matrix,
    values: DoubleArray,
    held_rows: IntArray,
    held_values: DoubleArray,
    steps: int,
) -> DoubleArray:
    """Return `values` after so many steps of F ← D⁻¹ W F, each of which ends with F held fast.

    Parameters
    ----------
    walk : CSR matrix of shape (n, n)
        D⁻¹ W. A row without links has no neighbours to average, and keeps its values.
    values : array of shape (n, K)
        F before the first step; not changed.
    held_rows : array of shape (h,)
        Rows that have the `held_values` after each step.
    held_values : array of shape (h, K)
        What they are held at.
    steps : int
        With 0, `values` are returned as they are.
    """
    isolated = np.diff(walk.indptr) == 0
    for _ in range(steps):
        after = np.asarray(walk @ values)
        after[isolated] = values[isolated]
        after[held_rows] = held_values
        values = after
    return values


def _conjugate_gradients(
    matrix: csr_matrix, right: DoubleArray, kappa: float, tol: float, max_iter: int
) -> Diffusion:
    """Solve (I − κ S) X = right, one column a lane, each with its own steps and its own end."""
    x, residual, p = np.zeros_like(right), right.copy(), right.copy()
    image, lanes = np.empty_like(right), right.shape[1]
    curvature, after = np.empty(lanes), np.empty(lanes)
    squares = (right * right).sum(axis=0)
    scale = np.where(squares > 0, squares, 1.0)
    active = np.ones(lanes, np.bool_)
    iterations = np.zeros(lanes, np.intp)
    while active.any() and iterations.max() < max_iter:
        kernels.diffusion_image(
            matrix.indptr, matrix.indices, matrix.data, kappa, p, image, curvature
        )
        active &= curvature > 0  # not so in columns of 0, nor when the residual underflows
        # A lane that is done goes no further: its steps have length 0.
        length = np.divide(squares, curvature, out=np.zeros(lanes), where=active)
        kernels.advance(length, p, image, x, residual, after)
        share = np.divide(after, squares, out=np.zeros(lanes), where=active)
        kernels.redirect(share, residual, p)
        squares = np.where(active, after, squares)
        iterations += active
        active &= squares > tol**2 * scale
    relative = np.sqrt(squares / scale)
    return Diffusion(x, relative, relative <= tol, iterations)
