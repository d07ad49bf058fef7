"""Which rows to label next."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from otprop import OTPropagation
from otprop.geometry import Graph
from otprop.models import graph_of, nearest_others
from otprop.suggestion import suggest
from otprop.transport import Workers
from tests import tables

X, TRUE, Y = tables.blobs(90, 2, 3, seed=1, spread=0.7)
MODELS = {
    "graph": OTPropagation(geometry="graph"),
    "euclidean": OTPropagation(geometry="euclidean"),
    "paper": OTPropagation.paper(0.3, 0.6),
    "precomputed-graph": OTPropagation(geometry="precomputed-graph"),
    "sparse": OTPropagation(geometry="graph"),
}


def fitted(name):
    table = {"sparse": sparse.csr_matrix(X), "precomputed-graph": np.exp(-tables.squared(X))}
    return MODELS[name].fit(table.get(name, X), Y)


def kernel(affinity, kappa=0.9):
    """(1 − κ) (I − κ S)⁻¹, written out."""
    degrees = affinity.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    size = len(affinity)
    return (1 - kappa) * np.linalg.inv(np.eye(size) - kappa * affinity / np.outer(roots, roots))


def by_hand(affinity, doubt, n):
    """Return the rows of greatest worth, one by one, and how clear each choice was."""
    H, left, chosen, margin = kernel(affinity), doubt.copy(), [], np.inf
    for _ in range(n):
        worth = np.where((doubt > 0) & ~np.isin(np.arange(len(doubt)), chosen), H @ left, -np.inf)
        best, second = np.argsort(-worth)[:2]
        margin = min(margin, worth[best] / worth[second] - 1)
        left *= 1 - np.minimum(1, H[best] / H[best, best])
        chosen.append(best)
    return chosen, margin


def affinity_of(name):
    if name == "graph":
        return MODELS[name]._fitted.graph.affinity.toarray()
    with Workers(1) as workers:
        return graph_of(nearest_others(X, 20, workers), 20).affinity.toarray()


@pytest.mark.parametrize("name", ["graph", "paper"])
def test_the_rows_are_those_of_greatest_worth(name):
    model = fitted(name)
    doubt = np.where(Y >= 0, 0.0, 1.0 - model.confidence_)
    expected, margin = by_hand(affinity_of(name), doubt, 5)
    assert margin > 1e-4  # so that rounding does not decide
    np.testing.assert_array_equal(model.suggest(5), expected)


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_without_label_distinct_and_the_same_each_time(name):
    model = fitted(name)
    rows = model.suggest(12)
    assert rows.shape == (12,)
    assert len(set(rows.tolist())) == 12
    assert (Y[rows] < 0).all()
    np.testing.assert_array_equal(model.suggest(12), rows)
    # The first are the same however many are wanted.
    np.testing.assert_array_equal(model.suggest(4), rows[:4])
    np.testing.assert_array_equal(model.set_params(n_jobs=3).suggest(12), rows)


@pytest.mark.parametrize("name", MODELS)
def test_no_more_rows_are_named_than_there_are(name):
    rows = fitted(name).suggest(1000)
    np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(Y < 0))


@pytest.mark.parametrize("model", [OTPropagation(), OTPropagation.paper(1.0)])
def test_two_far_groups_get_a_row_each(model):
    """One label in each of two known groups; two others, in doubt, are far from both."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2, 3], 25)
    corners = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 9.0], [6.0, 9.0]])
    rows = corners[group] + 0.5 * rng.normal(size=(100, 2))
    y = np.full(100, -1)
    y[:12] = 0
    y[25:37] = 1
    first, second = group[model.fit(rows, y).suggest(2)]
    assert {first, second} == {2, 3}


def graph_and_doubt():
    """Ten rows in some doubt, each linked to all others, and three lonely ones in more."""
    W = np.zeros((13, 13))
    W[:10, :10] = 1.0
    np.fill_diagonal(W, 0.0)
    return W, np.where(np.arange(13) < 10, 0.3, 0.6)


def test_rows_amid_others_are_worth_more_than_lonely_ones_in_more_doubt():
    W, doubt = graph_and_doubt()
    with Workers(1) as workers:
        named = suggest(Graph.of_affinity(W), doubt, 13, workers)
    assert named[0] < 10
    # Lonely rows are named at last, the first of equals first.
    np.testing.assert_array_equal(named[named >= 10], [10, 11, 12])


def test_a_row_beyond_doubt_is_never_named_even_amid_others():
    W, doubt = graph_and_doubt()
    doubt[[0, 10]] = 0.0
    with Workers(1) as workers:
        named = suggest(Graph.of_affinity(W), doubt, 13, workers)
    assert sorted(named) == [*range(1, 10), 11, 12]


def test_a_row_that_is_named_is_not_named_again_however_many_hear_it():
    """Of a star the centre: even when it is known, the most doubt is within its reach."""
    W = np.zeros((60, 60))
    W[0, 1:] = W[1:, 0] = 1.0
    with Workers(1) as workers:
        named = suggest(Graph.of_affinity(W), np.full(60, 0.5), 4, workers)
    assert named[0] == 0
    assert len(set(named.tolist())) == 4


def test_nothing_in_doubt_leaves_nothing_to_name():
    model = OTPropagation().fit(X, TRUE)
    assert model.suggest(3).shape == (0,)


def test_labels_for_the_rows_named_help_more_than_for_others():
    gains = {"named": [], "random": []}
    for seed in range(5):
        rows, true, _ = tables.blobs(240, 2, 4, seed=seed, spread=0.35)
        rng = np.random.default_rng(seed)
        start = np.where(rng.random(240) < 0.05, true, -1)
        for k in range(4):
            start[np.flatnonzero(true == k)[0]] = k
        model = OTPropagation().fit(rows, start)
        draw = rng.choice(np.flatnonzero(start < 0), 8, replace=False)
        for how, more in (("named", model.suggest(8)), ("random", draw)):
            y = start.copy()
            y[more] = true[more]
            gains[how].append((OTPropagation().fit(rows, y).transduction_ == true).mean())
    assert np.mean(gains["named"]) > np.mean(gains["random"])


@pytest.mark.parametrize("n", [0, -1])
def test_how_many_must_be_a_count(n):
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        fitted("graph").suggest(n)
    with pytest.raises(TypeError, match="n must be an integer of at least 1"):
        fitted("graph").suggest(2.0)


def test_costs_alone_are_not_enough_and_the_error_says_what_is():
    model = OTPropagation.paper(0.3, 0.6, geometry="precomputed").fit(tables.squared(X), Y)
    with pytest.raises(ValueError, match=r"needs the features.*Fit with geometry='graph'"):
        model.suggest()


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        OTPropagation().suggest()
