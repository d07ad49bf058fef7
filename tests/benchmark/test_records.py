"""Results survive what happens to the process that writes them."""

import multiprocessing
from dataclasses import replace

import pytest

from otprop.benchmark import records
from otprop.benchmark.records import FILE, Record, Task, append_result, read, results

A = Record("honest", "OTP", "iris", 15, 0, status="ok", accuracy=0.9, nmi=0.8, ari=0.7)


def test_a_result_comes_back_as_it_was(tmp_path):
    whole = replace(
        A,
        parameters={"epsilon": 0.1, "name": "ü"},
        candidates=[{"alpha": 0.7}],
        converged=False,
        details={"rounds": 3},
        seconds=1.5,
        peak_mib=20.25,
    )
    append_result(tmp_path, whole)
    assert results(tmp_path) == {Task("honest", "OTP", "iris", 15, 0): whole}
    frame = read([tmp_path])
    assert list(frame.columns) == list(records.COLUMNS)
    assert frame.loc[0, "parameters"] == {"epsilon": 0.1, "name": "ü"}


def test_numbers_that_json_lacks_are_refused_and_leave_nothing(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_result(tmp_path, replace(A, accuracy=float("nan")))
    assert results(tmp_path) == {}


@pytest.mark.parametrize("kept", [1, 20, -2, -1])
def test_a_torn_line_costs_no_other(tmp_path, kept):
    """Wherever a write was cut off, the results before and after it are there."""
    append_result(tmp_path, A)
    before = (tmp_path / FILE).read_bytes()
    append_result(tmp_path, replace(A, seed=1))
    torn = (tmp_path / FILE).read_bytes()[len(before) :][:kept]
    (tmp_path / FILE).write_bytes(before + torn)
    append_result(tmp_path, replace(A, seed=2))
    expected = {0, 2} if kept != -1 else {0, 1, 2}  # -1 cuts the line's end off only
    assert {task.seed for task in results(tmp_path)} == expected


def test_the_first_good_result_stands(tmp_path):
    for status, accuracy in (("error", None), ("ok", 0.5), ("ok", 0.6), ("timeout", None)):
        append_result(tmp_path, replace(A, status=status, accuracy=accuracy))
    assert [record.accuracy for record in results(tmp_path).values()] == [0.5]


def test_of_failures_the_last_stands(tmp_path):
    for message in ("one", "two"):
        append_result(tmp_path, replace(A, status="error", message=message))
    assert [record.message for record in results(tmp_path).values()] == ["two"]


def test_lines_of_other_kinds_are_no_results(tmp_path):
    records.append(tmp_path, "environment", {"id": "x"})
    append_result(tmp_path, A)
    assert [entry["id"] for entry in records.read_lines(tmp_path, "environment")] == ["x"]
    assert len(results(tmp_path)) == 1


def test_packed_results_are_read_and_a_run_goes_on_beside_them(tmp_path):
    records.append(tmp_path, "environment", {"id": "x", "cores": 2})
    for seed, status in ((1, "error"), (0, "ok"), (1, "ok")):
        append_result(tmp_path, replace(A, seed=seed, status=status, message="é"))
    before = results(tmp_path)
    first = records.pack(tmp_path).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [records.PACKED]
    assert results(tmp_path) == before
    assert list(records.read_lines(tmp_path, "environment")) == [{"id": "x", "cores": 2}]
    append_result(tmp_path, replace(A, seed=2))
    assert [task.seed for task in sorted(results(tmp_path))] == [0, 1, 2]
    records.pack(tmp_path)
    assert len(results(tmp_path)) == 3
    assert records.pack(tmp_path).read_bytes() != first
    assert records.pack(tmp_path).read_bytes() == records.pack(tmp_path).read_bytes()


def test_no_folder_no_results(tmp_path):
    assert results(tmp_path / "none") == {}
    assert read([tmp_path / "none"]).empty


def _write_many(folder, percent):
    for seed in range(100):
        append_result(folder, replace(A, percent=percent, seed=seed, message="x" * 5000))


def test_two_writers_do_not_mix_their_lines(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(tmp_path, p)) for p in (15, 25)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(results(tmp_path)) == 200
    assert (tmp_path / FILE).read_bytes().count(b"\n") == 200
