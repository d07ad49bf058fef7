"""LNP: the iteration against a dense solve, laws, and what no label reaches."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from otprop.baselines import LinearNeighborhoodPropagation
from otprop.baselines.linear_neighborhood import distributions, neighbourhood, spread
from tests import tables


def exact(W, labels, classes, alpha):
    """F = (1 − α) (I − α W)^-1 Y."""
    Y = np.zeros((len(labels), classes))
    Y[labels >= 0, labels[labels >= 0]] = 1
    return (1 - alpha) * np.linalg.solve(np.eye(len(labels)) - alpha * W, Y)


@st.composite
def graphs(draw):
    """Draw random weights, each row with a few, from a seed; and labels, at least one."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    size, classes = draw(st.integers(2, 25)), draw(st.integers(1, 3))
    W = np.where(rng.random((size, size)) < 3 / size, rng.random((size, size)), 0.0)
    np.fill_diagonal(W, 0.0)
    W[np.arange(size), (np.arange(size) + 1) % size] += 1e-3
    labels = np.where(rng.random(size) < 0.2, rng.integers(0, classes, size), -1)
    labels[0] = 0
    return W / W.sum(axis=1, keepdims=True), labels, classes


@given(graphs(), st.sampled_from([1e-9, 0.1, 0.5, 0.9, 0.99]))
def test_the_iteration_comes_to_the_solution(graph, alpha):
    W, labels, classes = graph
    found = spread(csr_matrix(W), labels, classes, alpha, 1e-9, 10**5)
    expected = exact(W, labels, classes, alpha)
    largest = expected.max(axis=1, keepdims=True)
    np.testing.assert_allclose(found.scores / largest, expected / largest, atol=1e-8)
    assert found.change <= 1e-9


def chain(length):
    """Each row is rebuilt from the next; only the last has a label."""
    labels = np.full(length, -1)
    labels[-1] = 0
    return csr_matrix(np.eye(length, k=1) + np.eye(length)[[-1]].T @ np.eye(length)[[0]]), labels


def test_rows_far_from_labels_are_waited_for():
    W, labels = chain(40)
    found = spread(W, labels, 1, 0.01, 0.5, 10**4)
    expected = exact(W.toarray(), labels, 1, 0.01)
    assert expected.min() < 1e-70
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)


def test_the_iteration_stops_when_it_may_go_no_further():
    W, labels = chain(40)
    found = spread(W, labels, 1, 0.5, 1e-6, 5)
    assert found.n_iter == 5
    assert found.change >= 1
    assert (found.scores > 0).sum() == 6


def test_scores_become_distributions():
    found, reached = distributions(np.array([[1.0, 3.0], [0.0, 0.0], [1e-300, 0.0]]))
    np.testing.assert_array_equal(found, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_array_equal(reached, [True, False, True])


X, TRUE, Y = tables.blobs(80, 3, 3, seed=1, spread=0.3)


def test_a_fit_is_weights_and_their_solution():
    model = LinearNeighborhoodPropagation(n_neighbors=5, alpha=0.9, tol=1e-10).fit(X, Y)
    near = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(return_distance=False)
    F = exact(neighbourhood(X, X, near).toarray(), Y, 3, 0.9)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-9
    )
    np.testing.assert_array_equal(model.transduction_, np.where(Y >= 0, Y, F.argmax(axis=1)))
    assert (model.transduction_ == TRUE)[Y < 0].mean() > 0.7
    assert model.reached_.all()
    assert model.n_iter_ > 1


def test_given_labels_stay_where_neighbours_outvote_them():
    table = np.arange(7.0)[:, None]
    y = [0, 0, 0, 1, 0, 0, -1]
    model = LinearNeighborhoodPropagation(n_neighbors=2).fit(table, y)
    assert model.label_distributions_[3].argmax() == 0
    assert model.transduction_[3] == 1


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_order_shift_rotation_and_scale_of_rows_do_not_matter(seed):
    table, _, y = tables.blobs(40, 2, 2, seed=seed)
    rng = np.random.default_rng(seed)
    order, turn = rng.permutation(40), np.array([[0.6, -0.8], [0.8, 0.6]])
    one = LinearNeighborhoodPropagation(tol=1e-9).fit(table, y)
    two = LinearNeighborhoodPropagation(tol=1e-9).fit(3 * table[order] @ turn + 5, y[order])
    np.testing.assert_allclose(two.label_distributions_, one.label_distributions_[order], atol=1e-4)


def test_names_of_classes_do_not_matter():
    names = ["z", "a", "m"]
    model = LinearNeighborhoodPropagation().fit(X, tables.rename(Y, names))
    plain = LinearNeighborhoodPropagation().fit(X, Y)
    np.testing.assert_array_equal(model.classes_, ["a", "m", "z"])
    np.testing.assert_array_equal(model.transduction_, np.array(names)[plain.transduction_])


def test_two_moons_from_one_label_each():
    table, true = make_moons(400, noise=0.06, random_state=0)
    y = np.full(400, -1)
    y[[np.argmin(table[:, 0]), np.argmax(table[:, 0])]] = [0, 1]
    model = LinearNeighborhoodPropagation(n_neighbors=7).fit(table, y)
    assert (model.transduction_ == true).mean() > 0.98


def test_new_rows_take_the_mean_of_the_neighbours_that_rebuild_them():
    model = LinearNeighborhoodPropagation(n_neighbors=5, tol=1e-10).fit(X, Y)
    new = X[:20] + 0.05
    near = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(new, return_distance=False)
    F = neighbourhood(new, X, near) @ exact(
        neighbourhood(X, X, NearestNeighbors(n_neighbors=5).fit(X).kneighbors()[1]).toarray(),
        Y,
        3,
        0.99,
    )
    expected = F / F.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(new), expected.argmax(axis=1))


def test_rows_that_only_they_rebuild_are_predicted_as_they_were_found():
    table, _, y = tables.blobs(80, 12, 3, seed=1)
    model = LinearNeighborhoodPropagation().fit(table, y)
    np.testing.assert_allclose(model.predict_proba(table), model.label_distributions_, atol=1e-5)


PARTS = np.concatenate([np.arange(6.0), 100 + np.arange(5.0)])[:, None]
PARTS_Y = [0, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1]


def test_rows_that_no_label_reaches_are_told_of():
    with pytest.warns(UserWarning, match=r"No label reaches 5 row\(s\)") as told:
        model = LinearNeighborhoodPropagation(n_neighbors=2).fit(PARTS, PARTS_Y)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(model.reached_, PARTS[:, 0] < 50)
    np.testing.assert_array_equal(model.label_distributions_[6:], 0.5)
    with pytest.warns(UserWarning, match=r"No label reaches 1 row\(s\)") as told:
        found = model.predict_proba([[0.1], [103.2]])
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found[1], 0.5)
    assert found[0, 0] > 0.5


def test_equal_rows_hear_of_labels_by_a_trace():
    table = np.array([[0.0], [1.0], [1.0], [2.0], [9.0], [9.5], [10.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearNeighborhoodPropagation(n_neighbors=2).fit(table, [0, -1, -1, 0, 1, -1, 1])
    np.testing.assert_array_equal(model.transduction_, [0, 0, 0, 0, 1, 1, 1])


def test_too_few_steps_are_told_of():
    with pytest.warns(ConvergenceWarning, match="max_iter=3.*Raise max_iter") as told:
        model = LinearNeighborhoodPropagation(max_iter=3).fit(X, Y)
    assert told[0].filename == __file__
    assert model.n_iter_ == 3


def test_frames_are_taken_with_their_names():
    plain = LinearNeighborhoodPropagation().fit(X, Y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        model = LinearNeighborhoodPropagation().fit(frame, Y)
        np.testing.assert_array_equal(model.transduction_, plain.transduction_)
        np.testing.assert_array_equal(model.feature_names_in_, list("abc"))
        np.testing.assert_array_equal(model.predict(frame), plain.predict(X))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be an integer of at least 1; got 0"),
        ({"n_neighbors": 2.0}, TypeError, "n_neighbors must be an integer"),
        ({"n_neighbors": 80}, ValueError, "below the number of rows; got n_neighbors=80 and n_s"),
        ({"alpha": 0.0}, ValueError, "alpha must be a number above 0 and below 1; got 0.0"),
        ({"alpha": 1}, ValueError, "alpha must be a number above 0 and below 1; got 1"),
        ({"alpha": np.nan}, ValueError, "alpha must be"),
        ({"alpha": "much"}, TypeError, "alpha must be a number above 0 and below 1; got 'much'"),
        ({"alpha": True}, TypeError, "alpha must be"),
        ({"tol": 0}, ValueError, "tol must be a number above 0 and below 1; got 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1; got 0"),
    ],
)
def test_parameters_that_cannot_be(parameters, error, message):
    with pytest.raises(error, match=message):
        LinearNeighborhoodPropagation(**parameters).fit(X, Y)


def test_tables_that_cannot_be():
    model = LinearNeighborhoodPropagation()
    with pytest.raises(ValueError, match="no labelled row"):
        model.fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[:-1])
    with pytest.raises(ValueError, match="too large"):
        model.fit(X * 1e200, Y)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="too large"):
        model.predict(X * 1e200)
