"""Downloads from a real server, and the folder for what was downloaded."""

import io
import socket
import sys
from pathlib import Path

import pandas as pd
import pytest

from otprop.datasets import DatasetError, OpenML, fetch
from tests.datasets.server import Cut, Slow

DATA = bytes(range(256)) * 1000
PAUSES = fetch.PAUSES  # before the tests do without
ATTEMPTS = 1 + len(PAUSES)


def test_a_file_is_downloaded_and_its_progress_told(server):
    server.files["/a/b.data"] = DATA
    told = []
    assert fetch.download(f"{server.url}/a/b.data", progress=lambda *now: told.append(now)) == DATA
    done = [now[1] for now in told]
    assert done[0] == 0
    assert done[-1] == len(DATA)
    assert len(done) > 3
    assert done == sorted(done)
    assert {(now[0], now[2]) for now in told} == {("b.data", len(DATA))}


@pytest.mark.parametrize(
    "trouble",
    [Cut(DATA, 0), Cut(DATA, 100_000), 500, 503, 429],
    ids=["cut at once", "cut", "500", "503", "429"],
)
def test_what_may_pass_is_tried_again_from_the_start(server, trouble):
    server.files["/f"] = [trouble, trouble, DATA]
    assert fetch.download(f"{server.url}/f") == DATA
    assert len(server.asked) == 3


def test_silence_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.2)
    server.files["/f"] = [Slow(DATA, 1.0), DATA]
    assert fetch.download(f"{server.url}/f") == DATA
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("trouble", "message"),
    [(Cut(DATA, 1000), "cut after 1000 bytes"), (502, "answers 502 Bad Gateway")],
)
def test_trouble_that_stays_is_an_error_that_says_where(server, trouble, message):
    server.files["/f"] = trouble
    with pytest.raises(DatasetError, match=rf"{server.url}/f: .*{message}"):
        fetch.download(f"{server.url}/f")
    assert len(server.asked) == ATTEMPTS


def test_silence_that_stays_is_an_error(server, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    server.files["/f"] = Slow(DATA, 0.3)
    with pytest.raises(DatasetError, match=r"/f: the connection broke \(timed out\)"):
        fetch.download(f"{server.url}/f")
    assert len(server.asked) == ATTEMPTS


def test_pauses_grow_between_attempts(server, monkeypatch):
    monkeypatch.setattr(fetch, "PAUSES", PAUSES)
    slept = []
    monkeypatch.setattr(fetch.time, "sleep", slept.append)
    server.files["/f"] = 500
    with pytest.raises(DatasetError):
        fetch.download(f"{server.url}/f")
    assert slept == sorted(PAUSES)
    assert slept[0] > 0


def test_what_will_not_pass_is_not_tried_again(server):
    with pytest.raises(DatasetError, match="404"):
        fetch.download(f"{server.url}/none")
    assert len(server.asked) == 1


def closed_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def test_no_network_is_told_at_once(monkeypatch):
    monkeypatch.setattr(fetch.time, "sleep", lambda _: pytest.fail("waited"))
    with pytest.raises(DatasetError, match="no connection"):
        fetch.download(f"http://127.0.0.1:{closed_port()}/f")


def test_only_web_addresses_are_opened(tmp_path):
    (tmp_path / "f").write_bytes(DATA)
    with pytest.raises(DatasetError, match="only http"):
        fetch.download((tmp_path / "f").as_uri())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_one_line(server, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    server.files["/f.data"] = DATA
    fetch.download(f"{server.url}/f.data")
    text = sys.stderr.getvalue()
    assert text.endswith("\r[otprop] f.data: 0.3 of 0.3 MB\n")
    assert text.count("\n") == 1
    fetch.show("f.data", 10**6, None)
    assert sys.stderr.getvalue().endswith("\r[otprop] f.data: 1.0 MB")


def test_what_is_no_terminal_stays_silent(server, capsys):
    server.files["/f"] = DATA
    fetch.download(f"{server.url}/f")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "{home}/.cache/otprop/datasets"),
        ("linux", {"XDG_CACHE_HOME": "{home}/x"}, "{home}/x/otprop/datasets"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "{home}/.cache/otprop/datasets"),
        ("darwin", {}, "{home}/Library/Caches/otprop/datasets"),
        ("win32", {}, "{home}/AppData/Local/otprop/datasets"),
        ("win32", {"LOCALAPPDATA": "{home}/l"}, "{home}/l/otprop/datasets"),
        ("win32", {"OTPROP_CACHE": "{home}/own", "LOCALAPPDATA": "{home}/l"}, "{home}/own"),
        ("linux", {"OTPROP_CACHE": "~/own", "XDG_CACHE_HOME": "{home}/x"}, "{home}/own"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(
    platform, variables, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("OTPROP_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value.format(home=tmp_path))
    assert fetch.cache_folder() == Path(expected.format(home=tmp_path))


def test_a_file_is_kept_as_a_whole_or_not_at_all(cache, monkeypatch):
    fetch.keep(cache / "f", b"old")

    def fail(_):
        assert [path.name for path in cache.iterdir() if path.name != "f"]  # a file beside it
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="full"):
        fetch.keep(cache / "f", b"new")
    assert [(path.name, path.read_bytes()) for path in cache.iterdir()] == [("f", b"old")]


@pytest.fixture
def openml(monkeypatch):
    """What `fetch_openml` is asked for, and a data set that it returns."""
    asked = []
    frame = pd.DataFrame(
        {"V1": [1.0, 2.0, 3.0], "V2": pd.Categorical(["4", "5", "6"]), "Age": [None, 1.0, 2.0]}
    )

    def fetch_openml(**options):
        asked.append(options | {"timeout": socket.getdefaulttimeout()})
        return frame, pd.Series(pd.Categorical(["2", "1", "2"]), name="Class")

    monkeypatch.setattr(fetch, "fetch_openml", fetch_openml)
    return asked


def test_openml_gives_our_columns_labels_and_rows(openml):
    found = OpenML(7, ("u", "v"), labels={"1": "B", "2": "M"}, rows=2)()
    assert list(found.frame.columns) == ["u", "v"]
    assert found.frame.astype(float).to_numpy().tolist() == [[1, 4], [2, 5]]
    assert found.target.tolist() == ["M", "B"]
    assert OpenML(7, ("u", "v"))().target.tolist() == [2, 1, 2]
    assert openml[0]["data_id"] == 7
    assert openml[0]["parser"] == "liac-arff"  # exact to the last bit
    assert openml[0]["as_frame"]
    assert not openml[0]["cache"]


def test_openml_is_not_waited_for_without_end(openml):
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(123.0)
    try:
        OpenML(7, ("u",))()
        assert openml[0]["timeout"] == fetch.TIMEOUT
        assert socket.getdefaulttimeout() == 123.0
    finally:
        socket.setdefaulttimeout(before)
