import numpy as np
import pytest
import scikit_posthocs
from matplotlib.cbook import boxplot_stats

from otprop.benchmark import paper, sections
from otprop.benchmark.measures import MEASURES
from otprop.benchmark.statistics import compare, reading, score

# REPLICATION's sums over the printed cells, to the fourth digit.
SUMS = {
    "accuracy": {"LP": 35.4545, "LS": 35.4976, "LNP": 33.3620, "OTP": 35.8856, "SC": 8.1972},
    "nmi": {"LP": 33.9989, "LS": 34.2041, "LNP": 31.6332, "OTP": 35.5364, "SC": 9.5770},
    "ari": {"LP": 33.9759, "LS": 34.0518, "LNP": 31.6834, "OTP": 35.7239, "SC": 8.8582},
}
# The last lines of the paper's Tables 2, 3 and 4.
PRINTED = {
    "accuracy": {"LP": 35.4544, "LS": 35.4975, "LNP": 33.3619, "OTP": 35.8855, "SC": 8.1971},
    "nmi": {"LP": 33.9980, "LS": 34.2042, "LNP": 31.6326, "OTP": 35.5237, "SC": 9.5770},
    "ari": {"LP": 33.9814, "LS": 34.0574, "LNP": 31.6888, "OTP": 35.7239, "SC": 8.8581},
}


@pytest.mark.parametrize("measure", MEASURES)
def test_a_table_has_twelve_data_sets_at_three_percentages(measure):
    table = paper.printed(measure)
    assert list(table.columns) == ["LP", "LS", "LNP", "OTP", "SC"]
    assert list(table.index.unique("percent")) == [15, 25, 35]
    assert table.index.nunique() == len(table) == 36
    assert ((table > 0) & (table <= 1)).all().all()
    assert (table.groupby("dataset")["SC"].nunique() == 1).all()


def test_cells_of_each_table():
    assert paper.printed("accuracy").loc[("Ionosphere", 15), "OTP"] == 0.8796
    assert paper.printed("nmi").loc[("MNIST", 35), "LNP"] == 0.8136
    assert paper.printed("ari").loc[("Wine", 25), "SC"] == 0.7912


@pytest.mark.parametrize("measure", MEASURES)
def test_the_sums_of_the_printed_cells(measure):
    assert paper.recomputed_scores(measure).round(4).to_dict() == SUMS[measure]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_scores_printed(measure):
    assert paper.printed_scores(measure).to_dict() == PRINTED[measure]


@pytest.mark.parametrize("measure", MEASURES)
def test_it_does_not_matter_that_sc_is_left_out_of_the_best(measure):
    values = paper.printed(measure).to_numpy()
    assert score(values)[:4] == pytest.approx(paper.recomputed_scores(measure)[:4].to_numpy())


def test_what_agrees_and_what_does_not():
    found = paper.discrepancies().set_index(["measure", "method"])
    agreeing = found["agrees"].unstack()[list(paper.METHODS)]
    assert agreeing.loc["accuracy"].tolist() == ["cut off"] * 5
    assert agreeing.loc["nmi"].tolist() == ["no"] * 4 + ["both"]
    assert agreeing.loc["ari"].tolist() == ["no"] * 3 + ["both", "cut off"]
    assert found.loc[("nmi", "OTP"), "difference"] == pytest.approx(35.5237 - 35.53639, abs=1e-5)


def test_the_rule_by_which_sums_agree_is_said_with_an_example():
    text = sections.paper_sums()
    assert "That holds for 8 of 15; all of them agree when cut off, 6 only then" in text
    assert "35.454494 is printed as 35.4544 and rounds to 35.4545" in text
    assert "LP's NMI, LS's NMI, LNP's NMI count as not agreeing" in text


def test_one_cell_explains_all_sums_of_ari():
    (found,) = paper.explanations("ari").itertuples()
    assert (found.dataset, found.percent, found.cell) == ("Digits", 35, "OTP")
    assert (found.printed, found.read) == (0.9621, 0.9567)
    table = paper.printed("ari")
    assert table.loc[("Digits", 35), "LP"] == table.loc[("Digits", 35), "LS"] == found.read
    table.loc[("Digits", 35), "OTP"] = found.read
    sums = score(table[list(paper.RIVALS)].to_numpy())
    assert list(np.floor(sums * 1e4) / 1e4) == pytest.approx(list(PRINTED["ari"].values())[:4])


def test_no_single_cell_explains_the_sums_of_nmi():
    assert paper.explanations("nmi").empty


@pytest.mark.parametrize("method", ["LP", "LS", "LNP"])
def test_single_cells_could_explain_the_sums_of_nmi_one_by_one(method):
    found = paper.partial_explanations("nmi", method)
    assert len(found) > 1
    table = paper.printed("nmi")[list(paper.RIVALS)]
    for one in found.itertuples():
        assert table.loc[(one.dataset, one.percent), one.cell] == one.printed
        read = table.copy()
        read.loc[(one.dataset, one.percent), one.cell] = one.read
        sums = dict(zip(paper.RIVALS, score(read.to_numpy()), strict=True))
        assert np.floor(sums.pop(method) * 1e4) / 1e4 == pytest.approx(PRINTED["nmi"][method])
        expected = paper.recomputed_scores("nmi")
        assert sums == pytest.approx({other: expected[other] for other in sums})


def test_but_none_explains_that_of_otp():
    assert paper.partial_explanations("nmi", "OTP").empty


@pytest.mark.parametrize("measure", MEASURES)
def test_a_misreading_differs_as_it_says(measure):
    found = paper.misreadings(measure)
    assert len(found) > 5_000
    assert (found["printed"] != found["read"]).all()
    assert not found.duplicated(["dataset", "percent", "cell", "read"]).any()


def test_a_cell_is_misread_by_a_digit_by_an_exchange_or_as_another():
    found = paper.misreadings("accuracy")
    own = found[(found["dataset"] == "Heart") & (found["percent"] == 15) & (found["cell"] == "OTP")]
    text = "7696"
    digits = {text[:n] + digit + text[n + 1 :] for n in range(4) for digit in "0123456789"}
    exchanged = {"6796", "7966", "7669"}
    others = {f"{value:.4f}"[2:] for value in paper.printed("accuracy").loc["Heart"].stack()}
    expected = (digits | exchanged | others) - {text}
    assert {f"{value:.4f}" for value in own["read"]} == {f"0.{value}" for value in expected}


def test_a_best_taken_from_another_column_is_a_misreading():
    found = paper.misreadings("accuracy")
    own = found[(found["cell"] == "best") & (found["dataset"] == "Heart")]
    own = own[own["percent"] == 15].set_index("read")
    assert sorted(own.index) == [0.3411, 0.5683, 0.7261, 0.7304]
    before = paper.recomputed_scores("accuracy")
    row = paper.printed("accuracy").loc[("Heart", 15)]
    for read, sums in own.iterrows():
        for method in paper.RIVALS:
            change = row[method] / read - row[method] / row["OTP"]
            assert sums[method] == pytest.approx(before[method] + change)


@pytest.mark.parametrize(("name", "rows"), [("rows", 36), ("datasets", 12)])
@pytest.mark.parametrize("measure", MEASURES)
def test_nemenyi_does_not_tell_otp_from_ls_and_lp_in_either_reading(measure, name, rows):
    values = reading(paper.printed(measure), name)
    found = compare(values)
    assert found.rows == rows
    assert list(found.ranks.sort_values().index) == ["OTP", "LS", "LP", "LNP", "SC"]
    assert found.friedman.f_p < 0.05
    assert found.cliques[0] == ("OTP", "LS", "LP")
    expected = scikit_posthocs.posthoc_nemenyi_friedman(values.to_numpy()).to_numpy()
    assert found.p_values.to_numpy() == pytest.approx(expected, abs=1e-10)
    assert (found.p_values.loc["OTP", ["LS", "LP"]] > 0.05).all()
    assert (found.p_values.loc["OTP", ["LNP", "SC"]] < 0.05).all()


def test_the_outliers_that_the_paper_names_are_those_of_the_twelve_means():
    values = reading(paper.printed("nmi"), "datasets")
    boxes = boxplot_stats(values.to_numpy(), labels=list(values))
    outliers = {
        box["label"]: list(values.index[values[box["label"]].isin(box["fliers"])]) for box in boxes
    }
    assert outliers["LP"] == outliers["LS"] == ["Heart", "Ionosphere"]
    assert outliers["OTP"] == []
