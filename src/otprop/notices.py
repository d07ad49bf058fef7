"""What a model says while it works and when it has not gone well."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from otprop.propagation import Round


def report_round(done: Round) -> None:
    """Print a line about a round."""
    note = "" if done.converged else f", not converged ({done.marginal_error:.1e})"
    sys.stdout.write(
        f"[otprop] round {done.round}: {done.sources} sources, {done.targets} targets, "
        f"{done.accepted} accepted, alpha {done.alpha:.4g}, {done.n_sweeps} sweeps{note}\n"
    )


_OF_COSTS = {"epsilon", "alpha", "stall"}
_OF_GRAPHS = {"diffusion", "rounds"}
_WITHOUT_PART = {
    "graph": _OF_COSTS,
    "precomputed-graph": _OF_COSTS | {"scaling", "n_neighbors"},
    "euclidean": _OF_GRAPHS | {"n_neighbors"},
    "precomputed": _OF_GRAPHS | {"scaling", "n_neighbors"},
}
_OF_MARGINALS = {"relaxed": {"relaxation"}, "classes": {"class_prior", "class_tolerance"}}


def warn_ignored(chosen: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
    """Say which parameters were changed from their defaults and have no part in what is in use."""
    geometry, marginals = chosen["geometry"], chosen["marginals"]
    reasons = dict.fromkeys(_WITHOUT_PART[geometry], f"geometry={geometry!r}")
    for rule, names in _OF_MARGINALS.items():
        if rule != marginals:
            reasons |= dict.fromkeys(names, f"marginals={marginals!r}")
    for name in sorted(changed.keys() & reasons.keys()):
        if changed[name] == "none":  # which is what is done
            continue
        warn(f"{name} has no part in {reasons[name]}, which is in use; it is ignored.", UserWarning)


def warn_of(trace: list[Round], since: NDArray[np.intp], tol: float) -> None:
    """Say what did not go well: solves that stopped short, rows that no source reaches."""
    short = [done for done in trace if not done.converged]
    if short:
        worst = max(short, key=lambda done: done.marginal_error)
        warn(
            f"{len(short)} of {len(trace)} solves did not converge to tol={tol:g}; the worst "
            f"is in round {worst.round}, where the sources' masses are off by "
            f"{worst.marginal_error:.2g} in all. See trace_. Raise max_iter or epsilon, on a graph "
            "lower diffusion, or accept a larger tol.",
            ConvergenceWarning,
        )
    warn_unreached(int((since < 0).sum()))


def warn_unreached(count: int) -> None:
    """Say how many rows no source reaches, if any."""
    if count:
        warn(
            f"{count} row(s) are out of every source's reach: their distribution is uniform, "
            "their certainty 0, and their label means nothing.",
            UserWarning,
        )


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, however deep in it this is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "otprop":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
