from itertools import combinations
from unittest import mock
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.image import imread
from matplotlib.text import Text

from otprop.benchmark import report
from otprop.benchmark.figures import bipartite, boxes, rounds, style
from otprop.benchmark.figures import critical_difference as cd
from otprop.benchmark.figures.rounds import Scene, shown_rounds
from otprop.benchmark.statistics import compare

METHODS = ["LP", "LS", "LNP", "OTP", "SC", "1-NN", "SVM", "RF", "Self-training", "Vote"]


def values(rows=36, methods=METHODS, *, seed=0, step=0.04):
    """Return values in which earlier methods tend to be better."""
    rng = np.random.default_rng(seed)
    levels = 0.9 - step * np.arange(len(methods))
    return pd.DataFrame(rng.uniform(-0.1, 0.1, (rows, len(methods))) + levels, columns=methods)


def texts(path):
    """Return the texts of an SVG file."""
    nodes = ET.parse(path).iter()  # noqa: S314 - the tests wrote it
    return ["".join(node.itertext()) for node in nodes if node.tag.endswith("}text")]


def text_boxes(figure):
    """Return the box of each text, in dots, at the moment when it is drawn."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = {}

    def noting(text, *args):
        if text.get_text() and text.get_visible():
            boxes[text.get_text(), len(boxes)] = text.get_window_extent(renderer)
        draw(text, *args)

    draw = Text.draw
    with mock.patch.object(Text, "draw", noting):
        figure.draw(renderer)
    return boxes


def overlapping(figure):
    """Return the pairs of texts that lie on one another."""
    drawn = text_boxes(figure)
    return [(a[0], b[0]) for a, b in combinations(drawn, 2) if drawn[a].overlaps(drawn[b])]


def outside(figure):
    """Return the texts that are cut off."""
    width, height = figure.get_size_inches() * figure.dpi
    return [
        text
        for (text, _), box in text_boxes(figure).items()
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
    ]


CASES = {
    "ten methods, few differences": values(step=0.005),
    "ten methods, many differences": values(step=0.04),
    "all the same": values(rows=5, step=0.0).round(0),
    "few rows": values(rows=3),
    "a critical difference beyond the axis": values(rows=2),
    "three methods": values(methods=METHODS[:3]),
    "nine methods": values(methods=METHODS[:9]),
    "nobody is alike": values(rows=2000, methods=METHODS[:5]),
}


@pytest.fixture(params=CASES)
def comparison(request):
    return compare(CASES[request.param])


def test_marks_stand_where_their_ranks_are(comparison):
    layout = cd.place(comparison)
    ticks = np.array(list(layout.ticks.items()), float)
    assert list(ticks[:, 0]) == list(range(1, len(comparison.ranks) + 1))
    for name in layout.names:
        assert name.rank == comparison.ranks[name.method]
        assert name.x == pytest.approx(np.interp(name.rank, *ticks.T))


def test_every_method_is_named_once_the_better_half_at_the_left(comparison):
    layout = cd.place(comparison)
    assert sorted(name.method for name in layout.names) == sorted(comparison.ranks.index)
    left = [name.rank for name in layout.names if name.side == "left"]
    right = [name.rank for name in layout.names if name.side == "right"]
    assert max(left) <= min(right)
    assert 0 <= len(left) - len(right) <= 1


def test_lines_to_names_do_not_cross(comparison):
    names = cd.place(comparison).names
    for one, other in combinations(names, 2):
        if one.side == other.side:
            outer, inner = sorted(
                (one, other), key=lambda name: (abs(name.x - cd.WIDTH / 2), -name.y), reverse=True
            )
            assert outer.y < inner.y


def test_bars_join_the_cliques_and_do_not_touch(comparison):
    layout = cd.place(comparison)
    at = {name.method: name.x for name in layout.names}
    expected = sorted((at[run[0]], at[run[-1]]) for run in comparison.cliques)
    drawn = sorted((bar.start + cd.BAR_OVERHANG, bar.end - cd.BAR_OVERHANG) for bar in layout.bars)
    assert drawn == [pytest.approx(span) for span in expected]
    for one, other in combinations(layout.bars, 2):
        if one.y == other.y:
            assert one.end < other.start or other.end < one.start
        else:
            assert abs(one.y - other.y) >= cd.BAR_STEP * 0.99
    lowest = max([bar.y for bar in layout.bars], default=cd.AXIS_TOP)
    assert all(name.y > lowest for name in layout.names)


def test_the_ruler_is_as_long_as_the_critical_difference_unless_it_leaves_the_axis():
    found = compare(values())
    layout = cd.place(found)
    assert layout.ruler == pytest.approx(
        found.critical_difference * (layout.ticks[2] - layout.ticks[1])
    )
    assert cd.place(compare(values(rows=2))).ruler is None


def test_no_text_of_a_diagram_lies_on_another_or_is_cut_off(comparison):
    figure = cd.draw(comparison, "Accuracy, protocol described\n36 rows (data sets × percentages)")
    assert overlapping(figure) == []
    assert outside(figure) == []


def test_the_check_for_overlaps_can_fail():
    figure = cd.draw(compare(values()), "title")
    figure.axes[0].texts[-1].set_position(figure.axes[0].texts[-2].get_position())
    assert len(overlapping(figure)) == 1


def test_a_diagram_as_svg_has_names_ranks_and_the_critical_difference(tmp_path):
    found = compare(values())
    svg, _ = style.write(cd.draw(found, "a title"), tmp_path, "cd")
    written = texts(svg)
    for method, rank in found.ranks.items():
        assert sum(method in text and f"{rank:.2f}" in text for text in written) == 1
    assert f"CD = {found.critical_difference:.2f}" in written
    assert "a title" in written
    assert len(written) == len(METHODS) * 2 + 2


def test_a_diagram_draws_each_bar_once():
    found = compare(values())
    figure = cd.draw(found, "")
    thick = [line for line in figure.axes[0].lines if to_hex(line.get_color()) == "#d55e00"]
    assert len(thick) == len(found.cliques) > 0


def test_boxes_show_the_quartiles_of_each_method():
    table = values(methods=METHODS[:5])
    (axes,) = boxes.draw(table, "a title", "Accuracy").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == METHODS[:5]
    medians = [line.get_ydata()[0] for line in axes.lines if line.get_linewidth() == 2.0]
    assert medians == pytest.approx(table.median().tolist())
    lower, upper = table.quantile(0.25), table.quantile(0.75)
    assert len(axes.patches) == 5
    for box, method in zip(axes.patches, table, strict=True):
        ends = box.get_path().vertices[:, 1]
        assert (ends.min(), ends.max()) == pytest.approx((lower[method], upper[method]))


def test_boxes_show_outliers_one_by_one():
    table = pd.DataFrame({"A": [*np.linspace(0.8, 0.9, 20), 0.1], "B": np.linspace(0.5, 0.6, 21)})
    (axes,) = boxes.draw(table, "", "NMI").axes
    drawn = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
    assert [list(points) for points in drawn] == [[0.1], []]


@pytest.mark.parametrize("methods", [METHODS, METHODS[:5], METHODS[:3]])
def test_no_text_of_the_boxes_lies_on_another_or_is_cut_off(methods):
    figure = boxes.draw(
        values(methods=methods), "Accuracy, protocol described\n36 rows", "Accuracy"
    )
    assert outside(figure) == []
    if len(methods) < 10:  # boxes around slanted texts say nothing
        assert overlapping(figure) == []


def test_boxes_as_svg_have_the_methods_names(tmp_path):
    svg, _ = style.write(boxes.draw(values(), "a title", "ARI"), tmp_path, "boxes")
    assert {*METHODS, "a title", "ARI"} <= set(texts(svg))


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (0, [0]),
        (3, [0, 1, 2, 3]),
        (4, [0, 1, 2, 3, 4]),
        (5, [0, 1, 2, 4, 5]),
        (20, [0, 1, 2, 11, 20]),
    ],
)
def test_rounds_shown_are_the_first_ones_and_the_last(last, expected):
    assert shown_rounds(last, 5) == expected


@pytest.fixture(scope="module")
def scenes():
    return [rounds.moons(), rounds.iris()]


@pytest.fixture(scope="module")
def drawn_rounds(scenes):
    return rounds.draw(scenes)


def test_the_scenes_have_rounds_to_show(scenes):
    for scene in scenes:
        assert scene.last >= 3
        assert (scene.round == 0).sum() < 0.2 * len(scene.round)
        assert len(np.unique(scene.points, axis=0)) > 100


def panels(figure):
    return [axes for axes in figure.axes if axes.axison]


def test_each_panel_shows_what_is_labelled_after_its_round(scenes, drawn_rounds):
    expected = [(scene, number) for scene in scenes for number in shown_rounds(scene.last)]
    found = panels(drawn_rounds)
    assert len(found) == len(expected)
    for axes, (scene, number) in zip(found, expected, strict=True):
        labelled = (scene.round >= 0) & (scene.round <= number)
        assert f"{labelled.sum()} of {len(labelled)}" in axes.get_title()
        points = {}
        for collection in axes.collections:
            for colour in collection.get_facecolors()[:1]:
                points.setdefault(to_hex(colour).upper(), []).append(collection.get_offsets())
        drawn = {colour: np.concatenate(parts) for colour, parts in points.items()}
        for label in range(len(scene.classes)):
            own = scene.points[labelled & (scene.labels == label)]
            both = (drawn[style.CLASSES[label]], own)
            assert np.array_equal(*(np.unique(rows, axis=0) for rows in both))
        assert len(drawn.get(style.PALE, [])) == (~labelled).sum()


def test_rows_that_no_round_reaches_stay_without_a_label():
    points, labels, truth = np.arange(8.0).reshape(4, 2), np.zeros(4, int), np.array([0, 0, 1, 1])
    scene = Scene("one", points, labels, np.array([0, 1, 1, -1]), truth, ["a"])
    assert scene.title == "one: 1 of 3 hidden labels found"
    *_, last = panels(rounds.draw([scene]))
    assert last.get_title() == "after round 1: 3 of 4"


def test_no_text_of_the_rounds_lies_on_another_or_is_cut_off(drawn_rounds):
    assert overlapping(drawn_rounds) == []
    assert outside(drawn_rounds) == []


def test_the_graph_has_an_edge_a_share_as_wide_as_it():
    graph = bipartite.iris()
    (axes,) = bipartite.draw(graph).axes
    widths = sorted(line.get_linewidth() / bipartite.WIDEST for line in axes.lines)
    seen = graph.shares[graph.shares >= bipartite.LEAST_SHARE]
    assert widths == pytest.approx(sorted(seen))
    assert graph.shares.sum(axis=1) == pytest.approx(np.ones(len(graph.shares)))
    assert seen.sum() > 0.95 * len(graph.shares)


def test_edges_have_the_colour_of_their_sources_class():
    shares = np.array([[0.9, 0.1], [0.25, 0.75]])
    graph = bipartite.Graph(shares, np.array([1, 0]), ["a", "b"])
    (axes,) = bipartite.draw(graph).axes
    found = {
        (to_hex(line.get_color()).upper(), round(line.get_linewidth() / bipartite.WIDEST, 6))
        for line in axes.lines
    }
    assert found == {
        (style.CLASSES[1], 0.9),
        (style.CLASSES[0], 0.1),
        (style.CLASSES[1], 0.25),
        (style.CLASSES[0], 0.75),
    }
    written = [text.get_text() for text in axes.texts]
    assert sum(text.startswith("a, certainty") for text in written) == 1
    assert sum(text.startswith("b, certainty") for text in written) == 1


def test_no_text_of_the_graph_lies_on_another_or_is_cut_off():
    figure = bipartite.draw(bipartite.iris())
    assert overlapping(figure) == []
    assert outside(figure) == []


def test_figures_are_written_the_same_at_every_run(tmp_path):
    names = ["bipartite", "rounds"]
    first = report.write_figures(names, tmp_path / "one")
    second = report.write_figures(names, tmp_path / "other")
    assert [file.name for file in first] == [
        f"{name}.{ending}" for name in names for ending in ("svg", "png")
    ]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_figures_say_what_they_show_and_are_large_enough(tmp_path):
    svg, png, *_ = report.write_figures(["rounds"], tmp_path)
    written = texts(svg)
    assert {"setosa", "versicolor", "virginica", "label given"} <= set(written)
    assert imread(png).shape[1] >= 1200
