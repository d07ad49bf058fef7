"""Runs: what is done stays done, and what goes wrong is a row."""

import os
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from otprop.benchmark import records
from otprop.benchmark.methods import METHODS
from otprop.benchmark.records import Record, Task
from otprop.benchmark.run import Selection, Settings, load_plugins, run, sized

PLUGIN = dedent(
    """
    import os, signal, time
    from otprop.benchmark.methods import METHODS, Method, add_method
    from otprop.benchmark.problems import Problem
    from otprop.benchmark.protocols import base
    import numpy as np

    def problem(name, scaling, _data):
        X = np.repeat(np.eye(3), 20, axis=0) + np.linspace(0, 0.1, 60)[:, None]
        return Problem(name, scaling, X, np.repeat([0, 1, 2], 20), 0.1)

    base.problem = problem

    class Failing:
        def fit(self, X, y):
            raise RuntimeError("on purpose")

    class Sleeping:
        def fit(self, X, y):
            time.sleep(60)

    class Dying:
        def fit(self, X, y):
            os.kill(os.getpid(), signal.SIGKILL)

    class Guessing:
        def __init__(self, way):
            pass

        def fit(self, X, y):
            self.transduction_ = np.maximum(y, 0)

    for kind in (Failing, Sleeping, Dying):
        add_method(Method(kind.__name__, kind))
    add_method(Method("Guessing", Guessing, {"way": np.arange(2)}))
    """
)


@pytest.fixture
def plugin(tmp_path):
    """A data set in memory and methods that go wrong, for the worker processes."""
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN)
    return path


def tasks(*methods, seeds=(0, 1)):
    return [Task("honest", method, "three", 15, seed) for seed in seeds for method in methods]


def test_what_goes_wrong_is_a_row_and_the_run_goes_on(tmp_path, plugin):
    shown = []
    settings = Settings(tmp_path, fit_limit=2, workers=2, plugins=(plugin,))
    wanted = tasks("Vote", "Failing", "Dying", seeds=(0,)) + tasks("Vote", seeds=(1,))
    # One label a class: no candidate is tried beforehand, so that there is one fit to wait for.
    wanted.append(Task("honest", "Sleeping", "three", 5, 0))
    run(wanted, settings, shown.append)
    found = records.results(tmp_path)
    assert set(found) == set(wanted) == {record.task for record in shown}
    assert {task.method: record.status for task, record in found.items()} == {
        "Vote": "ok",
        "Failing": "error",
        "Dying": "error",
        "Sleeping": "timeout",
    }
    said = {record.method: record.message for record in found.values()}
    assert said["Failing"] == "RuntimeError: on purpose"
    assert "process died" in said["Dying"]
    assert "not done in 2 s" in said["Sleeping"]
    assert not list((tmp_path / "running").iterdir())


def test_a_result_that_cannot_be_written_is_a_row(tmp_path, plugin):
    wanted = tasks("Guessing", "Vote", seeds=(0,))
    run(wanted, Settings(tmp_path, plugins=(plugin,)), lambda _record: None)
    found = records.results(tmp_path)
    assert [found[task].status for task in wanted] == ["error", "ok"]
    assert "int64 is not JSON serializable" in found[wanted[0]].message


def test_a_process_that_dies_costs_no_task_that_is_run_again(tmp_path, plugin):
    wanted = tasks("Dying", seeds=(0,)) + tasks("Vote", seeds=range(3))
    for task in wanted:
        records.append_result(tmp_path, Record(*task, status="error", message="before"))
    run(wanted, Settings(tmp_path, plugins=(plugin,)), lambda _record: None)
    found = records.results(tmp_path)
    assert [found[task].status for task in wanted] == ["error", "ok", "ok", "ok"]
    assert "process died" in found[wanted[0]].message


def test_processes_that_never_begin_a_task_end_the_run(tmp_path):
    path = tmp_path / "dies.py"
    path.write_text(f"import os\nif os.getpid() != {os.getpid()}:\n    os._exit(1)\n")
    with pytest.raises(TerminatedWorkerError):
        run(tasks("Vote"), Settings(tmp_path, plugins=(path,)), lambda _record: None)


def test_records_say_what_they_were_made_with(tmp_path, plugin):
    settings = Settings(tmp_path, workers=1, threads=1, plugins=(plugin,))
    for _ in range(2):
        run(tasks("Vote"), settings, lambda _record: None)
    environments = list(records.read_lines(tmp_path, "environment"))
    assert len(environments) == 1
    assert environments[0]["packages"]["otprop"]
    for record in records.results(tmp_path).values():
        assert record.environment == environments[0]["id"]
        assert record.seconds > 0
        assert record.peak_mib >= record.details["mib_before"] > 10
        assert 0 < record.details["fit_seconds"] < record.seconds
        assert record.finished


def test_records_say_of_which_candidates_they_chose(tmp_path, monkeypatch):
    for widths in ((1.0, 2.0), (1.0, 4.0)):
        monkeypatch.setitem(
            METHODS, "Vote", replace(METHODS["Vote"], grid={"epsilon": np.array(widths)})
        )
        run([], Settings(tmp_path), lambda _record: None)
    one, other = records.read_lines(tmp_path, "environment")
    assert one["id"] != other["id"]
    assert one["grids"]["Vote"] == {"epsilon": [repr(width) for width in np.array([1.0, 2.0])]}
    assert one["grids"]["LS"] == other["grids"]["LS"]


def test_the_same_task_gives_the_same_result(tmp_path, plugin):
    for name, workers in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        settings = Settings(tmp_path / name, workers=workers, plugins=(plugin,))
        run(tasks("Vote", seeds=range(4)), settings, lambda _record: None)
    one, other = (records.read([tmp_path / name]) for name in ("a", "b"))
    columns = ["method", "seed", "accuracy", "nmi", "ari", "parameters"]
    assert one[columns].equals(other[columns])


def test_a_selection_is_all_combinations_seed_by_seed():
    selection = Selection(
        ("published", "honest"), ("OTP", "RF"), ("iris", "wine"), (15, 25), (0, 1)
    )
    found = selection.tasks()
    assert len(found) == len(set(found)) == 2 * 2 * 2 * (1 + 2)
    assert [task.seed for task in found] == [0] * 12 + [1] * 12
    assert {task.method for task in found if task.protocol == "published"} == {"OTP"}


def test_workers_and_threads_fill_the_cores_and_no_more(monkeypatch):
    from otprop.benchmark import run as module  # noqa: PLC0415 - the function has its name

    monkeypatch.setattr(module, "available_cores", lambda: 8)
    monkeypatch.setattr(module, "_memory", lambda: 32 * 2**30)
    assert sized(150) == (8, 1)
    assert sized(10_000) == (8, 1)
    assert sized(20_000) == (2, 4)
    assert sized(100_000) == (1, 8)
    assert sized(150, workers=2) == (2, 1)
    assert sized(20_000, workers=4) == (4, 2)
    assert sized(20_000, workers=20) == (20, 1)


def test_plugins_are_loaded_once(tmp_path):
    path = tmp_path / "adds.py"
    path.write_text(
        "from otprop.benchmark.methods import METHODS, Method, add_method\n"
        "assert 'added' not in METHODS\n"
        "add_method(Method('added', dict))\n"
    )
    try:
        load_plugins([path])
        load_plugins([path])
        assert METHODS["added"].name == "added"
    finally:
        METHODS.pop("added", None)
