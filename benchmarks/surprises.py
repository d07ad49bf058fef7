"""Small random problems of many kinds: OTPropagation() beside the plain kernel vote.

Each family is a way in which data can be awkward. The default should never be much below the vote
of the labelled rows with a kernel whose width is chosen by leaving one out.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import common
import numpy as np

from otprop import OTPropagation

if TYPE_CHECKING:
    from collections.abc import Callable

PROBLEMS = 20
STRAY = 0.05
# How far below the vote a family's mean may be.
ALLOWED = 0.02

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


def clusters(
    rng: np.random.Generator, *, sizes: np.ndarray, spread: float, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return normal clusters of some sizes around random centres, two for each class."""
    X, truth = [], []
    for k, size in enumerate(sizes):
        for centre in rng.normal(size=(2, columns)) * 2.0:
            X.append(centre + spread * rng.normal(size=(size // 2, columns)))
            truth.append(np.full(size // 2, k))
    return np.concatenate(X), np.concatenate(truth)


def known_rows(rng: np.random.Generator, truth: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return which rows are labelled: so many of each class."""
    known = np.zeros(len(truth), bool)
    for k, count in enumerate(counts):
        rows = np.flatnonzero(truth == k)
        known[rng.choice(rows, min(int(count), len(rows) - 1), replace=False)] = True
    return known


def _shape(rng: np.random.Generator) -> tuple[int, int, int]:
    return int(rng.integers(2, 6)), int(rng.integers(2, 15)), int(rng.integers(60, 150))


def plain(rng: np.random.Generator) -> Problem:
    """Classes of equal size, 15 % labelled."""
    classes, columns, size = _shape(rng)
    X, truth = clusters(rng, sizes=np.full(classes, size), spread=1.0, columns=columns)
    return X, truth, known_rows(rng, truth, np.full(classes, 0.15 * size))


def imbalanced(rng: np.random.Generator) -> Problem:
    """Sizes from 1 to 10, labelled in proportion."""
    classes, columns, size = _shape(rng)
    sizes = np.maximum(20, size * np.geomspace(1, 0.1, classes)).astype(int)
    X, truth = clusters(rng, sizes=sizes, spread=1.0, columns=columns)
    return X, truth, known_rows(rng, truth, np.maximum(2, 0.15 * sizes))


def wrong_prior(rng: np.random.Generator) -> Problem:
    """Sizes from 1 to 10, the same number of labels for each."""
    X, truth, _ = imbalanced(rng)
    return X, truth, known_rows(rng, truth, np.full(truth.max() + 1, 10))


def few_by_chance(rng: np.random.Generator) -> Problem:
    """Classes of equal size, of which one has most of a handful of labels."""
    classes, columns, size = _shape(rng)
    X, truth = clusters(rng, sizes=np.full(classes, size), spread=0.7, columns=columns)
    return X, truth, known_rows(rng, truth, rng.permutation([8, *[2] * (classes - 1)]))


def overlapping(rng: np.random.Generator) -> Problem:
    """Clusters as wide as they are apart."""
    classes, columns, size = _shape(rng)
    X, truth = clusters(rng, sizes=np.full(classes, size), spread=2.5, columns=columns)
    return X, truth, known_rows(rng, truth, np.full(classes, 0.15 * size))


def outliers(rng: np.random.Generator) -> Problem:
    """One row in twenty anywhere, far out, of a random class."""
    X, truth, known = plain(rng)
    stray = rng.random(len(X)) < STRAY
    X[stray] = rng.normal(size=(int(stray.sum()), X.shape[1])) * 15.0
    truth[stray] = rng.integers(0, truth.max() + 1, int(stray.sum()))
    return X, truth, known


def one_label(rng: np.random.Generator) -> Problem:
    """One cluster and one label for each class."""
    classes, columns, size = _shape(rng)
    centres = rng.normal(size=(classes, columns)) * 2.5
    truth = np.repeat(np.arange(classes), size)
    X = centres[truth] + rng.normal(size=(len(truth), columns))
    return X, truth, known_rows(rng, truth, np.ones(classes))


def noise_columns(rng: np.random.Generator) -> Problem:
    """As many columns again that tell nothing, in other units."""
    X, truth, known = plain(rng)
    noise = rng.normal(size=X.shape) * rng.lognormal(sigma=2.0, size=X.shape[1])
    return np.hstack([X, noise]), truth, known


FAMILIES: dict[str, Callable[[np.random.Generator], Problem]] = {
    "plain": plain,
    "imbalanced": imbalanced,
    "wrong prior": wrong_prior,
    "few by chance": few_by_chance,
    "overlapping": overlapping,
    "outliers": outliers,
    "one label a class": one_label,
    "noise columns": noise_columns,
}


def vote() -> OTPropagation:
    """Return the plain kernel vote: no prior, one round, the width by leaving one out."""
    return OTPropagation(
        geometry="euclidean", scaling="none", class_tolerance=np.inf, alpha=0.0, n_jobs=-1
    )


def measure(family: str, seed: int) -> dict[str, Any]:
    """Return the accuracies of both on a problem."""
    X, truth, known = FAMILIES[family](np.random.default_rng(seed))
    y = np.where(known, truth, -1)
    found: dict[str, Any] = {"family": family, "seed": seed}
    for name, model in (("default", OTPropagation(n_jobs=-1)), ("vote", vote())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        found[name] = float((model.transduction_ == truth)[~known].mean())
    return found


def main() -> None:
    """Run all and write the page."""
    results = [measure(family, seed) for family in FAMILIES for seed in range(PROBLEMS)]
    rows = []
    for family in FAMILIES:
        own = [row for row in results if row["family"] == family]
        change = [row["default"] - row["vote"] for row in own]
        rows.append(
            [
                family,
                common.mean_and_error([row["vote"] for row in own]),
                common.mean_and_error([row["default"] for row in own]),
                common.mean_and_error(change),
                f"{min(change):+.4f}",
                common.yes(np.mean(change) >= -ALLOWED),
            ]
        )
    told = {name: make.__doc__ for name, make in FAMILIES.items()}
    described = "\n".join(f"* *{name}*: {text}" for name, text in told.items())
    head = ["family", "vote", "default", "difference", "worst", f"≥ −{ALLOWED}"]
    text = (
        f"{len(results)} random problems, {PROBLEMS} of each family, two clusters a class unless "
        "said otherwise. Accuracy on the rows without label, mean and, in brackets, the standard "
        "error. *vote*: the labelled rows vote with a kernel whose width is chosen by leaving one "
        "out. *worst*: the smallest difference of a single problem."
    )
    page = f"{text}\n\n{described}\n\n{common.markdown_table(head, rows)}"
    packages = ("numpy", "scipy", "scikit-learn", "numba", "otprop")
    common.write("surprises", "Surprises", page, results, common.machine(packages))


if __name__ == "__main__":
    main()
