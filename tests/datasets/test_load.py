"""`load` and `register`: from a server, the cache, a folder, and what users add."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from otprop.datasets import (
    Dataset,
    DatasetError,
    Entry,
    OpenML,
    Originals,
    checksum,
    delimited,
    fetch,
    find,
    load,
    loading,
    names,
    register,
    title,
)
from tests.datasets import originals
from tests.datasets.server import Cut, Server

COLUMNS = ("width", "height")
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=COLUMNS)
TARGET = np.array(["yes", "no", "yes", "yes", "no"] * 10)
TEXT = originals.lines(FRAME, TARGET)
ALTERED = TEXT.replace(b"yes", b"no", 1)
SUM = checksum(FRAME, TARGET)


def source(server, path="/tiny.data"):
    return Originals((server.url + path,), partial(delimited, columns=COLUMNS))


@pytest.fixture
def tiny(server):
    """A registered data set that the server has."""
    server.files["/tiny.data"] = TEXT
    entry = Entry(
        name="tiny",
        title="Tiny",
        sources=(source(server),),
        file="tiny.csv.gz",
        columns=COLUMNS,
        counts={"no": 20, "yes": 30},
        sha256=SUM,
        citation="Nobody (2026). Tiny.",
        doi="10.1/2",
        licence="CC0",
        notes="Made up.",
    )
    register(entry)
    return entry


def assert_right(found):
    assert isinstance(found, Dataset)
    pd.testing.assert_frame_equal(found.frame, FRAME, check_exact=True)
    np.testing.assert_array_equal(found.target, TARGET)


# ---- downloads and the cache


def test_a_good_file_is_loaded(tiny):
    found = load("tiny")
    assert_right(found)
    assert found.name == tiny.name
    assert found.description == (
        "Tiny: 50 rows, 2 features, 2 classes (no: 20, yes: 30).\nMade up.\n"
        "Cite: Nobody (2026). Tiny.\nhttps://doi.org/10.1/2\nLicence: CC0."
    )


def test_a_second_call_downloads_nothing(tiny, server, cache):
    load("tiny")
    server.files.clear()
    assert_right(load("tiny"))
    assert server.asked == ["/tiny.data"]
    assert [path.name for path in cache.iterdir()] == [tiny.file]


def test_a_cache_is_an_offline_folder(tiny, server, cache, tmp_path):
    load(tiny.name)
    copy = shutil.copytree(cache, tmp_path / "copy")
    shutil.rmtree(cache)
    assert_right(load("tiny", data=copy))
    assert len(server.asked) == 1
    assert not cache.exists()


def test_a_wrong_sum_is_an_error_that_says_what_where_and_what_next(tiny, server, cache):
    changed = pd.concat([FRAME[:49], FRAME[49:] + 1e-12])
    server.files["/tiny.data"] = originals.lines(changed, TARGET)
    with pytest.raises(DatasetError) as caught:
        load("tiny")
    message = str(caught.value)
    for part in (
        "'tiny'",
        server.url[7:],
        checksum(changed, TARGET),
        SUM,
        tiny.file,
        "OTPROP_DATA",
    ):
        assert part in message
    assert not cache.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALTERED, "no: 21, yes: 29 rows, not no: 20, yes: 30"),
        (TEXT[: len(TEXT) // 2].rpartition(b"\n")[0], "rows, not no: 20, yes: 30"),
        (b"<html>Moved</html>", "Length mismatch"),
        (b"", "No columns"),
        (b"1,x,yes\n", "could not convert"),
    ],
)
def test_what_is_not_the_data_set_is_not_kept(tiny, server, cache, text, message):
    server.files["/tiny.data"] = text
    with pytest.raises(DatasetError, match=message):
        load(tiny.name)
    assert not cache.exists()


def test_the_next_source_is_asked_where_one_fails(tiny, server):
    bad = [source(server, "/none"), source(server, "/altered")]
    server.files["/altered"] = ALTERED
    register(replace(tiny, name="late", sources=(*bad, *tiny.sources)))
    assert_right(load("late"))
    assert server.asked == ["/none", "/altered", "/tiny.data"]


def test_all_sources_are_named_where_none_is_good(tiny, server):
    register(replace(tiny, name="lost", sources=(source(server, "/a"), source(server, "/b"))))
    with pytest.raises(DatasetError, match=r"(?s)/a: .*404.*/b: .*404.*OTPROP_DATA"):
        load("lost")


def test_openml_is_named_where_it_fails(tiny, monkeypatch):
    def fetch_openml(**_):
        raise OSError("out of reach")

    monkeypatch.setattr(fetch, "fetch_openml", fetch_openml)
    register(replace(tiny, name="lost", sources=(OpenML(7, COLUMNS),)))
    with pytest.raises(DatasetError, match="- OpenML, data set 7: out of reach"):
        load("lost")


def test_a_cut_connection_is_repaired(tiny, server):
    server.files["/tiny.data"] = [Cut(TEXT, 30), TEXT]
    assert_right(load(tiny.name))


def test_no_network_is_an_error_that_names_the_ways_out(tiny):
    with Server() as gone:
        far = source(gone)
    register(replace(tiny, name="far", sources=(far,)))
    with pytest.raises(DatasetError, match=r"(?s)no connection.*tiny.csv.gz.*OTPROP_DATA"):
        load("far")


def test_two_loads_at_once_do_no_harm(tiny, server, cache):
    together = threading.Barrier(4)

    def work(_):
        together.wait()
        return load("tiny")

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            assert_right(found)
    assert [path.name for path in cache.iterdir()] == [tiny.file]
    server.files.clear()
    assert_right(load("tiny"))


def damaged(good):
    whole = good.read_bytes()
    yield "nothing", b""
    yield "half", whole[: len(whole) // 2]
    yield "other bytes", whole[:40] + bytes(20) + whole[60:]
    yield "no table", b"<html>"


@pytest.mark.parametrize("file", ["tiny.csv.gz", "tiny.npz"])
def test_a_damaged_cache_is_told_and_fetched_again(tiny, server, cache, file):
    register(replace(tiny, name="kept", file=file))
    load("kept")
    for count, (name, data) in enumerate(list(damaged(cache / file)), start=2):
        (cache / file).write_bytes(data)
        with pytest.warns(UserWarning, match=f"{file} cannot be used .*fetched again") as caught:
            assert_right(load("kept"))
        assert caught[0].filename == __file__, name
        assert len(server.asked) == count
        assert_right(load("kept"))  # silently, as warnings are errors
        assert len(server.asked) == count


def test_a_cache_of_another_content_is_fetched_again(tiny, cache):
    load(tiny.name)
    other = loading.table(FRAME, ["no", *TARGET[1:]])
    (cache / tiny.file).write_bytes(loading.packed(tiny.file, other))
    with pytest.warns(UserWarning, match="no: 21"):
        assert_right(load(tiny.name))


def test_without_a_place_to_keep_it_a_data_set_is_loaded_all_the_same(tiny, cache):
    cache.write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="OTPROP_CACHE"):
        assert_right(load(tiny.name))


# ---- folders


@pytest.fixture
def folder(tiny, tmp_path):
    given = tmp_path / "folder"
    given.mkdir()
    (given / tiny.file).write_bytes(loading.packed(tiny.file, loading.table(FRAME, TARGET)))
    return given


def test_a_folder_is_read_and_nothing_else(folder, server, cache, monkeypatch):
    assert_right(load("tiny", data=folder))
    assert_right(load("tiny", data=str(folder)))
    monkeypatch.setenv("OTPROP_DATA", str(folder))
    assert_right(load("tiny"))
    assert not server.asked
    assert not cache.exists()


def test_the_argument_goes_before_the_environment(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("OTPROP_DATA", str(tmp_path / "none"))
    assert_right(load("tiny", data=folder))


def test_a_folder_may_hold_more_columns(folder, tiny):
    more = FRAME.assign(text="x", number=range(50))[["text", "number", "height", "width"]]
    (folder / tiny.file).write_bytes(loading.packed(tiny.file, loading.table(more, TARGET)))
    assert_right(load("tiny", data=folder))


def test_a_folder_without_the_file_is_an_error(tiny, server, tmp_path):
    with pytest.raises(DatasetError, match=rf"{tmp_path} has no {tiny.file}.*OTPROP_DATA"):
        load("tiny", data=tmp_path)
    assert not server.asked


def test_a_folder_with_a_wrong_file_is_an_error(folder, tiny, server):
    path = folder / tiny.file
    path.write_bytes(loading.packed(tiny.file, loading.table(FRAME * 2, TARGET)))
    with pytest.raises(DatasetError, match=rf"{path} .*'tiny': the SHA-256.*Copy the file"):
        load("tiny", data=folder)
    path.write_bytes(b"")
    with pytest.raises(DatasetError, match="Copy the file"):
        load("tiny", data=folder)
    assert not server.asked


# ---- registration


def test_a_csv_file_is_one_short_entry(tmp_path, monkeypatch):
    FRAME.assign(target=TARGET).to_csv(tmp_path / "mine.csv", index=False)
    register(Entry(name="mine", sources=(tmp_path / "mine.csv",)))
    assert names()[-1] == "mine"
    assert title("mine") == "mine"
    found = load("mine")
    assert_right(found)
    assert found.description == "mine: 50 rows, 2 features, 2 classes (no: 20, yes: 30)."
    monkeypatch.setenv("OTPROP_DATA", str(tmp_path / "elsewhere"))  # which has only what it has
    assert_right(load("mine"))


def test_a_function_is_one_short_entry(cache):
    register(Entry(name="made", sources=(lambda: (FRAME.to_numpy(), TARGET.tolist()),)))
    found = load("made")
    np.testing.assert_array_equal(found.frame, FRAME)
    assert list(found.frame.columns) == ["0", "1"]
    np.testing.assert_array_equal(found.target, TARGET)
    assert not cache.exists()


def test_what_a_function_raises_is_told():
    def broken():
        raise ValueError("out of order")

    register(Entry(name="broken", sources=(broken, "nowhere.csv")))
    with pytest.raises(
        DatasetError, match=r"(?s)- broken: out of order.*- nowhere.csv: "
    ) as caught:
        load("broken")
    assert "OTPROP_DATA" not in str(caught.value)  # a folder would not help


def test_a_name_is_given_once():
    with pytest.raises(DatasetError, match="already a data set called 'iris'"):
        register(Entry(name="iris", sources=("mine.csv",)))


@pytest.mark.parametrize("sources", ["mine.csv", (), ["mine.csv"]])
def test_sources_are_a_tuple(sources):
    with pytest.raises(TypeError, match="tuple"):
        register(Entry(name="mine", sources=sources))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("irs", "'iris'"),
        ("IRIS", "'iris'"),
        ("Digits", "'optdigits'"),
        ("breast", "'wdbc'"),
        ("minst", "'mnist'"),
    ],
)
def test_an_unknown_name_is_told_what_may_be_meant(asked, meant):
    with pytest.raises(DatasetError, match=rf"no data set '{asked}'. Did you mean .*{meant}"):
        load(asked)


def test_an_unknown_name_is_told_all_names():
    with pytest.raises(DatasetError) as caught:
        find("zzz")
    assert str(caught.value) == f"There is no data set 'zzz'. There are: {', '.join(names())}."
