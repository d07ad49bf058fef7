"""Tables: their labels, their sum, their order, their files."""

import hashlib
import struct

import numpy as np
import pandas as pd
import pytest

from otprop.datasets.table import by_value, checksum, numeric, packed, read, table

FRAME = pd.DataFrame({"u": [0.1, 0.2, 1e-300], "v": [3.0, -4.5, 1 / 3]})
LABELS = np.array(["b", "ä", "b"])


def test_the_sum_is_that_of_the_bytes_it_is_defined_by():
    values = struct.pack("<6d", 0.1, 3.0, 0.2, -4.5, 1e-300, 1 / 3)
    expected = hashlib.sha256(b"3 2\n" + values + "b\nä\nb\n".encode()).hexdigest()
    assert checksum(FRAME, LABELS) == expected


@pytest.mark.parametrize(
    ("frame", "target"),
    [
        (FRAME.iloc[::-1], LABELS),
        (FRAME[["v", "u"]], LABELS),
        (FRAME, np.array(["b", "b", "ä"])),
        (FRAME, np.array(["bä", "", "b"])),
        (FRAME.replace(0.1, np.nextafter(0.1, 1)), LABELS),
    ],
)
def test_the_sum_tells_what_differs(frame, target):
    assert checksum(frame, target) != checksum(FRAME, LABELS)


def test_the_sum_does_not_depend_on_how_a_table_is_held():
    same = pd.DataFrame(np.asfortranarray(FRAME.to_numpy()), columns=["other", "names"])
    assert checksum(same, LABELS.tolist()) == checksum(FRAME, LABELS)
    whole = pd.DataFrame(np.arange(12).reshape(4, 3))
    labels = [1, 2, 1, 2]
    for dtype in ("uint8", "int64", "float32", ">f8"):
        assert checksum(whole.astype(dtype), labels) == checksum(whole, labels)
    signs = pd.DataFrame([[0.0, np.nan]])
    other = pd.DataFrame([[-0.0, -np.nan]])
    assert checksum(signs, [1]) == checksum(other, [1])


def test_the_sum_of_many_rows_is_taken_in_blocks():
    values = np.random.default_rng(0).normal(size=(10_000, 2))
    labels = np.arange(10_000)
    text = "".join(f"{label}\n" for label in labels).encode()
    expected = hashlib.sha256(b"10000 2\n" + values.astype("<f8").tobytes() + text).hexdigest()
    assert checksum(pd.DataFrame(values), labels) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2], [1, 2]),
        (np.array([0, 255], np.uint8), [0, 255]),
        (["1.", "26."], [1, 26]),
        ([1.0, 26.0], [1, 26]),
        (["'1'", "'26'"], [1, 26]),
        (pd.Categorical(["7", "5"]), [7, 5]),
        (["M", " B"], ["M", "B"]),
        (["1", "B"], ["1", "B"]),
        ([1.5, 2.0], ["1.5", "2.0"]),
        ([True, False], ["True", "False"]),
        (pd.Series(["a", "b"], index=[7, 3]), ["a", "b"]),
    ],
)
def test_labels_are_whole_numbers_or_text(given, expected):
    target = table(np.zeros((2, 1)), given).target
    np.testing.assert_array_equal(target, np.array(expected))
    assert target.dtype == np.array(expected).dtype


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="1 rows have no label"):
        table(np.zeros((2, 1)), ["a", None])
    with pytest.raises(ValueError, match="3 labels for 2 rows"):
        table(np.zeros((2, 1)), [1, 2, 3])
    with pytest.raises(ValueError, match="no column 'w'"):
        numeric(table(FRAME, LABELS), ("u", "w"), "float64")


def test_numbers_come_in_the_columns_asked_for():
    given = table(FRAME.assign(text="x", w=pd.Categorical(["-0", "2", "3"])), LABELS)
    given.frame.index = [7, 5, 3]
    found = numeric(given, ("w", "u"), "float64").frame
    assert list(found.columns) == ["w", "u"]
    assert set(found.dtypes) == {np.dtype("float64")}
    np.testing.assert_array_equal(found, [[0, 0.1], [2, 0.2], [3, 1e-300]])
    assert not np.signbit(found.to_numpy()).any()
    pd.testing.assert_index_equal(found.index, pd.RangeIndex(3), exact=True)
    single = numeric(given, ("w",), "float32").frame
    assert set(single.dtypes) == {np.dtype("float32")}


@pytest.mark.parametrize("labels", [[2, 1, 2, 1, 1], list("babaa")])
def test_rows_in_any_order_have_one_order_by_value(labels):
    values = np.array([[1, 5, 0], [0, 7, 0], [1, 4, 9], [0, 7, -1], [0, 6, 3]])
    expected = values[[4, 3, 1, 2, 0]]
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(5)
        found = by_value(table(values[order], np.array(labels)[order]))
        np.testing.assert_array_equal(found.frame, expected)
        np.testing.assert_array_equal(found.target, sorted(labels))


@pytest.mark.parametrize("name", ["t.csv.gz", "t.npz"])
@pytest.mark.parametrize("labels", [LABELS, np.array([3, 1, 2])])
def test_a_file_holds_a_table_to_the_bit(tmp_path, name, labels):
    values = np.random.default_rng(0).normal(size=(200, 2)) * np.logspace(-300, 300, 200)[:, None]
    given = table(pd.DataFrame(values, columns=["a", "b,c"]), np.resize(labels, 200))
    (tmp_path / name).write_bytes(packed(name, given))
    found = read(tmp_path / name, ("a", "b,c"))
    pd.testing.assert_frame_equal(found.frame, given.frame, check_exact=True)
    np.testing.assert_array_equal(found.target, given.target)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.npz"])
def test_equal_tables_make_equal_files_at_any_time(name, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1e9)
    first = packed(name, table(FRAME, LABELS))
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert packed(name, table(FRAME.copy(), LABELS.tolist())) == first


def test_a_feature_called_target_is_not_lost():
    with pytest.raises(ValueError, match="target"):
        packed("t.csv.gz", table(FRAME.assign(target=1), LABELS))


def test_a_csv_file_without_labels_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no column 'target'"):
        read(tmp_path / "t.csv")
