"""What the scripts on the replication share: where its records are, and what they are held to."""

from __future__ import annotations

import common

from otprop.datasets import registry

FOLDER = common.RESULTS / "replication"
# The data sets, in the order of the paper's tables.
DATASETS = (
    "iris",
    "wine",
    "heart",
    "ionosphere",
    "dermatology",
    "wdbc",
    "wdbc-leaky",
    "isolet",
    "waveform",
    "optdigits",
    "satimage",
    "mnist",
)


def class_sizes(dataset: str) -> list[int]:
    """Return how many rows each class of a data set has."""
    return list((registry.find(dataset).counts or {}).values())


def accuracy_of_largest_class(dataset: str) -> float:
    """Return the accuracy of giving every row the largest class."""
    sizes = class_sizes(dataset)
    return max(sizes) / sum(sizes)
