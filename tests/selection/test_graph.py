"""Scaling, neighbours, diffusion and the rest of a graph: chosen by labels that are hidden."""

import re
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from otprop import OTPropagation
from otprop.models import neighbourhoods
from otprop.propagation import spreading
from otprop.scaling import SCALINGS
from otprop.selection import folds, graph
from tests import tables

OPEN = {
    "scaling": "auto",
    "n_neighbors": "auto",
    "diffusion": "auto",
    "class_tolerance": "auto",
    "rounds": "auto",
}
GIVEN = {
    "scaling": "standard",
    "n_neighbors": 7,
    "diffusion": 0.7,
    "class_tolerance": 0.25,
    "rounds": "none",
}
# What a parameter is called in a selection.
CALLED = {"class_tolerance": "tolerance"}


def fitted(X, y, **parameters):
    return OTPropagation(**({"geometry": "graph"} | parameters)).fit(X, y)


def parameters_of(values):
    """Return the parameters that stand for a candidate's values."""
    called = {value: name for name, value in CALLED.items()}
    return {called.get(name, name): value for name, value in values.items()}


def few_labels(X, true):
    """Return labels of two rows of each class."""
    y = np.full(len(X), -1)
    for k in np.unique(true):
        y[np.flatnonzero(true == k)[:2]] = k
    return y


@pytest.fixture(scope="module")
def wine():
    X, _, y = tables.real("wine")
    return X, y, fitted(X, y)


# ---- what is given


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_is_never_chosen_otherwise(name, many):
    X, true, y = tables.real("wine")
    y = y if many else few_labels(X, true)
    model = fitted(X, y, **{name: GIVEN[name]})
    called = CALLED.get(name, name)
    assert model.selection_.chosen[called] == GIVEN[name]
    assert bool(model.selection_.candidates) is many
    assert {line.values[called] for line in model.selection_.candidates} <= {GIVEN[name]}


def test_where_all_is_given_it_alone_is_tried():
    X, _, y = tables.real("wine")
    selection = fitted(X, y, **GIVEN).selection_
    (line,) = selection.candidates
    assert parameters_of(line.values) == GIVEN
    assert parameters_of({name: selection.chosen[name] for name in line.values}) == GIVEN


def test_every_candidate_differs_from_the_best_so_far_in_one_value(wine):
    candidates = wine[2].selection_.candidates
    assert [line.values["scaling"] for line in candidates[:4]] == list(SCALINGS)
    chosen = min(candidates[:4], key=lambda line: line.brier).values
    for line in candidates[4:]:
        assert sum(line.values[name] != chosen[name] for name in chosen) in (1, 2)
    assert {line.values["scaling"] for line in candidates[4:]} == {chosen["scaling"]}
    assert len({str(line.values) for line in candidates}) == len(candidates)


# ---- how it is judged


def test_scores_are_those_of_fits_from_which_labels_were_hidden(wine):
    """Fit anew, through the estimator, for each fold and candidate."""
    X, y, model = wine
    known = np.flatnonzero(y >= 0)
    for line in model.selection_.candidates:
        found = np.zeros((len(y), 3))
        for hidden in folds.folds(X, y):
            seen = y.copy()
            seen[hidden] = -1
            again = fitted(X, seen, **parameters_of(line.values))
            found[hidden] = again.label_distributions_[hidden]
        right = found[known].argmax(axis=1) == y[known]
        brier = ((found[known] - np.eye(3)[y[known]]) ** 2).sum(axis=1).mean()
        assert line.accuracy == pytest.approx(right.mean())
        assert line.brier == pytest.approx(brier, abs=1e-9)


def test_the_scaling_has_the_least_brier_score(wine):
    selection = wine[2].selection_
    best = min(selection.candidates[:4], key=lambda line: line.brier)
    assert selection.chosen["scaling"] == best.values["scaling"]
    assert len({line.brier for line in selection.candidates[:4]}) > 1


def test_directions_of_a_fold_have_not_seen_its_labels(monkeypatch):
    X, _, y = tables.real("iris")
    seen_by = []

    def spy(name, table, seen):
        if name == "discriminant":
            seen_by.append(frozenset(np.flatnonzero(seen >= 0).tolist()))
        return folds.scaling_by_seen(name, table, seen)

    monkeypatch.setattr(graph, "scaling_by_seen", spy)
    fitted(X, y)
    known = frozenset(np.flatnonzero(y >= 0).tolist())
    expected = {known - frozenset(hidden.tolist()) for hidden in folds.folds(X, y)}
    assert set(seen_by) >= expected
    assert known not in seen_by


def random_labels(seed):
    """Return rows of thirty columns, and labels that these say nothing of."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(120, 30)), np.where(np.arange(120) < 60, np.arange(120) % 2, -1)


@pytest.mark.filterwarnings("ignore:epsilon='auto'")
@pytest.mark.parametrize("geometry", ["graph", "euclidean"])
def test_labels_that_mean_nothing_are_not_found_again(geometry):
    """Directions that had seen the hidden labels would lead to them."""
    reached = [
        fitted(*random_labels(seed), geometry=geometry, scaling="discriminant")
        .selection_.candidates[0]
        .accuracy
        for seed in range(10)
    ]
    assert 0.4 < np.mean(reached) < 0.6


def test_the_choice_is_the_same_in_each_run_and_whatever_the_threads(wine):
    X, y, model = wine
    assert fitted(X, y).selection_ == model.selection_
    assert fitted(X, y, n_jobs=3).selection_ == model.selection_


# The last three are close calls: rounds hang on which rows of the same certainty speak.
@pytest.mark.parametrize("seed", [0, 1, 2, 20, 31, 32])
def test_the_order_of_rows_and_the_names_of_classes_have_no_say(seed):
    X, _, y = tables.blobs(120, 3, 3, seed=seed, spread=0.8, known=0.4)
    rows = np.random.default_rng(seed).permutation(120)
    selection = fitted(X, y).selection_
    for other in (fitted(X[rows], y[rows]), fitted(X, tables.rename(y, ["c", "a", "b"]))):
        assert other.selection_.chosen == selection.chosen
        for line, same in zip(selection.candidates, other.selection_.candidates, strict=True):
            assert same.values == line.values
            assert same.accuracy == pytest.approx(line.accuracy)
            assert same.brier == pytest.approx(line.brier, abs=1e-6)


def test_the_rows_of_an_affinity_may_stand_in_any_order():
    X, _, y = tables.blobs(120, 3, 3, seed=5, spread=0.8, known=0.4)
    W = np.exp(-tables.squared(X))
    rows = np.random.default_rng(0).permutation(len(y))
    model = fitted(W, y, geometry="precomputed-graph")
    other = fitted(W[np.ix_(rows, rows)], y[rows], geometry="precomputed-graph")
    assert other.selection_.chosen == model.selection_.chosen
    lines = [(c.accuracy, c.brier) for c in model.selection_.candidates]
    same = [(c.accuracy, c.brier) for c in other.selection_.candidates]
    np.testing.assert_allclose(same, lines, atol=1e-5)


def test_directions_that_no_labels_show_are_not_chosen():
    """All labelled rows of a class are the same: they have no spread."""
    X, true, _ = tables.blobs(80, 3, 2, spread=0.2)
    y = np.where(np.arange(80) < 40, true, -1)
    X[:40] = X[true[:40]]
    assert fitted(X, y).selection_.chosen["scaling"] != "discriminant"


# ---- few labels


def test_with_few_labels_nothing_is_hidden_and_the_reason_says_so():
    X, true, _ = tables.real("iris")
    model = fitted(X, few_labels(X, true), rounds="none")
    assert re.search("too few labels", model.selection_.reason)
    assert model.selection_.candidates == []
    assert model.calibration_.labels == 0
    chosen = model.selection_.chosen
    assert chosen["tolerance"] == 0.0
    assert chosen["rounds"] == "none"


def test_rounds_are_run_where_what_they_find_is_found_again():
    X, true, _ = tables.blobs(90, 2, 3, spread=0.05)
    assert fitted(X, few_labels(X, true)).selection_.chosen["rounds"] == "annealed"
    noise = np.random.default_rng(0).normal(size=(90, 10))
    assert fitted(noise, few_labels(noise, true)).selection_.chosen["rounds"] == "none"


@pytest.mark.parametrize(("again", "rounds"), [(1.0, "annealed"), (0.5, "none")])
def test_it_is_the_part_found_again_that_decides(again, rounds):
    X, true, _ = tables.real("iris")
    with mock.patch.object(graph._Judge, "_reproduced", return_value=again):
        assert fitted(X, few_labels(X, true)).selection_.chosen["rounds"] == rounds


def test_parts_are_found_again_and_random_links_are_not():
    """How much is, on a graph of two parts and on one without any."""
    true = np.repeat([0, 1], 40)
    random = np.triu(np.random.default_rng(0).random((80, 80)) ** 8, 1)
    graphs = {
        "parts": (true[:, None] == true).astype(float),
        "random": random + random.T,
    }
    y = np.full(80, -1)
    y[[0, 1, 40, 41]] = [0, 0, 1, 1]
    whole, found = graph._Judge._reproduced, []
    for W in graphs.values():
        with mock.patch.object(
            graph._Judge,
            "_reproduced",
            autospec=True,
            side_effect=lambda *given: found.append(whole(*given)) or found[-1],
        ):
            fitted(W, y, geometry="precomputed-graph")
    assert found[0] == 1.0
    assert found[1] < 0.9


@pytest.mark.parametrize("seed", range(15))
def test_any_few_labels_are_no_error(seed):
    """One label a class among few rows, which overlap."""
    X, _, y = tables.blobs(12, 2, 4, seed=seed, spread=2.0, known=0.05)
    assert np.isfinite(fitted(X, y).label_distributions_).all()


# ---- a prior that cannot be


def shifted(seed=0, part=0.05):
    """Return two groups, half of the labels in each, but of the other rows nearly all in one."""
    rng = np.random.default_rng(seed)
    true = np.concatenate([np.repeat([0, 1], 20), rng.random(400) < part]).astype(int)
    X = rng.normal(size=(440, 2)) + 5.0 * true[:, None]
    return X, true, np.where(np.arange(440) < 40, true, -1)


def test_a_prior_that_the_open_rows_contradict_is_dropped():
    X, true, y = shifted()
    opened = y < 0
    model = fitted(X, y, rounds="none")
    assert np.isposinf(model.selection_.chosen["tolerance"])
    forced = fitted(X, y, rounds="none", class_tolerance=0)
    assert (model.transduction_ == true)[opened].mean() > 0.97
    assert (forced.transduction_ == true)[opened].mean() < 0.7
    # What is left is the vote over the diffusion kernel.
    affinity = model._fitted.graph.affinity.toarray()
    roots = np.sqrt(affinity.sum(axis=1))
    S = affinity / np.outer(roots, roots)
    H = np.linalg.inv(np.eye(440) - model._fitted.diffusion * S)
    votes = np.stack([H[:, y == k].mean(axis=1) for k in (0, 1)], axis=1)
    np.testing.assert_array_equal(model.transduction_[opened], votes.argmax(axis=1)[opened])


def test_a_contradiction_is_enough_to_drop_it(monkeypatch):
    """The labels themselves need not be found more often without it."""
    X, _, y = shifted()
    monkeypatch.setattr(graph._Judge, "_better", lambda self, chosen, other: chosen)  # noqa: ARG005
    assert np.isposinf(fitted(X, y).selection_.chosen["tolerance"])


def test_a_prior_that_holds_is_kept():
    X, true, y = shifted(part=0.5)
    X = X - 3.5 * true[:, None]  # so near one another that the vote errs
    assert fitted(X, y).selection_.chosen["tolerance"] == 0.0


@pytest.mark.parametrize("prior", ["labels", "uniform", {0: 1, 1: 1}])
def test_a_prior_that_is_given_is_never_dropped(prior):
    X, _, y = shifted()
    model = fitted(X, y, class_prior=prior)
    assert model.selection_.chosen["tolerance"] == 0.0
    assert {line.values["tolerance"] for line in model.selection_.candidates} == {0.0}


@pytest.mark.parametrize("rule", ["rows", "relaxed"])
def test_rules_without_a_prior_try_no_tolerance(rule):
    X, _, y = shifted()
    model = fitted(X, y, marginals=rule)
    assert model.selection_.chosen["tolerance"] == np.inf
    assert {line.values["tolerance"] for line in model.selection_.candidates} == {np.inf}


# ---- other inputs


def test_sparse_columns_stay_as_they_are():
    X, _, y = tables.real("wine")
    model = fitted(sparse.csr_matrix(X), y)
    assert {line.values["scaling"] for line in model.selection_.candidates} == {"none"}
    assert model.selection_.chosen["scaling"] == "none"


def test_sparse_columns_are_judged_as_dense_ones():
    X, _, y = tables.real("wine")
    X = np.round(8 * X)  # no distance is rounded
    dense = fitted(X, y, scaling="none").selection_
    thin = fitted(sparse.csr_matrix(X), y, scaling="none").selection_
    assert thin == dense


@pytest.mark.parametrize("geometry", ["graph", "euclidean", "auto"])
@pytest.mark.parametrize("scaling", ["minmax", "standard", "discriminant"])
def test_a_scaling_that_would_fill_a_sparse_table_is_refused(scaling, geometry):
    X, _, y = tables.real("wine")
    with pytest.raises(ValueError, match="would fill up a sparse X; take scaling='none'"):
        fitted(sparse.csr_matrix(X), y, scaling=scaling, geometry=geometry)


@pytest.mark.parametrize("geometry", ["graph", "euclidean", "auto"])
def test_directions_need_a_class_with_two_labels(geometry):
    X, true, _ = tables.real("iris")
    y = np.full(150, -1)
    y[[0, 60, 120]] = true[[0, 60, 120]]
    with pytest.raises(ValueError, match="needs a class with two labelled rows"):
        fitted(X, y, scaling="discriminant", geometry=geometry)


def test_of_an_affinity_neither_scaling_nor_neighbours_are_chosen():
    X, _, y = tables.real("wine")
    model = fitted(np.exp(-tables.squared(X) * 4), y, geometry="precomputed-graph")
    assert "n_neighbors" not in model.selection_.chosen
    tried = [(c.values["scaling"], c.values["n_neighbors"]) for c in model.selection_.candidates]
    assert len(set(tried)) == 1
    assert len({c.values["diffusion"] for c in model.selection_.candidates}) == 3


# ---- what it costs


@pytest.mark.parametrize("known", [0.15, 0.4])
def test_a_choice_costs_at_most_ten_fits(known):
    X, _, y = tables.blobs(2000, 4, 3, seed=0, known=known)

    def work(**parameters):
        """Count searches for neighbours, and diffusions, of a fit."""
        with (
            mock.patch.object(neighbourhoods, "nearest", wraps=neighbourhoods.nearest) as searches,
            mock.patch.object(spreading, "diffuse", wraps=spreading.diffuse) as diffusions,
        ):
            OTPropagation(**parameters).fit(X, y)
        return searches.call_count, diffusions.call_count

    one, auto = work(geometry="graph", **(GIVEN | {"scaling": "none"})), work()
    assert one[0] == 1
    assert one[0] < auto[0] <= 10 * one[0]
    assert one[1] < auto[1] <= 10 * one[1]
