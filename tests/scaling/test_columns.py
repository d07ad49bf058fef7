"""Scalings of the columns: closed forms, what does not matter, and scikit-learn's directions."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from otprop.scaling import SCALINGS, can_discriminate, columns, fit_scaling, kernels
from tests import tables

EVERY_SCALING = pytest.mark.parametrize("name", SCALINGS)
SIMPLE = pytest.mark.parametrize("name", ["minmax", "standard"])
X, TRUE, Y = tables.blobs(120, 5, 3, seed=2, known=0.3)
NEW = np.random.default_rng(3).normal(size=(40, 5))


def fitted(name, table=X, labels=Y):
    return fit_scaling(name, table, labels)


@st.composite
def numbers(draw):
    """Draw a table of plain numbers, in which columns are often of one value."""
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    elements = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_subnormal=False))
    table = draw(arrays(np.float64, shape, elements=elements))
    for column in range(shape[1]):
        if draw(st.booleans()) and draw(st.booleans()):
            table[:, column] = table[0, column]
    return table


def no_labels(table):
    return np.full(len(table), -1)


def test_none_hands_back_the_very_rows():
    for table in (X, X.astype(np.float32), sparse.csr_matrix(X)):
        assert fitted("none", table).apply(table) is table


@given(numbers())
def test_minmax_brings_each_column_to_0_and_1(table):
    found = fit_scaling("minmax", table, no_labels(table)).apply(table)
    low, high = table.min(axis=0), table.max(axis=0)
    spread = high > low
    np.testing.assert_array_equal(found[:, ~spread], 0.0)
    np.testing.assert_allclose(
        found[:, spread], ((table - low) / np.where(spread, high - low, 1))[:, spread], rtol=1e-14
    )
    np.testing.assert_allclose(found, MinMaxScaler().fit_transform(table), atol=1e-9)


@given(numbers())
def test_standard_brings_each_column_to_mean_0_and_deviation_1(table):
    spread = table.max(axis=0) > table.min(axis=0)
    # What is lost to rounding before anything is scaled.
    assume((np.ptp(table, axis=0)[spread] > 1e-6 * np.abs(table).max(axis=0)[spread]).all())
    found = fit_scaling("standard", table, no_labels(table)).apply(table)
    np.testing.assert_array_equal(found[:, ~spread], 0.0)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(found.std(axis=0)[spread], 1.0, atol=1e-6)
    if spread.any():
        expected = StandardScaler().fit_transform(table[:, spread])
        np.testing.assert_allclose(found[:, spread], expected, atol=1e-9)


@pytest.mark.parametrize("name", ["minmax", "standard", "discriminant"])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1e5 + 0.1, -7.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_of_one_value_count_for_nothing_even_where_new_rows_differ_in_them(
    name, value, dtype
):
    """The mean of 0.1, taken three times, is not 0.1: there is a deviation from it."""
    for rows in (30, 31, 37):
        table = np.column_stack([X[:rows], np.full(rows, value)]).astype(dtype)
        scaling = fit_scaling(name, table, np.where(np.arange(rows) < 15, TRUE[:rows], -1))
        assert scaling.factor[-1] == 0.0
        new = table.copy()
        new[:, -1] += 5.0
        np.testing.assert_array_equal(scaling.apply(table), scaling.apply(new))
        np.testing.assert_array_equal(scaling.apply(table)[:, 5], 0.0)


@SIMPLE
def test_a_column_that_is_too_narrow_for_a_factor_is_left_out(name):
    table = np.column_stack([X, np.arange(len(X)) % 2 * 5e-324])
    found = fit_scaling(name, table, Y).apply(table)
    np.testing.assert_array_equal(found[:, -1], 0.0)
    np.testing.assert_array_equal(found[:, :-1], fit_scaling(name, X, Y).apply(X))


@EVERY_SCALING
def test_single_precision_stays_and_is_computed_in_double(name):
    single = X.astype(np.float32)
    found = fitted(name, single).apply(single)
    assert found.dtype == np.float32
    wide = single.astype(np.float64)
    np.testing.assert_array_equal(found, fitted(name, wide).apply(wide).astype(np.float32))
    assert fitted(name).apply(X).dtype == np.float64


@EVERY_SCALING
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rows_result_is_its_own_alone_whatever_the_batch(name, dtype, monkeypatch):
    table = X.astype(dtype)
    scaling = fitted(name, table)
    whole = scaling.apply(table)
    for rows in (slice(3, 4), slice(17, 60), slice(None, None, -1), [5, 5, 119]):
        np.testing.assert_array_equal(scaling.apply(table[rows]), whole[rows])
    np.testing.assert_array_equal(scaling.apply(np.asfortranarray(table)), whole)
    monkeypatch.setattr(columns, "_CHUNK", 7)
    np.testing.assert_array_equal(scaling.apply(table), whole)
    assert scaling.apply(table[:0]).shape == (0, whole.shape[1])


@EVERY_SCALING
def test_apply_leaves_its_rows_as_they_were(name):
    table = X.copy()
    fitted(name, table).apply(table)
    np.testing.assert_array_equal(table, X)


@pytest.mark.parametrize("name", ["none", "minmax", "standard"])
def test_labels_have_no_part_in_scalings_that_are_not_told_of_them(name):
    np.testing.assert_array_equal(fitted(name).apply(X), fitted(name, X, no_labels(X)).apply(X))


@pytest.mark.parametrize("name", ["minmax", "standard", "discriminant"])
def test_shifts_and_units_of_columns_do_not_change_distances(name):
    units = np.array([1e-3, 0.5, 7.0, 1e4, -2.0])
    moved = X * units + np.array([3.0, -1e3, 0.0, 5.0, 1e2])
    before, after = fitted(name).apply(X), fitted(name, moved).apply(moved)
    np.testing.assert_allclose(tables.squared(after), tables.squared(before), atol=1e-9)


@EVERY_SCALING
def test_the_order_of_rows_and_columns_and_class_numbers_do_not_change_distances(name):
    rng = np.random.default_rng(0)
    rows, order, names = rng.permutation(len(X)), rng.permutation(5), np.array([2, 0, 1])
    labels = np.where(Y < 0, -1, names[Y])[rows]
    mixed = X[rows][:, order]
    after, before = fit_scaling(name, mixed, labels).apply(mixed), fitted(name).apply(X)[rows]
    np.testing.assert_allclose(tables.squared(after), tables.squared(before), atol=1e-9)


# Directions


def directions_of_sklearn(table, labels):
    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(table, labels)
    return model.scalings_[:, : len(np.unique(labels)) - 1], model.covariance_


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_directions_are_those_of_fishers_discriminant(seed, classes):
    table, _, labels = tables.blobs(150, 6, classes, seed=seed, known=0.4)
    scaling, given_rows = fit_scaling("discriminant", table, labels), labels >= 0
    standard = StandardScaler().fit(table).transform(table[given_rows])
    expected, covariance = directions_of_sklearn(standard, labels[given_rows])
    found = scaling.directions
    assert found.shape == (6, classes - 1)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, rtol=1e-6, atol=1e-9)
    # In units of the classes' spread, and none along another.
    np.testing.assert_allclose(found.T @ covariance @ found, np.eye(classes - 1), atol=1e-9)


def test_there_are_no_more_directions_than_columns():
    table, _, labels = tables.blobs(90, 2, 5, seed=1, known=0.5)
    assert fit_scaling("discriminant", table, labels).directions.shape == (2, 2)
    assert fit_scaling("discriminant", table, labels).apply(table).shape == (90, 4)


def test_columns_and_directions_have_their_say_by_the_root_of_their_number():
    table = np.column_stack([X, np.ones(len(X))])
    scaling = fitted("discriminant", table)
    for rows in (table, np.column_stack([NEW, np.zeros(40)])):
        found = scaling.apply(rows)
        standard = fitted("standard", table).apply(rows)
        # Of six columns five are in use.
        np.testing.assert_allclose(found[:, :6], standard / np.sqrt(5), atol=1e-12)
        along = standard @ scaling.directions / np.sqrt(2)
        np.testing.assert_allclose(found[:, 6:], along, atol=1e-12)


def test_directions_bring_out_the_column_that_tells_classes_apart():
    rng = np.random.default_rng(0)
    true = np.arange(300) % 2
    table = rng.normal(size=(300, 30))
    table[:, 0] += 6 * true
    labels = np.where(rng.random(300) < 0.3, true, -1)

    def nearest_is_of_the_same_class(points):
        distances = tables.squared(points)
        np.fill_diagonal(distances, np.inf)
        return (true[distances.argmin(axis=1)] == true).mean()

    discriminant, standard = (
        nearest_is_of_the_same_class(fit_scaling(name, table, labels).apply(table))
        for name in ("discriminant", "standard")
    )
    assert discriminant > 0.97
    assert standard < 0.9


@given(arrays(np.float64, (7, 4), elements=st.floats(-9, 9)), st.integers(1, 3))
def test_projection_is_the_matrix_product(rows, count):
    directions = np.random.default_rng(count).normal(size=(4, count))
    np.testing.assert_allclose(kernels.project(rows, directions), rows @ directions, atol=1e-12)


@pytest.mark.parametrize(
    ("labels", "able"),
    [
        ([0, 1, -1, -1], False),
        ([0, 1, 1, -1], True),
        ([-1, -1, -1, 2], False),
        ([2, -1, 2, 0], True),
        ([-1, -1, -1, -1], False),
    ],
)
def test_two_labels_of_a_class_are_needed_to_see_its_spread(labels, able):
    assert can_discriminate(np.array(labels)) is able


def test_labelled_rows_that_are_the_same_cannot_tell_how_classes_spread():
    table = X.copy()
    table[Y >= 0] = np.eye(5)[Y[Y >= 0]]
    with pytest.raises(ValueError, match=r"differ from one another.*scaling='standard'"):
        fitted("discriminant", table)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("counts", [(2, 2), (2, 1), (2, 1, 1)])
def test_two_rows_of_each_class_are_too_few_and_rounding_must_not_hide_it(seed, counts):
    """Nothing shrinks the covariance of two rows; decompositions of the sum may still succeed."""
    table = np.random.default_rng(seed).normal(size=(40, 3))
    given_labels = np.repeat(np.arange(len(counts)), counts)
    labels = np.concatenate([given_labels, np.full(40 - sum(counts), -1)])
    with pytest.raises(ValueError, match="Label at least three rows of a class"):
        fit_scaling("discriminant", table, labels)


@pytest.mark.parametrize("seed", range(8))
def test_three_rows_of_a_class_suffice(seed):
    table = np.random.default_rng(seed).normal(size=(40, 5))
    labels = np.concatenate([[0, 0, 0, 1, 2], np.full(35, -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_scaling("discriminant", table, labels).directions
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1e3
