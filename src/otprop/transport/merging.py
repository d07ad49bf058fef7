"""Sources merged into one for each class: the soft-min of their costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.transport import kernels
from otprop.transport.blocks import block_rows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from otprop.arrays import FloatArray, IntArray
    from otprop.transport.blocks import CostBlocks
    from otprop.transport.workers import Workers


def class_costs(
    costs: CostBlocks,
    labels: IntArray,
    classes: int,
    epsilon: float,
    workers: Workers,
    *,
    dtype: DTypeLike | None = None,
) -> FloatArray:
    """Return what each target costs each class, C_jk = −ε log Σ_{i in k} exp(−M_ij/ε).

    A row depends on that row of the costs alone, to the bit.

    Parameters
    ----------
    costs : CostBlocks
        Costs between u targets and l sources.
    labels : array of shape (l,)
        The sources' class numbers, from 0.
    classes : int
        Number of classes, K.
    epsilon : float
        Regularisation.
    workers : Workers
        They share out the blocks of targets.
    dtype : data type, optional
        Precision of the result, by default that of the costs. Single precision rounds every C_jk
        to 6e-8 of itself, and thus a target's shares by as much times C_jk/ε.

    Returns
    -------
    array of shape (u, K)
        +inf where a class has no finite cost.
    """
    targets, sources = costs.shape
    merged: FloatArray = np.empty((targets, classes), costs.dtype if dtype is None else dtype)
    size = block_rows(sources)

    def task(block: int) -> None:
        start, stop = block * size, min((block + 1) * size, targets)
        cost, rows = costs.read(start, stop)
        kernels.merge_block(cost, rows, labels, epsilon, merged[start:stop])

    workers.run(task, -(-targets // size))
    return merged
