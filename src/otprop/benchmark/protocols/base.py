"""What a protocol is given, and what it returns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from typing import Protocol as Interface

import numpy as np

from otprop.benchmark.limits import noticing, time_limit
from otprop.benchmark.measures import Scores, scores
from otprop.benchmark.problems import problem
from otprop.benchmark.splits import hidden, labelled_rows

if TYPE_CHECKING:
    from pathlib import Path

    from otprop.arrays import BoolArray, DoubleArray, IntArray
    from otprop.benchmark.methods import Method
    from otprop.benchmark.problems import Problem


@dataclass(frozen=True)
class Given:
    """A split of a data set, and what a fit may take."""

    dataset: str
    percent: int
    seed: int
    data: Path | None = None  # the folder of the data sets, if not the usual
    fit_limit: float | None = None  # seconds
    threads: int = 1

    def problem(self, scaling: str) -> Problem:
        """Return the data set in a scaling."""
        return problem(self.dataset, scaling, self.data)

    def known(self, truth: IntArray) -> BoolArray:
        """Return which rows are labelled."""
        return labelled_rows(truth, self.percent, self.seed)


class Fit(NamedTuple):
    """What a fit found for the rows without label."""

    predicted: IntArray  # class codes, or cluster numbers
    converged: bool
    messages: list[str]
    details: dict[str, Any]


@dataclass
class Outcome:
    """What came of a method on a split."""

    scores: Scores
    parameters: dict[str, Any] = field(default_factory=dict)
    candidates: list[dict[str, Any]] | None = None
    converged: bool | None = None
    details: dict[str, Any] = field(default_factory=dict)


class Protocol(Interface):
    """The rules of a comparison."""

    name: str
    title: str  # what it is, in every table that it enters

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the names of the methods that it compares."""
        ...

    def run(self, method: str, given: Given) -> Outcome:
        """Run a method on a split."""
        ...


def fit(
    method: Method, parameters: dict[str, Any], X: DoubleArray, y: IntArray, given: Given
) -> Fit:
    """Fit a method's estimator on rows of which some have the label -1, within the limit."""
    estimator = method.make(**parameters, **_means(method, given))
    start = time.perf_counter()
    with time_limit(given.fit_limit), noticing() as noticed:
        estimator.fit(X, y)
    details: dict[str, Any] = {"fit_seconds": round(time.perf_counter() - start, 6)}
    if hasattr(estimator, "trace_"):
        details["rounds"] = len(estimator.trace_)
    found = estimator.clusters_ if method.clusters else estimator.transduction_
    return Fit(
        predicted=np.asarray(found)[y < 0],
        converged=noticed.converged,
        messages=noticed.messages,
        details=details,
    )


def fit_split(
    method: Method, parameters: dict[str, Any], chosen: Problem, given: Given
) -> tuple[Scores, Fit]:
    """Fit a method on a split and measure it on the rows without label."""
    known = given.known(chosen.truth)
    done = fit(method, parameters, chosen.X, hidden(chosen.truth, known), given)
    return scores(chosen.truth[~known], done.predicted, clusters=method.clusters), done


def _means(method: Method, given: Given) -> dict[str, Any]:
    """Return the parameters that are means, not choices: the seed and the threads."""
    means = {"random_state": given.seed, "n_jobs": given.threads}
    return {name: means[name] for name in method.means}
