"""Algorithm 2 on arrays, against a naive one, and what every round must have done."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from otprop import OTPropagation
from tests import oracles, tables


def fitted(X, y, **parameters):
    return OTPropagation.paper(**({"epsilon": 4.0, "alpha": 0.5, "tol": 1e-8} | parameters)).fit(
        X, y
    )


def naive_propagation(X, y, epsilon, alpha):
    """Algorithm 2 line by line over POT, with Eq. 21; returns labels, rounds, the U accepted."""
    labels, classes = y.copy(), np.unique(y[y >= 0])
    rounds = np.where(y >= 0, 0, -1)
    U_of = np.zeros((len(y), len(classes)))
    t = 0
    while (labels < 0).any():
        t += 1
        L, U = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        M = tables.squared(X[U], X[L])
        T = oracles.pot_plan(M, epsilon, oracles.uniform(len(L)), oracles.uniform(len(U)))
        P = T / T.sum(axis=1, keepdims=True)
        distributions = tables.by_class(P, labels[L], classes)
        s = tables.certainty(distributions)
        accepted = s > alpha
        if not accepted.any():
            accepted = s >= s.max() - 1e-9
        joining = U[accepted]
        U_of[joining] = distributions[accepted]
        labels[joining] = classes[distributions[accepted].argmax(axis=1)]
        rounds[joining] = t
    return labels, rounds, U_of


@settings(max_examples=30)
@given(
    table=tables.generic(),
    moderation=st.sampled_from([0.1, 0.3, 1.0]),
    alpha=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
)
def test_the_naive_algorithm_agrees_label_for_label_and_round_for_round(table, moderation, alpha):
    X, y = table
    epsilon = moderation * tables.squared(X).max()
    model = fitted(X, y, epsilon=epsilon, alpha=alpha, tol=1e-10)
    assume(tables.closest_call(model, tables.squared(X)) > 1e-6)
    labels, rounds, U = naive_propagation(X, y, epsilon, alpha)
    np.testing.assert_array_equal(model.transduction_, labels)
    np.testing.assert_array_equal(model.round_, rounds)
    opened = y < 0
    np.testing.assert_allclose(model.label_distributions_[opened], U[opened], atol=1e-6)


def every_round(X, model):
    return zip(model.trace_, tables.rounds(model, tables.squared(X)), strict=True)


TABLES = {
    "table": tables.tables(),
    "epsilon": st.sampled_from([0.5, 4.0, 40.0]),
    "alpha": st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    "stall": st.sampled_from(["lowest-alpha", 0.1, 0.5, 1.0]),
}


@given(**TABLES)
def test_every_source_gives_the_same_mass_in_every_round(table, epsilon, alpha, stall):
    X, y = table
    model = fitted(X, y, epsilon=epsilon, alpha=alpha, stall=stall)
    for done, (_, sources, targets, f, cost) in every_round(X, model):
        a, b = oracles.uniform(len(sources)), oracles.uniform(len(targets))
        error = oracles.marginal_error(cost, f, epsilon, a, b)
        assert done.converged
        assert error <= 1e-8 + 1e-12
        assert done.marginal_error == pytest.approx(error, abs=1e-12)


@given(**TABLES)
def test_every_target_joins_once_with_the_shares_of_its_round(table, epsilon, alpha, stall):
    X, y = table
    model = fitted(X, y, epsilon=epsilon, alpha=alpha, stall=stall)
    order = model._fitted.source_rows
    np.testing.assert_array_equal(np.sort(order), np.arange(len(X)))
    for done, (number, sources, targets, f, cost) in every_round(X, model):
        shares = oracles.shares(cost, f, epsilon)
        U = tables.by_class(shares, model.transduction_[sources], model.classes_)
        s = tables.certainty(U)
        joins = model.round_[targets] == number
        joining = targets[joins]
        np.testing.assert_array_equal(order[len(f) : len(f) + done.accepted], joining)
        np.testing.assert_allclose(model.label_distributions_[joining], U[joins], atol=1e-12)
        np.testing.assert_allclose(model.certainty_[joining], s[joins], atol=1e-12)
        # α as asked for, or lowered in this round alone
        if done.lowered:
            assert s.max() <= alpha + 1e-12
            if stall == "lowest-alpha":
                assert done.alpha == pytest.approx(s.max(), abs=1e-12)
            else:
                assert done.accepted >= math.ceil(stall * done.targets)
        else:
            assert done.alpha == alpha
            assert s.max() >= alpha - 1e-12
        assert (s[joins] >= done.alpha - 1e-12).all()
        assert (s[~joins] <= done.alpha + 1e-12).all()


@given(**TABLES)
def test_the_trace_counts_as_equations_19_and_20(table, epsilon, alpha, stall):
    X, y = table
    model = fitted(X, y, epsilon=epsilon, alpha=alpha, stall=stall)
    labelled, open_ = int((y >= 0).sum()), int((y < 0).sum())
    assert len(model.trace_) <= open_
    for number, done in enumerate(model.trace_, start=1):
        assert (done.round, done.sources, done.targets) == (number, labelled, open_)
        assert done.accepted == (model.round_ == number).sum() >= 1
        labelled, open_ = labelled + done.accepted, open_ - done.accepted
    assert (labelled, open_) == (len(y), 0)
    assert model.n_iter_ == len(model.trace_)


@given(**TABLES)
def test_given_labels_never_change_and_shares_sum_to_one(table, epsilon, alpha, stall):
    X, y = table
    model = fitted(X, y, epsilon=epsilon, alpha=alpha, stall=stall)
    known = y >= 0
    np.testing.assert_array_equal(model.transduction_[known], y[known])
    np.testing.assert_array_equal(model.certainty_[known], 1.0)
    np.testing.assert_array_equal(model.round_[known], 0)
    np.testing.assert_array_equal(model.label_distributions_[known].max(axis=1), 1.0)
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0, atol=1e-12)
    assert (model.label_distributions_ >= 0).all()
    assert ((model.certainty_ >= 0) & (model.certainty_ <= 1)).all()


def test_rows_that_are_the_same_join_together_at_a_lowered_alpha():
    X, _, y = tables.blobs(30, 2, 2, seed=3)
    twice = np.concatenate([X, X[y < 0], X[y < 0]])
    model = fitted(twice, np.concatenate([y, np.full(2 * (y < 0).sum(), -1)]), alpha=1.0)
    assert all(done.lowered for done in model.trace_)
    first, second, third = model.round_[:30][y < 0], *np.split(model.round_[30:], 2)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    assert all(done.accepted >= 3 for done in model.trace_)


def test_alpha_is_restored_after_a_lowered_round():
    X, _, y = tables.blobs(40, 2, 2, seed=38, known=0.1)
    trace = fitted(X, y, epsilon=0.5, alpha=0.5).trace_
    assert any(before.lowered and not after.lowered for before, after in pairwise(trace))
    assert {done.alpha for done in trace if not done.lowered} == {0.5}
    assert all(done.alpha < 0.5 for done in trace if done.lowered)


def test_with_one_target_left_its_shares_are_the_weights_whatever_the_distances():
    """DESIGN.md, 3: the constraint decides alone; the row stands on a source of class 0."""
    X = np.array([[0.0], [10.0], [10.1], [0.0]])
    model = fitted(X, [0, 1, 1, -1], epsilon=1e-3)
    np.testing.assert_allclose(model.label_distributions_[3], [1 / 3, 2 / 3], atol=1e-12)
    assert model.transduction_[3] == 1


def test_the_last_target_takes_the_share_of_classes_among_all_others():
    X, _, y = tables.blobs(30, 2, 3, seed=1)
    model = fitted(X, y, alpha=1.0)
    last = np.flatnonzero(model.round_ == len(model.trace_))
    assert len(last) == 1
    others = np.delete(model.transduction_, last)
    expected = np.bincount(others, minlength=3) / 29
    np.testing.assert_allclose(model.label_distributions_[last[0]], expected, atol=1e-12)


def test_alpha_of_zero_takes_one_round_and_alpha_of_one_lowers_in_each():
    X, _, y = tables.blobs(40, 2, 2, seed=2)
    assert len(fitted(X, y, alpha=0.0).trace_) == 1
    assert all(done.lowered for done in fitted(X, y, alpha=1.0).trace_)


def test_a_stall_fraction_of_one_ends_with_the_first_stall():
    X, _, y = tables.blobs(40, 2, 2, seed=2)
    trace = fitted(X, y, epsilon=40.0, alpha=0.9, stall=1.0).trace_
    assert len(trace) == 1
    assert trace[0].lowered
    assert trace[0].accepted == trace[0].targets
