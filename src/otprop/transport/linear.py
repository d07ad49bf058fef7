"""Linear systems of Newton's method: the curvature is the Laplacian of a graph over the sources.

Two sources are joined with weight W_ik = Σ_j b_j P_ji P_jk, the targets that they share. At small
ε the weights span tens of orders of magnitude and so do the eigenvalues: conjugate gradients stall
where the elimination does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.transport import elimination
from otprop.transport.sums import inner

if TYPE_CHECKING:
    from collections.abc import Callable

    from otprop.arrays import FloatArray


def conjugate_gradients(
    spread: Callable[[FloatArray], FloatArray],
    diagonal: FloatArray,
    right: FloatArray,
    accuracy: float,
    max_iter: int,
) -> tuple[FloatArray, bool]:
    """Solve diagonal · x − spread(x) = right, preconditioned by the diagonal.

    Also tell whether the residual came down to `accuracy`.
    """
    x = np.zeros_like(right)
    residual = right.copy()
    z = residual / diagonal
    p = z.copy()
    rz = inner(residual, z)
    goal = accuracy**2 * rz
    for _ in range(max_iter):
        image = diagonal * p - spread(p)
        curvature = inner(p, image)
        if curvature <= 0:  # only by rounding
            return x, False
        length = rz / curvature
        x += length * p
        residual -= length * image
        z = residual / diagonal
        old, rz = rz, inner(residual, z)
        if rz <= goal:
            return x, True
        p = z + rz / old * p
    return x, False


def solve_laplacian(weights: FloatArray, excess: FloatArray, right: FloatArray) -> FloatArray:
    """Solve (diag(W 1 + excess) − W) x = right; destroys `weights`.

    Sources with few neighbours are eliminated first, which keeps a sparse graph sparse; those that
    remain when it no longer is are solved for as a dense matrix.
    """
    excess, x = excess.copy(), right.copy()
    order, pivots, eliminated = elimination.eliminate_sparse(weights, excess, x)
    core = np.sort(order[eliminated:])
    if len(core):
        x[core] = elimination.solve_dense(weights[np.ix_(core, core)], excess[core], x[core])
    elimination.substitute_back(weights, order[:eliminated], pivots, x)
    return x
