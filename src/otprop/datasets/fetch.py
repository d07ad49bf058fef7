"""Where tables come from: files of a server, OpenML; and where they are kept."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pandas as pd
from sklearn.datasets import fetch_openml

from otprop.datasets.formats import unpacked
from otprop.datasets.table import DatasetError, Table, table
from otprop.model_file import replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    # What is told of a download: the file's name, bytes so far, bytes in all where they are known.
    Progress = Callable[[str, int, int | None], None]

PAUSES = (1.0, 2.0, 4.0)  # seconds before a download is tried once more
TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 2**16
_BUSY = (408, 425, 429)  # answers that ask to come back, as do all from 500 on
_SERVER_ERROR = 500


def show(name: str, done: int, total: int | None) -> None:
    """Keep one line about a download on the terminal, if there is one."""
    if sys.stderr.isatty():
        of = "" if total is None else f" of {total / 1e6:.1f}"
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r[otprop] {name}: {done / 1e6:.1f}{of} MB{end}")
        sys.stderr.flush()


def download(url: str, *, progress: Progress = show) -> bytes:
    """Return a file of a server.

    A cut connection, silence, and a server's own errors are tried again from the start, after
    pauses; what will not change by itself (no network, no such file) is not.
    """
    pauses = iter(PAUSES)
    while True:
        try:
            return _receive(url, progress)
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError):
                error.close()
            pause = next(pauses, None)
            if pause is None or not _may_pass(error):
                raise DatasetError(f"{url}: {_reason(error)}") from error
        time.sleep(pause)


def _receive(url: str, progress: Progress) -> bytes:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise DatasetError(f"{url}: only http and https are downloaded")
    request = Request(url, headers={"User-Agent": f"otprop/{version('otprop')}"})  # noqa: S310
    name = Path(urlsplit(url).path).name
    with urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310 - the scheme is checked
        total = response.length  # what is still to come; None if the server does not say
        data = bytearray()
        progress(name, 0, total)
        while chunk := response.read(_CHUNK):
            data += chunk
            progress(name, len(data), total)
    if total is not None and len(data) < total:
        raise IncompleteRead(bytes(data), total - len(data))
    return bytes(data)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code >= _SERVER_ERROR or error.code in _BUSY
    if isinstance(error, URLError):  # there is no connection
        return isinstance(error.reason, ConnectionResetError)
    return True  # there was one


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, URLError):
        return f"no connection ({error.reason})"
    if isinstance(error, IncompleteRead):
        return f"the connection was cut after {len(error.partial)} bytes"
    return f"the connection broke ({error or type(error).__name__})"


@dataclass(frozen=True)
class Originals:
    """The files that a data set was published as.

    Parameters
    ----------
    urls : tuple of str
        Where they are, in the order in which `read` takes them.
    read : callable
        Makes a table of their (unpacked) contents.
    """

    urls: tuple[str, ...]
    read: Callable[[Sequence[bytes]], Table]

    def __call__(self) -> Table:
        """Download the files and read them."""
        return self.read([unpacked(download(url)) for url in self.urls])

    def __str__(self) -> str:
        return urlsplit(self.urls[0]).netloc


@dataclass(frozen=True)
class OpenML:
    """A data set of OpenML.

    Parameters
    ----------
    data_id : int
        Its number, which stands for one version for ever.
    columns : tuple of str
        Our names of its first features, in their order; what follows is left out.
    labels : mapping, optional
        Our labels, where OpenML has others.
    rows : int, optional
        How many rows to keep.
    """

    data_id: int
    columns: tuple[str, ...]
    labels: Mapping[str, str | int] = field(default_factory=dict)
    rows: int | None = None

    def __call__(self) -> Table:
        """Let scikit-learn download the data set."""
        with _patience(TIMEOUT):
            # The other parser is quicker, but may miss the nearest number by a bit.
            frame, target = fetch_openml(
                data_id=self.data_id,
                as_frame=True,
                return_X_y=True,
                parser="liac-arff",
                cache=False,
            )
        named = frame.iloc[: self.rows, : len(self.columns)].set_axis(list(self.columns), axis=1)
        text = [str(label) for label in target[: self.rows]]
        return table(named, pd.Series([self.labels.get(label, label) for label in text]))

    def __str__(self) -> str:
        return f"OpenML, data set {self.data_id}"


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Let no connection be silent for longer; scikit-learn would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def cache_folder() -> Path:
    """Return the folder of what was downloaded: OTPROP_CACHE, else the system's place for caches.

    Its files are named and made as those of an offline folder, so that a copy of it is one.
    """
    given = os.environ.get("OTPROP_CACHE")
    if given:
        return Path(given).expanduser()
    home = Path.home()
    places: dict[str, tuple[str, Path]] = {
        "darwin": ("", home / "Library" / "Caches"),
        "win32": ("LOCALAPPDATA", home / "AppData" / "Local"),
    }
    variable, usual = places.get(sys.platform, ("XDG_CACHE_HOME", home / ".cache"))
    base = Path(os.environ.get(variable, ""))
    # The XDG specification says to ignore a relative path.
    return (base if base.is_absolute() else usual) / "otprop" / "datasets"


def keep(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all; the folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(data)
