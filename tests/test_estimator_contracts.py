"""The contracts of DESIGN.md 7.3 to 7.5, and Eq. 26: induction repeats transduction to the bit."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from otprop import OTPropagation
from otprop.transport import blocks
from tests import tables

# Parameters with which the rounds are 1, about 5, and more than 20.
ROUNDS = {
    "one": range(1, 2),
    "about five": range(4, 8),
    "more than twenty": range(21, 10**6),
}
SETTINGS = [
    ("iris", "one", 0.003, 0.0),
    ("iris", "about five", 0.003, 0.6),
    ("iris", "more than twenty", 0.1, 0.7),
    ("wine", "one", 0.01, 0.0),
    ("wine", "about five", 0.01, 0.7),
    ("wine", "more than twenty", 0.1, 0.7),
    ("breast cancer", "one", 0.01, 0.0),
    ("breast cancer", "about five", 0.003, 0.1),
    ("breast cancer", "more than twenty", 0.03, 0.7),
    ("digits", "one", 0.01, 0.0),
    ("digits", "about five", 0.003, 0.7),
    ("digits", "more than twenty", 0.1, 0.7),
]
KINDS = {"dense": np.asarray, "sparse": sparse.csr_matrix}


def small_blocks():
    """Cut the work into blocks of 64 rows, as large data would, so that threads have a part."""
    return mock.patch.object(blocks, "_BLOCK_ENTRIES", 1)


def state(model):
    """Return all that a fit decides, for comparison to the bit."""
    return {
        "distributions": model.label_distributions_,
        "certainty": model.certainty_,
        "round": model.round_,
        "labels": model.transduction_,
        "trace": np.array(model.trace_, float),
        "epsilon": model.epsilon_,
        "potentials": np.concatenate([[0.0], *model._fitted.replay.potentials]),
        "order": model._fitted.source_rows,
    }


def assert_same_bits(one, other):
    for name, value in state(one).items():
        np.testing.assert_array_equal(state(other)[name], value, err_msg=name)


def assert_same_beyond_rounding(one, other, atol=1e-6):
    np.testing.assert_array_equal(one.transduction_, other.transduction_)
    np.testing.assert_array_equal(one.round_, other.round_)
    np.testing.assert_allclose(one.label_distributions_, other.label_distributions_, atol=atol)


def assert_replays(model, X, y):
    """Predictions for X_U are what transduction found, in one go, shuffled and in parts."""
    opened = np.flatnonzero(y < 0)
    expected, labels = model.label_distributions_[opened], model.transduction_[opened]
    np.testing.assert_array_equal(model.predict_proba(X[opened]), expected)
    np.testing.assert_array_equal(model.predict(X[opened]), labels)
    np.testing.assert_array_equal(model.predict_certainty(X[opened]), model.certainty_[opened])
    np.testing.assert_array_equal(model.explain(X[opened], 1).round, model.round_[opened])
    order = np.random.default_rng(0).permutation(len(opened))
    shuffled = model.predict_proba(X[opened[order]])
    np.testing.assert_array_equal(shuffled, expected[order])
    for row in order[:10]:
        alone = model.predict_proba(X[opened[row : row + 1]])
        np.testing.assert_array_equal(alone, expected[row : row + 1])


# ---- Eq. 26


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting)))
def test_prediction_equals_transduction_to_the_bit(setting, kind, dtype):
    name, rounds, epsilon, alpha = setting
    X, _, y = tables.real(name)
    X = KINDS[kind](X.astype(dtype))
    model = OTPropagation.paper(epsilon=epsilon, alpha=alpha).fit(X, y)
    assert len(model.trace_) in ROUNDS[rounds]
    assert_replays(model, X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory_limit", [1, "50KB", "200KB"])
@pytest.mark.parametrize(
    ("name", "epsilon", "alpha"),
    [("iris", 0.1, 0.7), ("wine", 0.1, 0.7), ("breast cancer", 0.03, 0.4), ("digits", 0.01, 0.6)],
)
def test_no_memory_limit_changes_a_bit(name, epsilon, alpha, memory_limit, kind):
    X, _, y = tables.real(name)
    X = KINDS[kind](X)
    plenty = OTPropagation.paper(epsilon=epsilon, alpha=alpha).fit(X, y)
    limited = OTPropagation.paper(epsilon=epsilon, alpha=alpha, memory_limit=memory_limit).fit(X, y)
    assert_same_bits(limited, plenty)
    assert_replays(limited, X, y)


def test_prediction_equals_transduction_in_many_blocks():
    X, _, y = tables.real("digits")
    with small_blocks():
        model = OTPropagation.paper(epsilon=0.01, alpha=0.7, n_jobs=2).fit(X, y)
        assert_replays(model, X, y)
    assert_replays(model, X, y)


def test_a_row_is_predicted_alike_dense_or_sparse_where_it_was_fitted_dense():
    X, _, y = tables.real("wine")
    model = OTPropagation.paper(epsilon=0.01, alpha=0.7).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(sparse.csr_array(X)), model.predict_proba(X))
    sparsely = OTPropagation.paper(epsilon=0.01, alpha=0.7).fit(sparse.csc_array(X), y)
    np.testing.assert_array_equal(
        sparsely.predict_proba(X), sparsely.predict_proba(sparse.coo_array(X))
    )
    np.testing.assert_array_equal(sparsely.round_, model.round_)
    np.testing.assert_allclose(sparsely.label_distributions_, model.label_distributions_, atol=1e-5)


def test_precomputed_costs_decide_as_the_points_they_come_from():
    X, _, y = tables.real("wine")
    points = OTPropagation.paper(epsilon=0.01, alpha=0.7, tol=1e-9).fit(X, y)
    cost = tables.squared(X)
    costs = OTPropagation.paper(epsilon=0.01, alpha=0.7, tol=1e-9, geometry="precomputed").fit(
        cost, y
    )
    assert_same_beyond_rounding(costs, points)
    assert_replays(costs, cost, y)
    new = X[:30] + 0.01
    np.testing.assert_allclose(
        costs.predict_proba(tables.squared(new, X)), points.predict_proba(new), atol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(
    table=tables.tables(),
    parameters=st.fixed_dictionaries(
        {
            "epsilon": st.sampled_from([0.1, 4.0, 40.0]),
            "alpha": st.sampled_from([0.0, 0.3, 0.9, 1.0]),
            "memory_limit": st.sampled_from([1, 200, "1GB"]),
            "stall": st.sampled_from(["lowest-alpha", 0.3]),
        }
    ),
)
def test_prediction_equals_transduction_on_any_table(table, parameters, dtype):
    X, y = table
    X = X.astype(dtype)
    assert_replays(OTPropagation.paper(**parameters, tol=1e-4).fit(X, y), X, y)


# ---- 7.4: the same to the bit


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_change_no_bit(n_jobs, kind):
    X, _, y = tables.real("breast cancer")
    X = KINDS[kind](X)
    with small_blocks():
        for parameters in ({"epsilon": 0.01}, {"epsilon": "auto", "memory_limit": 1}):
            alone = OTPropagation.paper(**parameters, n_jobs=1).fit(X, y)
            shared = OTPropagation.paper(**parameters, n_jobs=n_jobs).fit(X, y)
            assert_same_bits(shared, alone)
            np.testing.assert_array_equal(shared.predict_proba(X), alone.predict_proba(X))


@settings(max_examples=15)
@given(seed=st.integers(0, 999), alpha=st.sampled_from([0.1, 0.6, 0.95]), solver=st.booleans())
def test_threads_and_memory_change_no_bit_on_any_data(seed, alpha, solver):
    X, _, y = tables.blobs(300, 3, 3, seed=seed)
    parameters = {"epsilon": 0.3, "alpha": alpha, "stall": 0.2, "tol": 1e-4}
    parameters["solver"] = "sinkhorn" if solver else "newton"
    with small_blocks():
        first = OTPropagation.paper(**parameters, n_jobs=1).fit(X, y)
        for others in ({"n_jobs": 2}, {"n_jobs": 3, "memory_limit": 1}, {"memory_limit": "100KB"}):
            assert_same_bits(OTPropagation.paper(**parameters, **others).fit(X, y), first)


@settings(max_examples=25)
@given(table=tables.tables(), seed=st.integers(0, 999))
def test_the_same_fit_gives_the_same_bits_wherever_its_arrays_happen_to_lie(table, seed):
    """Few sources: loops compiled twice must not take another turn for arrays close together."""
    X, y = table
    rng = np.random.default_rng(seed)
    model = OTPropagation.paper(epsilon=2.0, alpha=0.4).fit(X, y)
    first = {name: np.copy(value) for name, value in state(model).items()}
    for _ in range(10):
        litter = [np.empty(rng.integers(1, 60)) for _ in range(rng.integers(0, 80))]
        again = state(model.fit(X.copy(), y))
        del litter
        for name, value in first.items():
            np.testing.assert_array_equal(again[name], value, err_msg=name)
        assert_replays(model, X, y)


def test_read_only_data_give_the_same_bits():
    X, _, y = tables.real("iris")
    assert not X.flags.writeable
    locked = OTPropagation.paper(epsilon=0.01).fit(X, y)
    free = OTPropagation.paper(epsilon=0.01).fit(X.copy(), y.copy())
    assert_same_bits(locked, free)
    np.testing.assert_array_equal(free.predict_proba(X), free.predict_proba(X.copy()))


@pytest.mark.parametrize("geometry", ["euclidean", "precomputed"])
def test_read_only_state_gives_the_same_bits(tmp_path, geometry):
    """As joblib hands it to other processes, or loads it with mmap_mode."""
    joblib = pytest.importorskip("joblib")
    X, _, y = tables.blobs(60, 13, 2, seed=0)
    X = tables.squared(X) if geometry == "precomputed" else X
    model = OTPropagation.paper(epsilon=2.0, geometry=geometry).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict_proba(X), model.predict_proba(X))


# ---- 7.5: what does not matter

CLOSE = {"epsilon": 2.0, "alpha": 0.4, "tol": 1e-10}


def decided(X, y, **parameters):
    """Fit a table on which rounding decides nothing, or tell Hypothesis to draw another."""
    model = OTPropagation.paper(**(CLOSE | parameters)).fit(X, y)
    assume(tables.closest_call(model, tables.squared(X)) > 1e-6)
    return model


@given(table=tables.generic(), shift=st.floats(-100, 100))
def test_a_shift_of_all_rows_does_not_matter(table, shift):
    X, y = table
    model = decided(X, y)
    moved = OTPropagation.paper(**CLOSE).fit(X + shift, y)
    assert_same_beyond_rounding(moved, model)
    np.testing.assert_allclose(
        moved.predict_proba(X[:3] + 0.1 + shift), model.predict_proba(X[:3] + 0.1), atol=1e-5
    )


@given(table=tables.tables(), shift=st.integers(-1000, 1000))
def test_a_shift_that_is_exact_changes_no_bit(table, shift):
    X, y = table
    assert_same_bits(
        OTPropagation.paper(**CLOSE).fit(X + shift, y), OTPropagation.paper(**CLOSE).fit(X, y)
    )


@given(table=tables.generic(), angle=st.floats(0, 6.28), mirror=st.booleans())
def test_rotation_and_reflection_do_not_matter(table, angle, mirror):
    X, y = table
    model = decided(X, y)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn[0] *= -1 if mirror else 1
    assert_same_beyond_rounding(OTPropagation.paper(**CLOSE).fit(X @ turn.T, y), model)


@given(table=tables.generic(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, order):
    X, y = table
    model = decided(X, y)
    rows = list(range(len(X)))
    order.shuffle(rows)
    shuffled = OTPropagation.paper(**CLOSE).fit(X[rows], y[rows])
    np.testing.assert_array_equal(shuffled.transduction_, model.transduction_[rows])
    np.testing.assert_array_equal(shuffled.round_, model.round_[rows])
    np.testing.assert_allclose(
        shuffled.label_distributions_, model.label_distributions_[rows], atol=1e-6
    )


@given(table=tables.generic(), factor=st.floats(0.01, 100))
def test_the_unit_of_the_columns_does_not_matter_if_epsilon_follows(table, factor):
    X, y = table
    model = decided(X, y)
    scaled = OTPropagation.paper(**(CLOSE | {"epsilon": 2.0 * factor**2})).fit(factor * X, y)
    assert_same_beyond_rounding(scaled, model)


@given(table=tables.generic(), power=st.integers(-20, 20))
def test_a_power_of_two_as_the_unit_changes_no_bit(table, power):
    X, y = table
    model = OTPropagation.paper(**CLOSE).fit(X, y)
    scaled = OTPropagation.paper(**(CLOSE | {"epsilon": 2.0 * 4.0**power})).fit(X * 2.0**power, y)
    np.testing.assert_array_equal(scaled.label_distributions_, model.label_distributions_)
    np.testing.assert_array_equal(scaled.round_, model.round_)


@given(table=tables.generic(), names=st.permutations(["ant", "bee", "cat", "dog"]))
def test_names_of_classes_and_their_order_do_not_matter(table, names):
    X, y = table
    model = decided(X, y)
    named = OTPropagation.paper(**CLOSE).fit(X, tables.rename(y, names))
    np.testing.assert_array_equal(named.round_, model.round_)
    np.testing.assert_array_equal(named.transduction_, tables.rename(model.transduction_, names))
    columns = [list(named.classes_).index(names[k]) for k in model.classes_]
    np.testing.assert_allclose(
        named.label_distributions_[:, columns], model.label_distributions_, atol=1e-6
    )


# ---- 7.3


@given(
    table=tables.tables(),
    epsilon=st.sampled_from([1e-4, 1.0, 1e4]),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_given_labels_never_change_even_among_equal_rows(table, epsilon, alpha):
    X, y = table
    model = OTPropagation.paper(epsilon=epsilon, alpha=alpha, tol=1e-3).fit(np.zeros_like(X), y)
    known = y >= 0
    np.testing.assert_array_equal(model.transduction_[known], y[known])
    np.testing.assert_array_equal(
        model.label_distributions_[known], y[known][:, None] == model.classes_
    )


def test_sinkhorn_finds_what_newton_finds():
    X, _, y = tables.real("iris")
    parameters = {"epsilon": 0.1, "alpha": 0.7, "tol": 1e-9}
    newton = OTPropagation.paper(**parameters).fit(X, y)
    sinkhorn = OTPropagation.paper(**parameters, solver="sinkhorn").fit(X, y)
    assert_same_beyond_rounding(sinkhorn, newton)
