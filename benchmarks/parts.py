"""What each part of OTPropagation() is worth: the default, and the default without it.

15 % of each class labelled. `python benchmarks/parts.py` goes on where its results end.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import common
import numpy as np

from otprop import OTPropagation, datasets
from otprop.benchmark.splits import SEEDS, hidden, labelled_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

PERCENT = 15
# Those that decided on the defaults, then those kept aside.
DECIDED = ("iris", "wine", "heart", "ionosphere", "dermatology", "wdbc", "waveform")
ASIDE = ("isolet", "optdigits", "satimage", "mnist")
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "no marginals": {"class_tolerance": np.inf},
    "no rounds": {"rounds": "none"},
    "no graph": {"geometry": "euclidean"},
    "nothing chosen": {
        "scaling": "minmax",
        "n_neighbors": 20,
        "diffusion": 0.9,
        "class_tolerance": 0.0,
        "rounds": "none",
        "geometry": "graph",
    },
    "no discriminant": {"scaling": "standard"},
}
KEYS = ("data", "variant", "seed")
BINS = 10
# Part of the rows that abstain, the least confident.
ABSTAINING = 0.1


@cache
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and class codes."""
    loaded = datasets.load(name, data=common.data_folder())
    _, truth = np.unique(np.asarray(loaded.target), return_inverse=True)
    return loaded.frame.to_numpy(np.float64), truth


def measure(name: str, variant: str, seed: int) -> dict[str, float]:
    """Fit a variant on a split; return accuracy and how far confidence can be relied on."""
    X, truth = table(name)
    known = labelled_rows(truth, PERCENT, seed)
    model = OTPropagation(n_jobs=-1, **VARIANTS[variant])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, hidden(truth, known))
    right = (model.transduction_ == truth)[~known]
    confidence = model.confidence_[~known]
    kept = confidence >= np.quantile(confidence, ABSTAINING)
    return {
        "accuracy": float(right.mean()),
        "calibration_error": calibration_error(confidence, right),
        "accuracy_of_kept": float(right[kept].mean()),
    }


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the mean distance between confidence and accuracy over bins of equal width."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == b).mean() * abs(confidence[bins == b].mean() - right[bins == b].mean())
        for b in np.unique(bins)
    ]
    return float(sum(gaps))


def run(names: Sequence[str], seeds: Sequence[int], variants: Sequence[str]) -> None:
    """Run what the results do not have yet; save after each split."""
    results = common.results_so_far("parts")
    done = {tuple(row[key] for key in KEYS) for row in results}
    for seed, name in itertools.product(seeds, names):
        for variant in variants:
            if (name, variant, seed) not in done:
                keys = dict(zip(KEYS, (name, variant, seed), strict=True))
                results.append(keys | measure(name, variant, seed))
                print(results[-1], flush=True)
        write(results)


def write(results: list[dict[str, Any]]) -> None:
    """Write the page."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "otprop")
    common.write(
        "parts", "What each part is worth", body(results), results, common.machine(packages)
    )


def body(results: list[dict[str, Any]]) -> str:
    """Return the page's text and tables."""
    names = [name for name in (*DECIDED, *ASIDE) if any(r["data"] == name for r in results)]
    changes, sure = [], []
    for name in names:
        own = [row for row in results if row["data"] == name]
        of = {v: {r["seed"]: r for r in own if r["variant"] == v} for v in VARIANTS}
        default = of["default"]
        line = [name, str(len(default)), common.mean_and_error(values(default, "accuracy"))]
        for variant in list(VARIANTS)[1:]:
            pairs = [s for s in default if s in of[variant]]
            line.append(
                common.mean_and_error(
                    [of[variant][s]["accuracy"] - default[s]["accuracy"] for s in pairs]
                )
            )
        changes.append(line)
        sure.append(
            [
                name,
                common.mean_and_error(values(default, "calibration_error"), 3),
                common.mean_and_error(values(default, "accuracy")),
                common.mean_and_error(values(default, "accuracy_of_kept")),
            ]
        )
    head = ["data", "splits", "default", *list(VARIANTS)[1:]]
    sure_text = (
        f"Expected calibration error of `confidence_` ({BINS} bins), accuracy of all rows, and of "
        f"those kept when the least confident {ABSTAINING:.0%} abstain."
    )
    text = (
        f"{PERCENT} % of each class labelled; accuracy on the other rows. First that of "
        "`OTPropagation()`, then by how much it changes without a part, mean over splits and, in "
        "brackets, the standard error. *no marginals*: nothing is asked of the classes "
        "(`class_tolerance=inf`). *no graph*: squared distances. *nothing chosen*: columns to "
        "[0, 1], 20 neighbours, κ = 0.9, the labels' class totals, no rounds. *no discriminant*: "
        "standardised columns. The defaults were decided on the data sets down to "
        f"{DECIDED[-1]}; those after it were kept aside."
    )
    sure_head = ["data", "calibration error", "accuracy", "accuracy of the kept"]
    parts = [
        text,
        common.markdown_table(head, changes),
        "## Confidence",
        sure_text,
        common.markdown_table(sure_head, sure),
    ]
    return "\n\n".join(parts)


def values(rows: dict[int, dict[str, Any]], name: str) -> list[float]:
    """Return a measure of all splits."""
    return [row[name] for row in rows.values()]


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=[*DECIDED, *ASIDE])
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    run(options.data, range(options.seeds), options.variants)


if __name__ == "__main__":
    main()
