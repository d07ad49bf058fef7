"""What a run shows while it goes on: a bar on a terminal, else a line for each result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from types import TracebackType

    from otprop.benchmark.records import Record


class RunProgress:
    """A context in which results are shown as they come, on standard error."""

    def __init__(self, total: int) -> None:
        self.failed = 0
        self._done = 0
        self._total = total
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._row = self._bar.add_task("starting", total=total)

    def show(self, record: Record) -> None:
        """Show a result."""
        self._done += 1
        self.failed += record.status != "ok"
        said = line_of(record)
        if self._console.is_terminal:
            self._bar.update(self._row, advance=1, description=said)
            if record.status != "ok":
                self._bar.console.print(f"{said}: {record.message}", markup=False)
        else:
            text = f"[{self._done}/{self._total}] {said}"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


def line_of(record: Record) -> str:
    """Say in a line what came of a task."""
    what = (
        f"{record.protocol} {record.method} {record.dataset} {record.percent} % seed {record.seed}"
    )
    how = record.status if record.accuracy is None else f"{record.accuracy:.4f}"
    return f"{what}: {how} in {record.seconds:.1f} s"
