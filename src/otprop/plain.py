"""Plain values in what JSON can hold: with infinity, and mappings whose keys are not only texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Plain = bool | int | float | str | list[Any] | dict[Any, Any] | None

_FLOAT, _MAPPING = "float", "mapping"
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def encoded(value: object) -> Plain:
    """Return a value as JSON without NaN and infinity holds it.

    Parameters
    ----------
    value : None, bool, int, float, str, list or mapping of such values
        Keys are booleans, integers, finite floats and texts. NumPy's scalars count as Python's.

    Raises
    ------
    TypeError
        If the value is anything else.
    """
    value = _python(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: str(float(value))}
    if value is None or _is_scalar(value):
        return value  # type: ignore[return-value]
    if isinstance(value, list):
        return [encoded(entry) for entry in value]
    if isinstance(value, Mapping):
        return {_MAPPING: [[_key(key), encoded(entry)] for key, entry in value.items()]}
    raise TypeError(f"Cannot save {value!r}: it is not a number, a text, a list or a mapping.")


def decoded(value: object) -> Plain:
    """Return the value that `encoded` has turned into this; raise ValueError over anything else."""
    if value is None or _is_scalar(value):
        return value  # type: ignore[return-value]
    if isinstance(value, list):
        return [decoded(entry) for entry in value]
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind == _FLOAT and isinstance(content, str) and content in _NOT_FINITE:
            return _NOT_FINITE[content]
        if kind == _MAPPING and isinstance(content, list):
            return _mapping(content)
    raise ValueError(f"{value!r} stands for no value")


def _mapping(pairs: list[Any]) -> dict[Any, Any]:
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and _is_scalar(pair[0])):  # noqa: PLR2004
            raise ValueError(f"{pair!r} is not a key and its value")
    mapping = {key: decoded(entry) for key, entry in pairs}
    if len(mapping) < len(pairs):
        raise ValueError("a key is there twice")
    return mapping


def _key(key: object) -> object:
    plain = _python(key)
    if not _is_scalar(plain):
        raise TypeError(f"Cannot save a mapping with the key {key!r}: it is no number or text.")
    return plain


def _python(value: object) -> object:
    """Return a NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _is_scalar(value: object) -> bool:
    """Whether JSON holds this as it is, None apart: parsers of JSON let NaN and infinity pass."""
    return isinstance(value, bool | int | str) or (
        isinstance(value, float) and math.isfinite(value)
    )
