"""How section 5 compares methods: SCORE, ranks, Friedman's test, Nemenyi's test.

Arrays have one row a problem and one column a method; the larger a value, the better. Demšar
(2006), "Statistical comparisons of classifiers over multiple data sets", is the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import f as f_distribution
from scipy.stats import friedmanchisquare, rankdata, studentized_range

if TYPE_CHECKING:
    from otprop.arrays import BoolArray, DoubleArray

ALPHA = 0.05
# Means that agree to this many digits differ by rounding errors only, and tie.
DIGITS = 12
# The least that Friedman's test takes.
LEAST_ROWS = 2
LEAST_METHODS = 3

# What is ranked: every row of the table, or every data set once.
READINGS = {
    "rows": "data sets × percentages",
    "datasets": "data sets, each the mean over its percentages",
}


class Friedman(NamedTuple):
    """Friedman's test of whether all methods rank alike, and Iman and Davenport's form of it."""

    chi2: float
    chi2_p: float
    f: float
    f_p: float


@dataclass(frozen=True)
class Comparison:
    """All that is said of methods over the same rows."""

    rows: int
    ranks: pd.Series  # mean rank of each method; 1 is best
    friedman: Friedman
    alpha: float
    critical_difference: float
    p_values: pd.DataFrame  # Nemenyi's, of each pair of methods
    cliques: list[tuple[str, ...]]  # the best first


def score(values: DoubleArray, rivals: BoolArray | None = None) -> DoubleArray:
    """Return the paper's SCORE of each column: the sum over rows of value / best of the row.

    Parameters
    ----------
    values : array of shape (rows, methods)
        Performances.
    rivals : array of bool of shape (methods,), optional
        The columns among which the best of a row is sought; all by default. The paper's printed
        sums leave its SC out.

    Returns
    -------
    array of shape (methods,)
        SCORE; NaN if the best of some row is not above 0, which leaves no share of it.
    """
    best = (values if rivals is None else values[:, rivals]).max(axis=1, keepdims=True)
    shares = np.full(values.shape, np.nan)
    np.divide(values, best, out=shares, where=best > 0)
    return np.asarray(shares.sum(axis=0), np.float64)


def average_ranks(values: DoubleArray) -> DoubleArray:
    """Return the mean rank of each column, 1 for the best; ties share the mean of their ranks."""
    ranks: DoubleArray = rankdata(-np.round(values, DIGITS), axis=1).mean(axis=0)
    return ranks


def friedman(values: DoubleArray) -> Friedman:
    """Test whether all columns rank alike; ties are corrected for.

    Parameters
    ----------
    values : array of shape (rows, methods)
        Performances; at least two rows and three methods.
    """
    rows, methods = values.shape
    rounded = np.round(values, DIGITS)
    if (np.ptp(rounded, axis=1) == 0).all():  # nothing but ties, which SciPy divides 0 by 0 for
        return Friedman(0.0, 1.0, 0.0, 1.0)
    chi2, chi2_p = map(float, friedmanchisquare(*rounded.T))
    left = rows * (methods - 1) - chi2
    # All rows rank alike where nothing is left, but for rounding errors.
    f = (rows - 1) * chi2 / left if left > rows * 10.0**-DIGITS else np.inf
    f_p = float(f_distribution.sf(f, methods - 1, (methods - 1) * (rows - 1)))
    return Friedman(chi2, chi2_p, f, f_p)


def critical_difference(methods: int, rows: int, alpha: float = ALPHA) -> float:
    """Return by how much mean ranks must differ to be told apart by Nemenyi's test."""
    quantile = float(studentized_range.ppf(1 - alpha, methods, np.inf))
    return float(quantile / np.sqrt(2) * _standard_error(methods, rows))


def nemenyi(ranks: DoubleArray, rows: int) -> DoubleArray:
    """Return the p-value of each pair of mean ranks over so many rows."""
    methods = len(ranks)
    first, second = np.triu_indices(methods, 1)
    distances = np.abs(ranks[first] - ranks[second]) / _standard_error(methods, rows)
    p_values = np.ones((methods, methods))
    p_values[first, second] = studentized_range.sf(distances * np.sqrt(2), methods, np.inf)
    return np.minimum(p_values, p_values.T)


def cliques(ranks: DoubleArray, difference: float) -> list[tuple[int, ...]]:
    """Return the longest runs of methods, in the order of their ranks, that are not told apart.

    All pairs of a run differ by less than the critical difference; no run is part of another, and
    none is a method alone.
    """
    order = np.argsort(ranks, kind="stable")
    ends = np.searchsorted(ranks[order], ranks[order] + difference, side="left")
    found, covered = [], 0
    for start, end in enumerate(ends):
        if end > max(covered, start + 1):
            found.append(tuple(int(method) for method in order[start:end]))
            covered = end
    return found


def enough_to_test(values: pd.DataFrame) -> bool:
    """Return whether there is enough to test."""
    rows, methods = values.shape
    return bool(rows >= LEAST_ROWS and methods >= LEAST_METHODS)


def compare(values: pd.DataFrame, alpha: float = ALPHA) -> Comparison:
    """Rank and test the columns of a table without gaps.

    Parameters
    ----------
    values : DataFrame
        One row a problem, one column a method; at least two rows and three methods.
    alpha : float, default=0.05
        Level of significance.
    """
    array = values.to_numpy(np.float64)
    rows, methods = array.shape
    ranks = average_ranks(array)
    difference = critical_difference(methods, rows, alpha)
    names = values.columns
    return Comparison(
        rows=rows,
        ranks=pd.Series(ranks, index=names),
        friedman=friedman(array),
        alpha=alpha,
        critical_difference=difference,
        p_values=pd.DataFrame(nemenyi(ranks, rows), index=names, columns=names),
        cliques=[tuple(names[method] for method in run) for run in cliques(ranks, difference)],
    )


def reading(values: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows to be ranked, without those in which a value is missing.

    Parameters
    ----------
    values : DataFrame
        Rows by data set and percentage, as the levels "dataset" and "percent" of its index.
    name : {"rows", "datasets"}
        All rows, or one row a data set: the mean over percentages. A data set that lacks a value
        at any percentage is left out, as a mean over fewer would not be the same thing.
    """
    # Without methods there is nothing to rank in any row.
    complete = values.notna().all(axis=1) & (values.shape[1] > 0)
    if name == "rows":
        return values[complete]
    means = values.groupby(level="dataset", sort=False).mean()
    return means[complete.groupby(level="dataset", sort=False).all()]


def _standard_error(methods: int, rows: int) -> float:
    """Return the standard deviation of a mean rank's difference, by √2."""
    return float(np.sqrt(methods * (methods + 1) / (6 * rows)))
