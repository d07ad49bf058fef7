"""Compiled certainty, one row at a time, so that a row's score never depends on its neighbours."""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def certainties(distributions):
    """1 − entropy / log K of each row (Eq. 16-17); the base of the logarithm cancels."""
    rows, classes = distributions.shape
    scores = np.ones(rows)
    if classes > 1:
        for j in range(rows):
            entropy = 0.0
            for k in range(classes):
                p = distributions[j, k]
                if p > 0:
                    entropy -= p * math.log(p)
            scores[j] = min(1.0, max(0.0, 1.0 - entropy / math.log(classes)))
    return scores
