"""What the replication runs, in which order, within which limits, and why no more than that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from otprop.benchmark.splits import PERCENTS, SEEDS

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = ("iris", "wine", "heart", "ionosphere", "dermatology", "wdbc", "wdbc-leaky")
LARGE = ("isolet", "waveform", "optdigits", "satimage", "mnist")
CHOOSING = ("described", "honest")
ALL = ("published", "corrected", *CHOOSING)
FIT_LIMIT = 60.0


@dataclass(frozen=True)
class Stage:
    """A part of the whole that two cores can do in hours, the most telling parts first."""

    protocols: Sequence[str]
    datasets: Sequence[str]
    percents: Sequence[int] = PERCENTS
    seeds: int = len(SEEDS)
    fit_limit: float | None = None  # seconds

    def arguments(self) -> list[str]:
        """Return what `otprop bench run` is told."""
        said = ["--protocol", ",".join(self.protocols), "--datasets", ",".join(self.datasets)]
        said += ["--percents", ",".join(map(str, self.percents)), "--seeds", str(self.seeds)]
        return said if self.fit_limit is None else [*said, "--fit-limit", str(self.fit_limit)]


STAGES = (
    # What the paper printed: one fit a result, minutes for each seed.
    Stage(("published",), LARGE, percents=(15,)),
    # Everything where a fit takes a second.
    Stage(ALL, SMALL, fit_limit=FIT_LIMIT),
    Stage(("published",), LARGE, percents=(25, 35)),
    # Hundreds of fits a result, of minutes each where thousands of rows join one at a time: three
    # seeds of all data sets come before more seeds of any.
    Stage(("corrected", *CHOOSING), LARGE, percents=(15,), seeds=3, fit_limit=FIT_LIMIT),
    Stage(("corrected", *CHOOSING), LARGE, percents=(15,), fit_limit=FIT_LIMIT),
    Stage(("corrected", *CHOOSING), LARGE, percents=(25, 35), fit_limit=FIT_LIMIT),
)

# Why a cell of the whole has not been run: the one reason there is, for the findings page.
REASON = """\
All that is missing is missing for want of time on two cores. The stages in `benchmarks/stages.py`
go from the most telling to the least: the printed numbers at 15 % on the large data sets,
everything on the small ones, the printed numbers at 25 and 35 %, and then what takes the longest:
`corrected`, `described` and `honest` on the large data sets, first at 15 % and three seeds. There a
result of `honest` is hundreds of fits (three scalings, all candidates, five folds)."""
LIMIT = f"""\
In the stages with many fits a single fit may take {FIT_LIMIT:g} seconds of the clock. One that
takes longer is stopped and counts as a timeout of that method for that candidate: `described`
passes over the candidate, `honest` counts the fold's labels as not found. Where no candidate is
left, or the fit itself takes longer, the result is a timeout."""
