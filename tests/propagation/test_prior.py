"""What a prior leaves to the open rows: laws, and the cases that can be told by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otprop.propagation import Prior
from otprop.propagation.prior import Bounds, between, remaining

TOLERANCES = st.one_of(
    st.sampled_from([0.0, 1.0, 1e308, np.inf]), st.floats(0.0, 3.0, allow_subnormal=False)
)


@st.composite
def priors(draw, tolerances=TOLERANCES):
    """Draw parts in whole numbers, some 0, with a tolerance; rows decided by class; open rows."""
    classes = draw(st.integers(1, 5))
    shares = draw(st.lists(st.integers(0, 9), min_size=classes, max_size=classes))
    assume(sum(shares) > 0)
    counts = draw(st.lists(st.integers(0, 20), min_size=classes, max_size=classes))
    prior = Prior(np.array(shares) / sum(shares), draw(tolerances))
    return prior, shares, np.array(counts), draw(st.integers(1, 40))


def exact_totals(shares, counts, rows):
    """What is due to each class at tolerance 0, in fractions; what is over-decided is cut off."""
    due = [
        max(Fraction(0), Fraction(s * rows, sum(shares)) - int(c))
        for s, c in zip(shares, counts, strict=True)
    ]
    return np.array([float(d / sum(due)) for d in due])


def assert_leaves_a_choice(bounds):
    least, most = bounds
    assert (least >= 0).all()
    assert (least <= most).all()
    assert (most <= 1).all()
    assert least.sum() <= 1 + 1e-12
    assert most.sum() >= 1 - 1e-12


@given(priors())
def test_bounds_always_leave_a_choice_of_totals(case):
    prior, _, counts, opened = case
    assert_leaves_a_choice(remaining(prior, counts, int(counts.sum()) + opened))


@given(priors(tolerances=st.just(0.0)))
def test_without_tolerance_totals_are_what_is_due(case):
    prior, shares, counts, opened = case
    rows = int(counts.sum()) + opened
    least, most = remaining(prior, counts, rows)
    np.testing.assert_array_equal(least, most)
    np.testing.assert_allclose(least, exact_totals(shares, counts, rows), atol=1e-12)


@given(priors(tolerances=st.just(0.0)))
def test_met_totals_bring_classes_that_are_not_exhausted_to_their_part(case):
    prior, _, counts, opened = case
    rows = int(counts.sum()) + opened
    assume((counts <= prior.parts * rows).all())
    least, _ = remaining(prior, counts, rows)
    np.testing.assert_allclose(counts + least * opened, prior.parts * rows, atol=1e-9)


@given(priors(tolerances=st.floats(0.0, 0.9)))
def test_before_any_row_is_decided_bounds_are_the_prior_give_or_take_the_tolerance(case):
    prior, _, counts, opened = case
    assume(prior.parts.max() < 1)  # else there is one choice only
    least, most = remaining(prior, np.zeros_like(counts), opened)
    np.testing.assert_allclose(least, prior.parts * (1 - prior.tolerance), atol=1e-12)
    np.testing.assert_allclose(
        most, np.minimum(prior.parts * (1 + prior.tolerance), 1.0), atol=1e-12
    )


@given(priors(tolerances=st.just(np.inf)))
def test_infinite_tolerance_asks_nothing_even_of_classes_of_part_zero(case):
    prior, _, counts, opened = case
    least, most = remaining(prior, counts, int(counts.sum()) + opened)
    np.testing.assert_array_equal(least, 0.0)
    np.testing.assert_array_equal(most, 1.0)


@given(priors(), st.randoms(use_true_random=False))
def test_the_order_of_classes_does_not_matter(case, random):
    prior, _, counts, opened = case
    order = random.sample(range(len(counts)), len(counts))
    rows = int(counts.sum()) + opened
    mixed = remaining(Prior(prior.parts[order], prior.tolerance), counts[order], rows)
    for one, other in zip(mixed, remaining(prior, counts, rows), strict=True):
        np.testing.assert_allclose(one, other[order], atol=1e-12)


def test_a_class_that_had_its_share_takes_nothing_more_and_the_others_share_the_rest():
    # Of 20 rows 10, 6 and 4 are due; 12, 3 and 2 are decided: 0, 3 and 2 are missing for 3 rows.
    least, most = remaining(Prior(np.array([0.5, 0.3, 0.2]), 0.0), np.array([12, 3, 2]), 20)
    np.testing.assert_allclose(least, [0.0, 0.6, 0.4])
    np.testing.assert_allclose(most, [0.0, 0.6, 0.4])


def test_bounds_by_hand_where_none_is_cut_off():
    # 10 rows, 2 decided, 8 open: 5 of each due, give or take 1.
    least, most = remaining(Prior(np.array([0.5, 0.5]), 0.2), np.array([2, 0]), 10)
    np.testing.assert_allclose(least, [2 / 8, 4 / 8])
    np.testing.assert_allclose(most, [4 / 8, 6 / 8])


def test_what_must_be_given_at_least_is_scaled_down_where_it_is_too_much():
    # At least 4.5 of 10 rows each, and all that class 0 has above it is missing for class 1.
    least, most = remaining(Prior(np.array([0.5, 0.5]), 0.1), np.array([7, 0]), 10)
    np.testing.assert_array_equal([least, most], [[0, 1], [0, 1]])


@given(priors(), st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_widened_bounds_hold_what_was_found_and_no_more_than_they_must(case, found):
    prior, _, counts, opened = case
    labels = np.array(found) % len(counts)
    bounds = remaining(prior, counts, int(counts.sum()) + opened)
    wide = between(bounds, labels)
    assert_leaves_a_choice(wide)
    parts = np.array([(labels == k).mean() for k in range(len(counts))])
    assert ((wide.least == bounds.least) | (wide.least == parts)).all()
    assert ((wide.most == bounds.most) | (wide.most == parts)).all()
    assert (wide.least <= np.minimum(bounds.least, parts)).all()
    assert (wide.most >= np.maximum(bounds.most, parts)).all()


@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [1, 0, 0, 0]])
def test_what_was_found_within_bounds_does_not_widen_them(labels):
    bounds = Bounds(np.array([0.5, 0.25]), np.array([0.75, 0.5]))
    wide = between(bounds, np.array(labels))
    np.testing.assert_array_equal(wide.least, bounds.least)
    np.testing.assert_array_equal(wide.most, bounds.most)
