"""Learning curves: labels for the rows that `suggest` names, and for rows drawn at random.

Begins with one label a class; each step labels as many rows more as there are classes.
`python benchmarks/suggestions.py` goes on where its results end.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from parts import ASIDE, DECIDED, table

from otprop import OTPropagation

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = 9
# Part of the rows that no way may label: both are measured on it.
TESTED = 0.3
WAYS = ("suggested", "random")
KEYS = ("data", "way", "draw")


def curve(name: str, way: str, draw: int) -> list[float]:
    """Return accuracies on the rows set aside, after each step."""
    X, truth = table(name)
    classes = int(truth.max()) + 1
    rng = np.random.default_rng(draw)
    tested = np.zeros(len(truth), bool)
    tested[rng.choice(len(truth), int(TESTED * len(truth)), replace=False)] = True
    (X, test), (truth, answers) = (X[~tested], X[tested]), (truth[~tested], truth[tested])
    given = [int(rng.choice(np.flatnonzero(truth == k))) for k in range(classes)]
    accuracies = []
    for step in range(STEPS + 1):
        y = np.full(len(truth), -1)
        y[given] = truth[given]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = OTPropagation(n_jobs=-1).fit(X, y)
            predicted = model.predict(test)
        accuracies.append(float((predicted == answers).mean()))
        if step < STEPS:
            others = np.flatnonzero(y < 0)
            more = (
                model.suggest(classes)
                if way == "suggested"
                else rng.choice(others, classes, replace=False)
            )
            given += [int(row) for row in more]
    return accuracies


def run(names: Sequence[str], draws: int) -> None:
    """Run what the results do not have yet."""
    results = common.results_so_far("suggestions")
    done = {tuple(row[key] for key in KEYS) for row in results}
    for draw, name in itertools.product(range(draws), names):
        for way in WAYS:
            if (name, way, draw) not in done:
                keys = dict(zip(KEYS, (name, way, draw), strict=True))
                results.append(keys | {"accuracy": curve(name, way, draw)})
                print(results[-1], flush=True)
        write(results)


def write(results: list[dict[str, Any]]) -> None:
    """Write the page."""
    shown = (0, 1, 2, 4, STEPS)
    rows = []
    for name in dict.fromkeys(row["data"] for row in results):
        for way in WAYS:
            own = [r["accuracy"] for r in results if (r["data"], r["way"]) == (name, way)]
            cells = [common.mean_and_error([curve[step] for curve in own], 3) for step in shown]
            area = common.mean_and_error([float(np.mean(curve)) for curve in own], 3)
            rows.append([f"{name}, {way}", str(len(own)), *cells, area])
    head = ["data", "draws", *(f"{step + 1} K labels" for step in shown), "mean of the curve"]
    text = (
        f"Accuracy of `OTPropagation()` on {TESTED:.0%} of the rows, which are set aside in each "
        "draw and new to the model, mean over draws and, in brackets, the standard error. K is the "
        "number of classes. All curves begin with one label a class, drawn at random; then "
        "`suggest(K)` names the rows to label, or they are drawn at random."
    )
    packages = ("numpy", "scipy", "scikit-learn", "numba", "otprop")
    page = f"{text}\n\n{common.markdown_table(head, rows)}"
    common.write("suggestions", "What to label next", page, results, common.machine(packages))


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=[*DECIDED, *ASIDE])
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    run(options.data, options.draws)


if __name__ == "__main__":
    main()
