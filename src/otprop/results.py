"""What an estimator returns beside arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Prediction(NamedTuple):
    """What `predict_batches` yields for a batch, one entry a row."""

    labels: NDArray[Any]
    distributions: NDArray[np.float64]
    certainty: NDArray[np.float64]
    confidence: NDArray[np.float64]


class Explanation(NamedTuple):
    """The sources with the largest shares in each row's label, largest first.

    All arrays have one row a row explained and one column a source, except `round`, which tells
    the round that decided the row (0: the vote of all rows; -1: out of every row's reach; on a
    graph, that of its nearest row). Where
    the round had fewer sources than asked for, and for rows out of reach, the remaining sources
    are -1, with shares of 0 and labels that mean nothing.
    """

    sources: NDArray[np.intp]  # row numbers in the X of fit
    labels: NDArray[Any]
    shares: NDArray[np.floating]
    round: NDArray[np.intp]
