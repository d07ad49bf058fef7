"""Rows that are not in the graph: their weights to the fitted rows that are their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.geometry.graph import self_tuned_weights

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray
    from otprop.geometry.neighbours import Neighbours


def new_row_weights(neighbours: Neighbours, scales: DoubleArray) -> DoubleArray:
    """Return the weights of new rows to their neighbours among the fitted rows, each row's sum 1.

    They are the self-tuned weights that the row had in the graph, with the distance to its
    furthest neighbour for scale. A row at no distance from a fitted row is that row: it has weight
    1 there (at the one of lowest index, if there are several) and 0 elsewhere.

    Parameters
    ----------
    neighbours : Neighbours
        Of the new rows, at least one each, sorted by distance and index.
    scales : array of shape (n,)
        σ of the fitted rows, above 0.
    """
    furthest = np.sqrt(neighbours.squared[:, -1])
    weights = self_tuned_weights(neighbours, furthest, scales)  # NaN where that is 0
    same = neighbours.squared[:, 0] == 0
    weights[same] = 0.0
    weights[same, 0] = 1.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
