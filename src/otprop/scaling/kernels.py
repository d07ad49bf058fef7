"""Compiled projection, one row at a time, so that a row's coordinates never depend on others."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def project(rows, directions):
    """Return rows · directions, every sum in the order of the columns."""
    out = np.zeros((rows.shape[0], directions.shape[1]))
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            x = rows[j, i]
            if x != 0.0:
                for m in range(directions.shape[1]):
                    out[j, m] += x * directions[i, m]
    return out
