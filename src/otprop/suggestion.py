"""Which rows to label next: those whose labels would tell most about rows that are uncertain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.geometry import diffuse

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray, IntArray
    from otprop.geometry import Graph
    from otprop.transport import Workers

# A label that carries less than far is a label for its neighbours: uncertain rows nearby count.
_DIFFUSION = 0.9
# Relative residual: the order of the best rows needs no more.
_ACCURACY = 1e-6


def suggest(graph: Graph, doubt: DoubleArray, n: int, workers: Workers) -> IntArray:
    """Return n rows, the most worthwhile first.

    `doubt` is each row's chance of being wrong, 0 where the label is given. A label at row i tells
    about row j what the diffusion kernel H carries there; its worth is the doubt within its reach,
    Σ_j H_ij doubt_j, so that lonely rows are worth less than those in the midst of others. Of the
    doubt of row j a row that is taken removes the part H_ij / H_ii: the next are chosen by what
    is left, so that they lie apart.
    """
    left = doubt.copy()
    able = doubt > 0
    chosen: list[int] = []
    for _ in range(min(n, int(able.sum()))):
        worth = np.where(able, _heard(graph, left, workers), -np.inf)
        best = int(worth.argmax())
        chosen.append(best)
        able[best] = False
        voice = np.zeros_like(doubt)
        voice[best] = 1.0
        carried = _heard(graph, voice, workers)
        left *= 1.0 - np.minimum(1.0, carried / carried[best])
    return np.array(chosen, np.intp)


def _heard(graph: Graph, said: DoubleArray, workers: Workers) -> DoubleArray:
    found = diffuse(graph.normalised, said[:, None], _DIFFUSION, workers=workers, tol=_ACCURACY)
    return np.asarray(found.values[:, 0])
