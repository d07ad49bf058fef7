"""The methods that are compared, and the candidates that a protocol may choose among.

A new method is one `Method` given to `add_method`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from otprop.baselines import (
    KernelVote,
    LabelledOnly,
    LinearNeighborhoodPropagation,
    SpectralClustering,
    Transductive,
)
from otprop.estimator import OTPropagation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Method:
    """A method: how its estimator is made, and the values of its parameters to choose among.

    The estimator has `fit(X, y)` with -1 for unlabelled rows, and then `transduction_`. Values of
    `epsilon`, the width of a kernel exp(−cost/ε), are in units of the data's own: the median
    squared distance from a row to its nearest other.
    """

    name: str
    make: Callable[..., Any]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    clusters: bool = False  # whether it gives `clusters_` instead of labels
    scalable: bool = True  # whether the scaling of the features matters to it
    means: tuple[str, ...] = ()  # which of `random_state` and `n_jobs` its estimator takes
    protocols: tuple[str, ...] = ("described", "honest")

    def candidates(self, unit: float) -> Iterator[dict[str, Any]]:
        """Yield all combinations of parameters for data of this unit."""
        for values in product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            if "epsilon" in chosen:
                chosen["epsilon"] = float(chosen["epsilon"] * unit)
            yield chosen


METHODS: dict[str, Method] = {}


def add_method(method: Method) -> None:
    """Let a method be run by its name."""
    METHODS[method.name] = method


def methods_of(protocol: str) -> tuple[str, ...]:
    """Return the names of the methods that a protocol compares."""
    return tuple(name for name, method in METHODS.items() if protocol in method.protocols)


# Widths of kernels, in units of the data's own.
WIDTHS = tuple(2.0**power for power in range(-6, 6))
# Every other one, for what takes long.
FEWER_WIDTHS = WIDTHS[::2]
# OTP's own code was run with 0.008 to 0.62 of the unit.
SMALL_WIDTHS = tuple(2.0**power for power in range(-7, 2, 2))

for _method in (
    Method(
        "OTP",
        lambda epsilon, alpha, n_jobs: OTPropagation.paper(epsilon, alpha, n_jobs=n_jobs),
        {"epsilon": SMALL_WIDTHS, "alpha": (0.7, 0.9, 0.99)},
        means=("n_jobs",),
    ),
    Method(
        "OTP auto",  # the defaults; what they choose, they choose within a fit
        lambda n_jobs: OTPropagation(n_jobs=n_jobs),
        scalable=False,
        means=("n_jobs",),
        protocols=("honest",),
    ),
    Method(
        "LP",
        lambda epsilon: LabelPropagation(gamma=1 / epsilon),
        {"epsilon": WIDTHS},
    ),
    Method(
        "LS",
        lambda epsilon, alpha: LabelSpreading(gamma=1 / epsilon, alpha=alpha),
        {"epsilon": WIDTHS, "alpha": (0.2,)},
    ),
    Method(
        "LNP",
        lambda n_neighbors, alpha: LinearNeighborhoodPropagation(
            n_neighbors=n_neighbors, alpha=alpha
        ),
        {"n_neighbors": (5, 10, 20), "alpha": (0.5, 0.9, 0.99)},
    ),
    Method(
        "SC",
        lambda epsilon, random_state: SpectralClustering(
            epsilon=epsilon, random_state=random_state
        ),
        {"epsilon": FEWER_WIDTHS},
        clusters=True,
        means=("random_state",),
    ),
    Method(
        "1-NN",
        lambda: LabelledOnly(KNeighborsClassifier(n_neighbors=1)),
        protocols=("honest",),
    ),
    Method(
        "SVM",
        lambda epsilon, C: LabelledOnly(SVC(gamma=1 / epsilon, C=C)),
        {"epsilon": FEWER_WIDTHS, "C": (1.0, 10.0, 100.0)},
        protocols=("honest",),
    ),
    Method(
        "RF",
        lambda max_features, random_state, n_jobs: LabelledOnly(
            RandomForestClassifier(
                300, max_features=max_features, random_state=random_state, n_jobs=n_jobs
            )
        ),
        {"max_features": ("sqrt", 0.3)},
        scalable=False,
        protocols=("honest",),
        means=("random_state", "n_jobs"),
    ),
    Method(
        "Self-training",
        lambda threshold, random_state, n_jobs: Transductive(
            SelfTrainingClassifier(
                RandomForestClassifier(100, random_state=random_state, n_jobs=n_jobs),
                threshold=threshold,
            )
        ),
        {"threshold": (0.6, 0.75, 0.9)},
        scalable=False,
        protocols=("honest",),
        means=("random_state", "n_jobs"),
    ),
    Method(
        "Vote",
        lambda epsilon: KernelVote(epsilon=epsilon),
        {"epsilon": WIDTHS},
        protocols=("honest",),
    ),
):
    add_method(_method)
