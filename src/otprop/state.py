"""A fitted model as plain numbers and texts, and back."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import numpy as np
from scipy import sparse

from otprop.confidence import Calibration
from otprop.geometry import Graph
from otprop.model_file import ModelFileError
from otprop.models import FittedCosts, FittedGraph
from otprop.plain import decoded, encoded
from otprop.propagation import Replay, Round, Threshold
from otprop.scaling import SCALINGS, Scaling
from otprop.selection import Candidate, Selection

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import DTypeLike, NDArray

    from otprop.arrays import DoubleArray, IntArray

    Header = Mapping[str, Any]
    Arrays = Mapping[str, NDArray[Any]]
    Fitted = FittedCosts | FittedGraph

_Record = TypeVar("_Record", Round, Calibration)

_COSTS, _GRAPH = "costs", "graph"
# The geometry in use where rows come as features, and where they come as relations to those fitted.
_GEOMETRIES = {_COSTS: ("euclidean", "precomputed"), _GRAPH: ("graph", "precomputed-graph")}
_PRECISIONS: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
_PARTS_OF_MATRIX = ("data", "indices", "indptr")


def pack(model: Any, fitted: Fitted) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a header that JSON can hold, and arrays."""
    header = {
        "kind": _GRAPH if isinstance(fitted, FittedGraph) else _COSTS,
        "parameters": _encoded_values(model.get_params()),
        "epsilon": float(model.epsilon_),
        "n_features_in": int(model.n_features_in_),
        "trace": [encoded(list(done)) for done in model.trace_],
        "selection": _packed_selection(model.selection_),
        "calibration": encoded(list(model.calibration_)),
        "scaling": fitted.scaling.name,
        "dtype": fitted.dtype.name,
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    arrays = {
        "classes": model.classes_,
        "label_distributions": model.label_distributions_,
        "certainty": model.certainty_,
        "round": model.round_,
        "scaling_shift": fitted.scaling.shift,
        "scaling_factor": fitted.scaling.factor,
    }
    if fitted.scaling.directions is not None:
        arrays["scaling_directions"] = fitted.scaling.directions
    if sparse.issparse(fitted.points):
        arrays |= _parts_of_matrix("points", fitted.points)
    elif fitted.points is not None:
        arrays["points"] = fitted.points
    if isinstance(fitted, FittedGraph):
        header |= {"n_neighbors": int(fitted.n_neighbors), "diffusion": float(fitted.diffusion)}
        return header, arrays | _arrays_of_graph(fitted)
    return header, arrays | _arrays_of_costs(fitted)


def saved_parameters(header: Header) -> dict[str, Any]:
    """Return the parameters of the model that `pack` was given."""
    return _decoded_values(header["parameters"])


def unpack(model: Any, header: Header, arrays: Arrays) -> Fitted:
    """Set a model's public attributes from what `pack` returned, and return the rest."""
    _set_attributes(model, header, arrays)
    kind = header["kind"]
    with_features, with_relations = _GEOMETRIES[kind]
    geometry = model.selection_.chosen["geometry"]
    _require(geometry in (with_features, with_relations), "the geometry is that of another kind")
    takes_relations = geometry == with_relations
    if takes_relations:
        _require(model.n_features_in_ == len(model.round_), "relations are to other rows")
    if kind == _GRAPH:
        return _fitted_graph(model, header, arrays, takes_relations=takes_relations)
    return _fitted_costs(model, header, arrays, takes_relations=takes_relations)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a well-formed file with the wrong content causes into one clear error."""
    try:
        yield
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ModelFileError(
            f"{path} is a model file, but its content is not that of an OTPropagation "
            f"({type(error).__name__}: {error}). Save the model again."
        ) from error


def _arrays_of_costs(fitted: FittedCosts) -> dict[str, NDArray[Any]]:
    replay = fitted.replay
    return {
        "source_rows": fitted.source_rows,
        "source_labels": replay.labels,
        # Their lengths and the thresholds stand in the trace.
        "potentials": np.concatenate([np.empty(0), *replay.potentials]),
    }


def _arrays_of_graph(fitted: FittedGraph) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"prices": fitted.prices}
    if fitted.points is not None:
        arrays["scales"] = fitted.scales
    # Links are the same in both directions: each is saved once.
    links = sparse.triu(fitted.graph.affinity, k=1, format="csr")
    return arrays | _parts_of_matrix("links", links)


def _parts_of_matrix(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a CSR matrix; its shape follows from what it is."""
    return {f"{name}_{part}": getattr(matrix, part) for part in _PARTS_OF_MATRIX}


def _packed_selection(selection: Selection) -> dict[str, Any]:
    return {
        "chosen": _encoded_values(selection.chosen),
        "reason": selection.reason,
        "candidates": [
            [_encoded_values(values), *map(encoded, scores)]
            for values, *scores in selection.candidates
        ],
    }


def _encoded_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: encoded(value) for name, value in values.items()}


# Compiled loops trust the shapes and numbers they are given, so all of these are checked.


def _set_attributes(model: Any, header: Header, arrays: Arrays) -> None:
    """Set what is public; what follows from other parts is found anew."""
    classes = arrays["classes"]
    several = classes.ndim == 1 and len(classes) > 1
    _require(several and (classes[:-1] < classes[1:]).all(), "classes are not in order")
    distributions = _array(arrays, "label_distributions", np.float64, (None, len(classes)))
    rows = len(distributions)
    model.classes_ = classes
    model.label_distributions_ = distributions
    model.certainty_ = _finite(arrays, "certainty", np.float64, (rows,))
    model.round_ = _array(arrays, "round", np.intp, (rows,))
    model.trace_ = [_record(Round, values) for values in header["trace"]]
    model.epsilon_ = _number(header["epsilon"], "epsilon", np.inf)
    model.n_features_in_ = _count(header["n_features_in"], "n_features_in")
    if "feature_names_in" in header:
        model.feature_names_in_ = _names(header["feature_names_in"], model.n_features_in_)
    model.selection_ = _selection(header["selection"])
    model.calibration_ = _calibration(header["calibration"])
    given = model.round_ == 0
    _require(_are_numbers(model.round_ + 1, len(model.trace_) + 2), "a round is not in the trace")
    _check_distributions(distributions, given)
    model.transduction_ = model._labels(distributions, given)  # noqa: SLF001 - its own rule
    model.confidence_ = model._confidence(distributions, given)  # noqa: SLF001 - the same


def _fitted_costs(
    model: Any, header: Header, arrays: Arrays, *, takes_relations: bool
) -> FittedCosts:
    rows = _array(arrays, "source_rows", np.intp, (None,))
    labels = _array(arrays, "source_labels", np.intp, rows.shape)
    known = _are_numbers(rows, len(model.round_)) and _are_numbers(labels, len(model.classes_))
    _require(known and len(np.unique(rows)) == len(rows), "sources are not rows with their classes")
    potentials = _array(arrays, "potentials", np.float64, (None,))
    _check_prices(potentials, "potentials")
    replay = Replay(
        epsilon=model.epsilon_,
        labels=labels,
        classes=len(model.classes_),
        potentials=_split(potentials, [done.sources for done in model.trace_], most=len(labels)),
        thresholds=[Threshold(done.alpha, done.lowered) for done in model.trace_],
    )
    dtype = _PRECISIONS[header["dtype"]]
    scaling = _scaling(header, arrays, dtype)
    shape = len(rows), _width(scaling)
    return FittedCosts(
        replay=replay,
        source_rows=rows,
        points=None if takes_relations else _points(arrays, dtype, shape),
        scaling=scaling,
        dtype=dtype,
        rows=len(model.round_),
    )


def _fitted_graph(
    model: Any, header: Header, arrays: Arrays, *, takes_relations: bool
) -> FittedGraph:
    rows = len(model.round_)
    given = model.round_ == 0
    scales = np.empty(0)
    if not takes_relations:
        scales = _finite(arrays, "scales", np.float64, (rows,))
    _require((scales > 0).all(), "scales are not above 0")
    prices = _array(arrays, "prices", np.float64, (int(given.sum()),))
    _check_prices(prices, "prices")
    _require(np.isfinite(prices).any(), "no given row has a price")
    dtype = _PRECISIONS[header["dtype"]]
    scaling = _scaling(header, arrays, dtype)
    shape = rows, _width(scaling)
    return FittedGraph(
        graph=Graph(_affinity(arrays, rows)),
        points=None if takes_relations else _points(arrays, dtype, shape),
        scales=scales,
        n_neighbors=_count(header["n_neighbors"], "n_neighbors"),
        diffusion=_number(header["diffusion"], "diffusion", 1.0),
        labels=np.where(given, model.label_distributions_.argmax(axis=1), -1),
        prices=prices,
        distributions=model.label_distributions_,
        round=model.round_,
        scaling=scaling,
        dtype=dtype,
    )


def _scaling(header: Header, arrays: Arrays, dtype: np.dtype[Any]) -> Scaling:
    name, columns = header["scaling"], header["n_features_in"]
    _require(name in SCALINGS, "there is no such scaling")
    shift = _finite(arrays, "scaling_shift", np.float64, (columns,))
    factor = _finite(arrays, "scaling_factor", np.float64, (columns,))
    if name != "discriminant":
        return Scaling(name, shift, factor)
    directions = _array(arrays, "scaling_directions", np.float64, (columns, None))
    with np.errstate(over="ignore", invalid="ignore"):
        farthest = (_largest(dtype) + np.abs(shift)) * np.abs(factor) @ np.abs(directions)
    # Infinities of both signs would add up to no number, and no row be the nearest to such a row.
    _require(np.isfinite(farthest).all(), "directions are too long")
    return Scaling(name, shift, factor, directions)


def _largest(dtype: np.dtype[Any]) -> float:
    """Return a bound of the features that are taken (`validation.check_range`)."""
    return min(float(np.finfo(dtype).max), float(np.sqrt(np.finfo(np.float64).max)))


def _width(scaling: Scaling) -> int:
    """Return the number of scaled columns."""
    return len(scaling.factor) + (0 if scaling.directions is None else scaling.directions.shape[1])


def _points(arrays: Arrays, dtype: np.dtype[Any], shape: tuple[int, int]) -> Any:
    # A distance that is no number has no place among a row's nearest.
    if "points_data" in arrays:
        return _matrix(arrays, "points", dtype, shape)
    return _finite(arrays, "points", dtype, shape)


def _affinity(arrays: Arrays, rows: int) -> sparse.csr_matrix:
    """Return the symmetric matrix whose upper triangle was saved."""
    upper = _matrix(arrays, "links", np.dtype(np.float64), (rows, rows))
    starts = np.repeat(np.arange(rows), np.diff(upper.indptr))
    places = starts * rows + upper.indices
    in_order = (np.diff(places) > 0).all() and (upper.indices > starts).all()
    _require(in_order and (upper.data > 0).all(), "links are not those of a graph")
    affinity = sparse.csr_matrix(upper + upper.T)
    affinity.sum_duplicates()
    return affinity


def _matrix(
    arrays: Arrays, name: str, dtype: np.dtype[Any], shape: tuple[int, int]
) -> sparse.csr_matrix:
    data = _finite(arrays, f"{name}_data", dtype, (None,))
    places = [arrays[f"{name}_{part}"] for part in _PARTS_OF_MATRIX[1:]]
    whole = all(part.ndim == 1 and part.dtype.kind == "i" for part in places)
    _require(whole, f"the places of {name} are not numbers")
    matrix = sparse.csr_matrix((data, *places), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def _finite(
    arrays: Arrays, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    array = _array(arrays, name, dtype, shape)
    _require(np.isfinite(array).all(), f"{name} are not numbers")
    return array


def _array(
    arrays: Arrays, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return an array; raise if it is of another type or shape, in which None is any length."""
    array = arrays[name]
    fits = len(shape) == array.ndim and all(
        wanted in {None, length} for wanted, length in zip(shape, array.shape, strict=True)
    )
    _require(fits and array.dtype == dtype, f"{name} is not what it should be")
    return np.ascontiguousarray(array)


def _check_distributions(distributions: DoubleArray, given: NDArray[np.bool_]) -> None:
    """Raise if there are no distributions, or those of given labels leave a doubt."""
    possible = np.isfinite(distributions).all() and (distributions >= 0).all()
    certain = distributions[given]
    one_each = ((certain == 1).sum(axis=1) == 1) & (
        (certain == 0).sum(axis=1) == certain.shape[1] - 1
    )
    _require(possible and given.any() and one_each.all(), "distributions are not those of labels")


def _check_prices(prices: DoubleArray, name: str) -> None:
    """Raise unless these are numbers or −∞, the price of a source that gives nothing."""
    _require((prices < np.inf).all(), f"{name} are not numbers")


def _are_numbers(array: IntArray, below: int) -> bool:
    """Whether these are row or class numbers: at least one, none out of range."""
    return bool(len(array) and array.min() >= 0 and array.max() < below)


def _split(joined: DoubleArray, sizes: list[int], *, most: int) -> list[DoubleArray]:
    possible = all(0 < size <= most for size in sizes) and sum(sizes) == len(joined)
    _require(possible, "potentials are not those of the trace")
    ends = accumulate(sizes)
    return [joined[end - size : end].copy() for size, end in zip(sizes, ends, strict=True)]


def _record(kind: type[_Record], values: Any) -> _Record:
    """Return a named tuple; raise if a value is not of its kind, to the type."""
    fields: list[Any] = [decoded(value) for value in values]
    for (name, wanted), value in zip(get_type_hints(kind).items(), fields, strict=True):
        _require(type(value) is wanted, f"{name} is not what it should be")
    return kind(*fields)


def _calibration(values: Any) -> Calibration:
    found = _record(Calibration, values)
    possible = np.isfinite(found.shift) and np.isfinite(found.slope) and found.labels >= 0
    _require(possible, "the calibration is not one")
    return found


def _selection(packed: Mapping[str, Any]) -> Selection:
    reason = packed["reason"]
    _require(type(reason) is str, "the reason is no text")
    candidates = [_candidate(*line) for line in packed["candidates"]]
    return Selection(_decoded_values(packed["chosen"]), reason, candidates)


def _candidate(values: Mapping[str, Any], *scores: Any) -> Candidate:
    numbers: list[Any] = [decoded(score) for score in scores]
    _require(all(type(number) is float for number in numbers), "a score is no number")
    return Candidate(_decoded_values(values), *numbers)


def _decoded_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: decoded(value) for name, value in values.items()}


def _names(names: Any, columns: int) -> NDArray[Any]:
    texts = type(names) is list and all(type(name) is str for name in names)
    _require(texts and len(names) == columns, "columns have no such names")
    return np.array(names, dtype=object)


def _number(value: Any, name: str, below: float) -> float:
    """Return a number above 0."""
    _require(type(value) is float and 0.0 < value < below, f"{name} is not what it should be")
    return float(value)


def _count(value: Any, name: str) -> int:
    """Return an integer of at least 1."""
    _require(type(value) is int and value >= 1, f"{name} is not what it should be")
    return int(value)


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
