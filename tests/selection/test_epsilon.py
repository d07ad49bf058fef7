"""epsilon='auto': chosen by the labelled rows alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop import OTPropagation
from otprop.geometry import Euclidean
from otprop.selection.epsilon import (
    Labelled,
    View,
    choose_epsilon,
    held_out_votes,
    leave_one_out,
    left_out_at,
)
from otprop.transport import Workers
from tests import oracles, tables


def chosen(X, y, alpha=0.9, **parameters):
    return OTPropagation.paper(alpha=alpha, stall=1.0, tol=1e-2, **parameters).fit(X, y).epsilon_


def labelled_geometry(X, y):
    geometry, given = Euclidean(X, X), np.flatnonzero(y >= 0)
    geometry.add_sources(given)
    return geometry, Labelled(given, y[given], int(y.max()) + 1)


def nearest(X, y):
    cost = tables.squared(X[y >= 0])
    np.fill_diagonal(cost, np.inf)
    return np.median(cost.min(axis=1))


@given(table=tables.generic(), seed=st.integers(0, 99))
def test_unlabelled_rows_have_no_say(table, seed):
    X, y = table
    other = X.copy()
    other[y < 0] = np.random.default_rng(seed).normal(size=other[y < 0].shape)
    counts = np.bincount(y[y >= 0])
    if counts.max() > 1:
        assert chosen(other, y) == chosen(X, y)


def test_the_same_table_gives_the_same_epsilon():
    X, _, y = tables.real("wine")
    assert chosen(X, y) == chosen(X, y) == chosen(X, y, n_jobs=2)


@pytest.mark.parametrize("power", [-12, -1, 3, 20])
def test_epsilon_follows_the_unit_of_the_columns(power):
    X, _, y = tables.real("wine")
    assert chosen(X * 2.0**power, y) == chosen(X, y) * 4.0**power


def test_epsilon_follows_any_unit_and_no_shift():
    X, _, y = tables.real("iris")
    assert chosen(3.7 * X, y) == pytest.approx(3.7**2 * chosen(X, y))
    assert chosen(X + 5.0, y) == pytest.approx(chosen(X, y))


@given(order=st.randoms(use_true_random=False), seed=st.integers(0, 20))
def test_the_order_of_rows_and_the_names_of_classes_have_no_say(order, seed):
    X, _, y = tables.blobs(50, 2, 3, seed=seed, known=0.5)
    rows = list(range(50))
    order.shuffle(rows)
    epsilon = chosen(X, y)
    assert chosen(X[rows], y[rows]) == pytest.approx(epsilon)
    assert chosen(X, tables.rename(y, ["c", "a", "b"])) == pytest.approx(epsilon)


def test_it_is_a_power_of_two_times_the_cost_of_the_nearest_label():
    X, _, y = tables.real("iris")
    power = np.log2(chosen(X, y) / nearest(X, y))
    assert power == pytest.approx(round(power), abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
def test_rows_are_judged_by_the_others_vote(alpha):
    """Gain and Brier's score of every candidate, over a plain softmax."""
    X, _, y = tables.blobs(40, 2, 3, seed=4, known=0.6)
    geometry, labelled = labelled_geometry(X, y)
    judged, candidates = np.arange(len(labelled.rows))[::2], np.array([10.0, 0.5, 0.01])
    with Workers(1) as workers:
        found = held_out_votes(geometry, labelled, judged, candidates, workers)
    gain, loss = leave_one_out(found, labelled.labels[judged], alpha)
    cost = tables.squared(X[y >= 0])
    np.fill_diagonal(cost, np.inf)
    for column, epsilon in enumerate(candidates):
        shares = oracles.shares(cost, np.zeros(len(cost)), epsilon)
        votes = tables.by_class(shares, labelled.labels, range(3))[judged]
        np.testing.assert_allclose(found[:, column], votes, atol=1e-12)
        own = labelled.labels[judged]
        right = np.where(votes.argmax(axis=1) == own, 1.0, -0.5)
        expected = np.where(tables.certainty(votes) > alpha, right, 0.0)
        np.testing.assert_allclose(gain[:, column], expected)
        brier = ((votes - np.eye(3)[own]) ** 2).sum(axis=1)
        np.testing.assert_allclose(loss[:, column], brier, atol=1e-12)


@pytest.mark.parametrize("name", tables.LOADERS)
def test_the_choice_labels_real_data_well(name):
    X, true, y = tables.real(name)
    model = OTPropagation.paper(alpha=0.5).fit(X, y)
    assert model.score(X[y < 0], true[y < 0]) > 0.88


def test_a_class_with_a_single_label_is_left_out_of_the_choice():
    X, _, y = tables.blobs(60, 2, 2, seed=0, known=0.5)
    single = np.append(y, 2)
    near, far = np.vstack([X, [[9.0, 9.0]]]), np.vstack([X, [[90.0, 90.0]]])
    epsilon = chosen(near, single)
    assert epsilon > 0
    assert np.log2(chosen(far, single) / epsilon) == pytest.approx(0)


def test_with_a_single_label_in_each_class_part_of_the_nearest_cost_is_taken_with_a_warning():
    X = np.array([[0.0], [0.3], [2.0]])
    with pytest.warns(UserWarning, match="nothing to choose by.*Label more rows or give epsilon"):
        assert chosen(X, [0, -1, 1]) == 4.0 / 16


def test_rows_that_are_the_same_do_not_make_it_zero():
    X, _, y = tables.blobs(40, 2, 2, seed=1, known=0.5)
    twice = np.vstack([X, X])
    assert chosen(twice, np.append(y, y)) > 0
    assert chosen(np.zeros((8, 2)), [0, 0, 1, 1, -1, -1, -1, -1]) > 0


def test_labels_out_of_reach_of_each_other_are_uncertain_but_no_error():
    cost = np.full((6, 6), np.inf)
    cost[np.ix_([0, 1, 4, 5], [0, 1, 4, 5])] = 1.0
    cost[2, 4] = cost[4, 2] = cost[3, 5] = cost[5, 3] = 1.0
    model = OTPropagation.paper(geometry="precomputed", tol=1e-2)
    assert model.fit(cost, [0, 1, 0, 1, -1, -1]).epsilon_ > 0


def test_threads_and_blocks_have_no_say():
    X, _, y = tables.real("digits")
    geometry, labelled = labelled_geometry(X, y)
    with Workers(1) as one, Workers(3) as three:
        alone = choose_epsilon(geometry, labelled, 0.9, one)
        shared = choose_epsilon(geometry, labelled, 0.9, three)
    assert shared.epsilon == alone.epsilon
    np.testing.assert_array_equal(shared.held_out.distributions, alone.held_out.distributions)


def test_what_rows_got_at_the_chosen_epsilon_is_told():
    X, _, y = tables.blobs(60, 2, 2, seed=0, known=0.5)
    geometry, labelled = labelled_geometry(X, np.append(y[:-1], 2))  # a class with a single label
    with Workers(1) as workers:
        choice = choose_epsilon(geometry, labelled, 0.9, workers)
        again = left_out_at(geometry, labelled, choice.epsilon, workers)
    judged = labelled.labels < 2
    cost = tables.squared(X[labelled.rows])
    np.fill_diagonal(cost, np.inf)
    shares = oracles.shares(cost, np.zeros(len(cost)), choice.epsilon)
    votes = tables.by_class(shares, labelled.labels, range(3))[judged]
    np.testing.assert_array_equal(choice.held_out.labels, labelled.labels[judged])
    np.testing.assert_allclose(choice.held_out.distributions, votes, atol=1e-12)
    np.testing.assert_array_equal(again.distributions, choice.held_out.distributions)


def test_rows_are_judged_by_the_costs_of_their_view():
    X, _, y = tables.blobs(40, 2, 2, seed=4, known=0.6)
    geometry, labelled = labelled_geometry(X, y)
    other, _ = labelled_geometry(3.0 * X, y)
    count = np.arange(len(labelled.rows))
    views = [View(geometry, labelled, count[1::2]), View(other, labelled, count[::2])]
    with Workers(1) as workers:
        whole = [left_out_at(g, labelled, 0.5, workers).distributions for g in (geometry, other)]
        seen = left_out_at(geometry, labelled, 0.5, workers, views).distributions
        chosen_by_views = choose_epsilon(geometry, labelled, 0.9, workers, views)
        at_it = left_out_at(geometry, labelled, chosen_by_views.epsilon, workers, views)
    np.testing.assert_array_equal(seen, np.where(count[:, None] % 2, whole[0], whole[1]))
    assert abs(whole[0] - whole[1]).max() > 0.01
    found = chosen_by_views.held_out.distributions
    np.testing.assert_array_equal(found, at_it.distributions)
