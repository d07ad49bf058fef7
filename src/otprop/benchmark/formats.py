"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otprop.benchmark.tables import describe, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    from otprop.benchmark.tables import Table


def pipes(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of texts as GitHub's Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_in_cell, line))} |\n" for line in lines)


def markdown(table: Table) -> str:
    """Write a table of results as GitHub's Markdown, its caption above it."""

    def text(cell: pd.Series) -> str:
        own = f"**{describe(cell)}**" if cell["best"] else describe(cell)
        return own if np.isnan(cell["paper"]) else f"{own} [{cell['paper']:.4f}]"

    def number(value: float, beside: float | None) -> str:
        return f"{value:.4f}" if beside is None else f"{value:.4f} [{beside:.4f}]"

    rows = [
        [title_of(row[0]), f"{row[1]} %", *(text(table.cell(row, m)) for m in table.methods)]
        for row in table.means.index
    ]
    body = pipes(["Data set", "labelled", *table.methods], rows + _score_lines(table, number))
    return f"{table.caption}\n\n{body}"


def latex(table: Table) -> str:
    """Write a table of results as LaTeX's `table` float for the package booktabs.

    The paper's values stand in a line of their own below ours.
    """

    def own(cell: pd.Series) -> str:
        text = escaped(describe(cell))
        return rf"\textbf{{{text}}}" if cell["best"] else text

    def lines(row: tuple[Any, ...]) -> list[list[str]]:
        cells = [table.cell(row, method) for method in table.methods]
        first = [escaped(title_of(row[0])), rf"{row[1]}\,\%", *map(own, cells)]
        printed = ["" if np.isnan(cell["paper"]) else _bracketed(cell["paper"]) for cell in cells]
        return [first, ["", "", *printed]] if any(printed) else [first]

    def number(value: float, beside: float | None) -> str:
        return f"{value:.4f}" if beside is None else f"{value:.4f} {_bracketed(beside)}"

    def joined(parts: Iterable[Sequence[str]]) -> list[str]:
        return [" & ".join(line) + r" \\" for line in parts]

    scores = [[*map(escaped, line[:2]), *line[2:]] for line in _score_lines(table, number)]
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs}; ten methods take a page in landscape.",
            r"\begin{table}",
            r"\centering\tiny\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{escaped(table.caption)}}}",
            rf"\begin{{tabular}}{{lr{'l' * len(table.methods)}}}",
            r"\toprule",
            *joined([["Data set", "labelled", *map(escaped, table.methods)]]),
            r"\midrule",
            *joined(line for row in table.means.index for line in lines(row)),
            r"\midrule",
            *joined(scores),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def csv(table: Table) -> str:
    """Write a table of results as CSV, a line a cell, with all digits."""
    flat = table.cells.reset_index()
    flat.insert(0, "protocol", table.protocol)
    flat.insert(1, "measure", table.measure)
    flat.insert(3, "title", [title_of(name) for name in flat["dataset"]])
    return str(flat.to_csv(index=False, lineterminator="\n"))


def _in_cell(text: str) -> str:
    """Keep a text from ending its cell."""
    return " ".join(text.replace("|", r"\|").split())


def _score_lines(table: Table, number: Callable[[float, float | None], str]) -> list[list[str]]:
    """Return a line a SCORE: what it is, over how many rows, and each method's."""
    return [
        [
            found.title,
            found.over(len(table.means)),
            *(
                number(found.sums[method], found.printed.get(method))
                if method in found.sums
                else "–"
                for method in table.methods
            ),
        ]
        for found in table.scores
    ]


def _bracketed(value: float) -> str:
    # Braces, as a bracket that follows \\ would be its argument.
    return rf"{{[}}\textit{{{value:.4f}}}]"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "%&#_{}$"},
}


def escaped(text: str) -> str:
    """Write a text for LaTeX."""
    return "".join(_SPECIAL.get(sign, sign) for sign in text)
