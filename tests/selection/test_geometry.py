"""geometry='auto', and the paper's method by its name."""

import numpy as np
import pytest

from otprop import OTPropagation, fitting
from otprop.confidence import HeldOut
from tests import tables

X, TRUE, Y = tables.real("wine")


def small_groups(size=3, seed=0):
    """Return groups of a few rows, far fewer than a graph's neighbours, each of a class."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(60), size)
    rows = 10 * rng.random((60, 2))[group] + 0.02 * rng.normal(size=(len(group), 2))
    true = group % 2
    return rows, true, np.where(np.arange(len(group)) % size == 0, -1, true)


def test_an_epsilon_asks_for_costs():
    model = OTPropagation(epsilon=0.1).fit(X, Y)
    assert model.selection_.chosen["geometry"] == "euclidean"
    assert model.epsilon_ == 0.1


def test_a_graph_is_taken_and_the_costs_stand_in_the_table():
    model = OTPropagation().fit(X, Y)
    graph = OTPropagation(geometry="graph").fit(X, Y)
    costs = OTPropagation(geometry="euclidean").fit(X, Y)
    assert model.selection_.chosen == graph.selection_.chosen
    np.testing.assert_array_equal(model.label_distributions_, graph.label_distributions_)
    expected = [
        line._replace(values={"geometry": "euclidean", **line.values})
        for line in costs.selection_.candidates
    ]
    count = len(graph.selection_.candidates)
    assert model.selection_.candidates[:count] == graph.selection_.candidates
    assert model.selection_.candidates[count:][: len(expected)] == expected


def test_costs_are_taken_where_they_are_surely_more_often_right():
    rows, true, y = small_groups()
    model = OTPropagation().fit(rows, y)
    costs = OTPropagation(geometry="euclidean").fit(rows, y)
    graph = OTPropagation(geometry="graph").fit(rows, y)
    assert model.selection_.chosen == costs.selection_.chosen
    np.testing.assert_array_equal(model.label_distributions_, costs.label_distributions_)
    right = [(other.transduction_ == true)[y < 0].mean() for other in (costs, graph)]
    assert right[0] > right[1] + 0.1
    assert model.selection_.candidates[: len(graph.selection_.candidates)] == (
        graph.selection_.candidates
    )
    last = model.selection_.candidates[-1]
    assert last.values["geometry"] == "euclidean"
    assert last.accuracy > max(line.accuracy for line in graph.selection_.candidates)


@pytest.mark.parametrize(("wrong", "geometry"), [(1, "graph"), (2, "euclidean")])
def test_one_row_more_is_not_sure_and_two_are(monkeypatch, wrong, geometry):
    """Costs are right everywhere, the graph but for one row, whose gain is its standard error."""
    given = np.flatnonzero(Y >= 0)
    own = Y[given]

    def found(count):
        said = own.copy()
        said[:count] = (said[:count] + 1) % 3
        return HeldOut(np.eye(3)[said], own)

    graph, costs = fitting.choose_graph, fitting.choose_costs
    monkeypatch.setattr(
        fitting, "choose_graph", lambda *args: graph(*args)._replace(held_out=found(wrong))
    )
    monkeypatch.setattr(
        fitting, "choose_costs", lambda *args: costs(*args)._replace(held_out=found(0))
    )
    monkeypatch.setattr(fitting, "_hidden_from_costs", lambda *_: found(0))
    assert OTPropagation().fit(X, Y).selection_.chosen["geometry"] == geometry


def test_with_few_labels_a_graph_is_taken():
    y = np.full(len(Y), -1)
    for k in range(3):
        y[np.flatnonzero(k == TRUE)[:2]] = k
    selection = OTPropagation().fit(X, y).selection_
    assert selection.chosen["geometry"] == "graph"
    assert selection.candidates == []


# ---- the paper's method


def test_the_papers_method_has_its_geometry_marginals_and_columns():
    parameters = OTPropagation.paper(0.2, 0.7).get_params()
    asked = {
        "geometry": "euclidean",
        "scaling": "none",
        "marginals": "rows",
        "epsilon": 0.2,
        "alpha": 0.7,
    }
    assert parameters == OTPropagation().get_params() | asked


def test_the_papers_method_gives_each_source_the_same_mass_to_give():
    """Eq. 8: in the first round a source's shares add up to its part of all targets."""
    model = OTPropagation.paper(0.2, 0.7, tol=1e-10).fit(X, Y)
    chosen = model.selection_.chosen
    assert (chosen["geometry"], chosen["scaling"], chosen["marginals"]) == (
        "euclidean",
        "none",
        "rows",
    )
    opened, given = np.flatnonzero(Y < 0), np.flatnonzero(Y >= 0)
    cost = tables.squared(X[opened], X[given])
    logits = (model._fitted.replay.potentials[0] - cost) / 0.2
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.mean(axis=0), 1 / len(given), rtol=1e-6)


def test_the_papers_epsilon_is_chosen_by_its_columns():
    model = OTPropagation.paper(alpha=0.5).fit(X, Y)
    assert {line.values["scaling"] for line in model.selection_.candidates} == {"none"}


def test_what_is_named_stands_in_for_the_papers():
    model = OTPropagation.paper(0.2, scaling="standard", marginals="classes", n_jobs=2)
    assert model.get_params()["scaling"] == "standard"
    assert model.get_params()["marginals"] == "classes"
    assert model.get_params()["n_jobs"] == 2
    assert model.get_params()["geometry"] == "euclidean"


def test_a_kind_of_model_made_of_this_one_has_the_papers_method_too():
    class Named(OTPropagation):
        pass

    assert type(Named.paper()) is Named
