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


def check_parameters(parameters: dict[str, Any]) -> None:
    """Raise for the first parameter of OTPropagation that is not what it must be."""
    _check_choice(parameters, "geometry", GEOMETRIES)
    _check_choice(parameters, "marginals", MARGINALS)
    _check_choice(parameters, "solver", tuple(SOLVERS))
    epsilon = parameters["epsilon"]
    if not (isinstance(epsilon, str) and epsilon == "auto"):
        _check_number(epsilon, "epsilon", low=0.0, what="'auto' or a number above 0")
    _check_number(parameters["alpha"], "alpha", low=-1e-300, high=1.0, what="a number from 0 to 1")
    stall = parameters["stall"]
    if not (isinstance(stall, str) and stall == "lowest-alpha"):
        _check_number(
            stall, "stall", low=0.0, high=1.0, what="'lowest-alpha' or a fraction in (0, 1]"
        )
    _check_number(parameters["tol"], "tol", low=0.0, what="a number above 0")
    max_iter = parameters["max_iter"]
    if max_iter is not None and (_is_bool(max_iter) or not isinstance(max_iter, Integral)):
        raise TypeError(f"max_iter must be None or an integer of at least 1; got {max_iter!r}.")
    if max_iter is not None and max_iter < 1:
        raise ValueError(f"max_iter must be None or an integer of at least 1; got {max_iter!r}.")
    memory_bytes(parameters["memory_limit"])


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
        columns = np.unique(X.indices[bad] if sparse.issparse(X) else np.nonzero(bad)[1])
        shown = ", ".join(
            str(i if names is None else repr(names[i])) for i in columns[:_NAMES_SHOWN]
        )
        more = f" and {len(columns) - _NAMES_SHOWN} more" if len(columns) > _NAMES_SHOWN else ""
        plural = "s" if len(columns) > 1 else ""
        raise ValueError(
            f"Input X contains {what}, in column{plural} {shown}{more} ({int(bad.sum())} values). "
            "Fill such values first, for example with sklearn.impute.SimpleImputer, KNNImputer or "
            "IterativeImputer in a pipeline, or drop those rows or columns."
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


def check_scale(epsilon: float, dtype: np.dtype[Any]) -> None:
    """Raise if the ε that the costs ask for is lost in the precision of X."""
    if epsilon < float(np.finfo(dtype).tiny):
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
    value: object, name: str, *, low: float, what: str, high: float = math.inf
) -> None:
    if _is_bool(value) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {what}; got {value!r}.")
    if not (low < float(value) <= high) or math.isinf(float(value)):
        raise ValueError(f"{name} must be {what}; got {value!r}.")


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)
