"""Tables 2, 3 and 4: a protocol's results beside what the paper prints, and SCORE."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from otprop import datasets
from otprop.benchmark import paper
from otprop.benchmark.measures import MEASURES
from otprop.benchmark.methods import METHODS
from otprop.benchmark.protocols import PROTOCOLS
from otprop.benchmark.splits import SEEDS
from otprop.benchmark.statistics import DIGITS, score

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS = ["dataset", "percent", "method"]
FAILURES = ("error", "timeout")
# The reading of WDBC that the paper must have used for the rows that it calls so.
LEAKY = "wdbc-leaky"
# The paper's number of its table of each measure.
NUMBERS = {"accuracy": 2, "nmi": 3, "ari": 4}


@dataclass(frozen=True)
class Score:
    """SCORE over the rows that all its methods have."""

    title: str
    rows: int
    sums: dict[str, float]
    printed: dict[str, float]  # the same, from the paper's table and over the same rows

    def over(self, total: int) -> str:
        """Say over how many rows the sum goes."""
        return f"{self.rows} rows" if self.rows == total else f"{self.rows} of {total} rows"


@dataclass(frozen=True)
class Table:
    """A measure of all methods of a protocol.

    `cells` has one row for each data set, percentage and method that occurs, run or not: mean, sd,
    least and greatest over the seeds that are ok, how many these are, how many ended in an error or
    ran out of time, whether the cell is the best of its row, and the paper's value.
    """

    protocol: str
    measure: str
    cells: pd.DataFrame

    @cached_property
    def methods(self) -> list[str]:
        """The columns: the paper's methods in its order, then the others."""
        return _in_order(self.cells.index.unique("method"), (*paper.METHODS, *METHODS))

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means, one row for each data set and percentage; NaN where there is none."""
        return wide(self.cells, "mean")

    @cached_property
    def complete(self) -> pd.DataFrame:
        """The rows in which no method is missing, but for methods without any value."""
        return self.means.dropna(axis="columns", how="all").dropna()

    def cell(self, row: tuple[Any, ...], method: str) -> pd.Series:
        """Return a cell."""
        return self.cells.loc[(*row, method)]

    @property
    def caption(self) -> str:
        """What the table shows, and how it is to be read."""
        leaky = LEAKY in self.means.index.unique("dataset")
        note = f" {title_of(LEAKY)} has the diagnosis among its features." if leaky else ""
        return (
            f"{MEASURES[self.measure]}, protocol {self.protocol} (the paper's Table "
            f"{NUMBERS[self.measure]}). {protocol_says(self.protocol)} Mean ± standard deviation "
            f"{self._seeds_said}; in brackets the paper's value; in bold the best mean of each "
            f"row.{note}"
        )

    @property
    def _seeds_said(self) -> str:
        """Over how many seeds the means are."""
        counts = set(self.cells["seeds"]) - {0}
        if counts == {len(SEEDS)}:
            return f"over {len(SEEDS)} seeds"
        if len(SEEDS) in counts:
            return f"over the seeds that were run: as many as a cell names, {len(SEEDS)} if none"
        return "over the seeds that were run, as many as a cell names"

    @cached_property
    def scores(self) -> list[Score]:
        """SCORE of all methods, and of the paper's methods by the paper's rule."""
        best = _score("SCORE, best of all methods", self.complete, [*self.complete.columns])
        methods = [method for method in paper.METHODS if method in self.complete]
        rivals = [method for method in paper.RIVALS if method in self.complete]
        if not rivals:
            return [best]
        own = self.means[methods].dropna()
        title = f"SCORE, best of {', '.join(rivals)}"
        printed = self._printed.loc[own.index, methods].dropna()
        beside = _score(title, printed, rivals).sums if len(printed) == len(own) else {}
        return [best, _score(title, own, rivals, beside)]

    @property
    def _printed(self) -> pd.DataFrame:
        return wide(self.cells, "paper")


def make(results: pd.DataFrame, protocol: str, measure: str) -> Table:
    """Make the table of a protocol's results in a measure.

    Parameters
    ----------
    results : DataFrame
        One row a result, as `records.read` gives them.
    protocol : str
        Its name in the results.
    measure : {"accuracy", "nmi", "ari"}
        The measure.
    """
    # In the order of the seeds, so that sums are the same whatever ended first.
    own = results[results["protocol"] == protocol].sort_values([*KEYS, "seed"])
    index = pd.MultiIndex.from_product(
        [
            _in_order(own["dataset"].unique(), datasets.names()),
            sorted(own["percent"].unique()),
            _in_order(own["method"].unique(), (*paper.METHODS, *METHODS)),
        ],
        names=KEYS,
    )
    # Whoever reads records without a single value gets None, not NaN.
    own = own.assign(**{measure: pd.to_numeric(own[measure])})
    ok = own[own["status"] == "ok"].groupby(KEYS)[measure]
    cells = ok.agg(["mean", "std", "min", "max", "count"]).reindex(index)
    cells = cells.rename(columns={"std": "sd", "count": "seeds"})
    cells["seeds"] = cells["seeds"].fillna(0).astype(int)
    for status in FAILURES:
        failed = own[own["status"] == status].groupby(KEYS).size()
        cells[f"{status}s"] = failed.reindex(index, fill_value=0)
    means = cells["mean"].round(DIGITS)
    cells["best"] = means == means.groupby(level=["dataset", "percent"]).transform("max")
    cells["paper"] = [_printed_value(measure, *cell) for cell in index]
    return Table(protocol, measure, cells)


def wide(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Turn a column of the cells into a table: methods as columns, in the order of the cells."""
    methods = cells.index.unique("method")
    return cells[column].unstack("method", sort=False)[methods]  # noqa: PD010 - labels are levels


def title_of(dataset: str) -> str:
    """Return a data set's name in the paper; its own where the registry does not know it."""
    return datasets.title(dataset) if dataset in datasets.names() else dataset


def protocol_says(name: str) -> str:
    """Return what a protocol is, as a sentence."""
    title = PROTOCOLS[name].title if name in PROTOCOLS else name
    return f"{title[0].upper()}{title[1:]}."


def describe(cell: pd.Series) -> str:
    """Say what there is of a cell, never nothing: mean ± deviation, and what is missing."""
    failures = [_counted(cell[f"{status}s"], status) for status in FAILURES if cell[f"{status}s"]]
    if cell["seeds"] == 0:
        return ", ".join(failures) or "not run"
    text = f"{cell['mean']:.4f}"
    if cell["seeds"] > 1:
        text += f" ± {cell['sd']:.4f}"
    if failures or cell["seeds"] != len(SEEDS):
        text += f" ({', '.join([_counted(cell['seeds'], 'seed'), *failures])})"
    return text


def _score(
    title: str, values: pd.DataFrame, rivals: list[str], printed: dict[str, float] | None = None
) -> Score:
    if values.empty:
        return Score(title, 0, {}, {})
    sums = score(values.to_numpy(np.float64), values.columns.isin(rivals))
    return Score(
        title, len(values), dict(zip(values.columns, map(float, sums), strict=True)), printed or {}
    )


def _printed_value(measure: str, dataset: str, percent: int, method: str) -> float:
    printed = paper.printed(measure)
    row = (title_of(dataset), percent)
    return printed.loc[row, method] if row in printed.index and method in printed else np.nan


def _in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Sort names as they stand in `order`; others follow by the alphabet."""
    places = {name: place for place, name in reversed(list(enumerate(order)))}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
