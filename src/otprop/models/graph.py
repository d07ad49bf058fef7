"""A model fitted on a graph of all rows; new rows are decided by their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from otprop.geometry import diffuse, new_row_weights
from otprop.models.neighbourhoods import nearest_fitted
from otprop.propagation import Decision, certainty

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, FloatArray, IntArray
    from otprop.geometry import Graph, Neighbours
    from otprop.scaling import Scaling
    from otprop.transport import Workers

# A new row is out of the data's range where its nearest row is this many times as far from it as
# the furthest neighbour is from all but one in a hundred fitted rows.
_TOO_FAR = 3.0
_RANGE = 0.99
# Rows explained at a time: each is a column of a diffusion.
_EXPLAINED = 256


class FittedGraph(NamedTuple):
    """What induction and explanations need of a fitted model, beside its public attributes."""

    graph: Graph
    points: Any  # all rows' scaled features; None if the graph was given
    scales: DoubleArray  # distance of each row to its furthest neighbour
    n_neighbors: int
    diffusion: float
    labels: IntArray  # given labels, -1 elsewhere
    prices: DoubleArray  # of the given rows
    distributions: DoubleArray
    round: IntArray
    scaling: Scaling
    dtype: np.dtype[Any]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.distributions.shape[1])

    def decide(self, table: Any, workers: Workers) -> Decision:
        """Return the mean distribution of each row's neighbours, by the weights of the graph.

        A row that is the same as one of fit has what that one has; one without a given label, if
        there are several. Rows far from all others, and rows whose neighbours no label reaches,
        get the uniform distribution and certainty 0.
        """
        weights = self._weights(table, workers)
        known = (self.round >= 0).astype(np.float64)
        heard = weights @ known
        summed = weights @ (self.distributions * known[:, None])
        reached = heard > 0
        distributions = np.full(summed.shape, 1.0 / self.classes)
        distributions[reached] = summed[reached] / heard[reached, None]
        closest = np.asarray((weights @ sparse.diags(known)).argmax(axis=1)).ravel()
        return Decision(
            distributions,
            np.where(reached, certainty(distributions), 0.0),
            np.where(reached, self.round[closest], -1),
        )

    def explain(
        self,
        table: Any,
        decision: Decision,
        n: int,
        workers: Workers,
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return row numbers, class numbers and shares of the given rows that speak loudest.

        Shares are those of the first plan: how much of a row's evidence comes from each given row.
        """
        given = np.flatnonzero(self.labels >= 0)
        n = min(n, len(given))
        rows = np.full((len(decision.round), n), -1, np.intp)
        shares = np.zeros((len(decision.round), n))
        # The kernel is symmetric: what a row hears is what it would say.
        voices = self._weights(table, workers).T
        for start in range(0, len(rows), _EXPLAINED):
            block = slice(start, min(start + _EXPLAINED, len(rows)))
            said = np.asarray(voices[:, block].toarray(), np.float64)
            kernel = diffuse(self.graph.normalised, said, self.diffusion, workers=workers)
            # Row by row in memory, so that a row's sum does not depend on the others.
            heard = np.ascontiguousarray(kernel.values[given].T)
            heard *= np.exp(self.prices - self.prices.max())
            total = heard.sum(axis=1)
            able = (total > 0) & (decision.round[block] >= 0)
            best = np.argsort(-heard[able], axis=1, kind="stable")[:, :n]
            found = np.flatnonzero(able) + start
            rows[found] = given[best]
            shares[found] = np.take_along_axis(heard[able], best, axis=1) / total[able, None]
        return rows, self.labels[rows], shares

    def graph_of_rows(self, workers: Workers) -> Graph:  # noqa: ARG002 - as for costs
        """Return the graph of all rows of fit."""
        return self.graph

    def _weights(self, table: Any, workers: Workers) -> sparse.csr_matrix:
        """Return the weights of new rows to the rows of fit; each row sums to 1 or is empty."""
        if self.points is None:
            given = sparse.csr_matrix(table, dtype=np.float64)
            sums = np.asarray(given.sum(axis=1)).ravel()
            inverse = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
            return sparse.csr_matrix(sparse.diags(inverse) @ given)
        scaled = self.scaling.apply(table)
        found = nearest_fitted(scaled, self.points, self.n_neighbors, workers)
        limit = _TOO_FAR * np.quantile(self.scales, _RANGE)
        near = np.sqrt(found.squared[:, 0]) <= limit
        weights = new_row_weights(found, self.scales) * near[:, None]
        self._prefer_open(scaled, found, weights, workers)
        starts = np.arange(len(weights) + 1) * weights.shape[1]
        shape = (len(weights), self.points.shape[0])
        return sparse.csr_matrix((weights.ravel(), found.indices.ravel(), starts), shape=shape)

    def _prefer_open(
        self, scaled: Any, found: Neighbours, weights: DoubleArray, workers: Workers
    ) -> None:
        """Let rows that are the same as given rows be as their twin without a given label.

        Where there is none, the given ones speak together: their labels may differ.
        """
        same = found.squared == 0
        of_given = np.flatnonzero(same[:, 0] & (self.labels[found.indices[:, 0]] >= 0))
        open_rows = np.flatnonzero(self.labels < 0)
        if len(of_given) and len(open_rows):
            twin = nearest_fitted(scaled[of_given], self.points[open_rows], 1, workers)
            has_one = twin.squared[:, 0] == 0
            found.indices[of_given[has_one], 0] = open_rows[twin.indices[has_one, 0]]
            of_given = of_given[~has_one]
        weights[of_given] = same[of_given] / same[of_given].sum(axis=1, keepdims=True)
