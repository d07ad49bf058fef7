"""Figure 4: labels spreading from the given rows, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from otprop.benchmark.figures import style
from otprop.estimator import OTPropagation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from otprop.arrays import DoubleArray, IntArray

PANELS = 5
GIVEN, JOINED = "p", "o"  # as in the paper: pentagons for given labels, circles for the others


@dataclass(frozen=True)
class Scene:
    """Rows on a plane, the labels that a fit gave them, and the round in which each joined."""

    name: str
    points: DoubleArray  # (n, 2)
    labels: IntArray
    round: IntArray  # 0 given, -1 never
    truth: IntArray
    classes: Sequence[str]

    @property
    def title(self) -> str:
        """What it is, and how well it went."""
        hidden = self.round != 0
        found = (self.labels == self.truth)[hidden].sum()
        return f"{self.name}: {found} of {hidden.sum()} hidden labels found"

    @property
    def last(self) -> int:
        """The last round in which rows joined."""
        return int(self.round.max())


def moons() -> Scene:
    """Return two half-moons with three labels each."""
    X, true = make_moons(240, noise=0.07, random_state=0)
    rng = np.random.default_rng(0)
    given = np.concatenate(
        [rng.choice(np.flatnonzero(true == k), 3, replace=False) for k in (0, 1)]
    )
    y = np.full(len(X), -1)
    y[given] = true[given]
    model = OTPropagation(epsilon=0.05, alpha=0.99).fit(X, y)
    names = ("upper moon", "lower moon")
    return Scene("Two moons", X, model.transduction_, model.round_, true, names)


def iris() -> Scene:
    """Return Iris with 15 % of its labels, spread in four dimensions, shown in two."""
    bunch = load_iris()
    X, true = bunch.data, bunch.target
    given, _ = train_test_split(np.arange(len(X)), train_size=0.15, stratify=true, random_state=0)
    y = np.full(len(X), -1)
    y[given] = true[given]
    model = OTPropagation(epsilon=0.05, alpha=0.9).fit(X, y)
    points = PCA(2, svd_solver="full").fit_transform(X)
    names = [str(name) for name in bunch.target_names]
    return Scene(
        "Iris, first two principal components",
        points,
        model.transduction_,
        model.round_,
        true,
        names,
    )


def shown_rounds(last: int, panels: int = PANELS) -> list[int]:
    """Return the rounds to show: all if they fit; else the first ones, one half-way, the last."""
    if last < panels:
        return list(range(last + 1))
    first = list(range(panels - 2))
    return [*first, (first[-1] + last + 1) // 2, last]


@style.styled
def draw(scenes: Sequence[Scene]) -> Figure:
    """Draw a line of panels for each scene: what is labelled after some of its rounds."""
    figure = style.blank(2.6 * PANELS, 3.1 * len(scenes))
    lines = figure.subfigures(len(scenes), 1, squeeze=False)[:, 0]
    for line, scene in zip(lines, scenes, strict=True):
        line.suptitle(scene.title, fontsize=style.FONT_SIZE, fontweight="bold")
        grid = line.subplots(1, PANELS, sharex=True, sharey=True, squeeze=False)[0]
        after = shown_rounds(scene.last)
        for axes, number in zip(grid, after, strict=False):
            _draw_panel(axes, scene, number)
        for axes in grid[len(after) :]:
            axes.axis("off")
        line.legend(
            handles=_legend(scene),
            loc="outside lower center",
            ncols=len(scene.classes) + 3,
            frameon=False,
            handletextpad=0.1,
            columnspacing=1.5,
        )
    return figure


def _draw_panel(axes: Axes, scene: Scene, number: int) -> None:
    labelled = (scene.round >= 0) & (scene.round <= number)
    x, y = scene.points.T
    axes.scatter(x[~labelled], y[~labelled], s=12, c=style.PALE, linewidths=0, zorder=1)
    for label in range(len(scene.classes)):
        own = labelled & (scene.labels == label)
        # Rows that joined in the round shown are outlined.
        for rows, size, marker, edge in (
            (own & (scene.round > 0) & (scene.round < number), 22, JOINED, "none"),
            (own & (scene.round > 0) & (scene.round == number), 22, JOINED, style.INK),
            (own & (scene.round == 0), 85, GIVEN, style.INK),
        ):
            axes.scatter(
                x[rows],
                y[rows],
                s=size,
                c=style.CLASSES[label],
                marker=marker,
                edgecolors=edge,
                linewidths=0.7,
                zorder=2 + (marker == GIVEN),
            )
    what = "given" if number == 0 else f"after round {number}"
    axes.set_title(f"{what}: {labelled.sum()} of {len(labelled)}")
    axes.set(xticks=[], yticks=[])
    axes.margins(0.06)


def _legend(scene: Scene) -> list[Line2D]:
    def handle(label: str, marker: str, colour: str, size: float, edge: str) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="none",
            label=label,
            marker=marker,
            color=colour,
            markersize=size,
            markeredgecolor=edge,
            markeredgewidth=0.7,
        )

    return [
        *(
            handle(name, JOINED, style.CLASSES[label], 7, "none")
            for label, name in enumerate(scene.classes)
        ),
        handle("label given", GIVEN, "white", 9, style.INK),
        handle("joined in this round", JOINED, "white", 6, style.INK),
        handle("no label yet", JOINED, style.PALE, 5, "none"),
    ]
