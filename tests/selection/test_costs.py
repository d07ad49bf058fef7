"""The scaling of costs: the one whose votes on left-out rows have the least Brier score."""

import numpy as np
import pytest
from scipy import sparse

from otprop import OTPropagation
from otprop.scaling import fit_scaling
from otprop.selection.folds import folds
from tests import oracles, tables

FAST = {"alpha": 0.0, "tol": 1e-2}  # the rounds have no say in the choice


def fitted(X, y, **parameters):
    return OTPropagation(**({"geometry": "euclidean"} | FAST | parameters)).fit(X, y)


def votes(X, y, epsilon):
    """Return the labelled rows' votes on one another, over a plain softmax, and their classes."""
    own = y[y >= 0]
    cost = tables.squared(X[y >= 0])
    np.fill_diagonal(cost, np.inf)
    shares = oracles.shares(cost, np.zeros(len(cost)), epsilon).astype(float)
    return tables.by_class(shares, own, range(y.max() + 1)), own


def scores(found, own):
    brier = ((found - np.eye(found.shape[1])[own]) ** 2).sum(axis=1).mean()
    return (found.argmax(axis=1) == own).mean(), brier


def test_every_candidate_is_scored_by_the_votes_at_its_epsilon():
    X, _, y = tables.real("wine")
    X = X * np.linspace(0.1, 3, X.shape[1])
    candidates = fitted(X, y).selection_.candidates
    assert sorted(line.values["scaling"] for line in candidates) == ["minmax", "none", "standard"]
    for line in candidates:
        scaled = fit_scaling(line.values["scaling"], X, y).apply(X)
        expected = scores(*votes(scaled, y, line.values["epsilon"]))
        assert (line.accuracy, line.brier) == pytest.approx(expected)


def test_the_least_brier_score_is_chosen_and_stands_first():
    X, _, y = tables.real("wine")
    X = X * np.append(100.0, np.ones(X.shape[1] - 1))  # a column that drowns the others
    selection = fitted(X, y).selection_
    scored = [line.brier for line in selection.candidates]
    assert scored == sorted(scored)
    assert len(set(scored)) > 1
    assert selection.candidates[0].values.items() <= selection.chosen.items()
    assert selection.chosen["scaling"] != "none"


def test_each_scaling_has_the_epsilon_that_it_had_alone():
    X, _, y = tables.real("iris")
    for line in fitted(X, y).selection_.candidates:
        alone = fitted(X, y, scaling=line.values["scaling"])
        assert alone.selection_.candidates == [line]
        assert alone.epsilon_ == line.values["epsilon"]


def test_an_epsilon_that_is_given_belongs_to_the_columns_as_they_are():
    X, _, y = tables.real("wine")
    model = fitted(X, y, epsilon=0.05)
    (line,) = model.selection_.candidates
    assert line.values == {"scaling": "none", "epsilon": 0.05}
    assert (line.accuracy, line.brier) == pytest.approx(scores(*votes(X, y, 0.05)))
    assert model.calibration_.labels == (y >= 0).sum()


@pytest.mark.parametrize("epsilon", ["auto", 0.3])
@pytest.mark.parametrize("name", ["minmax", "standard", "discriminant"])
def test_a_scaling_that_is_given_is_used(name, epsilon):
    X, _, y = tables.real("iris")
    model = fitted(7.0 * X, y, scaling=name, epsilon=epsilon)
    assert model.selection_.chosen["scaling"] == name
    assert {line.values["scaling"] for line in model.selection_.candidates} == {name}
    scaled = fit_scaling(name, 7.0 * X, y).apply(7.0 * X)
    other = OTPropagation.paper(model.epsilon_, marginals="classes", **FAST).fit(scaled, y)
    np.testing.assert_array_equal(model.label_distributions_, other.label_distributions_)
    np.testing.assert_array_equal(model.predict_proba(7.0 * X), other.predict_proba(scaled))


def test_sparse_columns_stay_as_they_are():
    X, _, y = tables.real("wine")
    lines = fitted(sparse.csr_matrix(X), y).selection_.candidates
    assert [line.values["scaling"] for line in lines] == ["none"]


def test_costs_that_are_given_are_never_scaled():
    X, _, y = tables.real("iris")
    cost = tables.squared(X)
    model = fitted(cost, y, geometry="precomputed")
    assert model.selection_.chosen["scaling"] == "none"
    with pytest.warns(UserWarning, match="scaling has no part in geometry='precomputed'"):
        other = fitted(cost, y, geometry="precomputed", scaling="standard")
    np.testing.assert_array_equal(other.label_distributions_, model.label_distributions_)
    assert other.epsilon_ == model.epsilon_


def test_directions_are_judged_without_the_labels_that_they_are_judged_by():
    """Each fold's rows, scaled by the labels of the other folds, are voted on by all others."""
    X, _, y = tables.real("iris")
    epsilon = 0.5
    (line,) = fitted(X, y, scaling="discriminant", epsilon=epsilon).selection_.candidates
    known = np.flatnonzero(y >= 0)
    found = np.zeros((len(known), 3))
    for hidden in folds(X, y):
        seen = y.copy()
        seen[hidden] = -1
        blind = fit_scaling("discriminant", X, seen).apply(X)
        judged = np.isin(known, hidden)
        found[judged] = votes(blind, y, epsilon)[0][judged]
    assert (line.accuracy, line.brier) == pytest.approx(scores(found, y[known]))


def test_with_a_label_a_class_there_is_no_table():
    X, true, _ = tables.real("iris")
    y = np.full(150, -1)
    y[[0, 60, 120]] = true[[0, 60, 120]]
    with pytest.warns(UserWarning, match="nothing to choose by"):
        selection = fitted(X, y).selection_
    assert selection.candidates == []
    assert selection.reason == "too few labels to leave any out"
    assert selection.chosen["scaling"] == "none"
