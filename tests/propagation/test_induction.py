"""Algorithm 3: why new rows are led through the rounds and not transported anew."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otprop import OTPropagation
from otprop.geometry import Euclidean
from otprop.propagation import explain, replay
from otprop.transport import Workers, blocks, solve
from tests import oracles, tables


def uneven():
    """Two classes far apart; nine rows of class 1 to three of class 0."""
    X = np.concatenate([np.zeros(4), np.full(12, 10.0)])[:, None]
    X += np.random.default_rng(0).normal(scale=0.1, size=X.shape)
    y = np.array([0, 0, 0, -1] + [1] * 9 + [-1] * 3)
    return X, y


def vote(cost, f, epsilon, labels, classes):
    return tables.by_class(oracles.shares(cost, f, epsilon), labels, classes)


def test_a_new_transport_problem_for_one_row_is_the_majority_vote_whatever_the_distances():
    X, y = uneven()
    known, labels = X[y >= 0], y[y >= 0]
    for row in ([0.0], [5.0], [10.0]):
        cost = tables.squared(np.array([row]), known)
        solved = solve(cost, epsilon=0.5)
        np.testing.assert_allclose(solved.shares(cost), 1 / 12, atol=1e-6)
        assert tables.by_class(solved.shares(cost), labels, [0, 1]).argmax() == 1


def test_replay_looks_at_the_distances():
    X, y = uneven()
    model = OTPropagation.paper(epsilon=0.5).fit(X, y)
    np.testing.assert_array_equal(model.predict([[0.0], [10.0]]), [0, 1])
    assert model.predict_certainty([[0.0], [10.0]]).min() > 0.9
    assert model.predict_proba([[0.0]])[0, 0] > 0.9


def test_a_row_that_no_round_accepts_is_decided_by_the_vote_of_all_rows():
    """Eq. 27 with w = exp(−cost/ε) over given and inferred rows."""
    X = np.array([[-1.1], [-1.0], [-1.05], [1.0], [1.1], [1.05]])
    model = OTPropagation.paper(epsilon=1.0, alpha=0.5).fit(X, [0, 0, -1, 1, 1, -1])
    assert [done.lowered for done in model.trace_] == [False]
    middle = [[0.1]]
    assert model.explain(middle).round == 0
    cost = tables.squared(middle, X)
    expected = vote(cost, np.zeros(6), 1.0, model.transduction_, model.classes_)
    np.testing.assert_allclose(model.predict_proba(middle), expected, atol=1e-12)


def test_with_nothing_unlabelled_every_row_is_decided_by_the_vote():
    X, true, _ = tables.blobs(60, 2, 3, seed=1)
    model = OTPropagation.paper(epsilon=0.2).fit(X, true)
    assert model.trace_ == []
    new = X[:20] + 0.01
    expected = vote(tables.squared(new, X), np.zeros(60), 0.2, true, model.classes_)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-12)
    assert (model.explain(new).round == 0).all()


@given(table=tables.generic(), seed=st.integers(0, 99), alpha=st.sampled_from([0.0, 0.3, 0.8, 1.0]))
def test_new_rows_take_the_first_round_that_accepts_them(table, seed, alpha):
    X, y = table
    model = OTPropagation.paper(epsilon=4.0, alpha=alpha).fit(X, y)
    new = np.random.default_rng(seed).normal(scale=3, size=(10, X.shape[1]))
    found, scores = model.predict_proba(new), model.predict_certainty(new)
    order = model._fitted.source_rows
    labels = model.transduction_[order]
    waiting = np.ones(10, bool)
    rounds = zip(model._fitted.replay.potentials, model.trace_, strict=True)
    for f, done in [*rounds, (np.zeros(len(X)), None)]:
        U = vote(tables.squared(new, X[order[: len(f)]]), f, 4.0, labels[: len(f)], model.classes_)
        s = tables.certainty(U)
        assume(done is None or (np.abs(s - done.alpha) > 1e-9).all())
        leaves = waiting & (True if done is None else s > done.alpha)
        np.testing.assert_allclose(found[leaves], U[leaves], atol=1e-11)
        np.testing.assert_allclose(scores[leaves], s[leaves], atol=1e-11)
        waiting &= ~leaves
    np.testing.assert_array_equal(model.predict(new), model.classes_[found.argmax(axis=1)])


def test_a_new_row_equal_to_a_target_takes_its_label_at_a_lowered_alpha():
    X, _, y = tables.blobs(40, 2, 3, seed=5)
    model = OTPropagation.paper(epsilon=2.0, alpha=1.0).fit(X, y)
    assert all(done.lowered for done in model.trace_)
    told = model.explain(X[y < 0])
    np.testing.assert_array_equal(told.round, model.round_[y < 0])


@pytest.mark.parametrize("scale", [1e6, 1e100])
def test_a_row_beyond_all_others_still_gets_a_distribution(scale):
    X, _, y = tables.blobs(40, 2, 3, seed=5)
    found = OTPropagation.paper(epsilon=0.5).fit(X, y).predict_proba([[scale, scale]])
    assert found.sum() == pytest.approx(1.0)


class Spy:
    """A geometry that notes what it is asked for."""

    def __init__(self, geometry):
        self._geometry = geometry
        self.dtype = geometry.dtype
        self.may_forbid = geometry.may_forbid
        self.asked = []

    def fill(self, targets, first, out):
        self.asked.append((set(targets.tolist()), first, out.shape[1]))
        self._geometry.fill(targets, first, out)


def spied(model, X):
    geometry = Euclidean(np.asarray(X, float), model._fitted.points)
    geometry.add_sources(np.arange(len(model._fitted.points)))
    return Spy(geometry)


@pytest.fixture(scope="module")
def in_rounds():
    X, _, y = tables.blobs(300, 2, 3, seed=5, known=0.1)
    model = OTPropagation.paper(epsilon=1.0, alpha=0.9).fit(X, y)
    assert len(model.trace_) > 5
    return model, X[y < 0], model.round_[y < 0]


def test_costs_to_later_sources_are_computed_for_rows_still_waiting_alone(in_rounds):
    model, X, left = in_rounds
    spy = spied(model, X)
    decision = replay(spy, len(X), model._fitted.replay, Workers(1))
    np.testing.assert_array_equal(decision.round, left)
    np.testing.assert_array_equal(decision.distributions, model.predict_proba(X))
    known = 0
    for rows, first, number in spy.asked:
        assert first == known  # each cost once
        asking = next(done.round for done in model.trace_ if done.sources > known)
        assert rows == set(np.flatnonzero(left >= asking).tolist())
        known += number
    assert spy.asked[0][2] == max(model.trace_[0].sources, 32)
    # Rows that leave at once cost no more than the given sources.
    spy = spied(model, X[left == 1])
    replay(spy, int((left == 1).sum()), model._fitted.replay, Workers(1))
    assert [asked[1:] for asked in spy.asked] == [(0, max(model.trace_[0].sources, 32))]


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_an_explanation_computes_the_costs_of_each_round_alone(in_rounds, workers):
    model, X, left = in_rounds
    fitted = model._fitted
    decision = replay(spied(model, X), len(X), fitted.replay, Workers(1))
    spy = spied(model, X)
    with mock.patch.object(blocks, "_BLOCK_ENTRIES", 1):  # blocks of 64 rows
        threads = [] if workers is None else [Workers(workers)]
        sources, shares = explain(spy, decision, fitted.replay, 200, *threads)
    assert len(spy.asked) > 4
    for rows, first, number in spy.asked:
        assert first == 0
        assert {number} == {model.trace_[left[row] - 1].sources for row in rows}
    for row, (told, parts) in enumerate(zip(sources, shares, strict=True)):
        f = fitted.replay.potentials[left[row] - 1]
        real = min(len(f), 200)
        assert (told[real:] == -1).all()
        assert not parts[real:].any()
        cost = tables.squared(X[[row]], fitted.points[: len(f)])
        expected = oracles.shares(cost, f, 1.0)[0]
        np.testing.assert_allclose(parts[:real], expected[told[:real]], atol=1e-12)
        np.testing.assert_allclose(parts[:real], np.sort(expected)[::-1][:real], atol=1e-12)


def test_rows_out_of_reach_are_explained_by_nobody():
    cost = np.zeros((5, 5))
    cost[4], cost[:, 4] = np.inf, np.inf
    with pytest.warns(UserWarning, match="out of every source's reach"):
        model = OTPropagation.paper(geometry="precomputed", epsilon=1.0).fit(
            cost, [0, 1, -1, -1, -1]
        )
    with pytest.warns(UserWarning, match="out of every source's reach"):
        told = model.explain(cost, n=3)
    assert (told.sources[4] == -1).all()
    assert not told.shares[4].any()
    assert told.round[4] == -1
