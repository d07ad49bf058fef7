"""How long `otprop bench run --quick` and its report take on this machine, from nothing.

From nothing: the folder of results is empty, and the loops are compiled anew, as in a fresh
installation; data sets are read from the folder of the benchmarks, not downloaded. With --try one
data set and one seed are run, and nothing is written.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common

from otprop.benchmark import records

TITLE = "The quick benchmark"
BUDGET = 240  # seconds, on two cores
TRIAL = ("--datasets", "iris", "--seeds", "1", "--methods", "OTP,LP,LS,1-NN")
PACKAGES = ("otprop", "numpy", "scipy", "scikit-learn", "numba", "POT", "joblib", "matplotlib")


def seconds_of(arguments: list[str], environment: dict[str, str]) -> float:
    """Run `otprop bench` to its end and return the seconds it took."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "otprop", "bench", *arguments]
    subprocess.run(command, check=True, env=environment)  # noqa: S603 - our own command
    return time.perf_counter() - start


def measure(selection: tuple[str, ...], folder: Path) -> dict[str, float]:
    """Run and report in an empty folder; return the seconds and the number of results."""
    out = folder / "results"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "compiled")}
    run = ["run", "--quick", "--out", str(out), "--data", str(common.data_folder()), *selection]
    found = {"run": seconds_of(run, environment)}
    found["report"] = seconds_of(["report", str(out)], environment)
    results = records.read([out])
    return found | {
        "results": len(results),
        "failed": int((results["status"] != "ok").sum()),
        "of tasks": float(results["seconds"].sum()),
    }


def body(found: dict[str, float], disturbance: str) -> str:
    """Write what was measured."""
    whole = found["run"] + found["report"]
    verdict = "within" if whole <= BUDGET else "more than"
    table = common.markdown_table(
        ["step", "seconds"],
        [
            ["otprop bench run --quick", common.number(found["run"])],
            ["otprop bench report", common.number(found["report"])],
            ["both", common.number(whole)],
        ],
    )
    return (
        f"{found['results']} results, {found['failed']} of them failed; from an empty folder, with "
        f"all loops compiled anew. The tasks' own seconds, over all processes: "
        f"{common.number(found['of tasks'])}. {verdict.capitalize()} the {BUDGET} seconds that are "
        f"allowed on two cores. {disturbance}\n\n{table}"
    )


def main() -> None:
    """Measure; print, and write unless it is a trial."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--try", dest="trial", action="store_true", help="a minute; writes nothing")
    trial = parser.parse_args().trial
    about, others = common.machine(PACKAGES), common.OtherWork()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(TRIAL if trial else (), Path(folder))
    cores = others.cores()
    text = body(found, common.disturbance(cores))
    print(text)
    if not trial:
        common.write("quick", TITLE, text, found | {"other cores": cores}, about)


if __name__ == "__main__":
    main()
