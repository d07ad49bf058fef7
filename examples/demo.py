"""Label Iris with 15 % of its labels known: a summary, the labelled table and a picture."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from otprop import OTPropagation

SHARE_KNOWN = 0.15
SURE = 0.9
PETALS = ["petal length (cm)", "petal width (cm)"]
# Okabe and Ito's palette: told apart by colour-blind readers, and by shape in grey print.
STYLES = {"setosa": ("#E69F00", "s"), "versicolor": ("#0072B2", "o"), "virginica": ("#009E73", "^")}
UNLABELLED = "#9A9A9A"
LARGEST = 62.0  # area of a marker at confidence 1, in square points
SMALLEST = 6.0  # and at confidence 0


@dataclass(frozen=True)
class Iris:
    """The features, every row's species, and whether the species is given to the model."""

    features: pd.DataFrame
    species: np.ndarray
    given: np.ndarray


def load() -> Iris:
    """Hide all labels but a stratified share."""
    bunch = load_iris(as_frame=True)
    species = bunch.target_names[bunch.target]
    known, _ = train_test_split(
        np.arange(len(species)), train_size=SHARE_KNOWN, stratify=species, random_state=0
    )
    given = np.zeros(len(species), dtype=bool)
    given[known] = True
    return Iris(bunch.data, species, given)


def propagate(iris: Iris) -> OTPropagation:
    """Fit on all rows; None marks the rows without a label."""
    labels = np.where(iris.given, iris.species.astype(object), None)
    return OTPropagation().fit(iris.features, labels)


def accuracy(iris: Iris, model: OTPropagation, rows: np.ndarray) -> str:
    """Say how many of these rows got the label that was hidden."""
    correct = np.sum(model.transduction_[rows] == iris.species[rows])
    share = f" ({correct / rows.sum():.1%})" if rows.any() else ""
    return f"{correct} of {rows.sum()}{share}"


def print_summary(iris: Iris, model: OTPropagation) -> None:
    """Print what was known, what each round did, and how often it was right."""
    hidden = ~iris.given
    print(f"Iris: {len(hidden)} rows, {iris.given.sum()} labels given, {hidden.sum()} inferred")
    chosen = ", ".join(f"{name} {value}" for name, value in model.selection_.chosen.items())
    print(f"chosen by {model.selection_.reason}: {chosen}")
    print()
    print("round  rows that speak  labels new or changed  marginal error")
    for row in model.trace_:
        warning = "" if row.converged else "  not converged"
        print(
            f"{row.round:5d}  {row.sources:15d}  {row.accepted:21d}  {row.marginal_error:14.1e}"
            f"{warning}"
        )
    print()
    print(f"hidden labels found:            {accuracy(iris, model, hidden)}")
    sure = hidden & (model.confidence_ > SURE)
    print(f"  of those with confidence > {SURE}: {accuracy(iris, model, sure)}")
    print(f"rows to label next:             {', '.join(map(str, model.suggest(3)))}")


def labelled_table(iris: Iris, model: OTPropagation) -> pd.DataFrame:
    """Put what was given and what was inferred beside the features."""
    return iris.features.assign(
        given_species=np.where(iris.given, iris.species, ""),
        inferred_species=model.transduction_,
        certainty=model.certainty_,
        confidence=model.confidence_,
        round=model.round_,
    )


def area(confidence: np.ndarray) -> np.ndarray:
    """Size of a marker: the surer, the larger."""
    return SMALLEST + (LARGEST - SMALLEST) * confidence


def scatter(axes: Axes, iris: Iris, labels: np.ndarray, confidence: np.ndarray) -> None:
    """Draw the rows by label, the given ones outlined and on top."""
    points = iris.features[PETALS].to_numpy()
    for name, (colour, marker) in STYLES.items():
        for given, edge, width in ((False, "white", 0.5), (True, "black", 1.4)):
            rows = (labels == name) & (iris.given == given)
            axes.scatter(
                *points[rows].T,
                s=area(confidence[rows]),
                c=colour,
                marker=marker,
                edgecolors=edge,
                linewidths=width,
                zorder=3 + given,
            )


def draw_before(axes: Axes, iris: Iris) -> None:
    """Draw what the model is given."""
    hidden = iris.features.loc[~iris.given, PETALS].to_numpy()
    axes.scatter(*hidden.T, s=16, c=UNLABELLED, linewidths=0, zorder=2)
    given = np.where(iris.given, iris.species, "")
    scatter(axes, iris, given, np.ones(len(given)))
    axes.set_title(f"Before: {iris.given.sum()} of {len(given)} rows are labelled")


def draw_after(axes: Axes, iris: Iris, model: OTPropagation) -> None:
    """Draw what the model made of it."""
    scatter(axes, iris, model.transduction_, model.confidence_)
    axes.set_title(f"After: {accuracy(iris, model, ~iris.given)} hidden labels are right")


def legend_handles() -> list[Line2D]:
    """Explain colours, outline and sizes."""

    def handle(label: str, marker: str, colour: str, size: float, edge: str = "none") -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="none",
            label=label,
            marker=marker,
            color=colour,
            markersize=np.sqrt(size),
            markeredgecolor=edge,
            markeredgewidth=1.4,
        )

    return [
        *(handle(name, marker, colour, LARGEST) for name, (colour, marker) in STYLES.items()),
        handle("no label", "o", UNLABELLED, 16),
        handle("label given", "o", "white", LARGEST, edge="black"),
        *(
            handle(f"confidence {level:g}", "o", UNLABELLED, area(level))
            for level in (0.4, 0.7, 1.0)
        ),
    ]


def draw(iris: Iris, model: OTPropagation) -> Figure:
    """Draw before and after side by side, 1200 pixels wide."""
    figure = Figure(figsize=(10, 4.9), dpi=120, layout="constrained")
    before, after = figure.subplots(1, 2, sharex=True, sharey=True)
    draw_before(before, iris)
    draw_after(after, iris, model)
    before.set_ylabel(PETALS[1])
    for axes in (before, after):
        axes.set_xlabel(PETALS[0])
        axes.grid(color="#E6E6E6", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        handles=legend_handles(),
        loc="outside lower center",
        ncols=8,
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.4,
    )
    return figure


def write(iris: Iris, model: OTPropagation, folder: Path) -> None:
    """Write the table and the picture, the same bytes at every run."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "iris_labelled.csv"
    labelled_table(iris, model).to_csv(table, index=False, float_format="%.6g")
    figure = draw(iris, model)
    with mpl.rc_context({"svg.hashsalt": "otprop"}):
        figure.savefig(folder / "iris.svg", metadata={"Date": None})
    figure.savefig(folder / "iris.png")
    print(f"written: {table}, {folder / 'iris.png'}, {folder / 'iris.svg'}")


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder to write to")
    folder = parser.parse_args().output
    iris = load()
    model = propagate(iris)
    print_summary(iris, model)
    print()
    write(iris, model, folder)


if __name__ == "__main__":
    main()
