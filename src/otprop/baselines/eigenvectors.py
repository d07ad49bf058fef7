"""The leading eigenvectors of a normalised affinity, however close their values are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import RandomState

    from otprop.arrays import DoubleArray

# Up to this many rows, LAPACK's own eigenvectors take a few seconds at most.
_DENSE = 2000
# The inverse of (1 + shift) I − M tells eigenvalues apart that are this close to 1 and to one
# another, and still has most digits where they are not.
_SHIFT = 1e-6
# |M u − λ u| of what is taken for an eigenvector.
_TOLERANCE = 1e-9
# The eigenvectors looked for beyond those wanted: they make the others come sooner.
_SPARE = 5
# Powers of the inverse in one basis, and most bases.
_POWERS, _BASES = 8, 10


class Eigenvectors(NamedTuple):
    """Eigenvalues from the smallest, eigenvectors in columns, and the largest |M u − λ u|."""

    values: DoubleArray
    vectors: DoubleArray
    error: float

    @property
    def converged(self) -> bool:
        """Whether all are eigenvectors but for rounding."""
        return self.error <= _TOLERANCE


def leading(matrix: DoubleArray, count: int, random: RandomState) -> Eigenvectors:
    """Return those of the largest eigenvalues of a symmetric matrix that has none above 1.

    A narrow affinity has many eigenvalues next to 1, and as many of 1 as it has separate parts.
    Lanczos' method needs thousands of products to tell the first from one another, and may miss
    some of the second. So blocks of vectors are multiplied with an inverse, for which n³/3
    operations suffice, and the memory of the matrix, which is overwritten.
    """
    size = len(matrix)
    if size <= max(_DENSE, (count + _SPARE) * _POWERS):
        values, vectors = eigh(matrix, subset_by_index=[size - count, size - 1])
        return Eigenvectors(values, vectors, 0.0)
    matrix *= -1.0
    matrix[np.diag_indices(size)] += 1.0 + _SHIFT
    # The transpose is the same matrix in LAPACK's order of memory.
    factor = cho_factor(matrix.T, overwrite_a=True, check_finite=False)
    block = random.normal(size=(size, count + _SPARE))
    for _ in range(_BASES):
        gaps, block, errors = _ritz(lambda v: cho_solve(factor, v, check_finite=False), block)
        if errors[:count].max() <= _TOLERANCE:
            break
    best = slice(count - 1, None, -1)
    return Eigenvectors(1.0 + _SHIFT - gaps[best], block[:, best], float(errors[best].max()))


def _ritz(
    solve: Callable[[DoubleArray], DoubleArray], block: DoubleArray
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Return the best of what the powers of a matrix's inverse make of a block of vectors.

    As many approximate eigenvalues of the matrix, from the smallest, and eigenvectors as there
    were vectors, and |A u − λ u| of each.
    """
    width = block.shape[1]
    basis = np.empty((block.shape[0], width * _POWERS))
    image = np.empty_like(basis)
    for power in range(_POWERS):
        for _ in range(2):  # once leaves rounding errors as large as what is new
            known = basis[:, : power * width]
            block = np.linalg.qr(block - known @ (known.T @ block))[0]
        here = slice(power * width, (power + 1) * width)
        basis[:, here] = block
        image[:, here] = block = solve(block)
    turn = np.linalg.eigh(basis.T @ image)[1][:, : -width - 1 : -1]
    # One more power for nothing: the image u of v is known, and A u = v.
    before, vectors = basis @ turn, image @ turn
    lengths = np.linalg.norm(vectors, axis=0)
    before, vectors = before / lengths, vectors / lengths
    values = (before * vectors).sum(axis=0)
    return values, vectors, np.linalg.norm(before - vectors * values, axis=0)
