import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from otprop.benchmark import formats, paper, sections, tables
from otprop.benchmark.figures import boxes, critical_difference, style
from otprop.benchmark.measures import MEASURES
from otprop.benchmark.records import COLUMNS
from otprop.benchmark.report import write_report
from otprop.benchmark.sections import Study
from otprop.benchmark.statistics import average_ranks
from tests.benchmark import frames

METHODS = ("LP", "LS", "OTP", "Vote")
PROTOCOLS = ("described", "published")


@pytest.fixture(scope="module")
def results():
    found = frames.results(protocols=PROTOCOLS, methods=METHODS)
    found = frames.failing(
        found,
        "error",
        "no | luck\nat all",
        protocol="published",
        method="LS",
        dataset="wine",
        seed=2,
    )
    return frames.without(found, protocol="described", method="Vote", dataset="iris", percent=15)


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    return write_report(results, tmp_path_factory.mktemp("report"))


@pytest.fixture
def no_figures(monkeypatch):
    """Leave out what takes the longest."""
    for module in (boxes, critical_difference):
        monkeypatch.setattr(module, "draw", lambda *_: None)
    monkeypatch.setattr(style, "write", lambda *_: [])


def read(page, name):
    return pd.read_csv(page.parent / "statistics" / f"{name}.csv", keep_default_na=False)


def test_every_link_and_image_of_the_page_is_there(page):
    text = page.read_text()
    files = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("#")]
    assert len(files) > 50
    assert [link for link in files if not (page.parent / link).is_file()] == []
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    assert {link[1:] for link in re.findall(r"\]\((#[^)]+)\)", text)} <= headings


def test_every_file_is_linked_from_the_page(page):
    text = page.read_text()
    written = {file.relative_to(page.parent).as_posix() for file in page.parent.rglob("*.*")}
    assert {file for file in written if f"({file})" not in text} == {"index.md"}


def test_the_page_shows_each_table_as_its_file_has_it(results, page):
    text = page.read_text()
    for protocol in PROTOCOLS:
        for measure in MEASURES:
            table = tables.make(results, protocol, measure)
            stem = page.parent / "tables" / f"{protocol}-{measure}"
            assert stem.with_suffix(".md").read_text() == formats.markdown(table)
            assert stem.with_suffix(".tex").read_text() == formats.latex(table)
            assert stem.with_suffix(".csv").read_text() == formats.csv(table)
            assert formats.markdown(table).rstrip() in text


def test_protocols_come_in_their_order(page):
    headings = re.findall(r"^## Protocol (.*)$", page.read_text(), re.MULTILINE)
    assert headings == ["published", "described"]


def test_ranks_and_friedman_are_those_of_the_rows_that_are_complete(results, page):
    ranks, tests = read(page, "ranks"), read(page, "friedman")
    for protocol, rows, sets in (("published", 15, 5), ("described", 14, 4)):
        values = tables.make(results, protocol, "nmi").means
        whole = values.dropna()
        means = values.groupby("dataset", sort=False).mean()[-sets:]
        for reading, expected in (("rows", whole), ("datasets", means)):
            key = {"protocol": protocol, "measure": "nmi", "reading": reading}
            own = ranks[frames.where(ranks, **key)].set_index("method")["rank"]
            assert own.to_dict() == pytest.approx(
                dict(zip(values.columns, average_ranks(expected.to_numpy()), strict=True))
            )
            (test,) = tests[frames.where(tests, **key)].itertuples()
            assert test.rows == len(expected) == (rows if reading == "rows" else sets)
            assert test.chi2 == pytest.approx(
                stats.friedmanchisquare(*expected.to_numpy().T).statistic
            )


def test_nemenyi_has_every_pair_once_the_better_first(page):
    pairs = read(page, "nemenyi")
    ranks = read(page, "ranks").set_index(["protocol", "measure", "reading", "method"])["rank"]
    assert len(pairs) == 3 * 2 * (2 * 6 + 10)
    for pair in pairs.itertuples():
        better, worse = (
            ranks[pair.protocol, pair.measure, pair.reading, method]
            for method in (pair.better, pair.worse)
        )
        assert pair.difference == pytest.approx(worse - better)
        assert pair.difference >= 0
        assert 0 <= pair.p <= 1


def test_the_page_says_what_is_ranked_and_over_how_many_rows(page):
    text = page.read_text()
    assert text.count("**Ranked: data sets × percentages; 15 rows.**") == 3
    assert text.count("**Ranked: data sets × percentages; 14 of 15 rows, as") == 3
    assert text.count("each the mean over its percentages; 4 of 5 rows, as") == 3
    assert text.count("**Ranked: data sets × percentages; 36 rows.**") == 3


def test_failed_and_missing_cells_are_listed_with_their_reason(page):
    text = page.read_text()
    assert "| published | Wine | 15 % | LS | 9 | 1 | 0 | 0 | no \\| luck at all |" in text
    assert "| described | Iris | 15 % | Vote | 0 | 0 | 0 | 10 |  |" in text
    assert "enters SCORE and the tests with the mean of these" in text
    found = read(page, "failures")
    assert len(found) == 3 + 1
    assert list(found["first_message"]) == ["no | luck\nat all"] * 3 + [""]
    assert "* Protocol published was not run at all on Ionosphere, Dermatology, " in text


def test_the_spread_is_that_of_the_cells(results, page):
    table = tables.make(results, "described", "ari")
    own = table.cells["sd"].xs("LP", level="method")
    widest = own.idxmax()
    line = (
        f"| LP | {own.median():.4f} | {own.max():.4f} | "
        f"{tables.title_of(widest[0])}, {widest[1]} % |"
    )
    assert line in page.read_text()


def test_the_papers_own_tables_are_looked_at_too(page):
    text = page.read_text()
    assert "| NMI | OTP | 35.5237 | 35.536391 | -0.012691 | **no** |" in text
    ranks = read(page, "ranks")
    own = ranks[frames.where(ranks, protocol="paper", measure="accuracy", reading="rows")]
    assert list(own["method"]) == list(paper.METHODS)
    assert set(own["rows"]) == {36}


@pytest.mark.usefixtures("no_figures")
def test_the_same_results_give_the_same_files(results, page, tmp_path):
    again = write_report(results.sample(frac=1, random_state=7), tmp_path)
    for file in page.parent.rglob("*.*"):
        if file.suffix in (".md", ".csv", ".tex"):
            other = again.parent / file.relative_to(page.parent)
            assert other.read_bytes() == file.read_bytes(), file.name


@pytest.mark.usefixtures("no_figures")
def test_where_nothing_failed_the_page_says_so(tmp_path):
    text = write_report(frames.results(methods=("OTP", "LP")), tmp_path).read_text()
    assert "None: every method has every seed" in text
    assert "Not tested: Friedman's test takes 2 rows and 3 methods at the least." in text


@pytest.mark.usefixtures("no_figures")
def test_where_all_failed_the_page_says_so(tmp_path):
    failed = frames.failing(frames.results(methods=("OTP", "LP")), "timeout", protocol="honest")
    text = write_report(failed, tmp_path).read_text()
    assert "Not compared, as without any value: LP, OTP." in text
    assert "**Ranked: data sets × percentages; 0 of 15 rows, as" in text
    assert "| OTP | – | – |  |" in text


@pytest.mark.usefixtures("no_figures")
def test_without_results_the_paper_remains(tmp_path):
    text = write_report(pd.DataFrame(columns=list(COLUMNS)), tmp_path).read_text()
    assert "There are no results" in text
    assert "## The paper's own tables" in text


def test_a_method_without_values_is_said_not_to_be_compared():
    values = paper.printed("ari").assign(Mine=np.nan)
    text = sections.statistics(Study("honest", "ari", values), "figures")
    assert "Not compared, as without any value: Mine." in text
    assert "36 rows" in text


def test_where_friedman_rejects_nothing_the_page_says_so():
    values = paper.printed("ari")
    noise = pd.DataFrame(
        np.random.default_rng(0).random(values.shape), index=values.index, columns=values.columns
    )
    sayings = [
        "does not reject" in sections.statistics(Study("honest", "ari", table), "figures")
        for table in (values, noise)
    ]
    assert sayings == [False, True]
