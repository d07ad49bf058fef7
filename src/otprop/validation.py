"""Checks of what users hand in: parameters and tables. Each error says what to do."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from otprop.propagation import ROUNDS
from otprop.scaling import SCALINGS
from otprop.transport import SOLVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

GEOMETRIES = ("auto", "graph", "euclidean", "precomputed", "precomputed-graph")
# Those for which X is not rows but what relates them to all rows fitted.
RELATIONS = ("precomputed", "precomputed-graph")
MARGINALS = ("auto", "rows", "relaxed", "classes")


class _Number(NamedTuple):
    """A number that must lie in a range, or be one of some other values."""

    what: str  # in words
    low: float = 0.0
    high: float = math.inf
    without: tuple[float, ...] = ()  # numbers in the range that may not be
    whole: bool = False
    others: tuple[object, ...] = ()

    def check(self, value: Any, name: str) -> None:
        """Raise if a value is not what it must be."""
        if any(isinstance(value, type(other)) and value == other for other in self.others):
            return
        if _is_bool(value) or not isinstance(value, Integral if self.whole else Real):
            raise TypeError(f"{name} must be {self.what}; got {value!r}.")
        number: Any = value  # mypy's Real has no order
        if not self.low <= number <= self.high or number in self.without:
            raise ValueError(f"{name} must be {self.what}; got {value!r}.")


_POSITIVE = (0.0, math.inf)  # what an unbounded number above 0 may not be
_POSITIVE_OR_AUTO = _Number("'auto' or a number above 0", without=_POSITIVE, others=("auto",))
_CHOICES = {
    "geometry": GEOMETRIES,
    "scaling": ("auto", *SCALINGS),
    "marginals": MARGINALS,
    "rounds": ("auto", *ROUNDS),
    "solver": tuple(SOLVERS),
}
_NUMBERS = {
    "epsilon": _POSITIVE_OR_AUTO,
    "alpha": _Number("a number from 0 to 1", high=1.0),
    "relaxation": _POSITIVE_OR_AUTO,
    "class_tolerance": _Number("'auto', a number of at least 0, or infinity", others=("auto",)),
    "n_neighbors": _Number(
        "'auto' or an integer of at least 1", low=1.0, whole=True, others=("auto",)
    ),
    "diffusion": _Number(
        "'auto' or a number above 0 and below 1", high=1.0, without=(0.0, 1.0), others=("auto",)
    ),
    "stall": _Number(
        "'lowest-alpha' or a fraction in (0, 1]",
        high=1.0,
        without=(0.0,),
        others=("lowest-alpha",),
    ),
    "tol": _Number("a number above 0", without=_POSITIVE),
    "max_iter": _Number("None or an integer of at least 1", low=1.0, whole=True, others=(None,)),
    "abstain_below": _Number("None or a number from 0 to 1", high=1.0, others=(None,)),
    "n_jobs": _Number(
        "None or an integer other than 0, such as 2, or -1 for all cores",
        low=-math.inf,
        without=(0.0,),
        whole=True,
        others=(None,),
    ),
    "verbose": _Number(
        "a boolean or an integer of at least 0",
        whole=True,
        others=(False, True, np.False_, np.True_),
    ),
}
_PART = _Number("a number of at least 0", without=(math.inf,))


class _Foreign(NamedTuple):
    """What a column may hold that is not real numbers, and what to do about it."""

    what: str
    kinds: str  # pattern of how NumPy, pandas, polars and Arrow begin the names of such types
    types: tuple[type, ...]  # such values in columns of objects
    remedy: str


_FOREIGN = (
    _Foreign(
        "Input X holds text or categories",
        # pandas' plain "str" and NumPy's "str96" are text, polars' "struct" is not.
        r"str\d*$|bytes\d|string|large_string|utf8|categor|enum|dictionary",
        (str, bytes),
        "OTPropagation takes numbers. Encode such columns first, for example with "
        "sklearn.preprocessing.OneHotEncoder, or OrdinalEncoder where they have an order, in a "
        "sklearn.compose.ColumnTransformer.",
    ),
    _Foreign(
        "Input X holds dates or times",
        r"date|time|duration|period",
        (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64),
        "OTPropagation takes numbers. Turn such columns into numbers first, for example into days "
        "since a date that you choose, or into parts such as the month, the weekday or the hour.",
    ),
    _Foreign(
        "Complex data not supported: input X holds complex numbers",
        r"complex",
        (complex, np.complexfloating),
        "OTPropagation takes real numbers. Pass real and imaginary parts as columns of their own.",
    ),
)
_UNITS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_NAMES_SHOWN = 5
# Affinities that differ by less, in parts of the largest, do so by rounding.
_ASYMMETRY = 1e-6


def check_parameters(parameters: dict[str, Any]) -> None:
    """Raise for the first parameter of OTPropagation that is not what it must be."""
    for name, choices in _CHOICES.items():
        _check_choice(parameters[name], name, choices)
    for name, number in _NUMBERS.items():
        number.check(parameters[name], name)
    memory_bytes(parameters["memory_limit"])


def check_count(value: Any, name: str, *, what: str) -> None:
    """Raise if a value is not an integer of at least 1."""
    _Number(what, low=1.0, whole=True).check(value, name)


def memory_bytes(limit: object) -> float:
    """Return bytes from a number or a text such as "2GiB" or "500 MB"."""
    if isinstance(limit, Real) and not _is_bool(limit) and 0 < float(limit) < math.inf:
        return float(limit)
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", limit)
        unit = match[2].upper() or "B" if match else ""
        if match and unit in _UNITS and float(match[1]) > 0:
            return float(match[1]) * _UNITS[unit]
    raise ValueError(
        f"memory_limit must be a number of bytes above 0 or a text such as '2GiB' or '500 MB'; "
        f"got {limit!r}."
    )


def check_finite(X: Any, names: NDArray[Any] | None, *, forbidden_pairs: bool) -> None:
    """Raise if a table holds NaN or infinity, and say in which columns.

    Where `forbidden_pairs` are allowed, as in a matrix of costs, +inf is.
    """
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        # Any NaN or infinity makes the sum one too; an overflow is looked into below.
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    for what, test in (("NaN", np.isnan), ("infinity", np.isinf)):
        bad = test(values)
        if what == "infinity" and forbidden_pairs:
            bad = np.isneginf(values)
        if not bad.any():
            continue
        columns = np.unique(X.indices[bad] if sparse.issparse(X) else np.nonzero(bad)[1]).tolist()
        shown = _columns_shown(columns if names is None else [names[i] for i in columns])
        raise ValueError(
            f"Input X contains {what}, in {shown} ({int(bad.sum())} values). "
            "Fill such values first, for example with sklearn.impute.SimpleImputer, KNNImputer or "
            "IterativeImputer in a pipeline, or drop those rows or columns."
        )


def check_numeric(X: Any) -> None:
    """Raise if a table, of whatever library, has columns of text, dates or complex numbers."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, whose rows are not there yet. Pass X.collect().")
    columns = list(_columns(X))
    for foreign in _FOREIGN:
        found = [column.name for column in columns if column.is_of(foreign)]
        if found:
            raise ValueError(f"{foreign.what}, in {_columns_shown(found)}; {foreign.remedy}")


def without_rows(X: Any) -> bool:
    """Whether a table, of whatever library, has no rows."""
    shape = getattr(X, "shape", ())
    return bool((shape[0] if shape else length_hint(X, 1)) == 0)


def single_precision(X: Any) -> bool:
    """Whether all columns of a data frame, of whatever library, are float32."""
    if hasattr(X, "dtype") or not hasattr(X, "dtypes"):
        return False
    return {str(kind).lower() for kind in X.dtypes} == {"float32"}


def check_range(X: Any) -> None:
    """Raise if squared distances would overflow the precision of X."""
    values = X.data if sparse.issparse(X) else X
    if values.size == 0:
        return
    largest = max(abs(float(values.min())), abs(float(values.max())))
    limit = math.sqrt(float(np.finfo(X.dtype).max) / (16.0 * max(X.shape[1], 1)))
    if largest > limit:
        raise ValueError(
            f"X holds values up to {largest:.3g}, whose squared distances are too large for "
            f"dtype('{X.dtype}'). Scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )


def in_precision(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return X in the precision of the fitted model; raise if a number is too large for it."""
    with np.errstate(over="ignore"):
        converted = X.astype(dtype, copy=False)
    before, after = (A.data if sparse.issparse(A) else A for A in (X, converted))
    if np.isinf(after).sum() > np.isinf(before).sum():
        raise ValueError(
            f"X holds values up to {np.abs(before[np.isfinite(before)]).max():.3g}, too large for "
            f"dtype('{dtype}') in which the model was fitted."
        )
    return converted


def check_epsilon(epsilon: float, dtype: np.dtype[Any], *, chosen: bool) -> None:
    """Raise if ε, given or chosen by what the costs ask for, is lost in the precision of X."""
    smallest = float(np.finfo(dtype).tiny)
    if epsilon < smallest and not chosen:
        raise ValueError(
            f"epsilon must be at least {smallest:.2g}, the smallest number that dtype('{dtype}') "
            f"of X holds in full; got {epsilon!r}. Scale the columns and choose epsilon anew."
        )
    if epsilon < smallest:
        raise ValueError(
            f"The costs between labelled rows are about {epsilon:.2g}, too small for "
            f"dtype('{dtype}'). Scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )


def check_relations(X: Any, geometry: str, *, square: bool) -> None:
    """Raise if costs or affinities that were given are not what they must be."""
    what = "cost" if geometry == "precomputed" else "affinity"
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"With geometry={geometry!r}, fit takes a square matrix with the {what} of each row to "
            f"each row; got shape {X.shape}."
        )
    if geometry == "precomputed":
        return
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(f"An affinity must be at least 0; got {values.min():.3g}.")
    if square and abs(X - X.T).max() > _ASYMMETRY * (values.max() if values.size else 0.0):
        raise ValueError(
            "Affinities must be the same in both directions. For W from nearest neighbours, take "
            "W.maximum(W.T) (sparse) or numpy.maximum(W, W.T)."
        )


def check_labels(X: Any, classes: NDArray[Any], labels: NDArray[np.intp]) -> None:
    """Raise if the labels do not go with the table, or leave nothing to decide."""
    check_consistent_length(X, labels)
    if len(classes) == 0:
        raise ValueError(
            "y has no labelled row: all entries are -1, None or NaN. Label at least one row of "
            "each of two classes."
        )
    if len(classes) == 1:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}, among its labelled rows; there is "
            "nothing to decide. Label at least one row of another class."
        )


def check_prior(prior: Any, classes: NDArray[Any]) -> None:
    """Raise if a prior of the classes is not one."""
    if prior is None:
        return
    what = "class_prior must be None, 'labels', 'uniform' or a mapping from each class to a number"
    if not isinstance(prior, str | Mapping):
        raise TypeError(f"{what}; got {prior!r}.")
    if isinstance(prior, str):
        if prior not in {"labels", "uniform"}:
            raise ValueError(f"{what}; got {prior!r}.")
        return
    names = classes.tolist()
    if set(prior) != set(names):
        raise ValueError(f"{what}: the classes are {names}, those of the mapping {list(prior)}.")
    parts = [prior[name] for name in names]
    for name, part in zip(names, parts, strict=True):
        _PART.check(part, f"class_prior[{name!r}]")
    if not math.isfinite(sum(parts)):
        raise ValueError("class_prior holds numbers whose sum is too large.")
    if sum(parts) == 0:
        raise ValueError("class_prior gives no class anything; at least one part must be above 0.")


def _check_choice(value: object, name: str, choices: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in choices):
        listed = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {listed}; got {value!r}.")


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


class _Column(NamedTuple):
    """A column of a table: its name or number, its type's name, and the types of its objects."""

    name: Any
    kind: str
    types: frozenset[type]

    def is_of(self, foreign: _Foreign) -> bool:
        return bool(re.match(foreign.kinds, self.kind)) or any(
            issubclass(kind, foreign.types) for kind in self.types
        )


def _columns(X: Any) -> Iterator[_Column]:
    """Yield the columns of a data frame, or of an array that holds more than real numbers."""
    if hasattr(X, "dtypes") and not hasattr(X, "dtype"):
        for i, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
            kind = str(dtype).lower()
            yield _Column(name, kind, _types(X.iloc if hasattr(X, "iloc") else X, i, kind))
    elif _is_matrix(X) and X.dtype.kind not in "biuf":
        for i in range(X.shape[1]):
            yield _Column(i, X.dtype.name, _types(X, i, X.dtype.name))


def _is_matrix(X: Any) -> bool:
    known = isinstance(X, np.ndarray) or sparse.issparse(X)
    return bool(known and X.ndim == 2)  # noqa: PLR2004 - rows and columns


def _types(table: Any, i: int, kind: str) -> frozenset[type]:
    """Return the types of what a column of objects holds; of others, none."""
    return frozenset(map(type, table[:, i])) if kind == "object" else frozenset()


def _columns_shown(columns: list[Any]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_NAMES_SHOWN])
    more = f" and {len(columns) - _NAMES_SHOWN} more" if len(columns) > _NAMES_SHOWN else ""
    return f"column{'s' if len(columns) > 1 else ''} {shown}{more}"
