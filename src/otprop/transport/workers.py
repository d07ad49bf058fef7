"""Threads that share out blocks; what they compute never depends on how many there are."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """A fixed number of threads for block-wise tasks; the caller's own thread is one of them.

    A task writes what it finds into its block's own place, so the order in which blocks are
    finished does not matter. The compiled loops release Python's lock.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = available_cores() if count is None else count
        self._pool: ThreadPoolExecutor | None = None

    def run(self, task: Callable[[int], None], blocks: int) -> None:
        """Call ``task(block)`` once for each block.

        After an error, or an interrupt, no thread begins another block; the error is raised when
        all have finished theirs.
        """
        queue = iter(range(blocks))
        stopped = threading.Event()

        def drain() -> None:
            try:
                # next() on a range iterator is atomic under the interpreter's lock.
                for block in queue:
                    if stopped.is_set():
                        return
                    task(block)
            except BaseException:
                stopped.set()
                raise

        helpers = min(self.count, blocks) - 1
        if helpers < 1:
            drain()
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count - 1, thread_name_prefix="otprop")
        pool = self._pool
        pending: list[Future[None]] = []
        try:
            pending.extend(pool.submit(drain) for _ in range(helpers))
            drain()
            for future in pending:
                future.result()
        except BaseException:  # also an interrupt that comes while the others are waited for
            stopped.set()
            wait(pending)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
