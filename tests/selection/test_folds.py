"""Which labels are hidden together."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from otprop.selection.folds import enough_to_validate, folds, scaling_by_seen
from tests import tables


@st.composite
def labelled_tables(draw, least=3):
    """Draw a table whose rows are often the same, and labels with so many of each class."""
    counts = draw(st.lists(st.integers(least, 12), min_size=2, max_size=5))
    labels = np.repeat(np.arange(len(counts)), counts)
    labels = np.append(labels, np.full(draw(st.integers(0, 9)), -1))
    order = np.array(draw(st.permutations(range(len(labels)))))
    columns = draw(st.integers(1, 3))
    X = draw(arrays(np.float64, (len(labels), columns), elements=tables.GRID))
    return X, labels[order]


def rows_of(X, some):
    """Return rows in an order of their own."""
    return sorted(map(tuple, np.asarray(X)[some].tolist()))


@given(labelled_tables())
def test_every_labelled_row_is_hidden_once_and_no_other(table):
    X, y = table
    hidden = np.concatenate(folds(X, y))
    np.testing.assert_array_equal(np.sort(hidden), np.flatnonzero(y >= 0))


@given(labelled_tables(least=1))
def test_labels_of_a_class_with_fewer_than_three_are_never_hidden(table):
    X, y = table
    counts = np.bincount(y[y >= 0])
    enough = np.flatnonzero((y >= 0) & (counts[np.maximum(y, 0)] >= 3))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds(X, y))), enough)


@given(labelled_tables())
def test_each_fold_leaves_every_class_a_label_and_has_its_part_of_it(table):
    X, y = table
    all_folds = folds(X, y)
    sizes = [len(hidden) for hidden in all_folds]
    assert max(sizes) - min(sizes) <= 1
    for k in range(y.max() + 1):
        hidden = [int((y[fold] == k).sum()) for fold in all_folds]
        assert max(hidden) - min(hidden) <= 1
        assert max(hidden) < sum(hidden)


@pytest.mark.parametrize(("labels", "count"), [(20, 5), (500, 5), (501, 2), (900, 2)])
def test_beyond_five_hundred_labels_halves_are_enough(labels, count):
    X, true, _ = tables.blobs(labels + 100, 2, 3)
    y = np.where(np.arange(len(X)) < labels, true, -1)
    assert len(folds(X, y)) == count


@given(seed=st.integers(0, 999), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_classes_have_no_say(seed, order):
    X, _, y = tables.blobs(60, 2, 4, seed=seed, known=0.6)
    rows = list(range(60))
    order.shuffle(rows)
    names = list(range(4))
    order.shuffle(names)
    found = [set(fold.tolist()) for fold in folds(X, y)]
    shuffled = [{rows[row] for row in fold} for fold in folds(X[rows], y[rows])]
    assert shuffled == found
    renamed = np.where(y < 0, -1, np.array(names)[y])
    assert [set(fold.tolist()) for fold in folds(X, renamed)] == found


@given(labelled_tables(), st.randoms(use_true_random=False))
def test_of_rows_that_are_the_same_it_does_not_matter_which_is_hidden(table, order):
    X, y = table
    rows = list(range(len(X)))
    order.shuffle(rows)
    X[:] = X // 4
    own = np.column_stack([X, y])
    shuffled = own[rows]
    assert [rows_of(shuffled, fold) for fold in folds(X[rows], y[rows])] == [
        rows_of(own, fold) for fold in folds(X, y)
    ]


def test_neighbours_in_the_order_of_values_come_to_different_folds():
    X = np.random.default_rng(0).permutation(np.arange(50.0))[:, None]
    for fold in folds(X, np.zeros(50, int)):
        np.testing.assert_array_equal(np.diff(np.sort(X[fold, 0])), 5.0)


@given(arrays(np.float64, (12, 40), elements=st.sampled_from([0.0, 0.0, 0.0, -1.0, 2.0])))
def test_rows_are_in_the_order_of_all_their_values_dense_or_sparse(X):
    y = np.zeros(len(X), int)
    expected = sorted(range(len(X)), key=lambda row: X[row].tolist())
    dealt = [expected[fold::5] for fold in range(5)]
    for table in (X, sparse.csr_matrix(X)):
        for fold, rows in zip(folds(table, y), dealt, strict=True):
            assert rows_of(X, fold) == rows_of(X, rows)


def test_a_wide_sparse_table_is_never_written_out():
    rng = np.random.default_rng(0)
    places = rng.integers(0, 10**6, (200, 20)).ravel(), np.repeat(np.arange(200), 20)
    X = sparse.csr_matrix((rng.random(4000), places[::-1]), shape=(200, 10**6))
    tracemalloc.start()
    found = folds(X, np.arange(200) % 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(np.concatenate(found).tolist()) == list(range(200))
    assert peak < X.shape[0] * X.shape[1]  # an eighth of what it would be


@pytest.mark.parametrize(
    ("counts", "enough"),
    [((10, 10), True), ((17, 3), True), ((9, 10), False), ((18, 2), False), ((0, 20, 3), True)],
)
def test_labels_can_be_hidden_where_there_are_some_of_each_class(counts, enough):
    y = np.append(np.repeat(np.arange(len(counts)), counts), [-1] * 5)
    assert enough_to_validate(y) is enough


def test_labels_too_few_for_directions_leave_the_columns_standardised():
    X, true, _ = tables.blobs(30, 4, 3)
    one_each = np.where(np.arange(30) < 3, true, -1)
    assert scaling_by_seen("discriminant", X, one_each).name == "standard"
    some_each = np.where(np.arange(30) < 15, true, -1)
    assert scaling_by_seen("discriminant", X, some_each).name == "discriminant"
    assert scaling_by_seen("minmax", X, one_each).name == "minmax"
