"""Errors that help: each says what is wrong and what would be right."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from otprop import OTPropagation, validation
from tests import tables

X, _, Y = tables.blobs(30, 3, 2, seed=0)
COST = tables.squared(X)


def model(**parameters):
    return OTPropagation(**({"epsilon": 2.0} | parameters))


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("geometry", "graph", ValueError, "'euclidean' or 'precomputed'; got 'graph'"),
        ("geometry", None, ValueError, "geometry must be"),
        ("marginals", "relaxed", ValueError, "marginals must be 'rows'; got 'relaxed'"),
        ("solver", "simplex", ValueError, "solver must be .*'newton'.*got 'simplex'"),
        ("epsilon", 0, ValueError, "epsilon must be 'auto' or a number above 0; got 0"),
        ("epsilon", -1.0, ValueError, "above 0"),
        ("epsilon", np.nan, ValueError, "above 0; got nan"),
        ("epsilon", np.inf, ValueError, "above 0; got inf"),
        ("epsilon", "small", TypeError, "above 0; got 'small'"),
        ("epsilon", True, TypeError, "above 0; got True"),
        ("epsilon", None, TypeError, "above 0"),
        ("alpha", -0.1, ValueError, "alpha must be a number from 0 to 1; got -0.1"),
        ("alpha", 1.1, ValueError, "from 0 to 1"),
        ("alpha", np.nan, ValueError, "from 0 to 1"),
        ("alpha", True, TypeError, "from 0 to 1"),
        ("alpha", "0.5", TypeError, "from 0 to 1"),
        ("stall", 0.0, ValueError, r"'lowest-alpha' or a fraction in \(0, 1\]; got 0.0"),
        ("stall", 1.5, ValueError, "fraction"),
        ("stall", "half", TypeError, "fraction"),
        ("stall", True, TypeError, "fraction"),
        ("tol", 0, ValueError, "tol must be a number above 0"),
        ("tol", np.inf, ValueError, "tol must be"),
        ("max_iter", 0, ValueError, "max_iter must be None or an integer of at least 1; got 0"),
        ("max_iter", 1.5, TypeError, "integer"),
        ("max_iter", True, TypeError, "integer"),
        ("alpha", -1e-320, ValueError, "from 0 to 1"),
        ("n_jobs", 0, ValueError, "n_jobs must be None or an integer other than 0.*got 0"),
        ("n_jobs", 1.5, TypeError, "n_jobs must be None or an integer other than 0.*got 1.5"),
        ("n_jobs", True, TypeError, "n_jobs must be"),
        ("n_jobs", "all", TypeError, "n_jobs must be"),
        ("verbose", -1, ValueError, "verbose must be a boolean or an integer of at least 0"),
        ("verbose", 0.5, TypeError, "verbose must be a boolean or an integer of at least 0"),
        ("verbose", None, TypeError, "verbose must be"),
        ("memory_limit", "much", ValueError, "'2GiB' or '500 MB'; got 'much'"),
        ("memory_limit", "2 elephants", ValueError, "memory_limit"),
        ("memory_limit", "-1GB", ValueError, "memory_limit"),
        ("memory_limit", "0MB", ValueError, "memory_limit"),
        ("memory_limit", "", ValueError, "memory_limit"),
        ("memory_limit", 0, ValueError, "memory_limit"),
        ("memory_limit", np.nan, ValueError, "memory_limit"),
        ("memory_limit", np.inf, ValueError, "memory_limit"),
        ("memory_limit", None, ValueError, "memory_limit"),
        ("memory_limit", True, ValueError, "memory_limit"),
    ],
)
def test_a_parameter_that_cannot_be_says_what_it_must_be(name, value, error, message):
    with pytest.raises(error, match=message):
        model(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": np.float32(1.0), "alpha": np.float64(0.5)},
        {"epsilon": 1, "alpha": 0},
        {"alpha": 1},
        {"stall": 1, "max_iter": np.int64(500)},
        {"memory_limit": 1e6, "tol": np.float32(1e-3)},
        {"n_jobs": np.int64(2), "verbose": False},
        {"n_jobs": -1, "verbose": np.int64(0)},
        {"n_jobs": None, "verbose": np.False_},
    ],
)
def test_numbers_of_every_kind_are_numbers(parameters):
    model(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2GiB", 2 * 2**30),
        ("500 MB", 5e8),
        ("1.5kb", 1500),
        (" 7 KiB ", 7168),
        ("3TB", 3e12),
        ("1TiB", 2**40),
        ("12", 12),
        ("12B", 12),
        ("1.MB", 1e6),
        (4096, 4096),
        (np.int64(5), 5),
        (0.5, 0.5),
    ],
)
def test_memory_is_read_as_people_write_it(text, number):
    assert validation.memory_bytes(text) == number


def test_labels_must_be_of_two_classes_at_least():
    with pytest.raises(ValueError, match="no labelled row: all entries are -1, None or NaN"):
        model().fit(X, np.full(30, -1))
    with pytest.raises(ValueError, match=r"only one class, .*7.*another class"):
        model().fit(X, np.where(Y < 0, -1, 7))


def with_bad_values():
    bad = X.copy()
    bad[3, 1] = bad[4, 1] = np.nan
    bad[5, 2] = np.nan
    return bad


@pytest.mark.parametrize(
    ("wrap", "columns"),
    [
        (np.asarray, "1, 2"),
        (sparse.csr_matrix, "1, 2"),
        (lambda x: pd.DataFrame(x, columns=list("abc")), "'b', 'c'"),
        (lambda x: pl.DataFrame(x, schema=list("abc")), "'b', 'c'"),
        (lambda x: pd.DataFrame(x, columns=list("abc")).convert_dtypes(), "'b', 'c'"),
    ],
)
def test_a_missing_value_is_told_by_its_column_with_a_remedy(wrap, columns):
    message = rf"X contains NaN, in columns {columns} \(3 values\).*KNNImputer"
    with pytest.raises(ValueError, match=message):
        model().fit(wrap(with_bad_values()), Y)
    fitted = model().fit(wrap(X), Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(wrap(with_bad_values()))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_told_by_its_column(value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=r"X contains infinity, in column 1 \(1 values\)"):
        model().fit(bad, Y)
    opposite = bad.copy()
    opposite[7, 1] = -value  # their sum is NaN, but neither is
    with pytest.raises(ValueError, match=r"X contains infinity, in column 1 \(2 values\)"):
        model().fit(opposite, Y)


def test_only_the_first_columns_of_many_are_named():
    with pytest.raises(ValueError, match=r"columns 0, 1, 2, 3, 4 and 4 more \(270 values\)"):
        model().fit(np.full((30, 9), np.nan), Y)


def test_a_sum_that_overflows_is_no_infinity():
    validation.check_finite(np.full((4, 2), 1e308), None, forbidden_pairs=False)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (X[:, 0], ValueError, "Expected 2D array, got 1D array"),
        (X[:, :, None], ValueError, "dim 3"),
        (X[:, :0], ValueError, r"0 feature\(s\)"),
        (X[:0], ValueError, r"0 sample\(s\)"),
        (X[:-1], ValueError, r"inconsistent numbers of samples: \[29, 30\]"),
        (X + 1j, ValueError, "Complex data not supported"),
        (X.astype(str)[:, 0], ValueError, "Expected 2D array, got 1D array"),
        ([["x", "y"]] * 30, ValueError, "could not convert string to float"),
        (np.full((30, 2), {}, dtype=object), TypeError, "must be a string or a real number"),
    ],
)
def test_a_table_of_the_wrong_shape_or_kind_says_so(table, error, message):
    with pytest.raises(error, match=message):
        model().fit(table, Y)


WORDS = ["x", "y", "z"] * 10
TEXTS = {
    "pandas object": (pd.DataFrame({"n": X[:, 0], "t": pd.Series(WORDS, dtype=object)}), "'t'"),
    "pandas string": (pd.DataFrame({"n": X[:, 0], "t": pd.Series(WORDS, dtype="string")}), "'t'"),
    "pandas str": (pd.DataFrame({"n": X[:, 0], "t": pd.Series(WORDS, dtype="str")}), "'t'"),
    "pandas category": (pd.DataFrame({"n": X[:, 0], "t": pd.Categorical(WORDS)}), "'t'"),
    "pandas category of numbers": (pd.DataFrame({"t": pd.Categorical([1, 2, 3] * 10)}), "'t'"),
    "pandas with numbers as names": (pd.DataFrame([[1.0, "x"]] * 30), "1"),
    "pandas with equal names": (
        pd.DataFrame([["x", 1.0, "y"]] * 30, columns=["a", "b", "a"]),
        "'a', 'a'",
    ),
    "polars String": (pl.DataFrame({"n": X[:, 0], "t": WORDS}), "'t'"),
    "polars Categorical": (pl.DataFrame({"t": pl.Series(WORDS, dtype=pl.Categorical)}), "'t'"),
    "polars Enum": (pl.DataFrame({"t": pl.Series(WORDS, dtype=pl.Enum(["x", "y", "z"]))}), "'t'"),
    "polars Object": (pl.DataFrame({"t": pl.Series(WORDS, dtype=pl.Object)}), "'t'"),
    "objects": (np.array([[1.0, "x", 2.0, b"y"]] * 30, dtype=object), "1, 3"),
    "one text among objects": (np.array([[1.0, 2]] * 29 + [[1.0, "x"]], dtype=object), "1"),
    "array of text": (np.array([["1", "x"]] * 30), "0, 1"),
    "array of bytes": (np.array([[b"1", b"x"]] * 30), "0, 1"),
    "many": (pd.DataFrame([["x"] * 7] * 30), "0, 1, 2, 3, 4 and 2 more"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_told_by_its_columns_with_a_remedy(name):
    table, columns = TEXTS[name]
    plural = "s" if "," in columns else ""
    message = rf"text or categories, in column{plural} {columns};.*OneHotEncoder.*OrdinalEncoder"
    with pytest.raises(ValueError, match=message):
        model().fit(table, Y)
    fitted = model().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(table)


NULLABLE = pd.DataFrame(
    {
        "i": pd.Series(range(30), dtype="Int64"),
        "f": pd.Series(X[:, 0], dtype="Float64"),
        "b": pd.Series([True, False, True] * 10, dtype="boolean"),
    }
)


@pytest.mark.parametrize("columns", [["i"], ["f"], ["b"], ["i", "f"], ["i", "f", "b"]])
def test_nullable_numbers_are_numbers_and_their_na_is_nan(columns):
    frame = NULLABLE[columns]
    with_nullable, plain = model().fit(frame, Y), model().fit(frame.astype(float), Y)
    np.testing.assert_array_equal(with_nullable.label_distributions_, plain.label_distributions_)
    holes = frame.copy()
    holes.iloc[3, 0] = pd.NA
    with pytest.raises(
        ValueError, match=rf"NaN, in column '{columns[0]}' \(1 values\).*KNNImputer"
    ):
        model().fit(holes, Y)


def test_an_epsilon_below_the_precision_of_x_is_refused_with_and_without_work_to_do():
    single = X.astype(np.float32)
    for y in (Y, np.where(Y < 0, 0, Y)):
        with pytest.raises(ValueError, match=r"epsilon must be at least 1.2e-38.*got 1e-40"):
            model(epsilon=1e-40).fit(single, y)
        with pytest.raises(ValueError, match=r"at least 2.2e-308.*dtype\('float64'\)"):
            model(epsilon=1e-310).fit(X, y)
    model(epsilon=1e-40).fit(X, np.where(Y < 0, 0, Y))


def test_columns_at_predict_must_be_those_of_fit():
    frame = pd.DataFrame(X, columns=list("abc"))
    fitted = model().fit(frame, Y)
    with pytest.raises(ValueError, match=r"now missing:\s*- c"):
        fitted.predict(frame[["a", "b"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\s*- d"):
        fitted.predict(frame.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match=r"unseen at fit time:\s*- d"):
        fitted.predict(frame.assign(d=1.0))
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="X has 4 features, but OTPropagation is expecting 3"):
        model().fit(X, Y).predict(np.c_[X, X[:, 0]])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda c: c[:, :-1], ValueError, r"square matrix.*\(30, 29\)"),
        (lambda c: np.where(c == c.max(), np.nan, c), ValueError, "X contains NaN, in column"),
        (lambda c: np.where(c == c.max(), -np.inf, c), ValueError, "X contains infinity"),
        (sparse.csr_matrix, TypeError, "Sparse data was passed"),
    ],
)
def test_costs_that_cannot_be_say_so(change, error, message):
    with pytest.raises(error, match=message):
        model(geometry="precomputed").fit(change(COST), Y)


def test_costs_at_predict_must_be_to_all_rows_fitted():
    fitted = model(geometry="precomputed").fit(COST, Y)
    with pytest.raises(ValueError, match="X has 10 features, but OTPropagation is expecting 30"):
        fitted.predict(COST[:, :10])


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e19), (np.float64, 1e160)])
def test_values_whose_squares_overflow_say_so(dtype, scale):
    huge = (X * scale).astype(dtype)
    message = f"too large for {re.escape(repr(np.dtype(dtype)))}.*StandardScaler"
    with pytest.raises(ValueError, match=message):
        model().fit(huge, Y)
    with pytest.raises(ValueError, match=message):
        model().fit(sparse.csr_matrix(huge), Y)
    with pytest.raises(ValueError, match=message):
        model().fit(X.astype(dtype), Y).predict(huge)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e18), (np.float64, 1e153)])
def test_values_whose_squares_just_fit_are_taken(dtype, scale):
    fitted = model(epsilon=scale**2, tol=1e-4).fit((X * scale / 10).astype(dtype), Y)
    assert np.isfinite(fitted.label_distributions_).all()


def test_an_empty_sparse_matrix_is_all_zeros():
    fitted = model().fit(sparse.csr_matrix((30, 3)), Y)
    np.testing.assert_array_equal(fitted.transduction_[Y >= 0], Y[Y >= 0])


@pytest.mark.parametrize("n", [0, -1])
def test_explain_must_be_asked_for_a_source_at_least(n):
    with pytest.raises(ValueError, match=f"n must be an integer of at least 1; got {n}"):
        model().fit(X, Y).explain(X, n)


@pytest.mark.parametrize("n", [2.5, 2.0, True, "2", None])
def test_explain_must_be_asked_for_a_whole_number(n):
    with pytest.raises(TypeError, match=f"n must be an integer of at least 1; got {n!r}"):
        model().fit(X, Y).explain(X, n)


def test_explain_takes_whole_numbers_of_numpy():
    assert model().fit(X, Y).explain(X, np.int64(2)).shares.shape == (30, 2)
