"""A prepared table: named features, labels, its checksum, and the file that it is kept in."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

TARGET = "target"  # the last column of a file
_BLOCK = 4096  # rows that are summed up at once: 70,000 images as double take 440 MB

# What pandas, NumPy, gzip and zipfile raise over bytes that are not as they should be.
UNREADABLE = (OSError, ValueError, LookupError, EOFError, zlib.error, zipfile.BadZipFile)


class DatasetError(Exception):
    """A data set that cannot be had, or is not the one that it should be."""


class Table(NamedTuple):
    """Features by name, one row an object, and the objects' labels."""

    frame: pd.DataFrame
    target: NDArray[Any]


def table(frame: object, target: ArrayLike) -> Table:
    """Return features and labels in the form that every table has.

    Labels that are all whole numbers become int64; others become text, without the quotation marks
    that some formats put around them.
    """
    features = pd.DataFrame(frame)
    features.columns = features.columns.astype(str)
    column = pd.Series(target)
    if len(column) != len(features):
        raise ValueError(f"there are {len(column)} labels for {len(features)} rows")
    if column.isna().any():
        raise ValueError(f"{int(column.isna().sum())} rows have no label")
    text = column.astype(str).str.strip(" '\"")
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(float)
    whole = np.isfinite(numbers).all() and (numbers % 1 == 0).all()
    labels = numbers.astype(np.int64) if whole else np.array(text.to_list(), dtype=str)
    return Table(features, labels)


def numeric(given: Table, columns: Sequence[str] | None, dtype: str) -> Table:
    """Return a table of the columns asked for, in one block of numbers without negative zeros.

    -0 equals 0 but has other bits, and copies of one data set differ in which of them they have.
    """
    missing = [name for name in columns or () if name not in given.frame]
    if missing:
        raise ValueError(f"it has no column {missing[0]!r}")
    chosen = given.frame if columns is None else given.frame[list(columns)]
    values = np.array(chosen.astype(dtype), order="C")
    values += 0.0
    return Table(pd.DataFrame(values, columns=chosen.columns, copy=False), given.target)


def by_value(given: Table) -> Table:
    """Sort rows by label, then by their values from the first column on.

    For data sets of which copies in different orders of rows are about: afterwards equal rows are
    in equal places, so that splits by row number are the same for every copy.
    """
    keys = [given.target, *given.frame.to_numpy().T]
    order = np.lexsort(keys[::-1])
    return Table(given.frame.iloc[order], given.target[order])


def checksum(frame: pd.DataFrame, target: ArrayLike) -> str:
    """Return the SHA-256 of a table's content, whatever file it came from.

    Parameters
    ----------
    frame : DataFrame of shape (n, d)
        The features. Their names do not matter.
    target : array-like of shape (n,)
        The labels, integers or strings.

    Returns
    -------
    str
        64 hexadecimal digits: the sum over the line ``n d``, all values as IEEE 754 doubles, little
        end first, row by row (a zero is positive, NaN is 0x7ff8000000000000), and the labels in
        UTF-8. Each line and each label ends with a line feed.
    """
    rows, columns = frame.shape
    digest = hashlib.sha256(f"{rows} {columns}\n".encode())
    for start in range(0, rows, _BLOCK):
        block = np.array(frame.iloc[start : start + _BLOCK], dtype="<f8", order="C")
        block += 0.0
        block[np.isnan(block)] = np.nan
        digest.update(block.data)
    digest.update("".join(f"{label}\n" for label in np.asarray(target).tolist()).encode())
    return digest.hexdigest()


def read(path: Path, columns: Sequence[str] | None = None) -> Table:
    """Read a CSV file with a header and a column `target`, or an .npz archive of X and y.

    The columns of an archive have no names; `columns` gives them.
    """
    if path.suffix == ".npz":
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return table(pd.DataFrame(archive["X"], columns=columns), archive["y"])
    # NumPy makes the numbers of the text: older pandas may miss the nearest one by a bit.
    frame = pd.read_csv(path, dtype=object)
    if TARGET not in frame:
        raise ValueError(f"it has no column {TARGET!r}")
    return table(frame.drop(columns=TARGET).apply(_numbers), frame[TARGET])


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column as numbers if all of it are; a column that is not may not be asked for."""
    try:
        return column.astype(float)
    except ValueError:
        return column


def packed(name: str, given: Table) -> bytes:
    """Return the file of this name that `read` reads; the same bytes for the same table."""
    if name.endswith(".npz"):
        archive = io.BytesIO()
        np.savez_compressed(archive, X=given.frame.to_numpy(), y=given.target)
        return archive.getvalue()
    frame = given.frame.copy()
    frame.insert(frame.shape[1], TARGET, given.target)
    text = frame.to_csv(index=False, lineterminator="\n")
    return gzip.compress(text.encode(), 6, mtime=0)
