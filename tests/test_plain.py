"""Values that are written as JSON and come back as they were, or are refused."""

import json
import math
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.plain import decoded, encoded

FINITE = st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.one_of(st.booleans(), st.integers(), FINITE, st.text())
VALUES = st.recursive(
    st.one_of(st.none(), KEYS, st.sampled_from([math.inf, -math.inf])),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(KEYS, inner)),
    max_leaves=10,
)


def again(value):
    return decoded(json.loads(json.dumps(encoded(value), allow_nan=False)))


def typed(value):
    """Return a value with the types of all that is in it."""
    if isinstance(value, list):
        return [typed(entry) for entry in value]
    if isinstance(value, dict):
        return [(typed(key), typed(entry)) for key, entry in value.items()]
    return type(value), value


@given(VALUES)
def test_a_value_comes_back_as_it_was(value):
    assert typed(again(value)) == typed(value)


def test_a_number_that_is_none_comes_back():
    assert math.isnan(again(math.nan))


def test_a_mapping_that_looks_like_an_encoding_comes_back():
    for value in ({"float": "inf"}, {"mapping": []}, {"mapping": [["a", 1]]}, {}):
        assert again(value) == value


def test_zero_keeps_its_sign():
    assert math.copysign(1.0, again(-0.0)) == -1.0


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.1), 0.1),
        (np.float64(np.inf), math.inf),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),  # noqa: FBT003
        (np.str_("word"), "word"),
        ([np.int8(1)], [1]),
        ({np.int64(2): np.float32(0.25)}, {2: 0.25}),
        (MappingProxyType({"a": 1}), {"a": 1}),
    ],
)
def test_scalars_of_numpy_come_back_as_those_of_python(value, plain):
    assert typed(again(value)) == typed(plain)


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {1, 2},
        1j,
        b"bytes",
        Ellipsis,
        np.zeros(2),
        np.datetime64("2020-01-01"),
        np.longdouble(1),
        np.complex64(1),
        [[Ellipsis]],
        {"a": Ellipsis},
        {None: 1},
        {(1, 2): 1},
        {math.inf: 1},
        {math.nan: 1},
        {np.datetime64("2020-01-01"): 1},
    ],
    ids=str,
)
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError, match="Cannot save"):
        encoded(value)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "[-Infinity]",
        "{}",
        '{"float": "Infinity"}',
        '{"float": "1.0"}',
        '{"float": 1.0}',
        '{"float": ["inf"]}',
        '{"float": "inf", "mapping": []}',
        '{"integer": "1"}',
        '{"a": 1}',
        '{"mapping": {}}',
        '{"mapping": "ab"}',
        '{"mapping": null}',
        '{"mapping": ["ab"]}',
        '{"mapping": [[]]}',
        '{"mapping": [["a"]]}',
        '{"mapping": [["a", 1, 2]]}',
        '{"mapping": [[null, 1]]}',
        '{"mapping": [[NaN, 1]]}',
        '{"mapping": [[["a"], 1]]}',
        '{"mapping": [[{"float": "inf"}, 1]]}',
        '{"mapping": [["a", 1], ["a", 2]]}',
        '{"mapping": [[1, 1], [true, 2]]}',
        '{"mapping": [["a", {}]]}',
        "[{}]",
    ],
)
def test_what_encodes_nothing_is_refused(text):
    with pytest.raises(ValueError, match=r"stands for no value|not a key|there twice"):
        decoded(json.loads(text))


@pytest.mark.parametrize("value", [(1, 2), object(), np.float64(np.inf)])
def test_what_no_parser_of_json_returns_is_refused(value):
    with pytest.raises(ValueError, match="stands for no value"):
        decoded(value)
