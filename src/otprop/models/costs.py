"""A model fitted with costs between rows: the paper's rounds, and induction by their replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otprop.models.neighbourhoods import geometry, graph_of, nearest_others
from otprop.propagation import Replay, explain, replay

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otprop.arrays import FloatArray, IntArray
    from otprop.geometry import Geometry, Graph
    from otprop.propagation import Decision
    from otprop.scaling import Scaling
    from otprop.transport import Workers

# Of a row, for suggestions.
_NEIGHBOURS = 20


class FittedCosts(NamedTuple):
    """What induction needs of a fitted model, beside its public attributes."""

    replay: Replay
    source_rows: IntArray  # row numbers in the X of fit, in the order in which they came
    points: Any  # the sources' scaled features, in that order; None if costs were precomputed
    scaling: Scaling
    dtype: np.dtype[Any]
    rows: int  # of fit

    def decide(self, table: Any, workers: Workers) -> Decision:
        """Lead new rows through the rounds."""
        return replay(self._geometry(table), table.shape[0], self.replay, workers)

    def explain(
        self,
        table: Any,
        decision: Decision,
        n: int,
        workers: Workers,
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return row numbers, class numbers and shares of the sources that speak loudest."""
        sources, shares = explain(self._geometry(table), decision, self.replay, n, workers)
        rows: NDArray[np.intp] = np.where(sources < 0, -1, self.source_rows[sources])
        return rows, self.replay.labels[sources], shares

    def graph_of_rows(self, workers: Workers) -> Graph:
        """Return a graph of all rows of fit, made from their features."""
        if self.points is None or len(self.source_rows) < self.rows:
            raise ValueError(
                "suggest needs the features of all rows of fit, which a model fitted with "
                "precomputed costs does not have. Fit with geometry='graph', or "
                "'precomputed-graph' for affinities of your own."
            )
        in_order = np.argsort(self.source_rows)
        return graph_of(nearest_others(self.points[in_order], _NEIGHBOURS, workers), _NEIGHBOURS)

    def _geometry(self, table: Any) -> Geometry:
        found = geometry(self.scaling.apply(table), self.points)
        rows = self.source_rows
        found.add_sources(rows if self.points is None else np.arange(len(rows)))
        return found
