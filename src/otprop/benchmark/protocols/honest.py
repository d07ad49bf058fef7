"""All parameters of all methods, scaling included, chosen on the labelled rows alone.

The labelled rows are split into folds. Each candidate is fitted on the labelled rows only, with
the labels of one fold hidden, and judged by how many of these it finds; the rule and the folds are
the same for all methods. The candidate chosen is then fitted on all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from otprop.benchmark.limits import OutOfTimeError
from otprop.benchmark.measures import scores
from otprop.benchmark.methods import METHODS, methods_of
from otprop.benchmark.problems import SCALINGS
from otprop.benchmark.protocols.base import Given, Outcome, fit, fit_split
from otprop.benchmark.splits import UNLABELLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otprop.arrays import IntArray
    from otprop.benchmark.methods import Method
    from otprop.benchmark.problems import Problem

FOLDS = 5


class Choice(NamedTuple):
    """A candidate, how much of the hidden labels it found, and how many of its fits failed."""

    scaling: str
    parameters: dict[str, Any]
    accuracy: float | None  # None if there was nothing to choose
    failed: int


class Honest:
    """The best candidate by cross-validation on the labelled rows."""

    name = "honest"
    title = "honest: everything chosen on the labelled rows"

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that are compared."""
        return methods_of(self.name)

    def run(self, method: str, given: Given) -> Outcome:
        """Choose a candidate, if there is a choice, and fit it on all rows."""
        choices = list(validated(METHODS[method], given))
        best = max(choices, key=lambda choice: choice.accuracy or 0.0)  # the first of equals
        chosen = given.problem(best.scaling)
        found, done = fit_split(METHODS[method], best.parameters, chosen, given)
        return Outcome(
            scores=found,
            parameters={**best.parameters, "scaling": best.scaling},
            converged=done.converged,
            details={
                **done.details,
                "warnings": done.messages,
                "validated": best.accuracy,
                "candidates": len(choices),
                "failed_fits": sum(choice.failed for choice in choices),
            },
        )


def validated(method: Method, given: Given) -> Iterator[Choice]:
    """Judge all candidates, in the order in which equals are preferred; a single one is taken."""
    scalings = SCALINGS if method.scalable else SCALINGS[:1]
    candidates = [
        (scaling, parameters)
        for scaling in scalings
        for parameters in method.candidates(given.problem(scaling).unit)
    ]
    if len(candidates) == 1:
        yield Choice(*candidates[0], accuracy=None, failed=0)
        return
    for scaling, parameters in candidates:
        yield cross_validated(method, parameters, given.problem(scaling), given)


def cross_validated(
    method: Method, parameters: dict[str, Any], chosen: Problem, given: Given
) -> Choice:
    """Judge a candidate by the part of the labelled rows' labels found when each was hidden once.

    One that fails or takes too long on a fold finds none of it.
    """
    known = given.known(chosen.truth)
    X, truth = chosen.X[known], chosen.truth[known]
    found, failed = 0.0, 0
    for held in folds(truth, given.seed):
        y = truth.copy()
        y[held] = UNLABELLED
        try:
            done = fit(method, parameters, X, y, given)
        except (OutOfTimeError, ValueError):
            failed += 1
            continue
        measured = scores(truth[held], done.predicted, clusters=method.clusters)
        found += measured.accuracy * len(held)
    return Choice(chosen.scaling, parameters, found / len(truth), failed)


def folds(truth: IntArray, seed: int) -> list[IntArray]:
    """Return the held-out rows of each fold: as many folds as the smallest class allows."""
    count = min(FOLDS, int(np.bincount(truth).min()))
    if count < 2:  # noqa: PLR2004 - nothing can be held out of a class with one label
        return []
    cut = StratifiedKFold(count, shuffle=True, random_state=seed)
    # held-out rows in ascending order, as `fit` returns them
    return [held for _, held in cut.split(truth, truth)]
