"""The plain kernel vote against NumPy and its limits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from otprop import OTPropagation
from otprop.baselines import KernelVote
from tests import oracles, tables

X, TRUE, Y = tables.blobs(60, 3, 3, seed=2)


def by_hand(table, points, labels, epsilon):
    shares = oracles.shares(tables.squared(table, points), np.zeros(len(points)), epsilon)
    return tables.by_class(shares, labels, np.unique(labels)).astype(float)


@given(tables.tables(), st.sampled_from([0.01, 1.0, 30.0]))
def test_votes_are_shares_by_class(table, epsilon):
    rows, y = table
    model, given_labels = KernelVote(epsilon=epsilon).fit(rows, y), y >= 0
    expected = by_hand(rows, rows[given_labels], y[given_labels], epsilon)
    np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-12)
    np.testing.assert_allclose(
        model.label_distributions_,
        np.where(given_labels[:, None], np.eye(expected.shape[1])[y], expected),
        atol=1e-12,
    )


def test_labels_are_those_of_the_largest_vote():
    model = KernelVote(epsilon=0.3).fit(X, Y)
    votes = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), votes.argmax(axis=1))
    np.testing.assert_array_equal(model.transduction_, np.where(Y < 0, votes.argmax(axis=1), Y))
    assert (model.transduction_ == TRUE)[Y < 0].mean() > 0.7


@pytest.mark.parametrize("far", [0.0, 1e5])
def test_a_small_epsilon_leaves_the_nearest_row(far):
    nearest = KNeighborsClassifier(1).fit(X[Y >= 0], Y[Y >= 0])
    model = KernelVote(epsilon=1e-9).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X + far), nearest.predict(X + far))


def test_a_large_epsilon_leaves_the_share_of_labels():
    counts = np.bincount(Y[Y >= 0])
    votes = KernelVote(epsilon=1e9).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(votes, np.tile(counts / counts.sum(), (len(X), 1)), atol=1e-6)


def test_otpropagation_votes_so_where_nothing_is_open():
    known = Y >= 0
    vote = KernelVote(epsilon=0.5).fit(X, Y).predict_proba(X)
    whole = OTPropagation.paper(epsilon=0.5).fit(X[known], Y[known]).predict_proba(X)
    np.testing.assert_array_equal(vote, whole)


def test_names_and_frames():
    names = np.array(["z", "a", "m"])
    frame = pd.DataFrame(X, columns=list("abc"))
    model = KernelVote(epsilon=0.5).fit(frame, tables.rename(Y, names))
    plain = KernelVote(epsilon=0.5).fit(X, Y)
    np.testing.assert_array_equal(model.transduction_, names[plain.transduction_])
    np.testing.assert_array_equal(model.predict(frame), names[plain.predict(X)])


def test_single_precision_stays():
    model = KernelVote(epsilon=0.5).fit(X.astype(np.float32), Y)
    assert model._points.dtype == np.float32
    np.testing.assert_allclose(
        model.predict_proba(X), KernelVote(epsilon=0.5).fit(X, Y).predict_proba(X), atol=1e-5
    )


def test_a_table_without_open_rows():
    model = KernelVote(epsilon=0.5).fit(X, TRUE)
    np.testing.assert_array_equal(model.transduction_, TRUE)


@pytest.mark.parametrize(
    ("epsilon", "error", "message"),
    [
        (0, ValueError, "epsilon must be a number above 0; got 0"),
        (-1.0, ValueError, "epsilon must be a number above 0"),
        (np.inf, ValueError, "epsilon must be a number above 0; got inf"),
        ("auto", TypeError, "epsilon must be a number above 0; got 'auto'"),
        (1e-320, ValueError, "epsilon must be at least"),
    ],
)
def test_an_epsilon_that_cannot_be(epsilon, error, message):
    with pytest.raises(error, match=message):
        KernelVote(epsilon=epsilon).fit(X, Y)


def test_tables_that_cannot_be():
    with pytest.raises(ValueError, match="no labelled row"):
        KernelVote().fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="too large"):
        KernelVote().fit(X * 1e200, Y)
    with pytest.raises(NotFittedError):
        KernelVote().predict(X)
