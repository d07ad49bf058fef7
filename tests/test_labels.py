"""Labels in: every way in which people write that a row has none."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import KFold, cross_val_score

from otprop import OTPropagation
from otprop.labels import encode, given_labels
from tests import tables

CODES = [1, -1, 0, 1, -1]  # of the columns below


def as_(dtype):
    return lambda values: pd.Series(values, dtype=dtype)


NUMBERS = [7, None, 2, 7, None]
WORDS = ["dog", None, "ant", "dog", None]
TRUTHS = [True, None, False, True, None]
COLUMNS = {
    "list of ints": [7, -1, 2, 7, -1],
    "list with None": NUMBERS,
    "tuple": (7, -1, 2, 7, -1),
    "int array": np.array([7, -1, 2, 7, -1]),
    "int8 array": np.array([7, -1, 2, 7, -1], np.int8),
    "float array with NaN": np.array([7, np.nan, 2, 7, np.nan]),
    "float32 array with NaN": np.array([7, np.nan, 2, 7, np.nan], np.float32),
    "float array with -1": np.array([7.0, -1.0, 2.0, 7.0, -1.0]),
    "object ints": np.array(NUMBERS, object),
    "object ints with -1": np.array([7, -1, 2, 7, -1], object),
    "ints and their floats": np.array([7, None, 2.0, 7, np.nan], object),
    "int Series": pd.Series([7, -1, 2, 7, -1]),
    "Int64": as_("Int64")(NUMBERS),
    "Int64 with -1": as_("Int64")([7, -1, 2, 7, -1]),
    "Float64": as_("Float64")(NUMBERS),
    "category of ints": pd.Series(pd.Categorical([7, None, 2, 7, None])),
    "polars ints": pl.Series(NUMBERS),
    "words": np.array(WORDS, object),
    "words with NaN": np.array(["dog", np.nan, "ant", "dog", float("nan")], object),
    "words with NA": np.array(["dog", pd.NA, "ant", "dog", None], object),
    "list of words": WORDS,
    "pandas string": as_("string")(WORDS),
    "pandas object": as_("object")(WORDS),
    "category": as_("category")(WORDS),
    "polars words": pl.Series(WORDS),
    "polars categories": pl.Series(WORDS, dtype=pl.Categorical),
    "truths": TRUTHS,
    "pandas boolean": as_("boolean")(TRUTHS),
    "polars truths": pl.Series(TRUTHS),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_way_to_write_labels_is_read(name):
    classes, codes = encode(COLUMNS[name])
    np.testing.assert_array_equal(codes, CODES)
    first = COLUMNS[name][0]
    assert list(classes) == sorted({first, COLUMNS[name][2]})
    assert classes.dtype.kind == {str: "U", bool: "b"}.get(type(first), classes.dtype.kind)
    assert classes.dtype.kind in "iufbU"


@pytest.mark.parametrize(
    "name", ["list with None", "Int64", "object ints", "polars ints", "int8 array"]
)
def test_whole_numbers_stay_whole_numbers(name):
    assert encode(COLUMNS[name])[0].dtype.kind == "i"


def test_large_whole_numbers_keep_their_digits():
    large = [2**53 + 1, None, 2**53]
    for column in (large, pd.Series(large, dtype="Int64"), pl.Series(large)):
        assert encode(column)[0].tolist() == [2**53, 2**53 + 1]


def test_classes_that_look_like_no_label_but_are_one():
    classes, codes = encode(np.array(["none", "", "-2", "Nan"]))
    assert classes.tolist() == ["", "-2", "Nan", "none"]
    np.testing.assert_array_equal(codes, [3, 0, 1, 2])
    classes, codes = encode(np.array([False, True]))  # False is not 'no label'
    np.testing.assert_array_equal(codes, [0, 1])
    classes, codes = encode(np.array([0, 1, -2]))
    assert classes.tolist() == [-2, 0, 1]


# NumPy and pandas turn the markers of rows without label into strings.
TEXTS_OF_MARKERS = {
    "an array with -1": (np.array(["a", "b", -1]), "-1"),
    "an array with NaN": (np.array(["a", "b", np.nan]), "nan"),
    "None as text": (np.array(["a", "b", None]).astype(str), "None"),
    "NaN as text": (np.array(["a", "b", np.nan], object).astype(str), "nan"),
    "NA as text": (np.array(["a", "b", pd.NA], object).astype(str), "<NA>"),
    "numbers as text": (np.array([1, 2, -1]).astype(str), "-1"),
    "as a file has it": (["a", "b", "NaN"], "NaN"),
    "a Series": (pd.Series(["a", "b", "-1"]), "-1"),
    "categories": (pd.Series(["a", "b", "-1"], dtype="category"), "-1"),
    "polars": (pl.Series(["a", "b", "-1"]), "-1"),
}


@pytest.mark.parametrize("name", TEXTS_OF_MARKERS)
@pytest.mark.parametrize("read", [encode, given_labels])
def test_a_marker_that_became_a_string_is_no_class(name, read):
    y, text = TEXTS_OF_MARKERS[name]
    with pytest.raises(ValueError, match=rf"the string '{text}'.*None marks rows.*dtype=object"):
        read(y)


def test_unsigned_numbers_have_no_minus_one():
    classes, codes = encode(np.array([255, 0], np.uint8))
    assert classes.tolist() == [0, 255]
    assert (codes >= 0).all()


def test_a_column_of_nothing_has_no_classes():
    for column in ([-1, -1], [None, None], np.array([np.nan, np.nan]), pd.Series([pd.NA, None])):
        classes, codes = encode(column)
        assert len(classes) == 0
        np.testing.assert_array_equal(codes, [-1, -1])


@pytest.mark.parametrize("name", COLUMNS)
def test_given_labels_are_those_that_are_encoded(name):
    known, labels = given_labels(COLUMNS[name])
    classes, codes = encode(COLUMNS[name])
    np.testing.assert_array_equal(known, codes >= 0)
    np.testing.assert_array_equal(labels, classes[codes[known]])


def test_y_is_not_changed():
    y = np.array([3, -1, 3])
    encode(y)
    given_labels(y)
    np.testing.assert_array_equal(y, [3, -1, 3])


@given(y=st.lists(st.integers(-3, 5), min_size=1))
def test_codes_and_classes_give_the_labels_back(y):
    classes, codes = encode(y)
    assert (np.diff(classes) > 0).all()
    assert [int(classes[c]) if c >= 0 else -1 for c in codes] == y


@pytest.mark.parametrize("wrap", [np.array, pd.DataFrame, list])
def test_a_column_vector_is_read_with_a_warning(wrap):
    with pytest.warns(DataConversionWarning, match=r"Pass y\.ravel\(\)"):
        _, codes = encode(wrap([[7], [-1], [2]]))
    np.testing.assert_array_equal(codes, [1, -1, 0])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.zeros((3, 2)), r"1d array.*\(3, 2\)"),
        (np.zeros((3, 1, 1)), "1d array"),
        (["a", 1], r"mixes labels of different kinds \(integer, string\).*None"),
        (["a", "b", -1], "None for rows without label: -1 marks them among numbers only"),
        ([True, 1, None], r"mixes labels of different kinds \(boolean, integer\)"),
        ([0.5, 1.0], "continuous.*cut it into classes"),
        (np.array([0.5, 1.0]), "continuous"),
        ([1.5, 2, None], "continuous"),
        (np.array([1.0, np.inf]), "infinity"),
        (np.array([1j, 1]), "Complex data not supported"),
        (np.array([b"a", b"b"]), r"Unknown label type: \|S1"),
        (np.array(["2020-01-01"], "M8[D]"), r"Unknown label type: datetime64\[D\]"),
        ([{"a": 1}, {"b": 2}], "Unknown label type: dict"),
        ([2**70, 1], "Unknown label type"),
    ],
)
def test_what_cannot_be_labels_says_so(y, message):
    with pytest.raises(ValueError, match=message):
        encode(y)


# As the README says.
X, _, NUMBERED = tables.blobs(60, 3, 2, seed=0, spread=0.1, known=0.5)
NAMED = tables.rename(NUMBERED, ["cow", "ant"])
NOT_STRATIFIED = KFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize(
    ("y", "cv"),
    [
        (NUMBERED, None),
        (NUMBERED, NOT_STRATIFIED),
        (NAMED, NOT_STRATIFIED),
        (NAMED.tolist(), NOT_STRATIFIED),
        (pd.factorize(NAMED)[0], None),
        (pd.factorize(pd.Series(NAMED))[0], None),
    ],
)
def test_labels_that_can_be_cross_validated(y, cv):
    scores = cross_val_score(OTPropagation.paper(0.01), X, y, cv=cv, error_score="raise")
    assert scores.mean() > 0.8


@pytest.mark.parametrize("y", [NAMED, np.where(NUMBERED < 0, np.nan, NUMBERED)])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_labels_that_the_stratified_folds_refuse(y):
    with pytest.raises((TypeError, ValueError)):
        cross_val_score(OTPropagation.paper(0.01), X, y, error_score="raise")
