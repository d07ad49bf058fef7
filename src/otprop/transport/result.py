"""What a solve found, and whether it got there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from otprop.transport.plan import shares

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otprop.arrays import DoubleArray, FloatArray


@dataclass(frozen=True, slots=True)
class TransportResult:
    """The sources' potentials and the solver's account of itself.

    Attributes
    ----------
    f : array of shape (l,)
        Potentials, shifted so that their weighted mean is 0; relaxed, so that Σ a_i exp(−f_i/ρ) is
        1. −inf for a source that takes no part (one of weight 0, which `solve` refuses and the
        rounds make use of); finite for all others. Of shape (K,) from `solve_classes` and
        `solve_totals`, which say how they are shifted.
    epsilon : float
        Regularisation that `f` belongs to.
    converged : bool
        Whether `marginal_error` is at most the tolerance asked for.
    marginal_error : float
        Σ_i |a_i − r_i|, with r the mass that the sources give at `f`. Relaxed, a_i exp(−f_i/ρ) is
        in the place of a_i; for classes with bounds see `solve_totals`.
    n_sweeps : int
        Passes over the costs or over the shares kept from them.
    n_iter : int
        Steps of Newton's or of Sinkhorn's method.
    value : float
        Dual value of Eq. 11; at convergence the minimum of Eq. 11, the cost of a relaxed marginal
        included.
    solver : str
        "newton" or "sinkhorn".
    """

    f: DoubleArray
    epsilon: float
    converged: bool
    marginal_error: float
    n_sweeps: int
    n_iter: int
    value: float
    solver: str

    def shares(self, cost: ArrayLike) -> FloatArray:
        """Return the column-normalised plan (Eq. 12), one row a target; rows sum to one.

        The columns of `cost` are those that `f` has an entry for: sources, or merged classes.
        """
        return shares(cost, self.f, self.epsilon)
