"""Accuracy, NMI and ARI, on the unlabelled rows only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sklearn.metrics import accuracy_score, adjusted_rand_score, normalized_mutual_info_score

from otprop.baselines import matched_accuracy

if TYPE_CHECKING:
    from otprop.arrays import IntArray

MEASURES = {"accuracy": "Accuracy", "nmi": "NMI", "ari": "ARI"}


class Scores(NamedTuple):
    """The paper's three measures."""

    accuracy: float
    nmi: float
    ari: float


def scores(truth: IntArray, predicted: IntArray, *, clusters: bool = False) -> Scores:
    """Measure labels against the true ones; clusters count as the classes that they match best."""
    accuracy = matched_accuracy if clusters else accuracy_score
    return Scores(
        accuracy=float(accuracy(truth, predicted)),
        nmi=float(normalized_mutual_info_score(truth, predicted, average_method="arithmetic")),
        ari=float(adjusted_rand_score(truth, predicted)),
    )
