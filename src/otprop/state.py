"""A fitted model as plain numbers and texts, and back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from otprop.model_file import ModelFileError
from otprop.propagation import Round, Threshold
from otprop.propagation.induction import Replay

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray


def pack(model: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:  # noqa: ANN401
    """Return a header that JSON can hold, and arrays."""
    replay: Replay = model._replay
    header = {
        "parameters": {name: _plain(value) for name, value in model.get_params().items()},
        "epsilon": model.epsilon_,
        "n_features_in": int(model.n_features_in_),
        "trace": [[_plain(value) for value in done] for done in model.trace_],
        "dtype": model._dtype.name,
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    arrays = {
        "classes": model.classes_,
        "label_distributions": model.label_distributions_,
        "certainty": model.certainty_,
        "round": model.round_,
        "source_rows": model._source_rows,
        "source_labels": replay.labels,
        "potentials": _joined(replay.potentials),
        "potential_sizes": np.array([len(f) for f in replay.potentials], np.int64),
        "alphas": np.array([bound.alpha for bound in replay.thresholds], np.float64),
        "lowered": np.array([bound.lowered for bound in replay.thresholds], np.bool_),
    }
    points = model._points
    if sparse.issparse(points):
        header["points_shape"] = list(points.shape)
        for part in ("data", "indices", "indptr"):
            arrays[f"points_{part}"] = getattr(points, part)
    elif points is not None:
        arrays["points"] = points
    return header, arrays


def unpack(model: Any, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: ANN401
    """Set a model's fitted attributes from what `pack` returned."""
    model.classes_ = arrays["classes"]
    model.epsilon_ = float(header["epsilon"])
    model.n_features_in_ = int(header["n_features_in"])
    if "feature_names_in" in header:
        model.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
    model.label_distributions_ = arrays["label_distributions"]
    model.transduction_ = model.classes_[model.label_distributions_.argmax(axis=1)]
    model.certainty_ = arrays["certainty"]
    model.round_ = arrays["round"]
    model.trace_ = [Round(*done) for done in header["trace"]]
    model.n_iter_ = len(model.trace_) + 1
    model._dtype = np.dtype(header["dtype"])
    model._source_rows = arrays["source_rows"]
    model._points = _points(header, arrays)
    model._replay = Replay(
        epsilon=model.epsilon_,
        labels=arrays["source_labels"],
        classes=len(model.classes_),
        potentials=_split(arrays["potentials"], arrays["potential_sizes"]),
        thresholds=[
            Threshold(float(alpha), bool(lowered))
            for alpha, lowered in zip(arrays["alphas"], arrays["lowered"], strict=True)
        ],
    )
    _check(model)


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


def _check(model: Any) -> None:  # noqa: ANN401
    """Raise ValueError if the parts do not fit together: compiled loops trust their shapes."""
    replay, rows, classes = model._replay, len(model.round_), len(model.classes_)
    sources = len(replay.labels)
    sizes = [len(f) for f in replay.potentials]
    points = model._points
    consistent = (
        model.classes_.ndim == 1
        and classes > 1
        and model.label_distributions_.shape == (rows, classes)
        and model.certainty_.shape == (rows,)
        and model._source_rows.shape == (sources,)
        and model._source_rows.dtype.kind == "i"
        and replay.labels.dtype.kind == "i"
        and sources > 0
        and 0 <= replay.labels.min()
        and replay.labels.max() < classes
        and 0 <= model._source_rows.min()
        and model._source_rows.max() < rows
        and len(sizes) == len(replay.thresholds) == len(model.trace_)
        and all(0 < size <= sources for size in sizes)
        and model.epsilon_ > 0
        and (points is None) == (model.geometry == "precomputed")
        and (points is None or points.shape == (sources, model.n_features_in_))
        and (points is None or points.dtype == model._dtype)
    )
    if not consistent:
        raise ValueError("its parts do not fit together")
    if sparse.issparse(points):
        points.check_format(full_check=True)


def _points(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:  # noqa: ANN401
    if "points" in arrays:
        return np.ascontiguousarray(arrays["points"])
    if "points_data" in arrays:
        parts = tuple(arrays[f"points_{part}"] for part in ("data", "indices", "indptr"))
        return sparse.csr_matrix(parts, shape=tuple(header["points_shape"]))
    return None


def _joined(potentials: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate(potentials) if potentials else np.empty(0)


def _split(joined: NDArray[np.float64], sizes: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    if sizes.sum() != len(joined):
        raise ValueError("its parts do not fit together")
    ends = np.cumsum(sizes)
    return [joined[end - size : end].copy() for size, end in zip(sizes, ends, strict=True)]


def _plain(value: object) -> object:
    """Return a NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
