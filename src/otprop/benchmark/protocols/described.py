"""The paper's text: pseudo-labels join, Eq. 21, solves that converge.

As the paper says of its rivals, every method is given the best of its candidates *by the labels of
the test*: it tells what a method could reach, not what a user of it would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otprop.benchmark.limits import OutOfTimeError
from otprop.benchmark.methods import METHODS, methods_of
from otprop.benchmark.protocols.base import Given, Outcome, fit_split

if TYPE_CHECKING:
    from otprop.benchmark.measures import Scores
    from otprop.benchmark.protocols.base import Fit


class Described:
    """The best candidate by test accuracy, split by split."""

    name = "described"
    title = "as described, parameters chosen by the test labels"

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that are compared."""
        return methods_of(self.name)

    def run(self, method: str, given: Given) -> Outcome:
        """Fit all candidates; return the one of highest accuracy, then NMI, then the first."""
        chosen = given.problem(scaling_of(given.dataset))
        tried: list[dict[str, Any]] = []
        best: tuple[Scores, Fit, dict[str, Any]] | None = None
        for parameters in METHODS[method].candidates(chosen.unit):
            try:
                found, done = fit_split(METHODS[method], parameters, chosen, given)
            except OutOfTimeError as error:
                tried.append({**parameters, "status": "timeout", "message": str(error)})
                continue
            tried.append({**parameters, **found._asdict(), "converged": done.converged})
            if best is None or found[:2] > best[0][:2]:
                best = found, done, parameters
        if best is None:
            raise OutOfTimeError(f"none of {len(tried)} candidates was done in {given.fit_limit} s")
        found, done, parameters = best
        return Outcome(
            scores=found,
            parameters={**parameters, "scaling": chosen.scaling},
            candidates=tried,
            converged=done.converged,
            details={**done.details, "warnings": done.messages, "unit": chosen.unit},
        )


def scaling_of(dataset: str) -> str:
    """Return how the paper's public code scales a data set."""
    return "none" if dataset == "iris" else "minmax"
