"""What is known of a data set, and the list of all."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from otprop.datasets.table import DatasetError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    import pandas as pd
    from numpy.typing import ArrayLike

    from otprop.datasets.table import Table

    Source = str | os.PathLike[str] | Callable[[], tuple[pd.DataFrame, ArrayLike]]


_ENTRIES: dict[str, Entry] = {}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set.

    Whatever source a table comes from, it is checked against `columns`, `counts` and `sha256`,
    as far as they are given, before anyone sees it.

    Parameters
    ----------
    name : str
        What it is asked for by.
    sources : tuple
        Tried in order, until one gives the right table. Each is a function that returns features
        (as a frame) and labels, or the path of a CSV file with a header and a column ``target``;
        `Originals` and `OpenML` are such functions.
    file : str, optional
        The file that it is kept in: in the cache, and in a folder for work without a network. A
        name in ``.npz`` makes an archive of arrays, any other a gzipped CSV file. Without a name,
        the sources are asked each time.
    title : str, optional
        What tables and figures call it; the name, if not given.
    columns : tuple of str, optional
        Its features; all columns, if not given.
    counts : mapping of label to int, optional
        How many rows each class has.
    sha256 : str, optional
        The `checksum` of its content.
    prepare : callable, optional
        Makes the table out of what the sources and the file hold.
    dtype : {"float64", "float32"}, optional
        The type of all features.
    citation, doi, licence, notes : str, optional
        What its description says.
    """

    name: str
    sources: tuple[Source, ...]
    file: str | None = None
    title: str = ""
    columns: tuple[str, ...] | None = None
    counts: Mapping[str | int, int] | None = None
    sha256: str | None = None
    prepare: Callable[[Table], Table] | None = None
    dtype: str = "float64"
    citation: str = ""
    doi: str = ""
    licence: str = ""
    notes: str = ""


def register(entry: Entry) -> None:
    """Add a data set for as long as this process runs.

    Parameters
    ----------
    entry : Entry
        Under a name that is still free.
    """
    if not isinstance(entry.sources, tuple) or not entry.sources:  # letters of a string are none
        raise TypeError(f"sources must be a tuple of at least one, not {entry.sources!r}.")
    if entry.name in _ENTRIES:
        raise DatasetError(f"There is already a data set called {entry.name!r}.")
    _ENTRIES[entry.name] = entry


def names() -> tuple[str, ...]:
    """Return the names of all data sets: in the order of the paper's Table 1, then further ones."""
    return tuple(_ENTRIES)


def find(name: str) -> Entry:
    """Return what is known of a data set.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Entry
    """
    if name in _ENTRIES:
        return _ENTRIES[name]
    known = {known.name.lower(): known.name for known in _ENTRIES.values()}
    titles = {known.title.lower(): known.name for known in _ENTRIES.values() if known.title}
    near = difflib.get_close_matches(str(name).lower(), [*known, *titles], n=3, cutoff=0.7)
    meant = dict.fromkeys(repr((titles | known)[word]) for word in near)
    hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
    raise DatasetError(f"There is no data set {name!r}.{hint} There are: {', '.join(names())}.")


def title(name: str) -> str:
    """Return what tables and figures call a data set; for those of Table 1 the paper's name."""
    return find(name).title or name
