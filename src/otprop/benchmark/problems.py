"""A data set as the methods get it: numbers, class codes, a scaling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import minmax_scale, scale

from otprop import datasets

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
    distances, _ = NearestNeighbors(n_neighbors=min(5, len(X))).fit(X).kneighbors(X[asked])
    squares = np.where(distances > 0, distances, np.inf).min(axis=1) ** 2
    return float(np.median(squares[np.isfinite(squares)]))


@cache
def _table(name: str, data: Path | None) -> tuple[DoubleArray, IntArray]:
    loaded = datasets.load(name, data=data)
    _, truth = np.unique(np.asarray(loaded.target), return_inverse=True)
    return loaded.frame.to_numpy(np.float64), truth
