"""The results of runs: one line of JSON each, appended whole, never changed.

A process that is killed while it writes leaves a torn line, which readers pass over and the next
writer closes. Several processes may write at once. `pack` puts the lines into a small file, beside
which a run goes on.
"""

from __future__ import annotations

import gzip
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from otprop.model_file import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

try:
    import fcntl
except ImportError:  # Windows: a single write to a file opened for appending has to do
    fcntl = None  # type: ignore[assignment]

FILE = "records.jsonl"
PACKED = "records.jsonl.gz"


class Task(NamedTuple):
    """What is run once: the key of a record."""

    protocol: str
    method: str
    dataset: str
    percent: int
    seed: int


@dataclass
class Record:
    """What came of a task."""

    protocol: str
    method: str
    dataset: str
    percent: int
    seed: int
    status: str  # "ok", "error" or "timeout"
    message: str = ""
    accuracy: float | None = None
    nmi: float | None = None
    ari: float | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    candidates: list[dict[str, Any]] | None = None
    converged: bool | None = None
    details: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    peak_mib: float = 0.0
    environment: str = ""
    finished: str = ""

    @property
    def task(self) -> Task:
        """The key."""
        return Task(self.protocol, self.method, self.dataset, self.percent, self.seed)


COLUMNS = tuple(Record.__dataclass_fields__)


def append(folder: Path, kind: str, entry: dict[str, Any]) -> None:
    """Add a line, which is on the disk when this returns."""
    line = json.dumps({"kind": kind, **entry}, ensure_ascii=False, allow_nan=False)
    with _locked(folder / FILE) as file:
        # A torn line ends here; what follows it begins a line of its own.
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        torn = file.read(1) not in (b"", b"\n")
        file.write((b"\n" if torn else b"") + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def append_result(folder: Path, record: Record) -> None:
    """Add a result."""
    append(folder, "result", asdict(record))


def read_lines(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a kind, those packed first; torn lines are passed over."""
    for path, opened in ((folder / PACKED, gzip.open), (folder / FILE, Path.open)):
        if not path.is_file():
            continue
        with opened(path, "rb") as file:
            for line in file:
                with suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict) and entry.pop("kind", None) == kind:
                        yield entry


def pack(folder: Path) -> Path:
    """Put all entries into one small file; of each task's results the one that stands.

    No run may be under way in the folder. The same entries give the same file.
    """
    about = {entry["id"]: entry for entry in read_lines(folder, "environment")}
    found = results(folder)
    entries = [{"kind": "environment", **about[name]} for name in sorted(about)]
    entries += [{"kind": "result", **asdict(found[task])} for task in sorted(found)]
    text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)
    with replacing(folder / PACKED) as file:
        file.write(gzip.compress(text.encode(), mtime=0))
    (folder / FILE).unlink(missing_ok=True)
    return folder / PACKED


def results(folder: Path) -> dict[Task, Record]:
    """Return the result of each task: the first that is ok, else the last."""
    found: dict[Task, Record] = {}
    for entry in read_lines(folder, "result"):
        record = Record(**entry)
        before = found.get(record.task)
        if before is None or before.status != "ok":
            found[record.task] = record
    return found


def read(folders: Iterable[Path]) -> pd.DataFrame:
    """Return the results in some folders as a table, a row each, in the order of the tasks."""
    found: dict[Task, Record] = {}
    for folder in folders:
        found |= results(folder)
    rows = [asdict(found[task]) for task in sorted(found)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    with path.open("ab+") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
        yield file
