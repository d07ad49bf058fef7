"""The rules and settings of the paper's first public code, as they were.

**The true labels of accepted rows join the sources**, so that each round after the first knows
labels which the method is to find. Sinkhorn-Knopp runs for at most 1,000 iterations and may stop
unconverged, or at the last iterate before a numerical failure. LP and LS, with scikit-learn's
defaults, are fitted on the labelled rows only. It is here so that the printed numbers can be
understood, and for nothing else.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import ot
from scipy.spatial.distance import cdist
from sklearn.semi_supervised import LabelPropagation, LabelSpreading

from otprop.baselines import LabelledOnly
from otprop.benchmark.limits import noticing, time_limit
from otprop.benchmark.measures import scores
from otprop.benchmark.methods import Method
from otprop.benchmark.protocols.base import Given, Outcome, fit_split
from otprop.benchmark.protocols.described import scaling_of
from otprop.benchmark.splits import PERCENTS
from otprop.propagation import certainty

if TYPE_CHECKING:
    from collections.abc import Callable

    from otprop.arrays import BoolArray, DoubleArray, IntArray

ITERATIONS = 1_000
THRESHOLD = 1e-9
# α is divided by this after every tenth round.
PATIENCE = 10
DECAY = 1.5
# Below this a lower α accepts nobody new: what is left is undecided to the last digit.
LEAST_ALPHA = 1e-12

# ε, and α at 15, 25 and 35 per cent of labels.
SETTINGS: dict[str, tuple[float, tuple[float, float, float]]] = {
    "iris": (0.016, (0.9, 0.9, 0.9)),
    "wine": (0.016, (0.7, 0.7, 0.7)),
    "heart": (0.1, (0.9, 0.9, 0.9)),
    "ionosphere": (0.1, (0.9, 0.9, 0.9)),
    "dermatology": (0.01, (0.9, 0.9, 0.9)),
    "wdbc": (0.016, (0.999, 0.99, 0.9)),
    "wdbc-leaky": (0.016, (0.9, 0.9, 0.9)),
    "isolet": (0.1, (0.7, 0.7, 0.7)),
    "waveform": (0.016, (0.9, 0.9, 0.9)),
    "optdigits": (0.01, (1.0, 1.0, 1.0)),
    "satimage": (0.01, (0.9, 0.9, 0.9)),
    "mnist": (0.9, (0.7, 0.7, 0.9)),
}

# Fitted on the labelled rows only, with scikit-learn's defaults.
RIVALS = {
    "LP": Method("LP", lambda: LabelledOnly(LabelPropagation())),
    "LS": Method("LS", lambda: LabelledOnly(LabelSpreading())),
}


class Published:
    """The first public code's rules: accepted rows join with their true labels."""

    name = "published"
    title = "published code: true labels join, LP and LS see labelled rows only"

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that the published code had."""
        return ("OTP", *RIVALS)

    def run(self, method: str, given: Given) -> Outcome:
        """Run one of the three with the published settings."""
        return run_rival(RIVALS[method], given) if method != "OTP" else run_rules(given)


def settings_of(given: Given) -> dict[str, float]:
    """Return the published ε and α of a data set and percentage."""
    if given.dataset not in SETTINGS:
        raise ValueError(f"the published code has no settings for {given.dataset!r}")
    if given.percent not in PERCENTS:
        raise ValueError(f"the published code has no settings for {given.percent} %")
    epsilon, alphas = SETTINGS[given.dataset]
    return {"epsilon": epsilon, "alpha": alphas[PERCENTS.index(given.percent)]}


def run_rival(rival: Method, given: Given) -> Outcome:
    """Fit a rival as it stands, with the scaling of the published code."""
    chosen = given.problem(scaling_of(given.dataset))
    found, fitted = fit_split(rival, {}, chosen, given)
    return Outcome(
        scores=found,
        converged=fitted.converged,
        details={**fitted.details, "warnings": fitted.messages},
    )


def run_rules(given: Given, **changed: Any) -> Outcome:  # noqa: ANN401 - what `propagate` takes
    """Run the published rules and settings, but for what is changed of them."""
    chosen = given.problem(scaling_of(given.dataset))
    parameters = settings_of(given)
    known = given.known(chosen.truth)
    with time_limit(given.fit_limit), noticing() as noticed:
        done = propagate(
            chosen.X,
            chosen.truth,
            known,
            epsilon=parameters["epsilon"],
            alpha=parameters["alpha"],
            **changed,
        )
    return Outcome(
        scores=scores(chosen.truth[~known], done.predicted[~known]),
        parameters=parameters,
        converged=done.unconverged == 0,
        details={
            "rounds": done.rounds,
            "solves": done.solves,
            "unconverged": done.unconverged,
            "warnings": noticed.messages,
        },
    )


class Propagated(NamedTuple):
    """What the published rules found."""

    predicted: IntArray  # class codes of all rows
    rounds: int
    solves: int
    unconverged: int


def sinkhorn_knopp(cost: DoubleArray, epsilon: float) -> tuple[DoubleArray, bool]:
    """Return the plan that the published code stops at, and whether it converged."""
    a, b = (np.full(size, 1 / size) for size in cost.shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan, log = ot.bregman.sinkhorn_knopp(
            a, b, cost, epsilon, numItermax=ITERATIONS, stopThr=THRESHOLD, log=True
        )
    return plan, bool(log["err"] and log["err"][-1] < THRESHOLD and not caught)


def propagate(
    X: DoubleArray,
    truth: IntArray,
    known: BoolArray,
    *,
    epsilon: float,
    alpha: float,
    plan: Callable[[DoubleArray, float], tuple[DoubleArray, bool]] = sinkhorn_knopp,
    true_labels_join: bool = True,
) -> Propagated:
    """Spread labels by the published rules; `corrected` changes the last two."""
    known, predicted = known.copy(), truth.copy()
    teaching = truth if true_labels_join else predicted
    classes = int(truth.max()) + 1
    rounds = solves = unconverged = 0
    U: DoubleArray | None = None
    while not known.all():
        rounds += 1
        if U is None:  # else nobody joined, and the plan is what it was
            mass, converged = plan(cdist(X[known], X[~known], "sqeuclidean"), epsilon)
            U = by_class(mass, teaching[known], classes)
            solves, unconverged = solves + 1, unconverged + (not converged)
            scored = certainty(U)
        accepted = scored >= alpha
        if alpha < LEAST_ALPHA:
            accepted[:] = True
        if accepted.any():
            joining = np.flatnonzero(~known)[accepted]
            predicted[joining] = U[accepted].argmax(axis=1)
            known[joining] = True  # and with them what they teach
            U = None
        if rounds % PATIENCE == 0:
            alpha /= DECAY
    return Propagated(predicted, rounds, solves, unconverged)


def by_class(plan: DoubleArray, labels: IntArray, classes: int) -> DoubleArray:
    """Return the shares by class, a row a target; uniform where nothing arrives."""
    masses = np.stack([plan[labels == k].sum(axis=0) for k in range(classes)], axis=1)
    total = masses.sum(axis=1, keepdims=True)
    reached = (total > 0) & np.isfinite(total)
    return np.where(reached, masses / np.where(reached, total, 1.0), 1.0 / classes)
