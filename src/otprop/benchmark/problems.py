"""A data set as the methods get it: numbers, class codes, a scaling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.preprocessing import minmax_scale, scale

from otprop import datasets
from otprop.geometry import Euclidean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from otprop.arrays import DoubleArray, IntArray

_SCALERS: dict[str, Callable[[DoubleArray], DoubleArray]] = {
    "none": np.copy,
    "minmax": minmax_scale,
    "standard": scale,
}
SCALINGS = tuple(_SCALERS)
# Rows whose nearest other row is looked for.
_ASKED = 1_000
_BLOCK = 100


@dataclass(frozen=True)
class Problem:
    """A data set, scaled."""

    name: str
    scaling: str
    X: DoubleArray
    truth: IntArray  # class codes
    unit: float  # median squared distance from a row to its nearest other


@cache
def problem(name: str, scaling: str, data: Path | None) -> Problem:
    """Load and scale a data set; kept for the tasks to come."""
    features, truth = _table(name, data)
    X = np.asarray(_SCALERS[scaling](features), np.float64)
    return Problem(name, scaling, X, truth, unit_of(X))


def unit_of(X: DoubleArray) -> float:
    """Return the median squared distance from a row to its nearest other that is not its equal."""
    asked = np.unique(np.linspace(0, len(X) - 1, _ASKED).astype(np.intp))
    # Not scikit-learn's neighbours: it finds distances by products, in which equal rows are a
    # rounding error apart.
    distances = Euclidean(X, X)
    distances.add_sources(np.arange(len(X)))
    nearest = np.empty(len(asked))
    for start in range(0, len(asked), _BLOCK):
        block = asked[start : start + _BLOCK]
        squares = np.empty((len(block), len(X)))
        distances.fill(block, 0, squares)
        nearest[start : start + _BLOCK] = np.where(squares > 0, squares, np.inf).min(axis=1)
    return float(np.median(nearest[np.isfinite(nearest)]))


@cache
def _table(name: str, data: Path | None) -> tuple[DoubleArray, IntArray]:
    loaded = datasets.load(name, data=data)
    _, truth = np.unique(np.asarray(loaded.target), return_inverse=True)
    return loaded.frame.to_numpy(np.float64), truth
