"""From potentials to shares (Eq. 12): a softmax, one row a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.transport import kernels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otprop.arrays import FloatArray


def shares(cost: ArrayLike, f: ArrayLike, epsilon: float) -> FloatArray:
    """Return how much of each target comes from each source: softmax over i of (f_i − M_ij)/ε.

    Parameters
    ----------
    cost : array of shape (u, l)
        One row a target. Single precision stays single.
    f : array of shape (l,)
        Potentials of the sources.
    epsilon : float
        Regularisation.

    Returns
    -------
    array of shape (u, l)
        Rows sum to one.
    """
    matrix = np.asarray(cost)
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64)
    matrix = np.ascontiguousarray(matrix)
    potentials = np.asarray(f, np.float64)
    if matrix.ndim != 2 or potentials.shape != matrix.shape[1:]:  # noqa: PLR2004 - a matrix has two
        raise ValueError(
            f"cost must have one column for each potential; their shapes are {matrix.shape} "
            f"and {potentials.shape}."
        )
    out = np.empty_like(matrix)
    rows = np.arange(matrix.shape[0])
    kernels.share_block(matrix, rows, potentials, float(epsilon), out)
    return out
