"""The replication: run the paper's experiments, and write docs/findings.md from what came of them.

`replication.py run` goes on where the records of benchmarks/results/replication end, packs them,
and runs the checks of published_checks.py that are missing; without an argument the page is
written from what there is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import TYPE_CHECKING

import common
import findings
import published_checks
from replication_records import FOLDER
from stages import STAGES

from otprop.benchmark import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages import Stage


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
        published_checks.update(published_checks.read())
    print(f"Written: {findings.write(FOLDER)}")


if __name__ == "__main__":
    main()
