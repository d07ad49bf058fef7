"""The protocols `described` and `honest` on the findings page: tables, ranks, diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import common

from otprop.benchmark import formats, sections, tables
from otprop.benchmark.figures import critical_difference, style
from otprop.benchmark.measures import MEASURES
from otprop.benchmark.protocols import PROTOCOLS
from otprop.benchmark.sections import Study
from otprop.benchmark.statistics import READINGS

if TYPE_CHECKING:
    import pandas as pd

FIGURES = common.ROOT / "docs" / "images" / "findings"
COMPARED = ("described", "honest")
_TIE = 1e-9


def studies(results: pd.DataFrame, protocol: str) -> list[Study]:
    """Return a study for each measure."""
    return [
        Study(protocol, measure, tables.make(results, protocol, measure).means)
        for measure in MEASURES
    ]


def draw(results: pd.DataFrame) -> None:
    """Draw the diagrams of critical differences, in place of those that are there."""
    for old in FIGURES.glob("*-cd.*"):
        old.unlink()
    for study in (study for protocol in COMPARED for study in studies(results, protocol)):
        for name, found in study.comparisons.items():
            figure = critical_difference.draw(found, study.figure_title(name))
            style.write(figure, FIGURES, f"{study.stem}-{name}-cd")


def place_said(results: pd.DataFrame, protocol: str) -> str:
    """Say how OTP ranks by accuracy, in both readings."""
    study = next(s for s in studies(results, protocol) if s.measure == "accuracy")
    if not study.comparisons:
        return f"`{protocol}` has not been run on enough data sets to be ranked."
    said = []
    for name, found in study.comparisons.items():
        ranks = found.ranks.sort_values()
        place = int((ranks < ranks["OTP"] - _TIE).sum()) + 1
        said.append(
            f"{ranks['OTP']:.2f} over {found.rows} {_unit(name)} (place {place} of {len(ranks)}; "
            f"the best is {ranks.index[0]} with {ranks.iloc[0]:.2f})"
        )
    return f"`{protocol}` ({PROTOCOLS[protocol].title}): OTP's mean rank is {' and '.join(said)}."


def _unit(reading: str) -> str:
    return "data sets × percentages" if reading == "rows" else "data sets"


def section(results: pd.DataFrame, protocol: str) -> list[str]:
    """Write a protocol's table of accuracies and SCOREs, and its ranks in both readings."""
    table = tables.make(results, protocol, "accuracy")
    parts = [f"## Protocol {protocol}", formats.markdown(table).rstrip()]
    for study in studies(results, protocol):
        for name in READINGS:
            parts += _ranks(study, name)
    return parts


def _ranks(study: Study, name: str) -> list[str]:
    found = study.comparisons.get(name)
    what = f"**{MEASURES[study.measure]}, ranked: {study.ranked(name)}.**"
    if found is None:
        return [f"{what} Too few to be tested."]
    listed = ", ".join(f"{method} {rank:.2f}" for method, rank in found.ranks.sort_values().items())
    image = f"images/findings/{study.stem}-{name}-cd"
    tested = (
        f"Friedman: p = {found.friedman.chi2_p:.2g}; Nemenyi's critical difference "
        f"{found.critical_difference:.2f}."
    )
    shown = sections.image(f"{study.title}: mean ranks of {READINGS[name]}", image)
    return [f"{what} {listed}. {tested}", shown]
