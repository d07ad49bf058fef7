"""A model fitted on a graph: new rows, rows of fit, and rows that are the same."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from otprop import OTPropagation
from tests import tables

X, TRUE, Y = tables.blobs(90, 2, 3, seed=1, spread=0.5)
PLAIN = {"geometry": "graph", "scaling": "none", "rounds": "none", "class_tolerance": 0}
KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}


def fitted(table=X, y=Y, **parameters):
    return OTPropagation(**(PLAIN | parameters)).fit(table, y)


# ---- new rows


def test_a_new_row_has_the_weighted_mean_of_its_neighbours():
    model = fitted(n_neighbors=7)
    new = X[:20] + 0.05
    cost = tables.squared(X)
    np.fill_diagonal(cost, np.inf)
    scales = np.sqrt(np.sort(cost, axis=1)[:, 6])
    distance = np.sqrt(tables.squared(new, X))
    expected = np.zeros((20, 3))
    for row in range(20):
        near = np.argsort(distance[row])[:7]
        d = distance[row, near]
        weights = np.exp(-4 * d**2 / (d[-1] * scales[near]))
        expected[row] = weights @ model.label_distributions_[near] / weights.sum()
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-12)
    np.testing.assert_allclose(
        model.predict_certainty(new), np.maximum(tables.certainty(expected), 0), atol=1e-9
    )
    nearest = distance.argmin(axis=1)
    np.testing.assert_array_equal(model.explain(new).round, model.round_[nearest])


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_row_is_decided_by_itself_alone(kind):
    model = fitted(KINDS[kind](X))
    new = KINDS[kind](np.vstack([X[::3] + 0.05, X[::5]]))
    whole = model.predict_proba(new)
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    for row in range(0, new.shape[0], 7):
        np.testing.assert_array_equal(model.predict_proba(new[[row]])[0], whole[row])


def test_a_new_row_with_affinities_has_their_mean():
    W = np.exp(-4 * tables.squared(X))
    model = fitted(W, geometry="precomputed-graph", scaling="auto")
    new = np.exp(-4 * tables.squared(X[:9] + 0.05, X))
    expected = new @ model.label_distributions_ / new.sum(axis=1, keepdims=True)
    for table in (new, sparse.csr_matrix(new)):
        np.testing.assert_allclose(model.predict_proba(table), expected, atol=1e-12)


# ---- out of reach


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", ["none", "annealed"])
def test_a_row_far_from_all_others_is_known_nothing_of(kind, rounds):
    model = fitted(KINDS[kind](X), rounds=rounds)
    new = KINDS[kind](np.array([[500.0, -500.0], X[0]]))
    calls = {
        "predict_proba": np.full(3, 1 / 3),
        "predict_certainty": 0.0,
        "predict_confidence": 1 / 3,
    }
    for name, expected in calls.items():
        with pytest.warns(UserWarning, match=r"1 row\(s\) are out of every source's reach"):
            found = getattr(model, name)(new)
        np.testing.assert_array_equal(found[0], expected)
        assert np.max(found[1]) > 0.4
    with pytest.warns(UserWarning, match="out of every source's reach"):
        told = model.explain(new)
    assert told.round[0] == -1
    assert (told.sources[0] == -1).all()
    assert not told.shares[0].any()
    assert told.round[1] >= 0
    assert told.shares[1, 0] > 0


def test_a_row_far_away_gets_no_label_where_any_bound_is_set():
    X, true, _ = tables.real("wine")
    y = np.where(np.arange(len(true)) % 3 == 0, true, -1)
    model = OTPropagation(abstain_below=0.34).fit(X, y)
    with pytest.warns(UserWarning, match="out of every source's reach"):
        assert model.predict(np.full((1, X.shape[1]), 99.0)) == [-1]


def test_what_is_far_follows_the_units_of_the_columns():
    """Three times the distance to the furthest neighbour of all but the loneliest hundredth."""
    cost = tables.squared(X)
    np.fill_diagonal(cost, np.inf)
    limit = 3 * np.quantile(np.sqrt(np.sort(cost, axis=1)[:, 6]), 0.99)
    top = X[X[:, 0].argmax()]
    for factor in (1.0, 1000.0):
        model = fitted(factor * X, n_neighbors=7)
        assert model.predict_certainty(factor * (top[None] + np.array([0.99 * limit, 0])))[0] > 0
        with pytest.warns(UserWarning, match="out of every source's reach"):
            assert (
                model.predict_certainty(factor * (top[None] + np.array([1.01 * limit, 0])))[0] == 0
            )


def islands():
    """Two linked groups with labels, and three rows linked to each other alone."""
    group = np.repeat([0, 1, 2], [8, 8, 3])
    W = (group[:, None] == group).astype(float)
    W[0, 8] = W[8, 0] = 0.1
    y = np.full(19, -1)
    y[[1, 9]] = [0, 1]
    return W, y


def test_rows_that_no_label_reaches_say_so_and_have_no_say():
    W, y = islands()
    with pytest.warns(UserWarning, match=r"3 row\(s\) are out of every source's reach"):
        model = fitted(W, y, geometry="precomputed-graph", scaling="auto")
    np.testing.assert_array_equal(model.round_[16:], -1)
    np.testing.assert_array_equal(model.certainty_[16:], 0.0)
    np.testing.assert_array_equal(model.confidence_[16:], 0.5)
    np.testing.assert_array_equal(model.label_distributions_[16:], 0.5)
    assert (model.round_[:16] >= 0).all()
    new = np.zeros((2, 19))
    new[:, 16] = 5.0  # the closest is out of reach
    new[1, 3] = 1.0  # another is not
    with pytest.warns(UserWarning, match=r"1 row\(s\) are out"):
        found = model.predict_proba(new)
    np.testing.assert_array_equal(found[0], 0.5)
    np.testing.assert_array_equal(found[1], model.label_distributions_[3])
    with pytest.warns(UserWarning, match=r"1 row\(s\) are out"):
        np.testing.assert_array_equal(model.explain(new).round, [-1, model.round_[3]])


# ---- explanations


def heard_by_hand(model, y, rows):
    """Return the given rows, and the kernel between them and some rows of fit, written out."""
    W = model._fitted.graph.affinity.toarray()
    roots = np.sqrt(W.sum(axis=1))
    kappa = model._fitted.diffusion
    H = (1 - kappa) * np.linalg.inv(np.eye(len(W)) - kappa * W / np.outer(roots, roots))
    given = np.flatnonzero(y >= 0)
    return given, H[np.ix_(rows, given)]


@pytest.mark.parametrize("marginals", ["classes", "rows", "relaxed"])
def test_shares_are_those_of_the_kernel_times_prices_and_add_up_to_the_first_plan(marginals):
    tolerance = 0 if marginals == "classes" else "auto"
    model = fitted(marginals=marginals, class_tolerance=tolerance, tol=1e-10)
    opened = np.flatnonzero(Y < 0)
    given, H = heard_by_hand(model, Y, opened)
    assert len(set(np.bincount(Y[given]))) > 1  # classes of different sizes
    told = model.explain(X[opened], n=len(given))
    assert (np.diff(told.shares, axis=1) <= 0).all()
    np.testing.assert_allclose(told.shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(told.labels, Y[told.sources])
    dense = np.zeros_like(H)
    place = np.searchsorted(given, told.sources)
    np.put_along_axis(dense, place, told.shares, axis=1)
    # H times prices, rows scaled to one: the same prices for all rows.
    prices = np.log(dense) - np.log(H)
    prices -= prices[:, :1]
    np.testing.assert_allclose(prices, np.tile(prices[0], (len(opened), 1)), atol=1e-5)
    if marginals == "classes":
        # Those of a class have the same.
        for k in range(3):
            np.testing.assert_allclose(np.ptp(prices[0, Y[given] == k]), 0.0, atol=1e-5)
    by_class = tables.by_class(dense, Y[given], range(3))
    np.testing.assert_allclose(by_class, model.label_distributions_[opened], atol=1e-5)


def test_as_many_sources_are_told_as_asked_for():
    model = fitted()
    whole = model.explain(X, n=1000)
    assert whole.sources.shape == (90, (Y >= 0).sum())
    first = model.explain(X, n=3)
    np.testing.assert_array_equal(first.sources, whole.sources[:, :3])
    np.testing.assert_array_equal(first.shares, whole.shares[:, :3])
    alone = model.explain(X[40:41], n=3)
    np.testing.assert_array_equal(alone.sources[0], first.sources[40])
    np.testing.assert_array_equal(alone.shares[0], first.shares[40])


# ---- rows that are the same


def repeated(seed, times=3):
    """Return a table in which most rows are there several times, in any order."""
    rows, _, y = tables.blobs(60, 2, 3, seed=seed, spread=0.8, known=0.2)
    rng = np.random.default_rng(seed)
    which = np.append(np.arange(60), rng.integers(0, 60, 60 * (times - 1)))
    order = rng.permutation(len(which))
    labels = np.where(rng.random(len(which)) < 0.5, y[which], -1)
    labels[:60] = y
    return rows[which][order], labels[order]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", ["none", "annealed", "frozen", "revisable"])
@pytest.mark.parametrize("times", [3, 30])  # more than a row has neighbours
def test_rows_that_are_the_same_have_one_answer(times, rounds, kind):
    rows, y = repeated(0, times)
    table = KINDS[kind](rows)
    model = fitted(table, y, rounds=rounds, diffusion=0.9, n_neighbors=15)
    opened = y < 0
    for row in np.unique(rows, axis=0):
        same = (rows == row).all(axis=1) & opened
        if same.any():
            for found in (model.label_distributions_, model.certainty_, model.round_):
                assert (found[same] == found[same][0]).all()
    np.testing.assert_array_equal(
        model.predict_proba(table[opened]), model.label_distributions_[opened]
    )
    np.testing.assert_array_equal(model.predict(table[opened]), model.transduction_[opened])
    np.testing.assert_array_equal(model.explain(table[opened]).round, model.round_[opened])


@pytest.mark.filterwarnings("ignore:.*out of every source's reach")  # parts without a label
@settings(max_examples=30)
@given(table=tables.tables(), rounds=st.sampled_from(["none", "annealed"]), k=st.integers(1, 20))
def test_predictions_repeat_what_was_found_on_any_table(table, rounds, k):
    rows, y = table
    opened = y < 0
    assume(opened.any())
    model = fitted(rows, y, rounds=rounds, n_neighbors=k)
    np.testing.assert_array_equal(
        model.predict_proba(rows[opened]), model.label_distributions_[opened]
    )


def test_the_answer_of_rows_that_are_the_same_is_the_mean_of_what_each_was_given():
    rows, y = repeated(1)
    model = fitted(rows, y)
    graph = model._fitted.graph.affinity
    parameters = {"diffusion": model._fitted.diffusion, "rounds": "none", "class_tolerance": 0}
    plain = OTPropagation(geometry="precomputed-graph", **parameters).fit(graph, y)
    opened = y < 0
    for row in np.unique(rows, axis=0):
        same = (rows == row).all(axis=1) & opened
        if same.any():
            np.testing.assert_allclose(
                model.label_distributions_[same][0],
                plain.label_distributions_[same].mean(axis=0),
                atol=1e-9,
            )


def test_a_label_that_is_given_stays_whatever_its_twins_have():
    rows, y = X.copy(), Y.copy()
    given, other = np.flatnonzero(y == 0)[0], np.flatnonzero(y < 0)[0]
    rows[given] = rows[other]
    model = fitted(rows, y)
    np.testing.assert_array_equal(model.label_distributions_[given], [1.0, 0.0, 0.0])
    # A new row has what the one without label has: it may be of either class.
    found = model.predict_proba(rows[[other]])
    np.testing.assert_array_equal(found[0], model.label_distributions_[other])


def test_given_labels_of_rows_that_are_the_same_speak_together():
    rows, y = X.copy(), Y.copy()
    one, other = np.flatnonzero(y == 0)[0], np.flatnonzero(y == 2)[0]
    rows[other] = rows[one]
    model = fitted(rows, y)
    np.testing.assert_allclose(model.predict_proba(rows[[one]]), [[0.5, 0.0, 0.5]])
    alone = np.flatnonzero(y == 1)[0]
    np.testing.assert_array_equal(model.predict_proba(rows[[alone]]), [[0.0, 1.0, 0.0]])
