"""A fitted model as plain numbers and texts, and back."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
from scipy import sparse

from otprop.model_file import ModelFileError
from otprop.propagation import Replay, Round, Threshold

_MISFIT = "its parts do not fit together"
_KINDS = {
    "label_distributions": (np.float64, 2),
    "certainty": (np.float64, 1),
    "round": (np.intp, 1),
    "source_rows": (np.intp, 1),
    "source_labels": (np.intp, 1),
    "potentials": (np.float64, 1),
}

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray


class Fitted(NamedTuple):
    """What induction needs of a fitted model, beside its public attributes."""

    replay: Replay
    source_rows: NDArray[np.intp]  # row numbers in the X of fit, in the order in which they came
    points: Any  # the sources' features, in that order; None if costs were precomputed
    dtype: np.dtype[Any]


def pack(model: Any, fitted: Fitted) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a header that JSON can hold, and arrays."""
    replay = fitted.replay
    header = {
        "parameters": {name: _plain(value) for name, value in model.get_params().items()},
        "epsilon": model.epsilon_,
        "n_features_in": int(model.n_features_in_),
        "trace": [[_plain(value) for value in done] for done in model.trace_],
        "dtype": fitted.dtype.name,
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    arrays = {
        "classes": model.classes_,
        "label_distributions": model.label_distributions_,
        "certainty": model.certainty_,
        "round": model.round_,
        "source_rows": fitted.source_rows,
        "source_labels": replay.labels,
        # Their lengths and the thresholds stand in the trace.
        "potentials": _joined(replay.potentials),
    }
    points = fitted.points
    if sparse.issparse(points):
        header["points_shape"] = list(points.shape)
        for part in ("data", "indices", "indptr"):
            arrays[f"points_{part}"] = getattr(points, part)
    elif points is not None:
        arrays["points"] = points
    return header, arrays


def unpack(model: Any, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Fitted:
    """Set a model's public attributes from what `pack` returned, and return the rest."""
    _check_kinds(arrays)
    model.classes_ = arrays["classes"]
    model.epsilon_ = float(header["epsilon"])
    model.n_features_in_ = int(header["n_features_in"])
    if "feature_names_in" in header:
        model.feature_names_in_ = np.array(list(header["feature_names_in"]), dtype=object)
    model.label_distributions_ = arrays["label_distributions"]
    model.transduction_ = model.classes_[model.label_distributions_.argmax(axis=1)]
    model.certainty_ = arrays["certainty"]
    model.round_ = arrays["round"]
    model.trace_ = [_round(values) for values in header["trace"]]
    replay = Replay(
        epsilon=model.epsilon_,
        labels=arrays["source_labels"],
        classes=len(model.classes_),
        potentials=_split(arrays["potentials"], [done.sources for done in model.trace_]),
        thresholds=[Threshold(done.alpha, done.lowered) for done in model.trace_],
    )
    fitted = Fitted(
        replay, arrays["source_rows"], _points(header, arrays), np.dtype(header["dtype"])
    )
    if not (_fits_rows(model, fitted) and _fits_rounds(replay) and _fits_points(model, fitted)):
        raise ValueError(_MISFIT)
    return fitted


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a well-formed file with the wrong content causes into one clear error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(
            f"{path} is a model file, but its content is not that of an OTPropagation "
            f"({type(error).__name__}: {error}). Save the model again."
        ) from error


# Compiled loops trust the shapes and numbers they are given, so all of these are checked.


def _check_kinds(arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, (dtype, dimensions) in _KINDS.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != dimensions:
            raise ValueError(f"{name} is not what it should be")
    if np.isnan(arrays["potentials"]).any() or np.isposinf(arrays["potentials"]).any():
        raise ValueError("potentials are not numbers")


def _fits_rows(model: Any, fitted: Fitted) -> bool:
    rows, classes = len(model.round_), len(model.classes_)
    return bool(
        model.classes_.ndim == 1
        and classes > 1
        and model.label_distributions_.shape == (rows, classes)
        and model.certainty_.shape == (rows,)
        and _are_numbers(fitted.source_rows, rows)
        and fitted.source_rows.shape == fitted.replay.labels.shape
    )


def _fits_rounds(replay: Replay) -> bool:
    return bool(
        _are_numbers(replay.labels, replay.classes)
        and all(0 < len(f) <= len(replay.labels) for f in replay.potentials)
        and 0 < replay.epsilon < np.inf
    )


def _fits_points(model: Any, fitted: Fitted) -> bool:
    points = fitted.points
    names = getattr(model, "feature_names_in_", None)
    if fitted.dtype not in (np.float32, np.float64):
        return False
    if names is not None and (
        len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names)
    ):
        return False
    if points is None:
        return bool(model.n_features_in_ == len(model.round_))
    if sparse.issparse(points):
        points.check_format(full_check=True)
    return bool(
        points.dtype == fitted.dtype
        and points.shape == (len(fitted.source_rows), model.n_features_in_)
    )


def _are_numbers(array: NDArray[Any], below: int) -> bool:
    """Whether these are row or class numbers: at least one, none out of range."""
    return bool(len(array) and array.min() >= 0 and array.max() < below)


def _points(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    if "points" in arrays:
        return np.ascontiguousarray(arrays["points"])
    if "points_data" in arrays:
        parts = tuple(arrays[f"points_{part}"] for part in ("data", "indices", "indptr"))
        return sparse.csr_matrix(parts, shape=tuple(header["points_shape"]))
    return None


def _round(values: list[Any]) -> Round:
    """Return a row of the trace; raise if a value is not of its kind, to the type."""
    for (name, kind), value in zip(get_type_hints(Round).items(), values, strict=True):
        if type(value) is not kind:
            raise TypeError(f"{name} in the trace is not what it should be")
    return Round(*values)


def _joined(potentials: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate(potentials) if potentials else np.empty(0)


def _split(joined: NDArray[np.float64], sizes: list[int]) -> list[NDArray[np.float64]]:
    if min(sizes, default=0) < 0 or sum(sizes) != len(joined):
        raise ValueError(_MISFIT)
    ends = accumulate(sizes)
    return [joined[end - size : end].copy() for size, end in zip(sizes, ends, strict=True)]


def _plain(value: object) -> object:
    """Return a NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
