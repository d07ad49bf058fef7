"""Scores of hidden labels, and when one candidate is surely better than another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.confidence import HeldOut
from otprop.selection import Selection, scored

LABELS = np.array([0, 1, 2, 2])
FOUND = np.array([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])


def outcome(right):
    """Return what was found of rows of class 0, of which some are right."""
    right = np.asarray(right, bool)
    return HeldOut(np.where(right[:, None], [0.6, 0.4], [0.4, 0.6]), np.zeros(len(right), int))


def test_scores_by_hand():
    found = HeldOut(FOUND, LABELS)
    np.testing.assert_array_equal(found.right, [True, False, True, False])
    assert found.accuracy == 0.5
    np.testing.assert_allclose(found.losses, [0.375, 0.5, 0.125, 2.0])
    line = scored({"rounds": "none"}, found)
    assert line.values == {"rounds": "none"}
    assert (line.accuracy, line.brier) == (0.5, pytest.approx(0.75))


def test_brier_is_proper():
    """On average the truth is not beaten by any other distribution."""
    truth, labels = np.array([0.6, 0.3, 0.1]), np.arange(3)

    def expected(said):
        return truth @ HeldOut(np.tile(said, (3, 1)), labels).losses

    others = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    assert all(expected(said) > expected(truth) for said in others)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_surely_better_is_by_more_than_a_standard_error_of_the_paired_difference(pairs):
    one, other = map(outcome, zip(*pairs, strict=True))
    gain = [int(a) - int(b) for a, b in pairs]
    mean = sum(gain) / len(gain)
    error = (sum((g - mean) ** 2 for g in gain) / (len(gain) - 1) / len(gain)) ** 0.5
    # Where both are the same but for rounding, neither is surely better.
    if abs(mean - error) > 1e-12:
        assert one.surely_more_often_right(other) == (mean > error)
    assert not (one.surely_more_often_right(other) and other.surely_more_often_right(one))
    assert not one.surely_more_often_right(one)


def test_of_a_single_row_nothing_is_sure():
    assert not outcome([True]).surely_more_often_right(outcome([False]))


def test_a_selection_is_extended_without_change():
    lines = [scored({"a": 1}, outcome([True])), scored({"a": 2}, outcome([False]))]
    first = Selection({"a": 1}, "why", lines[:1])
    longer = first.extended({"a": 2}, lines[1:])
    assert longer == Selection({"a": 2}, "why", lines)
    assert first == Selection({"a": 1}, "why", lines[:1])
