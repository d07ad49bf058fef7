"""The findings page says what the records hold, and nothing else."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from otprop.benchmark import paper
from otprop.benchmark.protocols import PROTOCOLS
from tests.benchmark import frames

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
TITLES = {"heart": "Heart", "iris": "Iris", "wdbc": "Breast", "mnist": "MNIST"}
RIVALS = ("LP", "LS")


@pytest.fixture
def script(monkeypatch):
    """Import a script of `benchmarks/` as the others there do."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(SCRIPTS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def record(dataset, method, seed, accuracy, **more):
    row = {"protocol": "published", "percent": 15, "status": "ok", "message": "", "details": {}}
    row |= {"dataset": dataset, "method": method, "seed": seed, "accuracy": accuracy}
    return row | {"nmi": accuracy, "ari": accuracy, "environment": "e", "seconds": 60.0} | more


def moved(shifts, dataset="heart", seeds=10, spread=0.05):
    """Return published results that differ from the paper's by these shifts on average."""
    printed = paper.printed("accuracy").loc[(TITLES[dataset], 15)]
    swings = spread * np.tile([1, -1], seeds)[:seeds]
    return pd.DataFrame(
        record(dataset, method, seed, printed[method] + shift + swings[seed])
        for method, shift in shifts.items()
        for seed in range(seeds)
    )


def explained(script, results, checks=None):
    module, named = script("explanations"), script("one_split")
    found = module.distances(results)
    return module.explained(found, named.compared(results, checks or {}), checks or {})


def test_a_difference_is_counted_in_standard_errors(script):
    (found,) = script("explanations").distances(moved({"OTP": 0.06, "LP": 0.0, "LS": 0.0}))
    error = 0.05 * np.sqrt(10 / 9) * np.sqrt(2 / 10)
    assert found.standard_error() == pytest.approx(error)
    assert found.standard_errors() == pytest.approx(0.06 / error)
    assert not found.near


@pytest.mark.parametrize(
    ("spread", "verdict"),
    [(0.05, "chance does not explain it"), (0.5, "chance alone makes such differences")],
)
def test_chance_explains_what_is_within_the_spread(script, spread, verdict):
    text = explained(script, moved({"OTP": 0.06, "LP": 0.0, "LS": 0.0}, spread=spread))
    assert verdict in text


@pytest.mark.parametrize(
    ("shifts", "verdict"),
    [
        ((0.05, 0.04), "it is the splits, or the rows, and not the method"),
        ((0.02, 0.02), "make a part of it"),
        ((0.3, 0.2), "something other than OTP must differ"),
        ((-0.05, 0.05), "the splits do not explain it"),
    ],
)
def test_what_lp_and_ls_do_on_the_same_splits_is_weighed(script, shifts, verdict):
    text = explained(script, moved({"OTP": 0.06} | dict(zip(RIVALS, shifts, strict=True))))
    assert verdict in text
    assert f"LP {shifts[0]:+.4f} and LS {shifts[1]:+.4f}" in text


def test_each_far_data_set_is_explained_and_no_near_one(script):
    results = pd.concat(
        [
            moved({"OTP": -0.03, "LP": 0.0, "LS": 0.0}),
            moved({"OTP": 0.019, "LP": 0.0, "LS": 0.0}, "iris", spread=0.001),
        ]
    )
    text = explained(script, results)
    assert "**Heart** (-0.0300; our 10 splits go from 0.6896 to 0.7896):" in text
    assert "Iris" not in text
    said = script("explanations").count_said(script("explanations").distances(results))
    assert "on 1 of 12 data sets, fewer than the 9 that were looked for; not on Heart;" in said
    assert "not run: Wine, Ionosphere" in said


def test_one_split_has_no_spread_to_speak_of(script):
    text = explained(script, moved({"OTP": 0.3, "LP": 0.0, "LS": 0.0}, seeds=1))
    assert "Of one split nothing can be said about chance." in text
    assert "nan" not in text


def picked(wrong=0.0):
    """Return a check in which Heart's named split gives what the paper prints, but for one."""
    accuracies = {
        str(percent): {
            method: paper.printed("accuracy").loc[("Heart", percent), method] + 0.00004
            for method in ("OTP", *RIVALS)
        }
        for percent in (15, 25, 35)
    }
    accuracies["25"]["LS"] += wrong
    return {"picked": {"heart": {"seed": 133, "accuracies": accuracies}}}


@pytest.mark.parametrize(("wrong", "same"), [(0.0, 9), (0.002, 8)])
def test_a_data_set_printed_from_one_split_is_told(script, wrong, same):
    module, checks = script("one_split"), picked(wrong)
    results = moved({"OTP": 0.06, "LP": 0.0, "LS": 0.0})
    found = module.compared(results, checks)
    assert module.of_one_split(found) == ["heart"]
    assert f"our run gives {same} of the 9 values" in module.said(found)
    text = explained(script, results, checks)
    assert ("but for LS at 25 %" in text) == bool(wrong)
    assert "For a single split the standard error is 0.0553" in text


def test_a_data_set_of_which_two_values_differ_is_not_told_from_chance(script):
    module, checks = script("one_split"), picked(0.002)
    checks["picked"]["heart"]["accuracies"]["15"]["OTP"] -= 0.01
    found = module.compared(moved({"OTP": 0.06, "LP": 0.0, "LS": 0.0}), checks)
    assert module.of_one_split(found) == []
    assert "No data set's" in module.said(found)


def test_the_named_split_is_taken_from_the_records_where_they_have_it(script):
    results = moved({"OTP": 0.0, "LP": 0.5, "LS": 0.0}, "mnist", spread=0.0)
    results.loc[results["seed"] != 0, "accuracy"] = 0.1
    found = script("one_split").compared(results, {})
    assert set(found["dataset"]) == {"mnist"}
    assert dict(zip(found["method"], found["same"], strict=True)) == {
        "OTP": True,
        "LP": False,
        "LS": True,
    }


def test_what_is_said_of_mnist_is_what_was_measured(script):
    way = {"OTP": 0.81, "1-NN": 0.82, "LP": 0.83, "lost": 0.25, "LP elsewhere": 0.84}
    way["lost given the first class"] = 0.99
    other = way | {"OTP": 0.71}
    checks = {"columns scaled to [0, 1]": way, "pixels / 255": other, "rows of unit norm": way}
    text = explained(
        script, moved({"OTP": -0.05, "LP": -0.2, "LS": -0.2}, "mnist"), {"mnist": checks}
    )
    assert "The scaling matters: at seed 0 OTP has 0.7100 with pixels / 255 and 0.8100" in text
    assert "for 25.0% of the rows" in text
    assert "99% of them get the first class" in text
    assert "LP has 0.8400 on the others and 0.8300 in all" in text


def honest(accuracies, rounds=200, **more):
    details = {"validated": 0.9, "rounds": rounds}
    parameters = {"epsilon": 0.1, "alpha": 0.9, "scaling": "none"}
    return pd.DataFrame(
        record(
            "wdbc",
            "OTP",
            seed,
            accuracy,
            protocol="honest",
            details=details,
            parameters=parameters,
            converged=True,
            **more,
        )
        for seed, accuracy in enumerate(accuracies)
    )


def test_runs_below_the_largest_class_are_listed_the_worst_first(script):
    module = script("collapses")
    largest = 357 / 569
    text = module.section(honest([0.3, 0.95, largest - 1e-6, largest + 1e-6, 0.2]), {})
    assert "3 of OTP's 5 runs fall below" in text
    assert "(Breast 3), though every solve converged" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| Breast")]
    assert [row[3] for row in rows] == ["0.2000", "0.3000", f"{largest:.4f}"]
    assert rows[0][6:9] == ["17", "484", "200"]


def test_where_nothing_collapsed_nothing_is_listed(script):
    text = script("collapses").section(honest([0.9, 0.95]), {})
    assert text == "Under `honest` none of OTP's 2 runs falls below the largest class."


def test_what_was_not_run_is_counted_and_the_reason_given(script):
    methods = PROTOCOLS["published"].methods
    results = frames.results(
        protocols=("published",), methods=methods, datasets=("iris", "heart"), percents=(15, 25)
    )
    results = frames.without(results, dataset="heart", percent=25, seed=4, method="LS")
    results["environment"], results["seconds"] = "a", 20.0
    environments = {"a": {"fit_limit": 60.0, "commit": "abc"}, "b": {"fit_limit": None}}
    text = script("runs").section(results, environments)
    assert "| Iris | 10, 10, 0 | 0, 0, 0 |" in text
    assert "| Heart | 10, 9, 0 | 0, 0, 0 |" in text
    assert "`published` 3 full, 1 in part, 32 not; `corrected` 0 full, 0 in part, 36 not" in text
    assert f"`published` {len(results)} within 60 s; `corrected` none" in text
    assert "| Iris | 1.00 | not known |" in text
    assert "commit abc; 1 of 2 environments without a record of it" in text
    assert "for want of time on two cores" in text


def test_candidates_that_ran_out_of_time_are_counted(script):
    results = pd.DataFrame(
        [
            record("iris", "OTP", 0, 0.9, protocol="described", candidates=candidates)
            for candidates in ([{"status": "timeout"}, {"status": "timeout"}, {}], [{}], None)
        ]
        + [
            record("iris", "OTP", 0, 0.9, protocol="honest", details=details, candidates=None)
            for details in ({"failed_fits": 3}, {})
        ]
    )
    text = script("runs").section(results, {})
    assert "2 candidates of 1 results ran out of time" in text
    assert "3 fits for validation, of 1 results" in text


def test_otp_shares_its_place_with_its_equals(script):
    results = frames.results(methods=("LP", "OTP", "SC"))
    results["accuracy"] = results["method"].map({"LP": 0.9, "OTP": 0.8, "SC": 0.8})
    said = script("comparisons").place_said(results, "honest")
    assert "2.50 over 15 data sets × percentages (place 2 of 3; the best is LP with 1.00)" in said
    assert "2.50 over 5 data sets (place 2 of 3" in said


def test_both_readings_of_every_measure_are_shown_with_their_rows(script):
    results = frames.without(frames.results(), method="OTP", dataset="iris", percent=25)
    text = "\n".join(script("comparisons").section(results, "honest"))
    for measure in ("Accuracy", "NMI", "ARI"):
        assert f"**{measure}, ranked: data sets × percentages; 14 of 15 rows, as" in text
        assert f"**{measure}, ranked: data sets, each the mean over its percentages; 4 of" in text
        for reading in ("rows", "datasets"):
            assert f"images/findings/honest-{measure.lower()}-{reading}-cd.svg" in text


def test_the_diagrams_say_what_is_ranked_and_old_ones_go(script, tmp_path, monkeypatch):
    module = script("comparisons")
    monkeypatch.setattr(module, "FIGURES", tmp_path)
    (tmp_path / "honest-accuracy-cd.svg").write_text("old")
    module.draw(frames.results(methods=("LP", "OTP", "SC")))
    assert len(list(tmp_path.iterdir())) == 3 * 2 * 2
    assert "15 rows (data sets × percentages)" in (tmp_path / "honest-nmi-rows-cd.svg").read_text()


def test_a_change_is_taken_over_the_same_splits(script):
    published = moved({"OTP": 0.0}, seeds=4)
    corrected = published.assign(
        protocol="corrected", method="OTP, solved", accuracy=published["accuracy"] - 0.125
    )
    lines = script("findings")._worth(pd.concat([published, corrected[:3]])).splitlines()
    assert "| Heart | – | -0.1250 (3) | – | – | – |" in lines


def test_the_stages_end_with_everything_and_the_printed_numbers_come_first(script):
    module = script("stages")
    planned = {
        (protocol, dataset, percent)
        for stage in module.STAGES
        if stage.seeds == 10
        for protocol in stage.protocols
        for dataset in stage.datasets
        for percent in stage.percents
    }
    datasets = script("replication_records").DATASETS
    assert planned == {(p, d, n) for p in PROTOCOLS for d in datasets for n in (15, 25, 35)}
    first = module.STAGES[0]
    assert (first.protocols, first.datasets, first.percents) == (
        ("published",),
        module.LARGE,
        (15,),
    )
    costly = [s for s in module.STAGES if "honest" in s.protocols and s.datasets == module.LARGE]
    assert (costly[0].seeds, costly[0].fit_limit, costly[0].percents) == (3, 60.0, (15,))
    assert "--fit-limit 60.0" in " ".join(costly[0].arguments())
