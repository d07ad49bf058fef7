"""What of the replication was run, within which limits, how long it took, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from replication_records import DATASETS
from stages import LIMIT, REASON

from otprop.benchmark import formats
from otprop.benchmark.protocols import PROTOCOLS
from otprop.benchmark.splits import PERCENTS, SEEDS
from otprop.benchmark.tables import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MINUTES = """\
Minutes on one core for a seed at 15 % with all methods (median over the seeds; the machine did
other work too):"""


def section(results: pd.DataFrame, environments: Mapping[str, Mapping[str, Any]]) -> str:
    """Write how many seeds of each protocol and data set were run, and why no more."""
    rows = [
        [title_of(name), *(_seeds(results, protocol, name) for protocol in PROTOCOLS)]
        for name in DATASETS
    ]
    head = ["Data set", *PROTOCOLS]
    lead = (
        f"Seeds of {len(SEEDS)} for which all methods were run, at "
        f"{', '.join(f'{p} %' for p in PERCENTS)}, by protocol; {len(results)} results in all. "
        f"{_failures(results)}"
    )
    times = [
        [title_of(name), *(_minutes(results, protocol, name) for protocol in PROTOCOLS)]
        for name in DATASETS
    ]
    return "\n\n".join(
        [
            lead,
            formats.pipes(head, rows).rstrip(),
            f"{_missing(results)} {_flat(REASON)}",
            f"{_flat(LIMIT)} {_limits(results, environments)} {_out_of_time(results)}",
            _flat(_MINUTES),
            formats.pipes(head, times).rstrip(),
            _commits(environments),
        ]
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def whole(results: pd.DataFrame, protocol: str, name: str) -> pd.Series:
    """Return, for each percentage and seed that was run, whether all methods were."""
    own = results[(results["protocol"] == protocol) & (results["dataset"] == name)]
    return own.groupby(["percent", "seed"]).size() == len(PROTOCOLS[protocol].methods)


def _seeds(results: pd.DataFrame, protocol: str, name: str) -> str:
    found = whole(results, protocol, name)
    counts = [int(found.get(p, pd.Series(dtype=bool)).sum()) for p in PERCENTS]
    return ", ".join(map(str, counts))


def _missing(results: pd.DataFrame) -> str:
    """Say how many of all cells, each a data set at a percentage, lack seeds."""
    said = []
    for protocol in PROTOCOLS:
        counts = [
            int(whole(results, protocol, name).get(percent, pd.Series(dtype=bool)).sum())
            for name in DATASETS
            for percent in PERCENTS
        ]
        full, none = counts.count(len(SEEDS)), counts.count(0)
        said.append(f"`{protocol}` {full} full, {len(counts) - full - none} in part, {none} not")
    cells = len(DATASETS) * len(PERCENTS)
    return f"Of {cells} cells (a data set at a percentage) were run: {'; '.join(said)}."


def _failures(results: pd.DataFrame) -> str:
    failed = results[results["status"] != "ok"]
    if failed.empty:
        return "None ended in an error or ran out of time."
    counts = failed.groupby(["status", "protocol", "method", "dataset"]).size()
    listed = ", ".join(
        f"{method} on {title_of(name)} under `{protocol}` {count} × {status}"
        for (status, protocol, method, name), count in counts.items()
    )
    return f"Not ok: {listed}."


def _limits(results: pd.DataFrame, environments: Mapping[str, Mapping[str, Any]]) -> str:
    """Say how many results of each protocol were run within which limit."""
    limits = results["environment"].map(lambda name: environments.get(name, {}).get("fit_limit"))
    said = []
    for protocol in PROTOCOLS:
        counts = limits[results["protocol"] == protocol].value_counts(dropna=False)
        parts = [
            f"{count} without a limit" if pd.isna(limit) else f"{count} within {limit:g} s"
            for limit, count in counts.items()
        ]
        said.append(f"`{protocol}` {', '.join(parts) or 'none'}")
    return f"Results by limit: {'; '.join(said)}."


def _out_of_time(results: pd.DataFrame) -> str:
    """Say how many candidates ran out of time under `described`, how many fits under `honest`."""
    described = results[results["protocol"] == "described"]
    stopped = [
        sum(candidate.get("status") == "timeout" for candidate in candidates or ())
        for candidates in described["candidates"]
    ]
    honest = results[results["protocol"] == "honest"]
    failed = [details.get("failed_fits", 0) for details in honest["details"]]
    return (
        f"Under `described` {sum(stopped)} candidates of {sum(map(bool, stopped))} results ran out "
        f"of time; under `honest` {sum(failed)} fits for validation, of {sum(map(bool, failed))} "
        "results, ran out of time or failed."
    )


def _minutes(results: pd.DataFrame, protocol: str, name: str) -> str:
    own = results[(results["protocol"] == protocol) & (results["dataset"] == name)]
    own = own[own["percent"] == PERCENTS[0]]
    found = whole(own, protocol, name)
    if not found.any():
        return "not known"
    seconds = own.groupby(["percent", "seed"])["seconds"].sum()[found]
    return f"{seconds.median() / 60:.2f}"


def _commits(environments: Mapping[str, Mapping[str, Any]]) -> str:
    """Name the commits that the results were made with."""
    known = sorted({entry["commit"] for entry in environments.values() if entry.get("commit")})
    without = sum(not entry.get("commit") for entry in environments.values())
    said = [f"commit {name}" for name in known]
    said += [f"{without} of {len(environments)} environments without a record of it"] * bool(
        without
    )
    return f"Code that the results were made with: {'; '.join(said)}."
