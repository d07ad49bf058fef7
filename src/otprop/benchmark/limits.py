"""What a fit may take and what it took: seconds, memory, warnings."""

from __future__ import annotations

import re
import signal
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")


class OutOfTimeError(Exception):
    """A fit took longer than it was allowed to."""


def can_limit_time() -> bool:
    """Whether this system can interrupt a fit."""
    return hasattr(signal, "setitimer")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise OutOfTimeError in the block, which runs in the main thread, when time is up.

    A compiled loop is interrupted when it returns to Python.
    """
    if seconds is None:
        yield
        return

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTimeError(f"not done in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Noticed:
    """What a block warned of."""

    messages: list[str] = field(default_factory=list)
    converged: bool = True


@contextmanager
def noticing() -> Iterator[Noticed]:
    """Keep the warnings of the block, each once, instead of showing them."""
    noticed = Noticed()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield noticed
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            noticed.converged = False
        text = f"{warning.category.__name__}: {warning.message}"
        if text not in noticed.messages:
            noticed.messages.append(text)


class Meter:
    """Seconds since it was made, and the peak of the memory of this process since then.

    Most of a peak may have been there before: libraries, and data sets that are kept. `before_mib`
    tells how much.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            _PEAK.write_text("5", encoding="ascii")  # Linux: let the peak begin anew
        self.before_mib = self.peak_mib()
        self._start = time.perf_counter()

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - self._start

    def peak_mib(self) -> float:
        """Return the process's peak so far; since its start, where the system keeps no other."""
        if _STATUS.is_file():
            found = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text("ascii"), re.MULTILINE)
            if found:
                return int(found[1]) / 1024
        import resource  # noqa: PLC0415 - not on every system

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
