"""A report of results: tables, tests and figures as files, and one page that shows them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from otprop.benchmark import formats, paper, sections, tables
from otprop.benchmark.figures import bipartite, boxes, critical_difference, rounds, style
from otprop.benchmark.measures import MEASURES
from otprop.benchmark.protocols import PROTOCOLS
from otprop.benchmark.sections import Study
from otprop.benchmark.splits import SEEDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from matplotlib.figure import Figure

    from otprop.benchmark.tables import Table

TABLES, FIGURES, STATISTICS = "tables", "figures", "statistics"
TESTS = {"ranks": sections.ranks, "friedman": sections.friedman, "nemenyi": sections.nemenyi}

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "rounds": lambda: rounds.draw([rounds.moons(), rounds.iris()]),
    "bipartite": lambda: bipartite.draw(bipartite.iris()),
}


def write_report(results: pd.DataFrame, folder: Path) -> Path:
    """Write all that can be said of some results, and return the page that shows it.

    Parameters
    ----------
    results : DataFrame
        One row a result, as `records.read` gives them.
    folder : path
        Where to; it is made if need be. The same results give the same files.
    """
    made = {
        protocol: [tables.make(results, protocol, measure) for measure in MEASURES]
        for protocol in _protocols(results)
    }
    studies = {
        protocol: [Study(protocol, table.measure, table.means) for table in of_protocol]
        for protocol, of_protocol in made.items()
    }
    studies["paper"] = [Study("paper", measure, paper.printed(measure)) for measure in MEASURES]
    failed = [sections.failures(results, of_protocol[0]) for of_protocol in made.values()]
    missing = pd.concat(failed, ignore_index=True) if failed else pd.DataFrame()
    every = [study for of_protocol in studies.values() for study in of_protocol]

    for table in (table for of_protocol in made.values() for table in of_protocol):
        _write_table(table, folder / TABLES)
    for study in every:
        _write_study_figures(study, folder / FIGURES)
    frames = {name: gathered(every) for name, gathered in TESTS.items()} | {"failures": missing}
    for name, frame in frames.items():
        _write(folder / STATISTICS / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    index = folder / "index.md"
    _write(index, _page(results, made, studies, missing))
    return index


def write_figures(names: Iterable[str], folder: Path) -> list[Path]:
    """Draw figures that need no results, and return their files.

    Parameters
    ----------
    names : iterable of {"rounds", "bipartite"}
        Which ones: the paper's Figure 4 and Figure 3.
    folder : path
        Where to; it is made if need be.
    """
    return [file for name in names for file in style.write(DRAWINGS[name](), folder, name)]


def _protocols(results: pd.DataFrame) -> list[str]:
    present = set(results["protocol"])
    return [name for name in PROTOCOLS if name in present] + sorted(present - set(PROTOCOLS))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_table(table: Table, folder: Path) -> None:
    stem = f"{table.protocol}-{table.measure}"
    _write(folder / f"{stem}.md", formats.markdown(table))
    _write(folder / f"{stem}.tex", formats.latex(table))
    _write(folder / f"{stem}.csv", formats.csv(table))


def _write_study_figures(study: Study, folder: Path) -> None:
    for name, values in study.readings.items():
        title = study.figure_title(name)
        if not values.empty:
            figure = boxes.draw(values, title, MEASURES[study.measure])
            style.write(figure, folder, f"{study.stem}-{name}-boxes")
        if name in study.comparisons:
            figure = critical_difference.draw(study.comparisons[name], title)
            style.write(figure, folder, f"{study.stem}-{name}-cd")


def _page(
    results: pd.DataFrame,
    made: dict[str, list[Table]],
    studies: dict[str, list[Study]],
    missing: pd.DataFrame,
) -> str:
    """Write the page."""
    parts = ["# Benchmark report", _summary(results, made), "## Contents", _contents(made)]
    for protocol, of_protocol in made.items():
        parts += [f"## Protocol {protocol}", tables.protocol_says(protocol)]
        for table, study in zip(of_protocol, studies[protocol], strict=True):
            parts += _table_parts(table, study)
    parts += ["## Failed and missing cells", *_missing_parts(made, missing)]
    parts += ["## Spread over the seeds", *_spread_parts(made)]
    parts += ["## The paper's own tables", sections.paper_sums()]
    for study in studies["paper"]:
        parts += [f"### {MEASURES[study.measure]} as printed", sections.statistics(study, FIGURES)]
    parts += [
        "## Tests as data",
        "\n".join(f"* [{name}]({STATISTICS}/{name}.csv)" for name in TESTS),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(results: pd.DataFrame, made: dict[str, list[Table]]) -> str:
    """Say what there is, and how the page is to be read."""
    if not made:
        return "There are no results; only the paper's own tables can be looked at."
    counts = results["status"].value_counts().sort_index()
    seeds = results["seed"].nunique()
    return (
        f"{len(results)} results ({', '.join(f'{n} {status}' for status, n in counts.items())}) of "
        f"{len(made)} protocol{'s' * (len(made) > 1)} on {results['dataset'].nunique()} data sets "
        f"with {seeds} of {len(SEEDS)} seeds. All measures are taken on the rows without label. "
        "Tests compare methods over the rows in which all of them have a value, and say over how "
        "many."
    )


def _contents(made: dict[str, list[Table]]) -> str:
    """Link the page's sections."""
    protocols = [f"Protocol {name}" for name in made]
    others = ["Failed and missing cells", "Spread over the seeds", "The paper's own tables"]
    return "\n".join(f"* [{name}](#{_anchor(name)})" for name in [*protocols, *others])


def _anchor(heading: str) -> str:
    """Return the name that GitHub gives a heading."""
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")


def _table_parts(table: Table, study: Study) -> list[str]:
    stem = f"{TABLES}/{table.protocol}-{table.measure}"
    files = {"Markdown": "md", "LaTeX": "tex", "CSV, a line a cell": "csv"}
    links = ", ".join(f"[{name}]({stem}.{ending})" for name, ending in files.items())
    title = f"### {MEASURES[table.measure]}, protocol {table.protocol}"
    shown = formats.markdown(table).rstrip()
    return [title, shown, f"As {links}.", sections.statistics(study, FIGURES)]


def _missing_parts(made: dict[str, list[Table]], missing: pd.DataFrame) -> list[str]:
    lines = [
        f"* Protocol {protocol} was not run at all on {', '.join(absent)}."
        for protocol, of_protocol in made.items()
        if (absent := sections.never_run(of_protocol[0]))
    ]
    return [
        *(["\n".join(lines)] if lines else []),
        sections.failures_text(missing),
        f"As [CSV]({STATISTICS}/failures.csv).",
    ]


def _spread_parts(made: dict[str, list[Table]]) -> list[str]:
    parts = ["Standard deviations of a cell over its seeds; each cell's own are in the tables."]
    for protocol, of_protocol in made.items():
        for table in of_protocol:
            parts.append(f"### {MEASURES[table.measure]}: spread, protocol {protocol}")
            parts.append(sections.spread_text(table).rstrip())
    return parts
