"""The published code with one rule put right at a time: what each of them is worth.

Settings, scalings and splits are those of `published`, so that a difference between the two is the
difference that the one rule makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.semi_supervised import LabelPropagation, LabelSpreading

from otprop.benchmark.methods import METHODS, Method
from otprop.benchmark.protocols.base import Outcome, fit_split
from otprop.benchmark.protocols.described import scaling_of
from otprop.benchmark.protocols.published import run_rival, run_rules, settings_of
from otprop.transport import shares, solve

if TYPE_CHECKING:
    from otprop.arrays import DoubleArray
    from otprop.benchmark.protocols.base import Given

OWN_LABELS = "OTP, own labels join"
SOLVED = "OTP, solved"
AS_DESCRIBED = "OTP, as described"

# With scikit-learn's defaults, as published, but given the rows that they are to label.
RIVALS = {
    "LP, all rows": Method("LP, all rows", LabelPropagation),
    "LS, all rows": Method("LS, all rows", LabelSpreading),
}


class Corrected:
    """One rule at a time: the labels that join, the solver, all of OTP, the rivals' rows."""

    name = "corrected"
    title = "published code and settings, one rule put right at a time"

    @property
    def methods(self) -> tuple[str, ...]:
        """Return a name for each rule put right."""
        return (OWN_LABELS, SOLVED, AS_DESCRIBED, *RIVALS)

    def run(self, method: str, given: Given) -> Outcome:
        """Run the published code with that rule changed."""
        if method == OWN_LABELS:
            return run_rules(given, true_labels_join=False)
        if method == SOLVED:
            return run_rules(given, plan=solved)
        if method == AS_DESCRIBED:
            return run_described(given)
        return run_rival(RIVALS[method], given)


def solved(cost: DoubleArray, epsilon: float) -> tuple[DoubleArray, bool]:
    """Return the plan itself, one row a source, and whether it converged."""
    targets = np.ascontiguousarray(cost.T)
    found = solve(targets, epsilon)
    return np.asarray(shares(targets, found.f, epsilon).T, np.float64), found.converged


def run_described(given: Given) -> Outcome:
    """Run the paper's text with the published settings: own labels, Eq. 21, converged solves."""
    chosen, parameters = given.problem(scaling_of(given.dataset)), settings_of(given)
    found, done = fit_split(METHODS["OTP"], parameters, chosen, given)
    return Outcome(
        scores=found,
        parameters=parameters,
        converged=done.converged,
        details={**done.details, "warnings": done.messages},
    )
