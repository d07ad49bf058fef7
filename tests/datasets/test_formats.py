"""The readers of published formats, on files written here."""

import gzip
import shutil
import subprocess
import zlib

import numpy as np
import pandas as pd
import pytest

from otprop.datasets.formats import delimited, idx, unpacked
from tests.datasets import originals

RANDOM = np.random.default_rng(0)
TEXTS = {
    "nothing": b"",
    "a byte": b"a",
    "a word within itself": b"a" * 1000,
    "numbers": ",".join(map(str, RANDOM.integers(0, 99, 20_000))).encode(),
    "noise": RANDOM.bytes(30_000),
}
PACKINGS = {
    "default": {},
    "without clearing": {"clears": False},
    "a full dictionary": {"longest": 12},
    "cleared often": {"clear_after": 300},
    "cleared at a width's end": {"clear_after": 256},
}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_compress_packs_is_unpacked(text, packing):
    assert unpacked(originals.compress(TEXTS[text], **PACKINGS[packing])) == TEXTS[text]


@pytest.mark.skipif(shutil.which("gzip") is None, reason="no gzip to compare with")
@pytest.mark.parametrize("packing", PACKINGS)
def test_gzip_agrees_on_what_compress_packs(packing):
    data = originals.compress(TEXTS["numbers"], **PACKINGS[packing])
    found = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)  # noqa: S607
    assert found.stdout == TEXTS["numbers"]


def test_damaged_codes_are_refused():
    with pytest.raises(ValueError, match="no meaning"):
        unpacked(b"\x1f\x9d\x90" + b"\xff" * 9)
    with pytest.raises(ValueError, match="no meaning"):  # 257 before there is a word to repeat
        unpacked(b"\x1f\x9d\x90" + (257).to_bytes(2, "little"))


def test_gzip_is_unpacked_and_plain_files_stay():
    assert unpacked(gzip.compress(b"1,2\n")) == b"1,2\n"
    assert unpacked(b"1,2\n") == b"1,2\n"
    with pytest.raises((EOFError, zlib.error)):
        unpacked(gzip.compress(bytes(1000))[:-12])


FRAME = pd.DataFrame({"u": [0.1, 2.0, 1e22], "v": [1.0, 0.3, -7.125]})
LABELS = np.array(["x", "y", "x"])


@pytest.mark.parametrize("separator", [",", " "])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_lines_have_the_label_at_any_place(at, separator):
    text = originals.lines(FRAME, LABELS, at=at, separator=separator)
    how = {"separator": r"\s+"} if separator == " " else {}
    found = delimited([text], ("u", "v"), target=at, **how)
    pd.testing.assert_frame_equal(found.frame, FRAME, check_exact=True)
    np.testing.assert_array_equal(found.target, LABELS)


def test_lines_come_in_parts_of_which_some_rows_and_columns_are_left_out():
    text = b"7,1,5,a\n?,2,5,b\n\n"
    found = delimited([text, b"9,3,5,c\n9,4,5,d\n"], ("only",), without=(0, 2), rows=3)
    assert found.frame["only"].tolist() == [1, 2, 3]
    assert found.target.tolist() == ["a", "b", "c"]


def test_lines_of_another_width_are_refused():
    with pytest.raises(ValueError, match="Length mismatch"):
        delimited([b"1,2,3,a\n"], ("u", "v"))


def test_numbers_are_read_to_the_nearest_bit():
    values = RANDOM.random(2000)
    text = "".join(f"{value!r},a\n" for value in values.tolist()).encode()
    np.testing.assert_array_equal(delimited([text], ("u",)).frame["u"], values)


def test_images_and_labels_are_joined():
    images = RANDOM.integers(0, 256, (5, 28, 28), np.uint8)
    labels = np.array([3, 1, 4, 1, 5], np.uint8)
    names = [str(i) for i in range(784)]
    found = idx(originals.mnist(images, labels, 3), names)
    np.testing.assert_array_equal(found.frame, images.reshape(5, 784))
    assert list(found.frame.columns) == names
    assert found.target.tolist() == [3, 1, 4, 1, 5]


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x00\x00\x0d\x01\x00\x00\x00\x00"])
def test_what_is_no_idx_file_is_refused(data):
    with pytest.raises(ValueError, match="not an idx file"):
        idx([data, data], ("a",))


def test_a_short_idx_file_is_refused():
    short = originals.idx(np.zeros((3, 4), np.uint8))[:-1]
    with pytest.raises(ValueError, match="reshape"):
        idx([short, short], ("a",))
