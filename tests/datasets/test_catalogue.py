"""The data sets of Table 1: what is said of them, their originals, and the real ones if there."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from otprop.datasets import Originals, checksum, fetch, find, load, names, title
from otprop.datasets.table import numeric, read, table
from tests.datasets import originals

# Rows, features and what Table 1 of the paper calls them.
TABLE = {
    "iris": (150, 4, "Iris"),
    "wine": (178, 13, "Wine"),
    "heart": (270, 13, "Heart"),
    "ionosphere": (351, 34, "Ionosphere"),
    "dermatology": (366, 33, "Dermatology"),
    "wdbc": (569, 30, "Breast"),
    "wdbc-leaky": (569, 31, "WDBC"),
    "isolet": (1560, 617, "Isolet"),
    "waveform": (5000, 21, "Waveform"),
    "optdigits": (5620, 64, "Digits"),
    "satimage": (6435, 36, "Statlog"),
    "mnist": (10_000, 784, "MNIST"),
    "mnist-70000": (70_000, 784, "MNIST (70,000)"),
}
FROM_UCI = tuple(originals.PUBLISHED)

OFFLINE = Path(os.environ.get("OTPROP_DATA") or Path(__file__).parents[3] / "shared" / "data")
offline = pytest.mark.skipif(
    not (OFFLINE / "iris.csv.gz").exists(),
    reason="needs a folder with the data sets, ../shared/data or OTPROP_DATA",
)


def test_the_data_sets_are_those_of_table_1_in_its_order():
    assert names() == tuple(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_an_entry_says_what_is_needed(name):
    count, features, called = TABLE[name]
    entry = find(name)
    assert title(name) == called
    assert len(entry.columns) == len(set(entry.columns)) == features
    assert sum(entry.counts.values()) == count
    assert len(entry.sha256) == 64
    assert entry.citation
    assert entry.doi.startswith("10.")
    assert entry.licence
    assert entry.dtype == ("float32" if name == "mnist-70000" else "float64")
    for source in entry.sources:
        if isinstance(source, Originals):
            assert all(url.startswith("https://") for url in source.urls)


def test_the_leak_is_named_for_what_it_is():
    assert "THE LAST FEATURE IS THE LABEL" in find("wdbc-leaky").notes
    assert "diagnosis" not in find("wdbc").columns


def invented(name):
    """Few rows in the form of a data set's offline file, with what the originals hold besides."""
    entry = find(name)
    random = np.random.default_rng(len(name))
    columns = [column for column in entry.columns if column != "diagnosis"]
    labels = list(entry.counts)
    many = 1560 if name == "isolet" else 40
    values = random.integers(-99, 999, (many, len(columns))) / 100
    frame = pd.DataFrame(values, columns=columns)
    if name == "dermatology":
        frame["age"] = np.where(np.arange(many) % 9, 50.0, np.nan)
    if name.startswith("wdbc"):
        frame.insert(0, "id", np.arange(many) + 842_302)
    return frame, np.array([labels[i % len(labels)] for i in range(many)])


def served(monkeypatch, entry, files, source=0):
    """Let a source's addresses have these contents, and no other address have any."""
    contents = dict(zip(entry.sources[source].urls, files, strict=True))
    monkeypatch.setattr(fetch, "download", lambda url: contents[url])


def made(entry, raw):
    prepared = raw if entry.prepare is None else entry.prepare(raw)
    return numeric(prepared, entry.columns, entry.dtype)


@pytest.mark.parametrize("name", FROM_UCI)
def test_originals_are_read_as_they_were_published(name, monkeypatch):
    entry = find(name)
    frame, target = invented(name)
    served(monkeypatch, entry, originals.PUBLISHED[name](frame, target))
    found = made(entry, entry.sources[0]())
    expected = made(entry, table(frame, target))
    pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
    np.testing.assert_array_equal(found.target, expected.target)


@pytest.mark.parametrize("name", [n for n in FROM_UCI if len(find(n).sources) > 1])
def test_openml_gives_the_same_as_the_originals(name, monkeypatch):
    entry = find(name)
    frame, target = invented(name)
    frame = frame.drop(columns="id", errors="ignore")
    theirs = {
        "heart": {1: "absent", 2: "present"},
        "wdbc": {"B": "1", "M": "2"},
        "wdbc-leaky": {"B": "1", "M": "2"},
    }.get(name, {})

    def fetch_openml(**_):
        other = frame.set_axis([f"V{i}" for i in range(frame.shape[1])], axis=1)
        labels = [theirs.get(label, str(label)) for label in target.tolist()]
        return other, pd.Series(pd.Categorical(labels))

    monkeypatch.setattr(fetch, "fetch_openml", fetch_openml)
    found = made(entry, entry.sources[1]())
    expected = made(entry, table(frame, target))
    pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
    np.testing.assert_array_equal(found.target, expected.target)


# ---- the real data sets


@offline
@pytest.mark.parametrize("name", TABLE)
def test_a_data_set_is_what_the_registry_says(name):
    found, entry = load(name, data=OFFLINE), find(name)
    assert found.frame.shape == TABLE[name][:2]
    assert tuple(found.frame.columns) == entry.columns
    assert set(found.frame.dtypes) == {np.dtype(entry.dtype)}
    assert np.isfinite(found.frame.to_numpy()).all()
    labels, counts = np.unique(found.target, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == entry.counts
    assert checksum(found.frame, found.target) == entry.sha256
    assert f"{TABLE[name][0]} rows" in found.description
    assert entry.citation in found.description


@offline
@pytest.mark.parametrize("name", FROM_UCI)
def test_a_downloaded_data_set_is_the_offline_one(name, monkeypatch):
    expected, entry = load(name, data=OFFLINE), find(name)
    raw = pd.read_csv(OFFLINE / entry.file, dtype=object)
    target = raw.pop("target").to_numpy()
    served(monkeypatch, entry, originals.PUBLISHED[name](raw, target))
    for found in (load(name), load(name)):  # downloaded, then kept
        pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
        np.testing.assert_array_equal(found.target, expected.target)


@offline
def test_the_leak_is_the_label():
    found = load("wdbc-leaky", data=OFFLINE)
    np.testing.assert_array_equal(found.frame["diagnosis"] == 1, found.target == "M")
    plain = load("wdbc", data=OFFLINE)
    pd.testing.assert_frame_equal(found.frame.drop(columns="diagnosis"), plain.frame)


@offline
def test_mnist_is_read_from_the_files_as_published(monkeypatch):
    entry = find("mnist")
    raw = read(OFFLINE / entry.file, entry.columns)
    images, labels = raw.frame.to_numpy(), raw.target.astype(np.uint8)
    files = originals.mnist(images, labels, 60_000)
    assert [hashlib.md5(file, usedforsecurity=False).hexdigest() for file in files] == [
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ]
    served(monkeypatch, entry, files, source=1)
    found = entry.sources[1]()
    np.testing.assert_array_equal(found.frame, images)
    np.testing.assert_array_equal(found.target, labels)
    test = load("mnist", data=OFFLINE)
    np.testing.assert_array_equal(test.frame, images[60_000:])
