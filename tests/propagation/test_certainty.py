"""Eq. 16 to 18 and 21: how certain a distribution is, and who joins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.propagation import Threshold, certainty, threshold
from tests import strategies, tables


@st.composite
def distributions(draw):
    classes = draw(st.integers(2, 6))
    rows = draw(st.lists(strategies.weights(classes, 0.0625), min_size=1, max_size=5))
    return np.array(rows)


@given(U=distributions())
def test_certainty_is_one_less_the_entropy_in_the_base_of_the_classes(U):
    np.testing.assert_allclose(certainty(U), tables.certainty(U), rtol=0, atol=1e-14)


@given(U=distributions(), order=st.randoms())
def test_the_order_of_classes_does_not_matter_to_certainty(U, order):
    columns = list(range(U.shape[1]))
    order.shuffle(columns)
    np.testing.assert_allclose(certainty(U[:, columns]), certainty(U), rtol=0, atol=1e-14)


@pytest.mark.parametrize("classes", [2, 3, 7, 10])
def test_one_class_is_certain_and_all_alike_are_not(classes):
    hard, even = np.eye(classes)[:1], np.full((1, classes), 1 / classes)
    assert certainty(hard) == 1.0
    assert certainty(even) == pytest.approx(0.0, abs=1e-15)
    assert certainty(even) >= 0.0


def test_rounding_never_leads_out_of_the_unit_interval():
    too_much = np.array([[0.5 + 1e-15, 0.5 + 1e-15], [1.0 + 1e-15, 0.0]])
    scores = certainty(too_much)
    assert (scores >= 0).all()
    assert (scores <= 1).all()


def test_a_single_class_is_certain():
    np.testing.assert_array_equal(certainty(np.ones((3, 1))), 1.0)


def test_a_row_is_as_certain_among_others_as_alone():
    U = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    alone = [certainty(U[j : j + 1])[0] for j in range(20)]
    np.testing.assert_array_equal(certainty(U), alone)


def test_those_above_alpha_join_and_those_at_alpha_do_not():
    bound = threshold(np.array([0.2, 0.5, 0.7]), 0.5, "lowest-alpha")
    assert bound == Threshold(0.5, lowered=False)
    np.testing.assert_array_equal(bound.accepts(np.array([0.2, 0.5, 0.7])), [False, False, True])


def test_alpha_falls_to_the_greatest_certainty_and_ties_go_together():
    scores = np.array([0.2, 0.4, 0.1, 0.4])
    bound = threshold(scores, 0.5, "lowest-alpha")
    assert bound == Threshold(0.4, lowered=True)
    np.testing.assert_array_equal(bound.accepts(scores), [False, True, False, True])


def test_a_tie_is_exact():
    top = 0.4
    scores = np.array([np.nextafter(top, 0), top])
    np.testing.assert_array_equal(threshold(scores, 0.5, 0.1).accepts(scores), [False, True])


def test_certainty_equal_to_alpha_is_a_stall():
    assert threshold(np.array([1.0, 1.0]), 1.0, "lowest-alpha") == Threshold(1.0, lowered=True)


@given(
    scores=st.lists(st.floats(0, 0.9), min_size=1, max_size=20).map(np.array),
    fraction=st.floats(0, 1, exclude_min=True),
)
def test_a_fraction_of_the_most_certain_joins_in_a_stall(scores, fraction):
    bound = threshold(scores, 0.9, fraction)
    accepted = bound.accepts(scores)
    assert bound.lowered
    assert accepted.sum() >= math.ceil(fraction * len(scores))
    assert scores[accepted].min() == bound.alpha
    # no more than were asked for, but for ties
    assert (scores > bound.alpha).sum() < math.ceil(fraction * len(scores))


def test_a_fraction_changes_nothing_without_a_stall():
    bound = threshold(np.array([0.1, 0.6, 0.2]), 0.5, 1.0)
    assert bound == Threshold(0.5, lowered=False)
