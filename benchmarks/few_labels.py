"""A handful of labels a class: OTPropagation beside label spreading, Laplace and Poisson learning.

All methods get the same graph. Poisson MBO is given the true sizes of the classes; the others are
not. `python benchmarks/few_labels.py` goes on where its results end; `--data mnist-70000` runs the
large set, whose graph takes minutes.
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
from otprop.models import graph_of, nearest_others
from otprop.scaling import fit_scaling
from otprop.transport import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_matrix

NEIGHBOURS = 20
PER_CLASS = (1, 2, 5, 10)
DRAWS = 10
DATA = ("optdigits", "satimage", "isolet", "mnist")
LARGE = ("mnist-70000",)
KEYS = ("data", "per_class", "draw", "method")


@cache
def problem(name: str) -> tuple[csr_matrix, np.ndarray]:
    """Return the graph of a data set, columns scaled to [0, 1], and the true classes."""
    loaded = datasets.load(name, data=common.data_folder())
    _, truth = np.unique(np.asarray(loaded.target), return_inverse=True)
    X = loaded.frame.to_numpy(np.float32)
    points = fit_scaling("minmax", X, np.full(len(X), -1)).apply(X)
    with Workers() as workers:
        neighbours = nearest_others(points, NEIGHBOURS, workers)
    return graph_of(neighbours, NEIGHBOURS).affinity, truth


def ours(**parameters: Any) -> Callable[..., np.ndarray]:  # noqa: ANN401 - of OTPropagation
    """Return a function that labels by OTPropagation."""

    def labelled(
        W: csr_matrix,
        given: np.ndarray,
        labels: np.ndarray,
        sizes: np.ndarray,  # noqa: ARG001 - not told
    ) -> np.ndarray:
        y = np.full(W.shape[0], -1)
        y[given] = labels
        model = OTPropagation(geometry="precomputed-graph", n_jobs=-1, **parameters)
        return model.fit(W, y).transduction_

    return labelled


def learned(name: str) -> Callable[..., np.ndarray]:
    """Return a function that labels by a method of the package graphlearning."""

    def labelled(
        W: csr_matrix, given: np.ndarray, labels: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray:
        import graphlearning as gl  # noqa: PLC0415 - it takes long, and only some runs need it

        model = gl.ssl.poisson_mbo(W, sizes) if name == "poisson_mbo" else getattr(gl.ssl, name)(W)
        return np.asarray(model.fit_predict(given, labels))

    return labelled


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "OTPropagation": ours(),
    "no rounds": ours(rounds="none"),
    "annealed": ours(rounds="annealed"),
    "revisable": ours(rounds="revisable"),
    "frozen": ours(rounds="frozen"),
    "LS": ours(rounds="none", class_tolerance=np.inf, diffusion=0.99),
    "Laplace": learned("laplace"),
    "Poisson": learned("poisson"),
    "Poisson MBO, told the sizes": learned("poisson_mbo"),
}


def draw(truth: np.ndarray, per_class: int, seed: int) -> np.ndarray:
    """Return so many rows of each class."""
    rng = np.random.default_rng(seed)
    classes = range(truth.max() + 1)
    return np.concatenate(
        [rng.choice(np.flatnonzero(truth == k), per_class, replace=False) for k in classes]
    )


def run(names: list[str], draws: int, methods: list[str]) -> list[dict[str, Any]]:
    """Run what the results do not have yet; save after each draw."""
    results = common.results_so_far("few_labels")
    done = {tuple(row[key] for key in KEYS) for row in results}
    for name, seed, per_class in itertools.product(names, range(draws), PER_CLASS):
        wanted = [m for m in methods if (name, per_class, seed, m) not in done]
        if not wanted:
            continue
        W, truth = problem(name)
        given = draw(truth, per_class, seed)
        hidden = np.setdiff1d(np.arange(len(truth)), given)
        sizes = np.bincount(truth) / len(truth)
        for method in wanted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = METHODS[method](W, given, truth[given], sizes)
            accuracy = float((found == truth)[hidden].mean())
            results.append(dict(zip(KEYS, (name, per_class, seed, method), strict=True)))
            results[-1]["accuracy"] = accuracy
        print(name, per_class, seed, {r["method"]: r["accuracy"] for r in results[-len(wanted) :]})
        write(results)
    return results


def write(results: list[dict[str, Any]]) -> None:
    """Write the tables."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "graphlearning", "otprop")
    common.write("few_labels", "Few labels", body(results), results, common.machine(packages))


def body(results: list[dict[str, Any]]) -> str:
    """Return the page: a table a data set."""
    text = (
        "Accuracy on the rows without label, mean over draws; in brackets the standard error. All "
        f"methods have the same graph: {NEIGHBOURS} neighbours, columns scaled to [0, 1], "
        "self-tuned weights. *OTPropagation* is the default, which runs annealed rounds where "
        "labels are few and the first labelling can be reproduced; the next rows fix the kind of "
        "rounds. *LS* is label spreading, κ = 0.99. *Poisson MBO* is told the true sizes of the "
        "classes; the others are not. Laplace, Poisson and Poisson MBO are those of the package "
        "graphlearning."
    )
    parts = [text]
    for name in (*DATA, *LARGE):
        own = [row for row in results if row["data"] == name]
        if not own:
            continue
        rows = [[method, *(cell(own, method, count) for count in PER_CLASS)] for method in METHODS]
        head = ["labels a class", *map(str, PER_CLASS)]
        draws = len({row["draw"] for row in own})
        parts += [f"## {name}, {draws} draws", common.markdown_table(head, rows)]
    parts += ["## Against the others", comparison(results)]
    return "\n\n".join(parts)


def cell(own: list[dict[str, Any]], method: str, per_class: int) -> str:
    """Return a mean and its standard error."""
    return common.mean_and_error(
        [r["accuracy"] for r in own if r["method"] == method and r["per_class"] == per_class]
    )


def comparison(results: list[dict[str, Any]]) -> str:
    """Say in how many cells the default is at least as accurate as each other method."""
    cells = sorted({(row["data"], row["per_class"]) for row in results})
    lines = []
    for other in ("LS", "Laplace", "Poisson", "Poisson MBO, told the sizes"):
        ahead, behind = 0, []
        for name, count in cells:
            mean = {
                m: np.mean(
                    [
                        r["accuracy"]
                        for r in results
                        if (r["data"], r["per_class"], r["method"]) == (name, count, m)
                    ]
                    or [np.nan]
                )
                for m in ("OTPropagation", other)
            }
            if mean["OTPropagation"] >= mean[other]:
                ahead += 1
            elif mean["OTPropagation"] < mean[other]:
                behind.append(f"{name} at {count} ({mean['OTPropagation'] - mean[other]:+.4f})")
        said = f"; behind in {', '.join(behind)}" if behind else ""
        lines.append(f"* {other}: at least as accurate in {ahead} of {len(cells)} cells{said}.")
    return "\n".join(lines)


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=(*DATA, *LARGE))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args()
    write(run(options.data, options.draws, options.methods))


if __name__ == "__main__":
    main()
