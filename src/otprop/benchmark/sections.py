"""The parts of a report as text and as frames: tests, failures, spread, the paper's own sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from otprop.benchmark import paper
from otprop.benchmark.formats import pipes
from otprop.benchmark.measures import MEASURES
from otprop.benchmark.statistics import (
    LEAST_METHODS,
    LEAST_ROWS,
    READINGS,
    compare,
    enough_to_test,
    reading,
)
from otprop.benchmark.tables import FAILURES, KEYS, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otprop.benchmark.statistics import Comparison
    from otprop.benchmark.tables import Table

# Sums this near to the printed ones are named where they do not agree.
_CLOSE = 0.001
_AGREEMENTS = {
    "both": "yes, cut off or rounded",
    "rounded": "yes, rounded",
    "cut off": "yes, cut off",
    "no": "**no**",
}


@dataclass(frozen=True)
class Study:
    """Values of methods in a measure, and what the tests say of them in each reading."""

    name: str  # of the protocol, or "paper"
    measure: str
    table: pd.DataFrame  # rows by data set and percentage; NaN where there is no value

    @property
    def stem(self) -> str:
        """What its files' names begin with."""
        return f"{self.name}-{self.measure}"

    @property
    def title(self) -> str:
        """What its figures are called."""
        what = "the paper's printed values" if self.name == "paper" else f"protocol {self.name}"
        return f"{MEASURES[self.measure]}, {what}"

    @property
    def without_values(self) -> list[str]:
        """The methods that nothing can be said of."""
        return list(self.table.columns[self.table.isna().all()])

    @cached_property
    def compared(self) -> pd.DataFrame:
        """The methods that have values."""
        return self.table.drop(columns=self.without_values)

    @cached_property
    def readings(self) -> dict[str, pd.DataFrame]:
        """What is ranked, in each reading."""
        return {name: reading(self.compared, name) for name in READINGS}

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """What the tests say, in each reading for which there is enough."""
        return {
            name: compare(values)
            for name, values in self.readings.items()
            if enough_to_test(values)
        }

    def figure_title(self, name: str) -> str:
        """Return what the figures of a reading are called."""
        return f"{self.title}\n{len(self.readings[name])} rows ({READINGS[name]})"

    def ranked(self, name: str) -> str:
        """Say what a reading ranks, and over how many rows."""
        rows, possible = len(self.readings[name]), self.possible_rows(name)
        said = f"{READINGS[name]}; {rows}"
        if rows == possible:
            return f"{said} rows"
        return f"{said} of {possible} rows, as in the others some method has no value"

    def possible_rows(self, name: str) -> int:
        """Return how many rows a reading would have if nothing were missing."""
        index = self.table.index
        return len(index) if name == "rows" else index.get_level_values("dataset").nunique()


def statistics(study: Study, figures: str) -> str:
    """Write how the methods compare in a study, with its figures from a folder."""
    parts = []
    if study.without_values:
        parts.append(f"Not compared, as without any value: {', '.join(study.without_values)}.")
    for name, what in READINGS.items():
        stem = f"{figures}/{study.stem}-{name}"
        parts.append(f"**Ranked: {study.ranked(name)}.**")
        if name in study.comparisons:
            parts += [
                _tests(study.comparisons[name]),
                image(f"{study.title}: mean ranks of {what}", f"{stem}-cd"),
            ]
        else:
            parts.append(
                f"Not tested: Friedman's test takes {LEAST_ROWS} rows and {LEAST_METHODS} methods "
                "at the least."
            )
        if not study.readings[name].empty:
            parts.append(image(f"{study.title}: values of {what}", f"{stem}-boxes"))
    return "\n\n".join(parts)


def image(text: str, stem: str) -> str:
    """Show a figure, with its other format beside it."""
    return f"![{text}]({stem}.svg)\n\n[PNG]({stem}.png)"


def ranks(studies: Sequence[Study]) -> pd.DataFrame:
    """Return the mean ranks of all studies: a row for each study, reading and method."""
    return _flat(
        studies,
        lambda found: [{"method": method, "rank": rank} for method, rank in found.ranks.items()],
        ["method", "rank"],
    )


def friedman(studies: Sequence[Study]) -> pd.DataFrame:
    """Return Friedman's test of all studies: a row for each study and reading."""
    names = ["methods", "chi2", "chi2_p", "f", "f_p", "alpha", "critical_difference"]
    return _flat(
        studies,
        lambda found: [
            {
                "methods": len(found.ranks),
                **found.friedman._asdict(),
                "alpha": found.alpha,
                "critical_difference": found.critical_difference,
            }
        ],
        names,
    )


def nemenyi(studies: Sequence[Study]) -> pd.DataFrame:
    """Return Nemenyi's test of all studies: a row for each study, reading and pair."""

    def pairs(found: Comparison) -> list[dict[str, Any]]:
        methods = list(found.ranks.sort_values(kind="stable").index)
        return [
            {
                "better": better,
                "worse": worse,
                "difference": found.ranks[worse] - found.ranks[better],
                "p": found.p_values.loc[better, worse],
            }
            for place, better in enumerate(methods)
            for worse in methods[place + 1 :]
        ]

    return _flat(studies, pairs, ["better", "worse", "difference", "p"])


def failures(results: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the cells that lack a seed which other cells of the protocol have, and why."""
    own = results[results["protocol"] == table.protocol].sort_values([*KEYS, "seed"])
    cells = table.cells[["seeds", *(f"{status}s" for status in FAILURES)]].copy()
    cells["not_run"] = own["seed"].nunique() - cells.sum(axis=1)
    failed = own[own["status"].isin(FAILURES)].groupby(KEYS)["message"].first()
    cells["first_message"] = failed.reindex(cells.index).fillna("")
    cells = cells[(cells.drop(columns=["seeds", "first_message"]) != 0).any(axis=1)].reset_index()
    cells.insert(0, "protocol", table.protocol)
    return cells


def failures_text(found: pd.DataFrame) -> str:
    """Write the list of failed and missing cells."""
    if found.empty:
        return "None: every method has every seed of its protocol on every data set that was run."
    head = ["Protocol", "Data set", "labelled", "Method", "ok", "errors", "timeouts", "not run"]
    rows = [
        [
            row.protocol,
            title_of(row.dataset),
            f"{row.percent} %",
            row.method,
            *map(str, (row.seeds, row.errors, row.timeouts, row.not_run)),
            row.first_message,
        ]
        for row in found.itertuples()
    ]
    lead = (
        "A cell with some seeds ok enters SCORE and the tests with the mean of these; one with "
        "none keeps its row out."
    )
    return f"{lead}\n\n{pipes([*head, 'first message'], rows).rstrip()}"


def never_run(table: Table) -> list[str]:
    """Return the paper's data sets of which the protocol has no result at all."""
    run = {title_of(name) for name in table.means.index.get_level_values("dataset")}
    printed = paper.printed(table.measure).index.unique("dataset")
    return [name for name in printed if name not in run]


def spread(table: Table) -> pd.DataFrame:
    """Return how far each method's cells spread over the seeds: a row a method."""
    deviations = table.cells["sd"].groupby(level="method", sort=False)
    found = deviations.agg(["median", "max"]).reindex(table.methods)
    widest = [
        "" if cells.isna().all() else _cell_name(cells.idxmax())
        for cells in (deviations.get_group(method) for method in table.methods)
    ]
    return found.assign(widest=widest)


def spread_text(table: Table) -> str:
    """Write how far each method's cells spread over the seeds."""
    rows = [
        [str(row.Index), _number(row.median), _number(row.max), row.widest]
        for row in spread(table).itertuples()
    ]
    return pipes(["Method", "median", "greatest", "in"], rows)


def paper_sums() -> str:
    """Write what the paper's printed values add up to, beside the SCORE that it prints."""
    rows = [
        [
            MEASURES[row.measure],
            row.method,
            f"{row.printed:.4f}",
            f"{row.recomputed:.6f}",
            f"{row.difference:+.6f}",
            _AGREEMENTS[row.agrees],
        ]
        for row in paper.discrepancies().itertuples()
    ]
    head = ["Measure", "Method", "SCORE printed", "sum of the cells", "difference", "agree"]
    return "\n\n".join([_sum_rule(), pipes(head, rows).rstrip(), _agreement_rule(), *_accounts()])


def _sum_rule() -> str:
    """Say what is summed."""
    return (
        f"The sum goes over the 36 printed rows, of value / best of {', '.join(paper.RIVALS)} in "
        f"the row; for SC, whose value is the same at all percentages, over the rows at "
        f"{paper.SC_PERCENT} % alone. {_sc_is_best()}"
    )


def _agreement_rule() -> str:
    """Say when a sum agrees, and whether the decimals after the fourth were rounded or cut off."""
    found = paper.discrepancies()
    agreeing, cut = found[found["agrees"] != "no"], found[found["agrees"] == "cut off"]
    near = found[(found["agrees"] == "no") & (found["difference"].abs() < _CLOSE)]
    named = ", ".join(f"{row.method}'s {MEASURES[row.measure]}" for row in near.itertuples())
    first = cut.iloc[0]
    how = "all" if (agreeing["agrees"] != "rounded").all() else "not all"
    return (
        f"The rule: a sum agrees if it is the printed one when its decimals after the fourth are "
        f"cut off or rounded. That holds for {len(agreeing)} of {len(found)}; {how} of them agree "
        f"when cut off, {len(cut)} only then: {first['recomputed']:.6f} is printed as "
        f"{first['printed']:.4f} and rounds to {first['recomputed']:.4f}. No tolerance is given: "
        f"{named} count as not agreeing, although they are less than {_CLOSE:g} away."
    )


def _sc_is_best() -> str:
    """Say whether it matters that SC is left out of the best of a row."""
    leads = sum(
        int((table["SC"] > table[list(paper.RIVALS)].max(axis=1)).sum())
        for table in map(paper.printed, MEASURES)
    )
    return f"SC is the best of {leads or 'no'} rows in all three tables" + (
        "." if leads else ", so that it changes nothing whether it is among the rivals."
    )


def _accounts() -> list[str]:
    """Say for each measure whose sums differ which single cells could be the reason."""
    found = paper.discrepancies()
    differing = found[found["agrees"] == "no"]
    return [
        f"**{MEASURES[measure]}.** {_account(measure, list(own['method']))}"
        for measure, own in differing.groupby("measure", sort=False)
    ]


def _account(measure: str, methods: list[str]) -> str:
    tried = len(paper.misreadings(measure))
    whole = paper.explanations(measure)
    what = (
        f"Of {tried} ways to misread a single cell (one digit; two neighbouring digits exchanged; "
        "another number printed for the same data set; the best of a row from another column), "
    )
    if len(whole):
        return (
            f"{what}{len(whole)} give{'s' * (len(whole) == 1)} all four sums as printed, their "
            f"further digits cut off: {_misread(whole)}."
        )
    alone = [
        f"{method}'s by {len(paper.partial_explanations(measure, method)) or 'none'}"
        for method in methods
    ]
    return (
        f"{what}none gives all four sums as printed. With the others left as they are, a sum is "
        f"explained thus: {', '.join(alone)}. More than one cell must differ, and which ones "
        "cannot be told."
    )


def _misread(found: pd.DataFrame) -> str:
    return ", ".join(
        f"{row.dataset} {row.percent} %, {row.cell} as {row.read:.4f} for {row.printed:.4f}"
        for row in found.itertuples()
    )


def _tests(found: Comparison) -> str:
    """Write a comparison: Friedman, ranks, who cannot be told apart, Nemenyi's p-values."""
    test = found.friedman
    alike = "; ".join(" – ".join(run) for run in found.cliques) or "all pairs are told apart"
    methods = list(found.ranks.sort_values(kind="stable").index)
    verdict = (
        ""
        if test.f_p <= found.alpha
        else (
            " Friedman's test does not reject that all methods are alike, so that Nemenyi's says "
            "nothing here."
        )
    )
    said = (
        f"Friedman: χ² = {test.chi2:.4f}, p = {test.chi2_p:.3g}; Iman and Davenport: "
        f"F = {test.f:.4f}, p = {test.f_p:.3g}.{verdict} Nemenyi's critical difference at "
        f"α = {found.alpha:g}: {found.critical_difference:.4f}. Not told apart: {alike}."
    )
    rows = [
        [one, f"{found.ranks[one]:.4f}"]
        + ["" if one == other else f"{found.p_values.loc[one, other]:.3g}" for other in methods]
        for one in methods
    ]
    head = ["Method", "mean rank", *(f"p against {method}" for method in methods)]
    return f"{said}\n\n{pipes(head, rows).rstrip()}"


def _flat(
    studies: Sequence[Study],
    entries: Callable[[Comparison], list[dict[str, Any]]],
    names: list[str],
) -> pd.DataFrame:
    rows = [
        {"protocol": study.name, "measure": study.measure, "reading": name, "rows": found.rows}
        | entry
        for study in studies
        for name, found in study.comparisons.items()
        for entry in entries(found)
    ]
    return pd.DataFrame(rows, columns=["protocol", "measure", "reading", "rows", *names])


def _cell_name(cell: tuple[Any, ...]) -> str:
    return f"{title_of(cell[0])}, {cell[1]} %"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}"
