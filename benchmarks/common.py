"""What the benchmarks share: data, splits, the machine they ran on, and the files they write."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs" / "benchmarks"

LABELLED = 0.15
# Cores busy with other work above which times are not to be relied on.
QUIET = 0.1
_MNIST_TRAINING = 60_000

T = TypeVar("T")


def data_folder() -> Path:
    """Return the folder that holds the data sets, or leave with a message."""
    folder = Path(os.environ.get("OTPROP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(
            f"{folder} is missing. The benchmarks read the data sets from the folder that the "
            "environment variable OTPROP_DATA names, or else from ../shared/data beside this "
            "repository."
        )
    return folder


def load_table(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the features of a UCI table that have no missing values, and the labels."""
    import pandas as pd  # noqa: PLC0415 - not every benchmark needs it, and it takes memory

    table = pd.read_csv(data_folder() / f"{name}.csv.gz")
    features = table.drop(columns=["target", "id"], errors="ignore").dropna(axis="columns")
    return features.to_numpy(np.float64), table["target"].to_numpy()


def load_mnist() -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Return MNIST's 10,000 test images, pixels from 0 to 255, and their labels."""
    with np.load(data_folder() / "mnist.npz") as archive:
        X = archive["X"][_MNIST_TRAINING:].copy()
        y = archive["y"][_MNIST_TRAINING:].astype(np.intp)
    return X, y


def split(y: NDArray[Any], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the labelled rows, 15 % of each class, and the others."""
    from sklearn.model_selection import train_test_split  # noqa: PLC0415 - imported when timed

    labelled, others = train_test_split(
        np.arange(len(y)), test_size=1 - LABELLED, random_state=seed, stratify=y
    )
    return labelled, others


def timed(
    call: Callable[[], T], repeats: int = 1, budget: float = math.inf
) -> tuple[T, float, int]:
    """Call up to `repeats` times within `budget` seconds; return result, median time, count."""
    seconds: list[float] = []
    while len(seconds) < repeats and (not seconds or sum(seconds) + seconds[-1] <= budget):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds), len(seconds)


class OtherWork:
    """A meter of the processor time that other processes take, where the system tells it.

    Threads that wait for one another, as regot's do, slow down many times over when one of them
    has lost its core to another process, so a run beside other work says nothing.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._others = self._seconds()

    def cores(self) -> float:
        """Return how many cores were busy with other work, on average, since the start."""
        return max(0.0, (self._seconds() - self._others) / (time.perf_counter() - self._start))

    @staticmethod
    def _seconds() -> float:
        stat = Path("/proc/stat")
        if not stat.is_file():
            return math.nan
        user, nice, system, _, _, irq, softirq, steal = map(
            int, stat.read_text(encoding="ascii").split(maxsplit=9)[1:9]
        )
        busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        own = os.times()
        return busy - own.user - own.system - own.children_user - own.children_system


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine(packages: Iterable[str]) -> dict[str, str]:
    """Describe processor, cores, system, load and versions."""
    described = {
        "processor": _processor(),
        "cores": str(usable_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "load at the start": f"{os.getloadavg()[0]:.2f}"
        if hasattr(os, "getloadavg")
        else "unknown",
        "Python": platform.python_version(),
    }
    return described | {name: importlib.metadata.version(name) for name in packages}


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table; the columns after the first are aligned to the right."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[c]) for row in cells) for c in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [
            text.ljust(width) if c == 0 else text.rjust(width)
            for c, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rules = ["-" * w if c == 0 else "-" * (w - 1) + ":" for c, w in enumerate(widths)]
    return "\n".join([line(cells[0]), line(rules), *map(line, cells[1:])])


def disturbance(cores: float) -> str:
    """Say how much other work there was during a benchmark, and what follows from it."""
    if math.isnan(cores):
        return "Whether the machine did other work meanwhile could not be told."
    said = f"Other processes kept {cores:.2f} cores busy meanwhile"
    return f"{said}." if cores <= QUIET else f"**{said}: these times are not to be relied on.**"


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with a few significant digits, without an exponent where it is readable."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0 or 1e-3 <= abs(value) < 1e5:  # noqa: PLR2004 - readable without an exponent
        decimals = 0 if value == 0 else max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{decimals}f}"
    return f"{value:.1e}"


def yes(flag: object) -> str:
    """Write a truth value."""
    return "yes" if flag else "no"


def write(name: str, title: str, body: str, results: Any, about: dict[str, str]) -> None:  # noqa: ANN401
    """Write results/<name>.json and docs/benchmarks/<name>.md, with command, date and machine."""
    command = " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]])
    date = datetime.now(tz=UTC).date().isoformat()
    RESULTS.mkdir(parents=True, exist_ok=True)
    DOCS.mkdir(parents=True, exist_ok=True)
    record = {"command": command, "date": date, "machine": about, "results": results}
    text = json.dumps(_plain(record), indent=1, ensure_ascii=False, allow_nan=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    where = "; ".join(f"{key} {value}" for key, value in about.items())
    page = f"# {title}\n\nWritten by `{command}` on {date}.\nMachine: {where}.\n\n{body}\n"
    (DOCS / f"{name}.md").write_text(page, encoding="utf-8")


def results_so_far(name: str) -> list[dict[str, Any]]:
    """Return the rows that results/<name>.json holds, so that a run can go on where it ended."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return rows


def mean_and_error(values: Sequence[float], digits: int = 4) -> str:
    """Write a mean and, in brackets, its standard error."""
    if len(values) == 0:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.mean(values):.{digits}f} ({error:.{digits}f})"


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Turn NumPy's numbers into Python's, and what JSON has no number for into null."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
