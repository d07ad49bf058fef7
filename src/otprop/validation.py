"""Checks of what users hand in: parameters and tables. Each error says what to do."""

from __future__ import annotations

import math
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from otprop.transport import SOLVERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

GEOMETRIES = ("euclidean", "precomputed")
MARGINALS = ("rows",)

_UNITS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_NAMES_SHOWN = 5
# How pandas, polars and Arrow begin the names of such types; pandas' plain "str" is not "struct".
_TEXT_KINDS = ("string", "large_string", "utf8", "categor", "enum", "dictionary")


def check_parameters(parameters: dict[str, Any]) -> None:
    """Raise for the first parameter of OTPropagation that is not what it must be."""
    _check_choice(parameters, "geometry", GEOMETRIES)
    _check_choice(parameters, "marginals", MARGINALS)
    _check_choice(parameters, "solver", tuple(SOLVERS))
    epsilon = parameters["epsilon"]
    if not (isinstance(epsilon, str) and epsilon == "auto"):
        _check_number(epsilon, "epsilon", what="'auto' or a number above 0")
    _check_number(parameters["alpha"], "alpha", high=1.0, zero=True, what="a number from 0 to 1")
    stall = parameters["stall"]
    if not (isinstance(stall, str) and stall == "lowest-alpha"):
        _check_number(stall, "stall", high=1.0, what="'lowest-alpha' or a fraction in (0, 1]")
    _check_number(parameters["tol"], "tol", what="a number above 0")
    if parameters["max_iter"] is not None:
        check_count(parameters["max_iter"], "max_iter", what="None or an integer of at least 1")
    memory_bytes(parameters["memory_limit"])
    n_jobs = parameters["n_jobs"]
    if n_jobs is not None:
        what = "None or an integer other than 0, such as 2, or -1 for all cores"
        _check_integer(n_jobs, "n_jobs", what=what)
        if n_jobs == 0:
            raise ValueError(f"n_jobs must be {what}; got 0.")
    verbose = parameters["verbose"]
    if not _is_bool(verbose):
        check_count(verbose, "verbose", least=0, what="a boolean or an integer of at least 0")


def check_count(value: Any, name: str, *, what: str, least: int = 1) -> None:
    """Raise if a value is not an integer, or below the least."""
    _check_integer(value, name, what=what)
    if value < least:
        raise ValueError(f"{name} must be {what}; got {value!r}.")


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


def check_no_text(X: Any) -> None:
    """Raise if a data frame, of whatever library, or an array has columns of text or categories."""
    columns = _text_columns(X)
    if columns:
        raise ValueError(
            f"Input X holds text or categories, in {_columns_shown(columns)}; OTPropagation takes "
            "numbers. Encode such columns first, for example with "
            "sklearn.preprocessing.OneHotEncoder, or OrdinalEncoder where they have an order, in "
            "a sklearn.compose.ColumnTransformer."
        )


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


def check_square(X: Any) -> None:
    """Raise if a precomputed cost matrix is not square."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            "With geometry='precomputed', fit takes a square matrix with the cost of each row to "
            f"each row; got shape {X.shape}."
        )


def _check_choice(parameters: dict[str, Any], name: str, choices: tuple[str, ...]) -> None:
    value = parameters[name]
    if not (isinstance(value, str) and value in choices):
        listed = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {listed}; got {value!r}.")


def _check_number(
    value: object, name: str, *, what: str, high: float = math.inf, zero: bool = False
) -> None:
    """Raise if a value is not a finite number above 0, or 0 where that may be, up to `high`."""
    if _is_bool(value) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {what}; got {value!r}.")
    number = float(value)
    if not (0.0 < number <= high or (zero and number == 0.0)) or math.isinf(number):
        raise ValueError(f"{name} must be {what}; got {value!r}.")


def _check_integer(value: object, name: str, *, what: str) -> None:
    if _is_bool(value) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {what}; got {value!r}.")


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def _text_columns(X: Any) -> list[Any]:
    """Return names or numbers of the columns that hold text or categories."""
    if hasattr(X, "dtypes") and not hasattr(X, "dtype"):
        kinds = [str(kind).lower() for kind in X.dtypes]
        return [
            name
            for i, (name, kind) in enumerate(zip(X.columns, kinds, strict=True))
            if kind == "str"
            or kind.startswith(_TEXT_KINDS)
            or (kind == "object" and _holds_text(X.iloc[:, i] if hasattr(X, "iloc") else X[:, i]))
        ]
    if not isinstance(X, np.ndarray) or X.ndim != 2:  # noqa: PLR2004 - a table has two
        return []
    if X.dtype.kind in "US":
        return list(range(X.shape[1]))
    if X.dtype.kind == "O":
        return [i for i in range(X.shape[1]) if _holds_text(X[:, i])]
    return []


def _holds_text(column: Any) -> bool:
    return any(isinstance(value, str | bytes) for value in column)


def _columns_shown(columns: list[Any]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_NAMES_SHOWN])
    more = f" and {len(columns) - _NAMES_SHOWN} more" if len(columns) > _NAMES_SHOWN else ""
    return f"column{'s' if len(columns) > 1 else ''} {shown}{more}"
