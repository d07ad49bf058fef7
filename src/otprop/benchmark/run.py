"""Runs: every task once, in parallel processes, each result on the disk as soon as it is there."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import runpy
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from otprop.benchmark import checkout, records
from otprop.benchmark.limits import Meter, OutOfTimeError
from otprop.benchmark.methods import METHODS
from otprop.benchmark.protocols import PROTOCOLS, Given
from otprop.benchmark.records import Record, Task
from otprop.transport.workers import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_PACKAGES = ("otprop", "numpy", "scipy", "scikit-learn", "numba", "POT", "joblib")
_RUNNING = "running"


@dataclass(frozen=True)
class Settings:
    """Where the results go, and what a run may take."""

    folder: Path
    data: Path | None = None
    fit_limit: float | None = None  # seconds a single fit may take
    workers: int = 1
    threads: int = 1  # of each worker
    plugins: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Selection:
    """What is to be run: all combinations that the protocols know."""

    protocols: Sequence[str]
    methods: Sequence[str] | None  # None: all that the protocol has
    datasets: Sequence[str]
    percents: Sequence[int]
    seeds: Sequence[int]

    def tasks(self) -> list[Task]:
        """Return the tasks: all of a seed before the next, so that early results are even."""
        return [
            Task(protocol, method, dataset, percent, seed)
            for seed, dataset, percent, protocol in product(
                self.seeds, self.datasets, self.percents, self.protocols
            )
            for method in PROTOCOLS[protocol].methods
            if self.methods is None or method in self.methods
        ]


def load_plugins(plugins: Iterable[Path]) -> None:
    """Run files that add methods or data sets; each once in a process."""
    for path in plugins:
        if path not in _loaded:
            _loaded.add(path)
            runpy.run_path(str(path), run_name=f"otprop_plugin_{path.stem}")


_loaded: set[Path] = set()


def sized(rows: int, workers: int | None = None) -> tuple[int, int]:
    """Return the number of workers for data of so many rows, and of threads for each.

    As many workers as the machine bears, if none are asked for. The largest need of memory is that
    of the methods with a dense kernel of all rows to all rows. Fewer workers leave the other cores
    free; more have fewer threads.
    """
    cores = available_cores()
    need = 3 * 8 * rows**2 + 2**29
    bears = max(1, min(cores, int(_memory() * 0.8 / need)))
    workers = workers or bears
    return workers, max(1, cores // max(workers, bears))


def run(tasks: Sequence[Task], settings: Settings, report: Callable[[Record], None]) -> None:
    """Run the tasks; a result is reported when it is on the disk.

    Where a process dies under its task (of a want of memory, mostly), the tasks that were under way
    are run again, one at a time, and one that kills its process again is recorded as an error.
    """
    environment = _environment(settings)
    # Results of an earlier run do not count: what failed in it may be what is to be run again.
    before = _written(settings.folder)
    left = list(tasks)
    while left:
        try:
            _run_parallel(left, settings, environment, settings.workers, report)
        except TerminatedWorkerError:
            for task in _under_way(settings.folder, left):
                try:
                    _run_parallel([task], settings, environment, 1, report)
                except TerminatedWorkerError:
                    record = Record(*task, status="error", environment=environment)
                    record.message = "its process died: out of memory, or killed"
                    _finish(record, settings.folder)
                    _mark(settings.folder, task).unlink(missing_ok=True)
                    report(record)
            written = _written(settings.folder)
            unfinished = [task for task in left if written[task] == before[task]]
            if len(unfinished) == len(left):  # processes die before they begin a task
                raise
            left = unfinished
        else:
            return


def _run_parallel(
    tasks: Sequence[Task],
    settings: Settings,
    environment: str,
    workers: int,
    report: Callable[[Record], None],
) -> None:
    # With one job joblib would stay in this process, which a task must not bring down.
    with parallel_config(backend="loky", inner_max_num_threads=settings.threads):
        parallel = Parallel(
            n_jobs=max(2, workers),
            pre_dispatch=workers,
            batch_size=1,
            return_as="generator_unordered",
        )
        for record in parallel(delayed(run_task)(task, settings, environment) for task in tasks):
            report(record)


def run_task(task: Task, settings: Settings, environment: str) -> Record:
    """Run one task, whatever comes of it, and put its record on the disk."""
    load_plugins(settings.plugins)
    with _marked(settings.folder, task):
        record = attempt(task, settings)
        record.environment = environment
        try:
            _finish(record, settings.folder)
        except (TypeError, ValueError) as error:  # JSON has no form for what a method gave
            message = f"its result cannot be written: {error}"
            record = Record(*task, status="error", message=message, environment=environment)
            _finish(record, settings.folder)
    return record


def attempt(task: Task, settings: Settings) -> Record:
    """Run one task and say what came of it."""
    given = Given(
        dataset=task.dataset,
        percent=task.percent,
        seed=task.seed,
        data=settings.data,
        fit_limit=settings.fit_limit,
        threads=settings.threads,
    )
    meter = Meter()
    record = Record(*task, status="ok")
    try:
        outcome = PROTOCOLS[task.protocol].run(task.method, given)
    except OutOfTimeError as error:
        record.status, record.message = "timeout", str(error)
    except Exception as error:  # noqa: BLE001 - whatever a method raises is a result
        record.status, record.message = "error", f"{type(error).__name__}: {error}"
    else:
        record.accuracy, record.nmi, record.ari = outcome.scores
        record.parameters, record.candidates = outcome.parameters, outcome.candidates
        record.converged, record.details = outcome.converged, outcome.details
    record.seconds, record.peak_mib = round(meter.seconds(), 3), round(meter.peak_mib(), 1)
    record.details["mib_before"] = round(meter.before_mib, 1)
    return record


def _written(folder: Path) -> Counter[Task]:
    """Count each task's results on the disk."""
    lines = records.read_lines(folder, "result")
    return Counter(Task(*(line[name] for name in Task._fields)) for line in lines)


def _finish(record: Record, folder: Path) -> None:
    record.finished = datetime.now(tz=UTC).isoformat(timespec="seconds")
    records.append_result(folder, record)


@contextmanager
def _marked(folder: Path, task: Task) -> Iterator[None]:
    """Let the folder tell that a task is under way."""
    mark = _mark(folder, task)
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def _under_way(folder: Path, tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks whose mark is still there."""
    left = [task for task in tasks if _mark(folder, task).exists()]
    for task in left:
        _mark(folder, task).unlink(missing_ok=True)
    return left


def _mark(folder: Path, task: Task) -> Path:
    return folder / _RUNNING / "_".join(map(str, task))


def _environment(settings: Settings) -> str:
    """Record what the run is made with; return the id that its results bear."""
    about: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_cores(),
        "workers": settings.workers,
        "threads": settings.threads,
        "fit_limit": settings.fit_limit,
        "commit": checkout.commit(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
        # As texts, since a grid may hold what JSON has no form for.
        "grids": {
            method.name: {name: [repr(value) for value in values] for name, values in grid.items()}
            for method in METHODS.values()
            if (grid := method.grid)
        },
    }
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]
    known = {entry["id"] for entry in records.read_lines(settings.folder, "environment")}
    if digest not in known:
        records.append(settings.folder, "environment", {"id": digest, **about})
    return digest


def _memory() -> float:
    """Return the bytes of memory that are free for use, or plenty where the system keeps mum."""
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    return float("inf")
