"""`load`: a data set from a folder, the cache or its sources, checked whichever it was."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from otprop.datasets.fetch import cache_folder, keep
from otprop.datasets.registry import find
from otprop.datasets.table import UNREADABLE, DatasetError, checksum, numeric, packed, read, table
from otprop.notices import warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from otprop.datasets.registry import Entry, Source
    from otprop.datasets.table import Table


class Dataset(NamedTuple):
    """A data set.

    Attributes
    ----------
    name : str
    frame : DataFrame of shape (n, d)
        The features, float64 (mnist-70000: float32).
    target : ndarray of shape (n,)
        The labels, integers or strings, as in the original.
    description : str
        What it is, what was changed, whom to cite, and under which licence.
    """

    name: str
    frame: pd.DataFrame
    target: NDArray[Any]
    description: str


def load(name: str, *, data: str | os.PathLike[str] | None = None) -> Dataset:
    """Return a data set, checked against the sum of its content.

    Parameters
    ----------
    name : str
        One of `names()`.
    data : str or path, optional
        A folder that holds the data sets' files, such as ``iris.csv.gz``. Then, and if the
        environment variable OTPROP_DATA names one, nothing is downloaded. Otherwise a data set is
        downloaded once and kept in a cache (in the folder OTPROP_CACHE, if that is set).

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        If there is no such data set, no source has it, or what they have is not the data set that
        was registered.
    """
    entry = find(name)
    folder = data or os.environ.get("OTPROP_DATA")
    if entry.file is None:
        content = _from_sources(entry)[1]
    elif folder:
        content = _from_folder(entry, Path(folder).expanduser() / entry.file)
    else:
        content = _from_cache_or_sources(entry, cache_folder() / entry.file)
    return Dataset(entry.name, *content, _describe(entry, content))


def _from_folder(entry: Entry, path: Path) -> Table:
    if not path.is_file():
        raise DatasetError(
            f"The folder {path.parent} has no {path.name}, which holds the data set "
            f"{entry.name!r}. Put it there; or give no folder (argument data, environment variable "
            "OTPROP_DATA), and it is downloaded."
        )
    try:
        return _checked(entry, read(path, entry.columns))
    except UNREADABLE as error:
        raise DatasetError(
            f"{path} does not hold the data set {entry.name!r}: {error}. Copy the file again, or "
            "delete it and give no folder, and it is downloaded."
        ) from error


def _from_cache_or_sources(entry: Entry, path: Path) -> Table:
    if path.exists():
        try:
            return _checked(entry, read(path, entry.columns))
        except UNREADABLE as error:
            warn(f"{path} cannot be used ({error}); {entry.name!r} is fetched again.", UserWarning)
    raw, content = _from_sources(entry)
    try:
        keep(path, packed(path.name, raw))
    except OSError as error:
        warn(
            f"{entry.name!r} cannot be kept and will be fetched again next time ({error}). Set the "
            "environment variable OTPROP_CACHE to a folder that can be written.",
            UserWarning,
        )
    return content


def _from_sources(entry: Entry) -> tuple[Table, Table]:
    """Return what the first good source holds, and the table made of it."""
    problems = ""
    last: Exception | None = None
    for source in entry.sources:
        try:
            raw = _ask(source)
            return raw, _checked(entry, raw)
        except (DatasetError, *UNREADABLE) as error:
            problems += f"\n- {getattr(source, '__name__', source)}: {error}"
            last = error
    offline = (
        ""
        if entry.file is None
        else f"\nWithout a network: put {entry.file} into a folder and name that folder by the "
        "argument data or the environment variable OTPROP_DATA."
    )
    raise DatasetError(f"No source has the data set {entry.name!r}.{problems}{offline}") from last


def _ask(source: Source) -> Table:
    return table(*source()) if callable(source) else read(Path(source).expanduser())


def _checked(entry: Entry, raw: Table) -> Table:
    """Return the table made of what a source holds, if it is the one that it should be."""
    prepared = raw if entry.prepare is None else entry.prepare(raw)
    content = numeric(prepared, entry.columns, entry.dtype)
    counts = _counts(content)
    if entry.counts is not None and counts != dict(entry.counts):
        raise ValueError(f"its classes have {_listed(counts)} rows, not {_listed(entry.counts)}")
    found = checksum(*content)
    if entry.sha256 is not None and found != entry.sha256:
        raise ValueError(f"the SHA-256 of its content is {found}, not {entry.sha256}")
    return content


def _counts(content: Table) -> dict[str | int, int]:
    return dict(sorted(Counter(content.target.tolist()).items()))


def _listed(counts: Mapping[str | int, int]) -> str:
    return ", ".join(f"{label}: {count}" for label, count in counts.items())


def _describe(entry: Entry, content: Table) -> str:
    (n, features), counts = content.frame.shape, _counts(content)
    size = f"{n} rows, {features} features, {len(counts)} classes ({_listed(counts)})"
    lines = (
        f"{entry.title or entry.name}: {size}.",
        entry.notes,
        entry.citation and f"Cite: {entry.citation}",
        entry.doi and f"https://doi.org/{entry.doi}",
        entry.licence and f"Licence: {entry.licence}.",
    )
    return "\n".join(filter(None, lines))
