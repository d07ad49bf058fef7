import csv
import io
import re

import numpy as np
import pandas as pd
import pytest

from otprop.benchmark import formats, paper, tables
from otprop.benchmark.protocols import PROTOCOLS
from otprop.benchmark.tables import Score, describe, make
from tests.benchmark import frames


def cells_of(text):
    """Read a Markdown table: a list of lines, each a list of texts, without the rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [split[0], *split[2:]]


def row_of(text, *start):
    """Return the row of a Markdown table that begins like this, by column."""
    head, *rows = cells_of(text)
    (row,) = [row for row in rows if row[: len(start)] == list(start)]
    return dict(zip(head, row, strict=True))


def test_a_cell_is_the_mean_and_the_deviation_over_its_seeds():
    results = frames.results()
    table = make(results, "honest", "nmi")
    own = results[frames.where(results, method="LNP", dataset="wine", percent=25)]["nmi"]
    cell = table.cell(("wine", 25), "LNP")
    assert len(own) == cell["seeds"] == 10
    assert cell["mean"] == pytest.approx(np.mean(own))
    assert cell["sd"] == pytest.approx(np.std(own, ddof=1))
    assert (cell["min"], cell["max"]) == (own.min(), own.max())


def test_rows_and_columns_stand_in_the_papers_order_whatever_ended_first():
    table = make(frames.results(), "honest", "accuracy")
    assert table.methods == ["LP", "LS", "LNP", "OTP", "SC", "1-NN", "Self-training"]
    assert list(table.means.columns) == table.methods
    assert list(table.means.index.unique("dataset")) == list(frames.DATASETS)
    assert list(table.means.index.unique("percent")) == [15, 25, 35]


def test_methods_and_data_sets_that_nobody_registered_come_last():
    results = frames.results(methods=("zeta", "OTP", "alpha"), datasets=("mine", "iris"))
    table = make(results, "honest", "accuracy")
    assert table.methods == ["OTP", "alpha", "zeta"]
    assert list(table.means.index.unique("dataset")) == ["iris", "mine"]
    assert "| mine | 15 % |" in formats.markdown(table)


def test_the_order_of_the_results_changes_nothing():
    one, other = (
        make(frames.results().sample(frac=1, random_state=seed), "honest", "ari") for seed in (1, 2)
    )
    pd.testing.assert_frame_equal(one.cells, other.cells, check_exact=True)


def test_only_the_protocol_asked_for_counts():
    both = frames.results(protocols=("published", "honest"))
    own = both[both["protocol"] == "honest"]
    pd.testing.assert_frame_equal(
        make(both, "honest", "ari").cells, make(own, "honest", "ari").cells
    )


def test_the_papers_values_stand_beside_the_data_sets_that_it_calls_so():
    table = make(frames.results(), "honest", "accuracy")
    assert table.cell(("wdbc-leaky", 15), "LNP")["paper"] == 0.9568  # its WDBC
    assert table.cell(("wdbc", 15), "LNP")["paper"] == 0.9153  # its Breast
    assert np.isnan(table.cell(("wdbc", 15), "1-NN")["paper"])


def test_the_best_of_a_row_is_marked_and_ties_share_it():
    results = frames.results(methods=("LP", "OTP", "SC"), datasets=("iris",), percents=(15,))
    level = {"LP": 0.3, "OTP": 0.1 + 0.2, "SC": 0.2}
    results["accuracy"] = results["method"].map(level)
    cells = make(results, "honest", "accuracy").cells
    assert cells["best"].droplevel([0, 1]).to_dict() == {"LP": True, "OTP": True, "SC": False}


CELLS = [
    ({}, "0.9500 ± 0.0100"),
    ({"seeds": 9, "timeouts": 1}, "0.9500 ± 0.0100 (9 seeds, 1 timeout)"),
    ({"seeds": 5, "errors": 3, "timeouts": 2}, "0.9500 ± 0.0100 (5 seeds, 3 errors, 2 timeouts)"),
    ({"seeds": 3}, "0.9500 ± 0.0100 (3 seeds)"),
    ({"seeds": 1, "sd": np.nan}, "0.9500 (1 seed)"),
    ({"seeds": 0, "errors": 10, "mean": np.nan}, "10 errors"),
    ({"seeds": 0, "errors": 1, "timeouts": 9, "mean": np.nan}, "1 error, 9 timeouts"),
    ({"seeds": 0, "mean": np.nan}, "not run"),
]


@pytest.mark.parametrize(("changed", "text"), CELLS)
def test_a_cell_is_never_blank_and_says_what_it_lacks(changed, text):
    cell = {"mean": 0.95, "sd": 0.01, "seeds": 10, "errors": 0, "timeouts": 0}
    assert describe(pd.Series(cell | changed, dtype=object)) == text


@pytest.fixture
def gaps():
    """Return a table in which each kind of gap occurs."""
    results = frames.results()
    results = frames.failing(results, "timeout", method="LS", dataset="wine", percent=15)
    results = frames.failing(results, "error", method="SC", dataset="iris", percent=25, seed=4)
    results = frames.without(results, method="OTP", dataset="heart", percent=35)
    return make(results, "honest", "accuracy")


def test_gaps_are_said_in_every_format(gaps):
    for text in (formats.markdown(gaps), formats.latex(gaps)):
        assert "10 timeouts" in text
        assert "(9 seeds, 1 error)" in text
        assert "not run" in text


def test_score_goes_over_the_rows_that_all_methods_have_and_says_how_many(gaps):
    best, papers = gaps.scores
    values = gaps.means.drop([("wine", 15), ("heart", 35)])
    assert best.rows == papers.rows == len(values) == 13
    assert best.over(15) == "13 of 15 rows"
    expected = (values.div(values.max(axis=1), axis=0)).sum()
    assert best.sums == pytest.approx(expected.to_dict())
    assert best.printed == {}


def test_score_by_the_papers_rule_leaves_its_sc_out_of_the_best():
    results = frames.results(methods=("SC", "OTP", "LP", "1-NN"))
    levels = {"SC": 0.9, "OTP": 0.6, "LP": 0.3, "1-NN": 0.8}
    results["accuracy"] = results["method"].map(levels)
    best, papers = make(results, "honest", "accuracy").scores
    assert best.sums == pytest.approx({"LP": 5, "OTP": 10, "SC": 15, "1-NN": 40 / 3})
    assert papers.title == "SCORE, best of LP, OTP"
    assert papers.sums == pytest.approx({"LP": 7.5, "OTP": 15, "SC": 22.5})


def test_score_stands_beside_the_papers_over_the_same_rows(gaps):
    names = {"Iris", "Wine", "Heart", "Breast", "WDBC"}
    printed = paper.printed("accuracy")
    printed = printed[printed.index.get_level_values("dataset").isin(names)]
    printed = printed.drop([("Wine", 15), ("Heart", 35)])
    best = printed[list(paper.RIVALS)].max(axis=1)
    assert gaps.scores[1].printed == pytest.approx(printed.div(best, axis=0).sum().to_dict())


def test_without_the_papers_data_sets_there_is_no_score_of_the_papers():
    table = make(frames.results(datasets=("mine", "iris")), "honest", "accuracy")
    assert table.scores[1].printed == {}


def test_without_the_papers_methods_there_is_one_score():
    table = make(frames.results(methods=("1-NN", "SVM")), "honest", "accuracy")
    assert [found.title for found in table.scores] == ["SCORE, best of all methods"]


def test_a_method_without_any_value_does_not_empty_the_score_of_the_others():
    results = frames.failing(frames.results(), "error", method="LNP")
    table = make(results, "honest", "accuracy")
    assert all(found.rows == 15 and "LNP" not in found.sums for found in table.scores)
    assert row_of(formats.markdown(table), "SCORE, best of all methods")["LNP"] == "–"


def test_results_without_a_single_value_make_a_table_all_the_same():
    results = frames.failing(frames.results(methods=("OTP",)), "error", protocol="honest")
    results[["accuracy", "nmi", "ari"]] = None
    table = make(results, "honest", "accuracy")
    assert table.scores[0] == Score("SCORE, best of all methods", 0, {}, {})
    assert row_of(formats.markdown(table), "Iris", "15 %")["OTP"] == "10 errors [0.9507]"
    assert not table.cells["best"].any()


def test_markdown_read_back_is_the_table():
    table = make(frames.results(), "honest", "accuracy")
    head, *rows = cells_of(formats.markdown(table))
    assert head == ["Data set", "labelled", *table.methods]
    assert len(rows) == 15 + 2
    for row, (dataset, percent) in zip(rows, table.means.index, strict=False):
        assert row[:2] == [tables.title_of(dataset), f"{percent} %"]
        for method, text in zip(table.methods, row[2:], strict=True):
            cell = table.cell((dataset, percent), method)
            bold, mean, sd, beside = re.fullmatch(
                r"(\*\*)?([\d.]+) ± ([\d.]+)(?:\*\*)?(?: \[([\d.]+)\])?", text
            ).groups()
            assert float(mean) == pytest.approx(cell["mean"], abs=5.1e-5)
            assert float(sd) == pytest.approx(cell["sd"], abs=5.1e-5)
            assert (bold is not None) == cell["best"]
            assert float(beside or np.nan) == pytest.approx(cell["paper"], nan_ok=True)


def test_the_lines_of_score_read_back():
    table = make(frames.results(), "honest", "accuracy")
    text = formats.markdown(table)
    best = row_of(text, "SCORE, best of all methods")
    papers = row_of(text, "SCORE, best of LP, LS, LNP, OTP")
    assert best["labelled"] == papers["labelled"] == "15 rows"
    assert best["SC"] == f"{table.scores[0].sums['SC']:.4f}"
    own, printed = table.scores[1].sums["SC"], table.scores[1].printed["SC"]
    assert papers["SC"] == f"{own:.4f} [{printed:.4f}]"
    assert papers["1-NN"] == "–"


def test_csv_read_back_is_the_table_to_the_last_digit(gaps):
    read = list(csv.DictReader(io.StringIO(formats.csv(gaps))))
    assert len(read) == len(gaps.cells)
    for line, (key, cell) in zip(read, gaps.cells.iterrows(), strict=True):
        assert (line["dataset"], int(line["percent"]), line["method"]) == key
        assert (line["protocol"], line["measure"]) == ("honest", "accuracy")
        for column in ("mean", "sd", "min", "max", "paper"):
            assert float(line[column] or np.nan) == pytest.approx(
                cell[column], abs=0, rel=0, nan_ok=True
            )
        for column in ("seeds", "errors", "timeouts"):
            assert int(line[column]) == cell[column]
        assert line["best"] == str(cell["best"])


def test_latex_has_a_column_a_method_in_every_line():
    table = make(frames.results(), "honest", "accuracy")
    text = formats.latex(table)
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(lines) == 1 + 2 * 15 + 2
    assert {line.count(" & ") for line in lines} == {len(table.methods) + 1}
    assert rf"\begin{{tabular}}{{lr{'l' * 7}}}" in text
    assert text.count("{") == text.count("}")
    for environment in ("table", "tabular"):
        assert text.count(rf"\begin{{{environment}}}") == 1
        assert text.count(rf"\end{{{environment}}}") == 1


def test_latex_holds_the_numbers_of_the_table():
    table = make(frames.results(), "honest", "accuracy")
    text = formats.latex(table)
    best = table.cell(("iris", 15), "LP")
    assert best["best"]
    assert rf"\textbf{{{best['mean']:.4f} $\pm$ {best['sd']:.4f}}}" in text
    assert r"{[}\textit{0.9437}]" in text


def test_latex_holds_no_sign_that_it_would_take_for_its_own():
    results = frames.results(methods=("OTP", "50%_&#$^~\\{}"))
    text = formats.latex(make(results, "honest", "accuracy"))
    escaped = r"50\%\_\&\#\$\textasciicircum{}\textasciitilde{}\textbackslash{}\{\}"
    assert f"labelled & OTP & {escaped} " in text


@pytest.mark.parametrize("protocol", ["published", "described", "honest"])
def test_the_protocol_is_named_for_what_it_is_in_every_caption(protocol):
    table = make(frames.results(protocols=(protocol,)), protocol, "ari")
    assert f"ARI, protocol {protocol} (the paper's Table 4)." in table.caption
    assert PROTOCOLS[protocol].title[1:] in table.caption
    assert table.caption in formats.markdown(table)
    assert rf"\caption{{{formats.escaped(table.caption)}}}" in formats.latex(table)


def test_published_says_that_the_true_labels_join():
    table = make(frames.results(protocols=("published",)), "published", "accuracy")
    for text in (formats.markdown(table), formats.latex(table)):
        assert "true labels join" in text


def test_the_caption_promises_no_seeds_that_a_cell_lacks():
    whole = frames.results()
    gap = frames.without(whole, method="LP", dataset="wine", percent=25, seed=3)
    failed = frames.failing(whole, "timeout", method="LP", dataset="wine", percent=25)
    said = [
        re.search("deviation (over .*?);", make(found, "honest", "ari").caption)[1]
        for found in (whole, gap, failed, frames.results(seeds=3))
    ]
    some = "over the seeds that were run: as many as a cell names, 10 if none"
    few = "over the seeds that were run, as many as a cell names"
    assert said == ["over 10 seeds", some, "over 10 seeds", few]


def test_the_caption_says_that_the_papers_wdbc_has_the_diagnosis():
    said = "WDBC has the diagnosis among its features."
    assert said in make(frames.results(), "honest", "ari").caption
    assert said not in make(frames.results(datasets=("wdbc",)), "honest", "ari").caption


def test_a_protocol_that_nobody_registered_is_called_by_its_name():
    caption = make(frames.results(protocols=("mine",)), "mine", "ari").caption
    assert "protocol mine (the paper's Table 4). Mine." in caption


def test_signs_that_would_end_a_cell_of_markdown_do_not():
    text = formats.pipes(["a", "b"], [["x|y", "two\nlines"]])
    assert text == "| a | b |\n| --- | --- |\n| x\\|y | two lines |\n"
