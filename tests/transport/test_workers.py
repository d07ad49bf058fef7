import os
import threading
import time
from concurrent import futures

import pytest

from otprop.transport import Workers, workers

PATIENCE = 20.0  # seconds until a test that waits for another thread gives up


def otprop_threads():
    return [t for t in threading.enumerate() if t.name.startswith("otprop")]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("blocks", [0, 1, 2, 7, 100])
def test_each_block_is_done_once(count, blocks):
    done = []
    with Workers(count) as some:
        some.run(done.append, blocks)
    assert sorted(done) == list(range(blocks))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_there_are_no_more_threads_than_asked_for(count):
    """Each has a scratch array of its own."""
    seen = set()

    def task(_):
        seen.add(threading.current_thread())
        time.sleep(1e-4)

    with Workers(count) as some:
        for _ in range(5):
            some.run(task, 20)
    assert len(seen) <= count


def test_workers_work_at_the_same_time():
    """Three blocks that wait for one another are only done by three threads."""
    meeting = threading.Barrier(3, timeout=PATIENCE)
    with Workers(3) as some:
        some.run(lambda *_: meeting.wait(), 3)


def test_one_of_the_threads_is_the_callers():
    seen, meeting = set(), threading.Barrier(2, timeout=PATIENCE)

    def task(_):
        seen.add(threading.current_thread())
        meeting.wait()

    with Workers(2) as some:
        some.run(task, 2)
    assert threading.current_thread() in seen
    assert len(seen) == 2


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("bad", range(6))
def test_an_error_is_raised_and_does_not_spoil_the_workers(count, bad):
    def task(block):
        time.sleep(1e-4)
        if block == bad:
            raise ZeroDivisionError(block)

    done = []
    with Workers(count) as some:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError, match=str(bad)):
                some.run(task, 6)
        some.run(done.append, 6)
    assert sorted(done) == list(range(6))


def test_an_error_in_a_helper_is_raised_in_the_caller():
    caller, meeting = threading.current_thread(), threading.Barrier(2, timeout=PATIENCE)

    def task(_):
        meeting.wait()
        if threading.current_thread() is not caller:
            raise KeyError("in the helper")

    with Workers(2) as some, pytest.raises(KeyError, match="in the helper"):
        some.run(task, 2)


def test_when_run_returns_nobody_works_any_more():
    """Not even after an error in the caller's own thread."""
    caller, meeting = threading.current_thread(), threading.Barrier(2, timeout=PATIENCE)
    finished = []

    def task(block):
        meeting.wait()
        if threading.current_thread() is caller:
            raise KeyError(block)
        time.sleep(0.05)
        finished.append(block)

    with Workers(2) as some, pytest.raises(KeyError):
        some.run(task, 2)
    assert len(finished) == 1


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("in_caller", [True, False])
def test_after_an_error_no_thread_begins_another_block(error, in_caller):
    caller, meeting = threading.current_thread(), threading.Barrier(2, timeout=PATIENCE)
    begun, failing = [], threading.Event()

    def task(block):
        begun.append(block)
        if block < 2:
            meeting.wait()
            if (threading.current_thread() is caller) == in_caller:
                failing.set()
                raise error
            assert failing.wait(PATIENCE)
            time.sleep(0.05)

    with Workers(2) as some, pytest.raises(error):
        some.run(task, 1000)
    assert sorted(begun) == [0, 1]


def test_an_interrupt_while_the_caller_waits_ends_only_with_the_others(monkeypatch):
    """The helper is in the last block when the caller, which waits for it, is interrupted."""
    caller, meeting = threading.current_thread(), threading.Barrier(2, timeout=PATIENCE)
    waiting, finished = threading.Event(), []

    def interrupted(_):
        waiting.set()
        raise KeyboardInterrupt

    def task(block):
        meeting.wait()
        if threading.current_thread() is not caller:
            assert waiting.wait(PATIENCE)
            time.sleep(0.05)
        finished.append(block)

    monkeypatch.setattr(futures.Future, "result", interrupted)
    with Workers(2) as some:
        with pytest.raises(KeyboardInterrupt):
            some.run(task, 2)
        assert sorted(finished) == [0, 1]


def test_threads_end_with_the_block():
    before = len(otprop_threads())
    with Workers(3) as some:
        meeting = threading.Barrier(3, timeout=PATIENCE)
        some.run(lambda *_: meeting.wait(), 3)
        assert len(otprop_threads()) == before + 2
    assert len(otprop_threads()) == before


def test_threads_end_after_an_error_too():
    before = len(otprop_threads())
    with pytest.raises(KeyError), Workers(3) as some:
        some.run(lambda *_: {}["none"], 6)
    assert len(otprop_threads()) == before


def test_closed_workers_may_start_again():
    done, some = [], Workers(2)
    for _ in range(2):
        with some:
            some.run(done.append, 4)
    assert sorted(done) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_small_tasks_start_no_thread():
    before = len(otprop_threads())
    with Workers(4) as some:
        some.run(lambda *_: None, 1)
        assert len(otprop_threads()) == before


def test_as_many_workers_as_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert Workers().count == workers.available_cores() == 3


@pytest.mark.parametrize(("cores", "expected"), [(6, 6), (None, 1)])
def test_as_many_workers_as_cores_where_affinity_is_unknown(monkeypatch, cores, expected):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert Workers().count == expected
