"""Sums whose order is fixed: BLAS shares a long one out among as many threads as it likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otprop.arrays import FloatArray


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return Σ a_i b_i, the same bits whatever the number of threads, unlike `a @ b`."""
    return float((a * b).sum())
