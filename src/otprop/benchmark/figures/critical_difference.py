"""Figure 5: methods by mean rank; bars join those that Nemenyi's test cannot tell apart.

Ranks, critical difference and cliques come from `statistics`. `place` says where everything goes,
in inches; `draw` only draws what it is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from otprop.benchmark.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from otprop.benchmark.statistics import Comparison

WIDTH = 7.2
MARGIN = 1.95  # for names and ranks, at each side of the axis
LINE = 0.27  # from name to name
BAR_STEP = 0.13
BAR_OVERHANG = 0.05
RULER = 0.68  # from the upper edge to the ruler of the critical difference
AXIS_TOP = 1.08  # to the axis
GAP = 0.16  # from the axis to the first bar, from the last bar to the first name


class Name(NamedTuple):
    """A method: its mark on the axis, and the line that leads down and aside to its name."""

    method: str
    rank: float
    x: float
    y: float
    side: Literal["left", "right"]


class Bar(NamedTuple):
    """What joins a clique."""

    start: float
    end: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Where everything goes: inches from the left and from the upper edge."""

    ticks: dict[int, float]
    names: list[Name]
    bars: list[Bar]
    ruler: float | None  # the critical difference's length; None if longer than the axis
    height: float


def place(comparison: Comparison) -> Layout:
    """Lay out a diagram: the best at the left, names beside the axis so that no lines cross."""
    ranks = comparison.ranks.sort_values(kind="stable")
    count = len(ranks)
    unit = (WIDTH - 2 * MARGIN) / (count - 1)

    def x(rank: float) -> float:
        return MARGIN + (rank - 1) * unit

    spans = [(x(ranks[run[0]]), x(ranks[run[-1]])) for run in comparison.cliques]
    bars = _stack(spans)
    first = (bars[-1].y if bars else AXIS_TOP) + GAP + LINE / 2
    # The outermost names are the uppermost: then a line that leads aside passes below the marks
    # that are further out.
    half = (count + 1) // 2
    sides: dict[Literal["left", "right"], Sequence[str]] = {
        "left": ranks.index[:half],
        "right": ranks.index[half:][::-1],
    }
    names = [
        Name(method, float(ranks[method]), x(ranks[method]), first + LINE * line, side)
        for side, methods in sides.items()
        for line, method in enumerate(methods)
    ]
    ruler = comparison.critical_difference * unit
    return Layout(
        ticks={rank: x(rank) for rank in range(1, count + 1)},
        names=names,
        bars=bars,
        ruler=ruler if ruler <= WIDTH - 2 * MARGIN else None,
        height=first + LINE * half,
    )


@style.styled
def draw(comparison: Comparison, title: str) -> Figure:
    """Draw the critical-difference diagram of a comparison."""
    layout = place(comparison)
    figure = style.blank(WIDTH, layout.height + 0.1)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(layout.height + 0.1, 0))
    axes.axis("off")
    axes.text(WIDTH / 2, 0.06, title, ha="center", va="top")
    _draw_axis(axes, layout.ticks)
    _draw_ruler(axes, layout.ruler, comparison.critical_difference)
    for bar in layout.bars:
        axes.plot(
            [bar.start, bar.end],
            [bar.y, bar.y],
            color=style.VERMILLION,
            linewidth=5,
            solid_capstyle="butt",
        )
    for name in layout.names:
        _draw_name(axes, name)
    return figure


def _stack(spans: Sequence[tuple[float, float]]) -> list[Bar]:
    """Put bars below the axis; spans are sorted, and those that would touch take turns."""
    ends: list[float] = []
    bars = []
    for left, right in spans:
        start, end = left - BAR_OVERHANG, right + BAR_OVERHANG
        free = [level for level, last in enumerate(ends) if last + BAR_OVERHANG < start]
        level = free[0] if free else len(ends)
        ends[level : level + 1] = [end]
        bars.append(Bar(start, end, AXIS_TOP + GAP + BAR_STEP * level))
    return sorted(bars, key=lambda bar: bar.y)


def _draw_axis(axes: Axes, ticks: dict[int, float]) -> None:
    for one, other in pairwise(ticks.values()):
        axes.plot([one, other], [AXIS_TOP, AXIS_TOP], color=style.INK, linewidth=1.2)
    for rank, x in ticks.items():
        axes.plot([x, x], [AXIS_TOP - 0.07, AXIS_TOP], color=style.INK, linewidth=1.2)
        axes.text(x, AXIS_TOP - 0.1, str(rank), ha="center", va="bottom")


def _draw_ruler(axes: Axes, length: float | None, difference: float) -> None:
    text = f"CD = {difference:.2f}"
    if length is None:
        axes.text(MARGIN - 0.1, RULER, f"{text}, more than the axis", va="center")
        return
    axes.plot([MARGIN, MARGIN + length], [RULER, RULER], color=style.INK, linewidth=1.2)
    for x in (MARGIN, MARGIN + length):
        axes.plot([x, x], [RULER - 0.05, RULER + 0.05], color=style.INK, linewidth=1.2)
    axes.text(MARGIN - 0.1, RULER, text, ha="right", va="center")


def _draw_name(axes: Axes, name: Name) -> None:
    edge = MARGIN - 0.12 if name.side == "left" else WIDTH - MARGIN + 0.12
    axes.plot(
        [name.x, name.x, edge],
        [AXIS_TOP, name.y, name.y],
        color=style.GREY,
        linewidth=1.2,
        zorder=1,
    )
    rank = f"{name.rank:.2f}"
    text = f"{name.method}  {rank}" if name.side == "left" else f"{rank}  {name.method}"
    left = name.side == "left"
    axes.text(
        edge + (-0.06 if left else 0.06), name.y, text, ha="right" if left else "left", va="center"
    )
