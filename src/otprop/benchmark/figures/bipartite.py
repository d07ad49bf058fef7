"""Figure 3: the bipartite graph of a small set, from labelled rows to rows without label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_iris

from otprop.benchmark.figures import style
from otprop.propagation import certainty
from otprop.transport import shares, solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from otprop.arrays import DoubleArray, IntArray

EPSILON = 0.4
SOURCES, TARGETS = 2, 4  # of each class
LEAST_SHARE = 0.02  # edges below it are too thin to see
WIDEST = 7.0  # points, of an edge with share 1
LEFT, RIGHT = 0.0, 1.0


@dataclass(frozen=True)
class Graph:
    """Shares of the first round's plan between sources and targets (Eq. 12)."""

    shares: DoubleArray  # one row a target, one column a source
    labels: IntArray  # of the sources
    classes: Sequence[str]

    @property
    def distributions(self) -> DoubleArray:
        """Shares by class (Eq. 13), a row a target."""
        return np.stack(
            [self.shares[:, self.labels == k].sum(axis=1) for k in range(len(self.classes))], axis=1
        )


def iris() -> Graph:
    """Return the graph of a few rows of Iris."""
    bunch = load_iris()
    rng = np.random.default_rng(5)
    drawn = [
        rng.choice(np.flatnonzero(bunch.target == k), SOURCES + TARGETS, replace=False)
        for k in range(3)
    ]
    sources = np.concatenate([rows[:SOURCES] for rows in drawn])
    targets = np.concatenate([rows[SOURCES:] for rows in drawn])
    difference = bunch.data[targets][:, None] - bunch.data[sources][None]
    cost = (difference**2).sum(axis=2)
    f = solve(cost, EPSILON).f
    names = [str(name) for name in bunch.target_names]
    return Graph(np.asarray(shares(cost, f, EPSILON), np.float64), bunch.target[sources], names)


def heights(count: int) -> DoubleArray:
    """Return where so many nodes of a side stand, from the top down, around the middle."""
    return 0.5 - (np.arange(count) - (count - 1) / 2) / count


@style.styled
def draw(graph: Graph) -> Figure:
    """Draw sources at the left, targets at the right, and an edge for each share."""
    decided = graph.distributions.argmax(axis=1)
    # By class, and targets by where their shares come from, so that few edges cross.
    sources = np.argsort(graph.labels, kind="stable")
    origins = graph.shares[:, sources] @ np.arange(len(sources))
    targets = np.lexsort((origins, decided))
    scores = certainty(graph.distributions)
    figure = style.blank(7.0, 0.4 * max(len(sources), len(targets)) + 1.2)
    axes = figure.subplots()
    from_y, to_y = heights(len(sources)), heights(len(targets))
    for y, source in zip(from_y, sources, strict=True):
        for end, target in zip(to_y, targets, strict=True):
            share = graph.shares[target, source]
            if share >= LEAST_SHARE:
                axes.plot(
                    [LEFT, RIGHT],
                    [y, end],
                    color=style.CLASSES[graph.labels[source]],
                    linewidth=WIDEST * share,
                    alpha=0.75,
                    solid_capstyle="butt",
                    zorder=1,
                )
        label = graph.labels[source]
        _draw_node(axes, (LEFT, y), graph.classes[label], label)
    for y, target in zip(to_y, targets, strict=True):
        text = f"{graph.classes[decided[target]]}, certainty {scores[target]:.2f}"
        _draw_node(axes, (RIGHT, y), text, decided[target])
    axes.set_title("labelled rows", loc="left")
    axes.set_title("rows without label", loc="right")
    note = "width of an edge: share of the row without label"
    axes.text(0.5, -0.02, note, ha="center", va="top", transform=axes.transAxes)
    axes.set(xlim=(-0.35, 1.75), ylim=(0, 1))
    axes.axis("off")
    return figure


def _draw_node(axes: Axes, at: tuple[float, float], text: str, label: int) -> None:
    """Draw a labelled row as a pentagon, another as a circle, and the text beside it."""
    x, y = at
    left = x == LEFT
    axes.scatter(
        [x],
        [y],
        s=190 if left else 120,
        c=style.CLASSES[label],
        marker="p" if left else "o",
        edgecolors=style.INK,
        zorder=2,
    )
    axes.text(x - 0.05 if left else x + 0.05, y, text, ha="right" if left else "left", va="center")
