"""`otprop bench` as a user calls it, killed in the middle and started again."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from otprop import datasets
from otprop.app import bench, main
from otprop.app.commands import app
from otprop.benchmark import records
from otprop.benchmark.records import Record
from otprop.benchmark.run import Selection

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("OTPROP_DATA", ROOT.parent / "shared" / "data"))
NEEDS_DATA = pytest.mark.skipif(
    not (DATA / "iris.csv.gz").is_file(),
    reason="the data sets are neither in OTPROP_DATA nor in ../shared/data",
)


def call(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def start(*arguments):
    command = [sys.executable, "-m", "otprop", "bench", *map(str, arguments)]
    return subprocess.Popen(  # noqa: S603 - this project's own command
        command, start_new_session=True, stderr=subprocess.PIPE, text=True
    )


def lines(folder):
    path = folder / records.FILE
    return path.read_bytes().count(b"\n") if path.is_file() else 0


@NEEDS_DATA
def test_quick_run_killed_and_resumed_and_its_report(tmp_path):
    """All methods on six small data sets; nothing is lost by the kill, and nothing done twice."""
    out = tmp_path / "out"
    arguments = ("run", "--quick", "--data", DATA, "--out", out)
    first = start(*arguments)
    while lines(out) < 60:
        assert first.poll() is None, first.stderr.read()
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    first.stderr.close()
    kept = records.results(out)
    assert len(kept) >= 59
    second = start(*arguments)
    _, said = second.communicate()
    assert second.returncode == 0, said
    found = records.results(out)
    tasks = 6 * 3 * (3 + 5 + 11)
    assert len(found) == tasks
    assert f"{tasks} tasks, {len(kept)} of them done before." in said
    assert {task: found[task] for task in kept} == kept
    written = list(records.read_lines(out, "result"))
    assert len(written) == tasks
    assert [record.message for record in found.values() if record.status != "ok"] == []
    result = call("report", out)
    assert result.exit_code == 0, result.output
    index = (out / "report" / "index.md").read_text("utf-8")
    for name in ("Iris", "OTP", "Self-training", "Friedman", "Nemenyi"):
        assert name in index


@pytest.fixture
def selected(monkeypatch):
    """What is selected, which is not run."""
    found = []

    def made(**selection):
        found.append(selection)
        return Selection(**selection | {"datasets": ()})

    monkeypatch.setattr(bench, "Selection", made)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), (11, (15, 25, 35), 10)),
        (("--quick",), (6, (15,), 3)),
        (("--quick", "--datasets", "iris", "--percents", "25,35"), (1, (25, 35), 3)),
        (("--quick", "--seeds", 1), (6, (15,), 1)),
        (("--seeds", 2, "--datasets", "wdbc-leaky,wine"), (2, (15, 25, 35), 2)),
    ],
)
def test_what_is_asked_for_goes_before_what_is_usual(selected, tmp_path, arguments, expected):
    result = call("run", "--out", tmp_path, *arguments)
    assert result.exit_code == 0, result.output
    (found,) = selected
    assert (len(found["datasets"]), found["percents"], len(found["seeds"])) == expected


@NEEDS_DATA
@pytest.mark.parametrize(("file", "data"), [("mine.py", "iris"), ("table.py", "mine")])
def test_methods_and_data_sets_are_added_as_the_documentation_shows(tmp_path, file, data):
    page = (ROOT / "docs" / "benchmark.md").read_text("utf-8")
    found = re.search(
        rf"```python\n([^`]*)```\n\n```\notprop ([^`]*--datasets {data} --plugin {file} [^`]*)```",
        page,
    )
    (tmp_path / file).write_text(found[1])
    frame = datasets.load("iris", data=DATA).frame.assign(target=["a", "b", "c"] * 50)
    frame.to_csv(tmp_path / "mine.csv", index=False)
    subprocess.run(  # noqa: S603 - this project's own command
        [sys.executable, "-m", "otprop", *found[2].split(), "--seeds", "1", "--percents", "15"],
        cwd=tmp_path,
        env=os.environ | {"OTPROP_DATA": str(DATA)},
        check=True,
    )
    results = records.results(tmp_path / "results")
    assert [record.status for record in results.values()] == ["ok"] * 2
    assert {record.dataset for record in results.values()} == {data}


def test_list_tells_what_there_is():
    said = call("list").output
    for name in ("published", "described", "honest", "OTP", "LNP", "wdbc-leaky", "mnist"):
        assert name in said


def test_data_that_cannot_be_had_end_the_run_before_it_begins(tmp_path):
    arguments = ("run", "--out", tmp_path / "out", "--data", tmp_path, "--datasets", "iris,wine")
    result = call(*arguments)
    assert result.exit_code == 2
    assert "iris.csv.gz" in result.output
    assert records.results(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--datasets", "irsi"), "irsi"),
        (("--methods", "PLS"), "PLS"),
        (("--protocol", "hoped"), "hoped"),
        (("--percents", "15,a"), "percentages"),
        (("--percents", "0"), "percentages"),
    ],
)
def test_unknown_names_are_refused_with_the_known(tmp_path, arguments, message):
    result = call("run", "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("command", ["report", "pack"])
def test_a_report_of_nothing_says_so(tmp_path, command):
    result = call(command, tmp_path)
    assert result.exit_code == 2
    assert "There are no results in" in result.output


def test_figures_are_drawn_into_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("figure", "rounds", "bipartite")
    assert result.exit_code == 0, result.output
    names = ["bipartite.png", "bipartite.svg", "rounds.png", "rounds.svg"]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == names


def test_an_unknown_figure_is_refused_with_the_known(tmp_path):
    result = call("figure", "round", "--out", tmp_path)
    assert result.exit_code == 2
    assert "'round'" in result.output
    assert "rounds, bipartite" in result.output


def test_results_are_packed(tmp_path):
    records.append_result(tmp_path, Record("honest", "OTP", "iris", 15, 0, status="ok"))
    result = call("pack", tmp_path)
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == [records.PACKED]
    assert len(records.results(tmp_path)) == 1


def test_without_the_extra_the_command_says_what_it_lacks(monkeypatch):
    monkeypatch.delitem(sys.modules, "otprop.app.commands", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)  # as if it were not installed
    with pytest.raises(SystemExit, match=r"'typer'.*otprop\[bench\]"):
        main()
