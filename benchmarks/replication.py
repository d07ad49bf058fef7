"""The replication: run the paper's experiments, and write docs/findings.md from what came of them.

`replication.py run` goes on where the records of benchmarks/results/replication end, and packs
them; without an argument the page is written from the records that there are.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import common
import findings

from otprop.benchmark import records
from otprop.benchmark.splits import PERCENTS, SEEDS

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = common.RESULTS / "replication"
SMALL = ("iris", "wine", "heart", "ionosphere", "dermatology", "wdbc", "wdbc-leaky")
LARGE = ("isolet", "waveform", "optdigits", "satimage", "mnist")
ALL = ("published", "corrected", "described", "honest")


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
    Stage(ALL, SMALL, fit_limit=60),
    Stage(("published", "corrected"), LARGE, percents=(15,)),
    Stage(("described", "honest"), LARGE, percents=(15,), seeds=1, fit_limit=120),
    Stage(("published", "corrected"), LARGE),
    Stage(("described", "honest"), LARGE, fit_limit=120),
)


def run(stages: Sequence[Stage]) -> None:
    """Run what has not been run, stage by stage, and pack the records."""
    for stage in stages:
        command = [sys.executable, "-m", "otprop", "bench", "run", "--out", str(FOLDER)]
        command += ["--data", str(common.data_folder()), *stage.arguments()]
        subprocess.run(command, check=True)  # noqa: S603 - our own command
        records.pack(FOLDER)


def main() -> None:
    """Run if asked to; write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("run",))
    parser.add_argument("--stages", type=int, default=len(STAGES), help="the first so many")
    options = parser.parse_args()
    if options.what == "run":
        run(STAGES[: options.stages])
    print(f"Written: {findings.write(FOLDER)}")


if __name__ == "__main__":
    main()
