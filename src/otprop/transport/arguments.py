"""What callers hand in: checked, with errors that say what is wrong and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otprop.arrays import DoubleArray, FloatArray, IntArray

# Bounds may miss a sum of 1 by as much as rounding.
_ROUNDING = 1e-9


def check_cost(cost: ArrayLike) -> FloatArray:
    """Return a contiguous matrix, single or double, in which every row and column is of use."""
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


def check_weights(weights: ArrayLike | None, size: int, name: str) -> DoubleArray:
    """Return positive masses that sum to 1, equal ones if none are given."""
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


def check_warm_start(f: ArrayLike, size: int) -> DoubleArray:
    """Return finite potentials, one a source."""
    array = np.asarray(f, np.float64)
    if array.shape != (size,):
        raise ValueError(f"warm_start must have shape ({size},); got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError("warm_start must be finite.")
    return array


def check_relaxation(relaxation: float) -> float:
    """Return ρ, a positive number."""
    if not (np.isfinite(relaxation) and relaxation > 0):
        raise ValueError(
            f"relaxation must be None or a positive number, on the scale of the cost; "
            f"got {relaxation!r}."
        )
    return float(relaxation)


def check_labels(labels: ArrayLike, sources: int, classes: int) -> IntArray:
    """Return a class number for each source."""
    array = np.asarray(labels)
    if array.shape != (sources,):
        raise ValueError(f"labels must have shape ({sources},); got {array.shape}.")
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels must be class numbers; their dtype is {array.dtype}.")
    if array.min() < 0 or array.max() >= classes:
        raise ValueError(
            f"labels must be from 0 to {classes - 1}, as least and most have {classes} entries; "
            f"got {array.min()} to {array.max()}."
        )
    return array.astype(np.intp)


def check_bounds(least: ArrayLike, most: ArrayLike) -> tuple[DoubleArray, DoubleArray]:
    """Return bounds between which there are totals that sum to 1."""
    low, high = np.asarray(least, np.float64), np.asarray(most, np.float64)
    if low.ndim != 1 or low.shape != high.shape or not len(low):
        raise ValueError(
            f"least and most must have one entry a class; their shapes are {low.shape} "
            f"and {high.shape}."
        )
    wrong = np.flatnonzero(~((low >= 0) & (low <= high) & (high < np.inf)))
    if len(wrong):
        k = wrong[0]
        raise ValueError(
            f"a class's bounds must be finite with 0 <= least <= most; "
            f"those of class {k} are {low[k]} and {high[k]}."
        )
    if low.sum() > 1 + _ROUNDING or high.sum() < 1 - _ROUNDING:
        raise ValueError(
            f"least must sum to at most 1 and most to at least 1, as the targets' mass is 1; "
            f"the sums are {low.sum()} and {high.sum()}."
        )
    return without_slack(low, high)


def without_slack(low: DoubleArray, high: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    """Return the only totals that sum to 1 twice if there is but one choice, else the bounds."""
    if low.sum() >= 1 - _ROUNDING:
        only = low / low.sum()
    elif high.sum() <= 1 + _ROUNDING:
        only = high / high.sum()
    else:
        return low, high
    return only, only


def check_prices(prices: ArrayLike, classes: int) -> DoubleArray:
    """Return a price for each class; −inf, which is that of a total of 0, is allowed."""
    array = np.asarray(prices, np.float64)
    if array.shape != (classes,):
        raise ValueError(f"warm_start must have shape ({classes},); got {array.shape}.")
    if not (array < np.inf).all():
        raise ValueError("warm_start must be finite, or -inf.")
    return array
