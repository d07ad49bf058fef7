"""What the paper prints in its Tables 2 to 4, and whether its SCOREs are the sums of that."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from otprop.benchmark.measures import MEASURES
from otprop.benchmark.statistics import score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otprop.arrays import BoolArray, DoubleArray

METHODS = ("LP", "LS", "LNP", "OTP", "SC")
# Those that use labels: among them the best of a row is sought for SCORE.
RIVALS = METHODS[:4]
# The paper's SCORE of SC, which has one value for all percentages, counts each data set once.
SC_PERCENT = 25
DIGITS = 4  # of all numbers that the paper prints
_UNIT = 10.0**-DIGITS
_ROUNDING = 1e-9  # in units of the last printed digit, far below what could be told apart


def printed(measure: str) -> pd.DataFrame:
    """Return the paper's table of a measure: rows by data set (its name) and percentage.

    Parameters
    ----------
    measure : {"accuracy", "nmi", "ari"}
        The measure.
    """
    own = _file(measure)
    cells = own[own["dataset"] != "SCORE"].astype({"percent": int})
    return cells.set_index(["dataset", "percent"])


def printed_scores(measure: str) -> pd.Series:
    """Return the SCORE that the paper prints for each method."""
    own = _file(measure)
    return own[own["dataset"] == "SCORE"].iloc[0][list(METHODS)].astype(float)


def recomputed_scores(measure: str) -> pd.Series:
    """Return SCORE as the sum over the printed cells."""
    table = printed(measure)
    rivals = table.columns.isin(RIVALS)
    sums = pd.Series(score(table.to_numpy(), rivals), index=table.columns)
    once = table.xs(SC_PERCENT, level="percent")
    sums["SC"] = score(once.to_numpy(), rivals)[table.columns.get_loc("SC")]
    return sums


def discrepancies() -> pd.DataFrame:
    """Hold every printed SCORE against the sum of the printed cells.

    Returns
    -------
    DataFrame
        One row for each measure and method: printed, recomputed, difference, and how they agree:
        "rounded", "cut off" (the digits after the fourth dropped), "both" or "no".
    """
    tables = [
        pd.DataFrame(
            {
                "measure": measure,
                "method": METHODS,
                "printed": printed_scores(measure).to_numpy(),
                "recomputed": recomputed_scores(measure).to_numpy(),
            }
        )
        for measure in MEASURES
    ]
    found = pd.concat(tables, ignore_index=True)
    found["difference"] = found["printed"] - found["recomputed"]
    rounded = _rounds_to(found["recomputed"].to_numpy(), found["printed"].to_numpy())
    cut = _cuts_to(found["recomputed"].to_numpy(), found["printed"].to_numpy())
    found["agrees"] = np.select(
        [rounded & cut, rounded, cut], ["both", "rounded", "cut off"], default="no"
    )
    return found


def misreadings(measure: str) -> pd.DataFrame:
    """Return what each way to misread a single cell would do to the sums of the four methods.

    A cell is misread as a number of which one digit is another, or two neighbouring digits are
    exchanged; as another number printed for the same data set and measure; or it is no cell but
    the best of a row that is taken from another column.

    Returns
    -------
    DataFrame
        One row a misreading: data set, percentage, what is misread (a method, or "best"), the
        number printed, the number read, and the sums that would follow, a column a method.
    """
    table = printed(measure)
    values = table[list(RIVALS)].to_numpy()
    sums = score(values)
    rows = []
    for place, (dataset, percent) in enumerate(table.index):
        before = values[place]
        of_dataset = table.loc[dataset].to_numpy().ravel()
        changed: list[tuple[str, float, float, DoubleArray]] = []
        for column, method in enumerate(RIVALS):
            for read in sorted({*_misprints(before[column]), *of_dataset} - {before[column]}):
                after = before.copy()
                after[column] = read
                changed.append((method, before[column], read, after / after.max()))
        changed += [
            ("best", before.max(), best, before / best)
            for best in sorted({*table.iloc[place]} - {before.max()})
        ]
        rows += [
            (dataset, percent, *what, *(sums + shares - before / before.max()))
            for *what, shares in changed
        ]
    return pd.DataFrame(rows, columns=["dataset", "percent", "cell", "printed", "read", *RIVALS])


def explanations(measure: str) -> pd.DataFrame:
    """Return the misreadings with which all four sums, cut off, are the SCOREs printed."""
    found = misreadings(measure)
    return found[_agreeing(measure, found).all(axis=1)]


def partial_explanations(measure: str, method: str) -> pd.DataFrame:
    """Return the misreadings with which one method's sum is as printed and no other sum moves."""
    found = misreadings(measure)
    others = [rival for rival in RIVALS if rival != method]
    sums = recomputed_scores(measure)[others].to_numpy()
    still = np.isclose(found[others].to_numpy(), sums, rtol=0, atol=_ROUNDING).all(axis=1)
    return found[still & _agreeing(measure, found)[:, RIVALS.index(method)]]


@cache
def _file(measure: str) -> pd.DataFrame:
    with (resources.files("otprop.benchmark") / "paper_tables.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    return table[table["measure"] == MEASURES[measure]].drop(columns="measure")


def _misprints(value: float) -> Iterator[float]:
    """Yield the numbers with one other decimal, or with two neighbouring decimals exchanged."""
    text = f"{value:.{DIGITS}f}"
    start = len(text) - DIGITS
    for place in range(start, len(text)):
        for digit in "0123456789":
            yield float(text[:place] + digit + text[place + 1 :])
    for place in range(start, len(text) - 1):
        yield float(text[:place] + text[place + 1] + text[place] + text[place + 2 :])


def _agreeing(measure: str, found: pd.DataFrame) -> BoolArray:
    return _cuts_to(
        found[list(RIVALS)].to_numpy(), printed_scores(measure)[list(RIVALS)].to_numpy()
    )


def _rounds_to(values: DoubleArray, shown: DoubleArray) -> BoolArray:
    return np.abs(np.round(values, DIGITS) - shown) < _UNIT / 2


def _cuts_to(values: DoubleArray, shown: DoubleArray) -> BoolArray:
    return np.abs(np.floor(values / _UNIT + _ROUNDING) * _UNIT - shown) < _UNIT / 2
