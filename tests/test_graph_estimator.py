"""OTPropagation on a graph: laws, inputs, and what it says on the way."""

from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from otprop import OTPropagation
from otprop.propagation import ROUNDS
from otprop.transport import blocks
from tests import tables

GRAPH = {
    "geometry": "graph",
    "scaling": "minmax",
    "n_neighbors": 10,
    "diffusion": 0.9,
    "class_tolerance": 0.0,
    "rounds": "none",
}


def fitted(X, y, **parameters):
    return OTPropagation(**(GRAPH | parameters)).fit(X, y)


def small_blocks():
    """Cut the work into blocks of 64 rows, as large data would, so that threads have a part."""
    return mock.patch.object(blocks, "_BLOCK_ENTRIES", 1)


def state(model):
    """Return all that a fit decides, for comparison to the bit."""
    return {
        "distributions": model.label_distributions_,
        "certainty": model.certainty_,
        "confidence": model.confidence_,
        "round": model.round_,
        "labels": model.transduction_,
        "trace": np.array(model.trace_, float),
        "prices": model._fitted.prices,
        "links": model._fitted.graph.affinity.data,
        "calibration": np.array(model.calibration_),
        "scores": np.array([(c.accuracy, c.brier) for c in model.selection_.candidates]),
    }


def assert_same_bits(one, other):
    for name, value in state(one).items():
        np.testing.assert_array_equal(state(other)[name], value, err_msg=name)
    assert one.selection_.chosen == other.selection_.chosen


def assert_repeats(model, X, y):
    """Predictions for X_U are what transduction found, in one go, shuffled and in parts."""
    opened = np.flatnonzero(y < 0)
    expected = model.label_distributions_[opened]
    np.testing.assert_array_equal(model.predict_proba(X[opened]), expected)
    np.testing.assert_array_equal(model.predict(X[opened]), model.transduction_[opened])
    np.testing.assert_array_equal(model.predict_certainty(X[opened]), model.certainty_[opened])
    np.testing.assert_array_equal(model.predict_confidence(X[opened]), model.confidence_[opened])
    np.testing.assert_array_equal(model.explain(X[opened], 1).round, model.round_[opened])
    order = np.random.default_rng(0).permutation(len(opened))
    np.testing.assert_array_equal(model.predict_proba(X[opened[order]]), expected[order])
    for row in order[:10]:
        alone = model.predict_proba(X[opened[row : row + 1]])
        np.testing.assert_array_equal(alone, expected[row : row + 1])


# ---- predictions


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", tables.LOADERS)
def test_prediction_equals_transduction_to_the_bit(name, rounds, dtype):
    X, _, y = tables.real(name)
    X = X.astype(dtype)
    assert_repeats(fitted(X, y, rounds=rounds), X, y)


@pytest.mark.parametrize("name", tables.LOADERS)
def test_prediction_equals_transduction_where_all_is_chosen(name):
    X, true, y = tables.real(name)
    model = OTPropagation().fit(X, y)
    assert_repeats(model, X, y)
    assert model.score(X[y < 0], true[y < 0]) > 0.9


@pytest.mark.parametrize("scaling", ["none", "standard", "discriminant"])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_prediction_equals_transduction_in_every_scaling(name, scaling):
    X, _, y = tables.real(name)
    assert_repeats(fitted(X, y, scaling=scaling), X, y)


@pytest.mark.parametrize("name", ["iris", "digits"])
def test_prediction_equals_transduction_on_sparse_rows(name):
    X, _, y = tables.real(name)
    X = sparse.csr_matrix(X)
    assert_repeats(fitted(X, y, scaling="none"), X, y)


# ---- the same to the bit


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", ["wine", "digits"])
def test_threads_change_no_bit(name, rounds):
    X, _, y = tables.real(name)
    with small_blocks():
        alone = fitted(X, y, rounds=rounds, n_jobs=1)
        shared = fitted(X, y, rounds=rounds, n_jobs=2)
        assert_same_bits(shared, alone)
        np.testing.assert_array_equal(shared.predict_proba(X), alone.predict_proba(X))
        np.testing.assert_array_equal(shared.explain(X[:9]).shares, alone.explain(X[:9]).shares)


@pytest.mark.parametrize("name", ["wine", "breast cancer"])
def test_threads_and_memory_change_no_bit_where_all_is_chosen(name):
    X, _, y = tables.real(name)
    with small_blocks():
        alone = OTPropagation(n_jobs=1).fit(X, y)
        assert_same_bits(OTPropagation(n_jobs=3).fit(X, y), alone)
        assert_same_bits(OTPropagation(memory_limit=1).fit(X, y), alone)


def test_read_only_data_are_read():
    X, _, y = tables.real("iris")
    assert not X.flags.writeable
    assert_same_bits(fitted(X, y), fitted(X.copy(), y.copy()))


TABLES = {
    "list": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "pandas": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_bits(kind):
    X, _, y = tables.real("iris")
    table = TABLES[kind](X)
    model, reference = fitted(table, y), fitted(X, y)
    assert_same_bits(model, reference)
    np.testing.assert_array_equal(model.predict_proba(table), reference.predict_proba(X))


def test_single_precision_stays_single_and_finds_the_same():
    X, _, y = tables.real("wine")
    single, double = fitted(X.astype(np.float32), y), fitted(X, y)
    assert single._fitted.points.dtype == np.float32
    np.testing.assert_allclose(single.label_distributions_, double.label_distributions_, atol=1e-3)
    frame = pd.DataFrame(X.astype(np.float32))
    assert_same_bits(fitted(frame, y), single)


SPARSE = {
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
}


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_rows_get_the_labels_of_dense_ones(kind):
    X, _, y = tables.real("digits")
    X = np.round(16 * X)  # whole numbers, whose squared distances are exact
    dense, thin = fitted(X, y, scaling="none"), fitted(SPARSE[kind](X), y, scaling="none")
    np.testing.assert_array_equal(thin.transduction_, dense.transduction_)
    np.testing.assert_allclose(thin.label_distributions_, dense.label_distributions_, atol=1e-9)
    np.testing.assert_allclose(
        thin.predict_proba(X[:50] + 0.25),
        dense.predict_proba(sparse.csr_matrix(X[:50] + 0.25)),
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("rounds", ROUNDS)
def test_an_affinity_of_the_callers_own_is_a_graph(rounds, kind):
    X, _, y = tables.real("wine")
    built = fitted(X, y, rounds=rounds)
    W = built._fitted.graph.affinity
    own = OTPropagation(
        geometry="precomputed-graph", diffusion=0.9, class_tolerance=0.0, rounds=rounds
    ).fit(kind(W.toarray()), y)
    np.testing.assert_array_equal(own.label_distributions_, built.label_distributions_)
    np.testing.assert_array_equal(own.round_, built.round_)
    np.testing.assert_array_equal(own._fitted.prices, built._fitted.prices)


def test_the_diagonal_and_the_unit_of_an_affinity_do_not_matter():
    X, _, y = tables.real("wine")
    W = np.exp(-4 * tables.squared(X))
    one = OTPropagation(geometry="precomputed-graph", diffusion=0.9).fit(W, y)
    other = OTPropagation(geometry="precomputed-graph", diffusion=0.9)
    other.fit(1024 * (W - np.eye(len(W))), y)
    np.testing.assert_allclose(other.label_distributions_, one.label_distributions_, atol=1e-9)


# ---- what does not matter

EXACT = {"tol": 1e-10}


@pytest.mark.parametrize("rounds", ROUNDS)
@settings(max_examples=8)
@given(seed=st.integers(0, 500), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rounds, seed, order):
    X, _, y = tables.blobs(80, 2, 3, seed=seed, spread=0.4, known=0.3)
    rows = list(range(80))
    order.shuffle(rows)
    model = fitted(X, y, rounds=rounds, **EXACT)
    shuffled = fitted(X[rows], y[rows], rounds=rounds, **EXACT)
    assert_close(shuffled, model, rows)


@pytest.mark.parametrize("rounds", ROUNDS)
@settings(max_examples=8)
@given(seed=st.integers(0, 500), names=st.permutations(["ant", "bee", "cat"]))
def test_names_of_classes_and_their_order_do_not_matter(rounds, seed, names):
    X, _, y = tables.blobs(80, 2, 3, seed=seed, spread=0.4, known=0.3)
    model = fitted(X, y, rounds=rounds, **EXACT)
    named = fitted(X, tables.rename(y, names), rounds=rounds, **EXACT)
    columns = [list(named.classes_).index(names[k]) for k in model.classes_]
    assert_close(named, model, slice(None), columns)


def assert_close(other, model, rows, columns=slice(None)):
    """Compare two fits beyond rounding.

    In rounds a row that is equally near to two classes is led by rounding, and others by it.
    """
    found = other.label_distributions_[:, columns]
    off = np.abs(found - model.label_distributions_[rows]).max(axis=1)
    if model.get_params()["rounds"] == "none":
        assert off.max() < 1e-6
    assert (off < 1e-6).mean() > 0.95


@pytest.mark.parametrize("factor", [1e-6, 37.5, 1e9])
def test_the_unit_and_the_origin_of_the_columns_do_not_matter(factor):
    X, _, y = tables.real("wine")
    model = fitted(X, y, scaling="none")
    moved = fitted(factor * (X + 3.0), y, scaling="none")
    np.testing.assert_array_equal(moved.transduction_, model.transduction_)
    np.testing.assert_allclose(moved.label_distributions_, model.label_distributions_, atol=1e-5)


def test_the_hidden_truth_has_no_say():
    """Nothing of a row without label is read but its features."""
    X, true, y = tables.real("wine")
    shuffled = np.random.default_rng(0).permutation(true)
    known = y >= 0
    for marker in (None, np.nan):
        column = np.where(known, true, marker)
        other = np.where(known, shuffled, marker)
        other[known] = true[known]
        assert_same_bits(OTPropagation().fit(X, column), OTPropagation().fit(X, other))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_given_labels_never_change(rounds):
    X, true, y = tables.blobs(80, 2, 3, seed=1, spread=1.5, known=0.3)
    y = np.where(y < 0, -1, np.random.default_rng(0).permutation(true))  # wrong as often as not
    y[:3] = [0, 1, 2]
    model = fitted(X, y, rounds=rounds)
    known = y >= 0
    np.testing.assert_array_equal(model.transduction_[known], y[known])
    np.testing.assert_array_equal(model.label_distributions_[known], np.eye(3)[y[known]])
    np.testing.assert_array_equal(model.round_[known], 0)
    np.testing.assert_array_equal(model.confidence_[known], 1.0)


def test_nothing_unlabelled_is_no_error():
    X, true, _ = tables.real("iris")
    model = fitted(X, true)
    assert model.trace_ == []
    np.testing.assert_array_equal(model.transduction_, true)
    np.testing.assert_array_equal(model.predict(X[[0, 60, 149]]), true[[0, 60, 149]])


# ---- priors


def test_class_totals_are_what_the_prior_leaves():
    X, true, y = tables.blobs(300, 2, 3, seed=2, spread=0.6, known=0.2)
    parts = {0: 0.5, 1: 0.3, 2: 0.2}
    model = fitted(X, y, class_prior=parts, tol=1e-9)
    # All rows together: the given ones as they are, the others as their distributions.
    np.testing.assert_allclose(model.label_distributions_.mean(axis=0), [0.5, 0.3, 0.2], atol=1e-6)
    labels = fitted(X, y, class_prior="labels", tol=1e-9)
    share = np.bincount(y[y >= 0]) / (y >= 0).sum()
    np.testing.assert_allclose(labels.label_distributions_.mean(axis=0), share, atol=1e-6)
    uniform = fitted(X, y, class_prior="uniform", tol=1e-9)
    np.testing.assert_allclose(uniform.label_distributions_.mean(axis=0), 1 / 3, atol=1e-6)
    assert len(true) == 300


def test_a_tolerance_lets_totals_differ_by_so_much():
    X, _, y = tables.blobs(300, 2, 3, seed=2, spread=0.6, known=0.2)
    parts = np.array([0.6, 0.2, 0.2])
    totals = {}
    for tolerance in (0.0, 0.1, np.inf):
        model = fitted(
            X, y, class_prior=dict(enumerate(parts)), class_tolerance=tolerance, tol=1e-9
        )
        totals[tolerance] = model.label_distributions_.mean(axis=0)
    assert np.abs(totals[np.inf] / parts - 1).max() > 0.2
    assert np.abs(totals[0.1] / parts - 1).max() == pytest.approx(0.1, abs=1e-5)
    assert np.abs(totals[0.0] / parts - 1).max() < 1e-6


@pytest.mark.filterwarnings("ignore:class_prior has no part")
@pytest.mark.parametrize("rounds", ["none", "annealed"])
@pytest.mark.parametrize("rule", ["rows", "relaxed"])
def test_rules_that_know_of_no_prior_take_none(rule, rounds):
    X, _, y = tables.real("wine")
    asked = GRAPH | {"marginals": rule, "rounds": rounds, "class_tolerance": "auto"}
    plain = OTPropagation(**asked).fit(X, y)
    other = OTPropagation(**asked, class_prior={0: 8, 1: 1, 2: 1}).fit(X, y)
    assert_same_bits(other, plain)


# ---- what it says

COSTS = {"epsilon": 0.5, "alpha": 0.5, "stall": 0.5}
GRAPHS = {"diffusion": 0.5, "rounds": "annealed"}
CHANGED = COSTS | GRAPHS | {"scaling": "standard", "n_neighbors": 3}
CHANGED |= {"relaxation": 1.0, "class_prior": "uniform", "class_tolerance": 1.0}
IGNORED = {
    ("graph", "classes"): {*COSTS, "relaxation"},
    ("graph", "rows"): {*COSTS, "relaxation", "class_prior", "class_tolerance"},
    ("graph", "relaxed"): {*COSTS, "class_prior", "class_tolerance"},
    ("precomputed-graph", "classes"): {*COSTS, "relaxation", "scaling", "n_neighbors"},
    ("euclidean", "classes"): {*GRAPHS, "n_neighbors", "relaxation"},
    ("precomputed", "classes"): {*GRAPHS, "n_neighbors", "relaxation", "scaling"},
    ("precomputed", "relaxed"): {
        *GRAPHS,
        "n_neighbors",
        "scaling",
        "class_prior",
        "class_tolerance",
    },
}
SMALL, _, SMALL_Y = tables.blobs(60, 2, 2, seed=0, known=0.5)
OF_GEOMETRY = {
    "graph": SMALL,
    "euclidean": SMALL,
    "precomputed": tables.squared(SMALL),
    "precomputed-graph": np.exp(-tables.squared(SMALL)),
}


@pytest.mark.parametrize(("geometry", "marginals"), IGNORED)
@pytest.mark.parametrize("name", CHANGED)
def test_a_parameter_without_part_is_named_with_the_reason(name, geometry, marginals, recwarn):
    model = OTPropagation(geometry=geometry, marginals=marginals, tol=1e-2)
    model.set_params(**{name: CHANGED[name]}).fit(OF_GEOMETRY[geometry], SMALL_Y)
    said = [str(warning.message) for warning in recwarn]
    if name not in IGNORED[geometry, marginals]:
        assert said == []
        return
    (only,) = said
    of_marginals = name in {"relaxation", "class_prior", "class_tolerance"}
    reason = f"marginals={marginals!r}" if of_marginals else f"geometry={geometry!r}"
    assert only == f"{name} has no part in {reason}, which is in use; it is ignored."
    assert recwarn[0].filename == __file__
    # And has none.
    plain = OTPropagation(geometry=geometry, marginals=marginals, tol=1e-2)
    plain.fit(OF_GEOMETRY[geometry], SMALL_Y)
    np.testing.assert_array_equal(model.label_distributions_, plain.label_distributions_)


def test_what_was_chosen_is_the_reason_where_it_was_left_open(recwarn):
    X, _, y = tables.real("wine")
    OTPropagation(alpha=0.5).fit(X, y)
    assert [str(warning.message) for warning in recwarn] == [
        "alpha has no part in geometry='graph', which is in use; it is ignored."
    ]


def test_parts_without_a_label_are_told_at_the_callers_line():
    X, true, y = tables.blobs(90, 2, 3, seed=0, spread=0.01)
    y = np.where(true == 2, -1, y)
    with pytest.warns(UserWarning, match=r"30 row\(s\) are out of every source's reach") as caught:
        model = OTPropagation(n_neighbors=5).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    lost = true == 2
    np.testing.assert_array_equal(model.round_[lost], -1)
    np.testing.assert_array_equal(model.label_distributions_[lost], 0.5)
    np.testing.assert_array_equal(model.certainty_[lost], 0.0)
    np.testing.assert_array_equal(model.confidence_[lost], 0.5)
    assert (model.round_[~lost] >= 0).all()
    assert all(done.unreachable == 30 for done in model.trace_)
    with pytest.warns(UserWarning, match=r"1 row\(s\) are out of every source's reach"):
        np.testing.assert_array_equal(model.predict_proba(X[[2]]), [[0.5, 0.5]])
    # Another row of a part that is reached is not dragged along.
    assert model.predict_certainty(X[[0]])[0] > 0.5


def test_verbose_prints_a_line_a_round(capsys):
    X, _, y = tables.real("iris")
    model = fitted(X, y, rounds="annealed", verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.trace_) > 1
    assert all(line.startswith("[otprop] round ") for line in lines)


def test_the_attributes_are_those_of_the_docstring():
    X, _, y = tables.real("iris")
    model = OTPropagation().fit(X, y)
    documented = {
        line.split(" : ")[0].strip()
        for line in OTPropagation.__doc__.partition("Attributes\n")[2].splitlines()
        if line.startswith("    ") and not line.startswith("     ") and " : " in line
    }
    assert "selection_" in documented
    missing = {name for name in documented if not hasattr(model, name)}
    assert missing == {"feature_names_in_"}
    assert model.epsilon_ == 1.0
    assert model.n_iter_ == len(model.trace_)
