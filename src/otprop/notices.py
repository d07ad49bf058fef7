"""What a model says while it works and when it has not gone well."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from otprop.propagation import Propagation, Round


def report_round(done: Round) -> None:
    """Print a line about a round."""
    note = "" if done.converged else f", not converged ({done.marginal_error:.1e})"
    sys.stdout.write(
        f"[otprop] round {done.round}: {done.accepted} of {done.targets} targets join "
        f"{done.sources} sources at alpha {done.alpha:.4g}, "
        f"{done.n_sweeps} sweeps{note}\n"
    )


def warn_of(found: Propagation, tol: float) -> None:
    """Say what did not go well: solves that stopped short, rows that no source reaches."""
    short = [done for done in found.trace if not done.converged]
    if short:
        worst = max(short, key=lambda done: done.marginal_error)
        warn(
            f"{len(short)} of {len(found.trace)} solves did not converge to tol={tol:g}; the worst "
            f"is in round {worst.round}, where the sources' masses are off by "
            f"{worst.marginal_error:.2g} in all. See trace_. Raise max_iter or epsilon, or accept "
            "a larger tol.",
            ConvergenceWarning,
        )
    warn_unreached(int((found.round < 0).sum()))


def warn_unreached(count: int) -> None:
    """Say how many rows no source reaches, if any."""
    if count:
        warn(
            f"{count} row(s) have no finite cost to any source: their distribution is uniform, "
            "their certainty 0, and their label means nothing.",
            UserWarning,
        )


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, however deep in it this is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "otprop":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
