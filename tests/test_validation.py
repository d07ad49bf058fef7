"""Errors that help: each says what is wrong and what would be right."""

import datetime as dt
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
    return OTPropagation.paper(**({"epsilon": 2.0} | parameters))


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("geometry", "grid", ValueError, "'precomputed' or 'precomputed-graph'; got 'grid'"),
        ("geometry", None, ValueError, "geometry must be"),
        ("scaling", "rank", ValueError, "scaling must be 'auto' or 'none' or .*; got 'rank'"),
        ("scaling", None, ValueError, "scaling must be"),
        ("marginals", "columns", ValueError, "'relaxed' or 'classes'; got 'columns'"),
        ("rounds", "two", ValueError, "rounds must be 'auto' or 'none' or .*; got 'two'"),
        ("rounds", 2, ValueError, "rounds must be .*; got 2"),
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
        ("relaxation", 0, ValueError, "relaxation must be 'auto' or a number above 0; got 0"),
        ("relaxation", np.inf, ValueError, "above 0; got inf"),
        ("relaxation", None, TypeError, "above 0; got None"),
        ("class_tolerance", -0.1, ValueError, "'auto', a number of at least 0, or inf.*got -0.1"),
        ("class_tolerance", -np.inf, ValueError, "class_tolerance must be .*got -inf"),
        ("class_tolerance", np.nan, ValueError, "class_tolerance must be .*got nan"),
        ("class_tolerance", "inf", TypeError, "class_tolerance must be .*got 'inf'"),
        ("class_tolerance", True, TypeError, "class_tolerance must be .*got True"),
        ("n_neighbors", 0, ValueError, "n_neighbors must be 'auto' or an integer of at least 1"),
        ("n_neighbors", 5.0, TypeError, "integer of at least 1; got 5.0"),
        ("n_neighbors", "all", TypeError, "integer of at least 1; got 'all'"),
        ("n_neighbors", True, TypeError, "integer of at least 1; got True"),
        ("diffusion", 0, ValueError, "'auto' or a number above 0 and below 1; got 0"),
        ("diffusion", 1, ValueError, "above 0 and below 1; got 1"),
        ("diffusion", 1.0, ValueError, "above 0 and below 1; got 1.0"),
        ("diffusion", np.nan, ValueError, "above 0 and below 1"),
        ("diffusion", "far", TypeError, "above 0 and below 1; got 'far'"),
        ("abstain_below", -0.1, ValueError, "abstain_below must be None or a number from 0 to 1"),
        ("abstain_below", 1.5, ValueError, "from 0 to 1; got 1.5"),
        ("abstain_below", "auto", TypeError, "from 0 to 1; got 'auto'"),
        ("abstain_below", False, TypeError, "from 0 to 1; got False"),
        ("max_iter", "auto", TypeError, "max_iter must be None or an integer"),
        ("alpha", "auto", TypeError, "from 0 to 1; got 'auto'"),
        ("alpha", None, TypeError, "from 0 to 1; got None"),
        ("alpha", [0.5], TypeError, "from 0 to 1"),
        ("epsilon", np.ones(2), TypeError, "above 0"),
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


DEFAULTS = OTPropagation().get_params()


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "scaling": ["auto", "none", "minmax", "standard", "discriminant", np.str_("none")],
        "marginals": ["auto", "rows", "relaxed", "classes"],
        "rounds": ["auto", "none", "frozen", "revisable", "annealed"],
        "relaxation": ["auto", 1e-9, 3, np.float32(2)],
        "class_tolerance": ["auto", 0, 0.5, 7, np.inf, np.float32("inf")],
        "n_neighbors": ["auto", 1, np.int64(9)],
        "diffusion": ["auto", 1e-9, 0.5, np.nextafter(1.0, 0.0)],
        "abstain_below": [None, 0, 1, 0.5, np.float32(0.5)],
    }.items(),
)
def test_what_a_parameter_may_be_is_taken(name, values):
    for value in values:
        validation.check_parameters(DEFAULTS | {name: value})


# ---- the classes' parts

NAMES = np.array(["ant", "bee"])


@pytest.mark.parametrize(
    "prior",
    [None, "labels", "uniform", {"ant": 1, "bee": 0}, {"bee": np.float32(0.5), "ant": 2}],
)
def test_what_the_classes_parts_may_be_is_taken(prior):
    validation.check_prior(prior, NAMES)


def test_parts_of_classes_that_are_numbers_or_truths_are_taken():
    validation.check_prior({2: 1, 7: 3}, np.array([2, 7]))
    validation.check_prior({False: 1, True: 3}, np.array([False, True]))


@pytest.mark.parametrize(
    ("prior", "error", "message"),
    [
        ("equal", ValueError, "class_prior must be None, 'labels', 'uniform' or .*got 'equal'"),
        (0.5, TypeError, "'uniform' or a mapping from each class to a number; got 0.5"),
        ([1, 2], TypeError, r"mapping from each class to a number; got \[1, 2\]"),
        ({"ant": 1}, ValueError, r"classes are \['ant', 'bee'\], those of the mapping \['ant'\]"),
        ({"ant": 1, "bee": 1, "cow": 1}, ValueError, "'cow'"),
        ({"ant": 1, "bee": -1}, ValueError, r"class_prior\['bee'\] must be .*at least 0; got -1"),
        ({"ant": np.inf, "bee": 1}, ValueError, r"class_prior\['ant'\] must be .*got inf"),
        ({"ant": np.nan, "bee": 1}, ValueError, r"class_prior\['ant'\] must be .*got nan"),
        ({"ant": "1", "bee": 1}, TypeError, r"class_prior\['ant'\] must be .*got '1'"),
        ({"ant": True, "bee": 1}, TypeError, r"class_prior\['ant'\] must be .*got True"),
        ({"ant": 0, "bee": 0}, ValueError, "at least one part must be above 0"),
    ],
)
def test_what_the_classes_parts_cannot_be_says_so(prior, error, message):
    with pytest.raises(error, match=message):
        validation.check_prior(prior, NAMES)


def test_the_classes_parts_are_checked_by_fit():
    with pytest.raises(ValueError, match=r"classes are \[0, 1\], those of the mapping \[0, 2\]"):
        model(marginals="classes", class_prior={0: 1, 2: 1}).fit(X, Y)


# ---- labels


def test_labels_must_be_of_two_classes_at_least():
    with pytest.raises(ValueError, match="no labelled row: all entries are -1, None or NaN"):
        model().fit(X, np.full(30, -1))
    with pytest.raises(ValueError, match=r"y has only one class, 7, among.*another class"):
        model().fit(X, np.where(Y < 0, -1, 7))
    with pytest.raises(ValueError, match=r"y has only one class, 'ant', among"):
        model().fit(X, tables.rename(np.minimum(Y, 0), ["ant"]))
    with pytest.raises(ValueError, match=r"y has only one class, True, among"):
        model().fit(X, np.full(30, fill_value=True))


# ---- tables


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


DAY = dt.datetime(2020, 1, 31, 9, tzinfo=dt.UTC)
DAYS = [DAY + dt.timedelta(days=i) for i in range(30)]
SPANS = [dt.timedelta(hours=i) for i in range(30)]
TIMES = {
    "pandas datetimes": pd.DataFrame({"n": X[:, 0], "t": pd.date_range("2020", periods=30)}),
    "pandas datetimes of a zone": pd.DataFrame({"n": X[:, 0], "t": DAYS}),
    "pandas timedeltas": pd.DataFrame({"n": X[:, 0], "t": SPANS}),
    "pandas periods": pd.DataFrame({"t": pd.period_range("2020", periods=30)}),
    "pandas objects": pd.DataFrame({"t": [day.date() for day in DAYS]}, dtype=object),
    "pandas hours as objects": pd.DataFrame({"t": [day.time() for day in DAYS]}, dtype=object),
    "Arrow timestamps": pd.DataFrame({"t": pd.Series(DAYS).astype("timestamp[us, UTC][pyarrow]")}),
    "Arrow durations": pd.DataFrame({"t": pd.Series(SPANS).astype("duration[us][pyarrow]")}),
    "polars Date": pl.DataFrame({"n": X[:, 0], "t": [day.date() for day in DAYS]}),
    "polars Datetime": pl.DataFrame({"n": X[:, 0], "t": DAYS}),
    "polars Duration": pl.DataFrame({"n": X[:, 0], "t": SPANS}),
    "polars Time": pl.DataFrame({"t": [day.time() for day in DAYS]}),
}


@pytest.mark.parametrize("name", TIMES)
def test_dates_and_times_are_told_by_their_columns_with_a_remedy(name):
    message = r"Input X holds dates or times, in column 't';.*days since a date.*the month"
    with pytest.raises(ValueError, match=message):
        model().fit(TIMES[name], Y)
    fitted = model().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(TIMES[name])


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_an_array_of_dates_or_times_is_told_by_its_columns(dtype):
    with pytest.raises(ValueError, match="dates or times, in columns 0, 1, 2;"):
        model().fit(np.zeros((30, 3), dtype), Y)
    mixed = X.astype(object)
    mixed[4, 2] = np.zeros((), dtype)[()]
    with pytest.raises(ValueError, match="dates or times, in column 2;"):
        model().fit(mixed, Y)


COMPLEX = {
    "array": (X + 1j, "0, 1, 2"),
    "single": ((X + 1j).astype(np.complex64), "0, 1, 2"),
    "sparse matrix": (sparse.csr_matrix(X + 1j), "0, 1, 2"),
    "sparse array": (sparse.csc_array(X + 1j), "0, 1, 2"),
    "data frame": (pd.DataFrame({"n": X[:, 0], "z": X[:, 1] + 1j}), "'z'"),
    "objects": (np.array([[1.0, 1j]] * 30, dtype=object), "1"),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_told_by_their_columns_in_a_short_error(name):
    table, columns = COMPLEX[name]
    message = rf"Complex data not supported: .*in columns? {columns};.*imaginary parts as columns"
    with pytest.raises(ValueError, match=message) as caught:
        model().fit(table, Y)
    assert len(str(caught.value)) < 200


def test_a_lazy_frame_is_to_be_collected():
    lazy = pl.LazyFrame(dict(zip("abc", X.T, strict=True)))
    fitted = model().fit(lazy.collect(), Y)
    for call in (lambda: model().fit(lazy, Y), lambda: fitted.predict(lazy)):
        # polars warns of what looks at a lazy frame's columns, and warnings are errors here.
        with pytest.raises(TypeError, match=r"X is a LazyFrame.*Pass X\.collect\(\)"):
            call()


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


AFFINITY = np.exp(-COST)


def in_one_direction(affinity):
    changed = affinity.copy()
    changed[3, 5] *= 1.0 + 1e-3
    return changed


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:, :-1], r"'precomputed-graph', fit takes a square.*affinity.*\(30, 29\)"),
        (lambda w: w - 0.5, r"An affinity must be at least 0; got -0\.\d+"),
        (in_one_direction, r"same in both directions.*W\.maximum\(W\.T\)"),
        (lambda w: np.where(w == w.max(), np.nan, w), "X contains NaN, in column"),
        (lambda w: np.where(w == w.max(), np.inf, w), "X contains infinity, in column"),
    ],
)
def test_affinities_that_cannot_be_say_so(wrap, change, message):
    with pytest.raises(ValueError, match=message):
        OTPropagation(geometry="precomputed-graph").fit(wrap(change(AFFINITY)), Y)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_affinities_that_can_be_are_taken(wrap):
    rounded = AFFINITY * (1.0 + 1e-9 * np.random.default_rng(0).random(AFFINITY.shape))
    for affinity in (AFFINITY, rounded, np.zeros((30, 30))):
        validation.check_relations(wrap(affinity), "precomputed-graph", square=True)
    # New rows to all rows fitted need be neither square nor the same in both directions.
    validation.check_relations(wrap(AFFINITY[:7]), "precomputed-graph", square=False)
    validation.check_relations(wrap(in_one_direction(AFFINITY)), "precomputed-graph", square=False)
    with pytest.raises(ValueError, match="at least 0; got -1"):
        validation.check_relations(wrap(-np.eye(30)[:7]), "precomputed-graph", square=False)


def test_costs_may_be_below_zero_and_differ_by_direction():
    validation.check_relations(in_one_direction(COST) - 1.0, "precomputed", square=True)


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
