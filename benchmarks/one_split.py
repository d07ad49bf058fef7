"""Which of the printed accuracies are those of one split: the one that the public code names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from published_checks import PICKED
from replication_records import class_sizes

from otprop.benchmark import formats, paper
from otprop.benchmark.splits import PERCENTS
from otprop.benchmark.tables import LEAKY, title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# A data set counts as printed from one split if all its values but so many agree.
SPARED = 1


def compared(results: pd.DataFrame, checks: Mapping[str, Any]) -> pd.DataFrame:
    """Return our accuracies on the named splits beside the printed ones.

    Returns
    -------
    DataFrame
        A row for each data set, percentage and method that was run: "ours", "printed", "same" (to
        the fourth decimal), and "rows", the number of rows that were to be labelled.
    """
    own = results[(results["protocol"] == "published") & (results["status"] == "ok")]
    own = own[own["seed"] == own["dataset"].map(PICKED)]
    ours = own.set_index(["dataset", "percent", "method"])["accuracy"].astype(float).to_dict()
    for name, check in checks.get("picked", {}).items():
        for percent, accuracies in check["accuracies"].items():
            ours |= {(name, int(percent), method): a for method, a in accuracies.items()}
    printed = paper.printed("accuracy")
    rows = [
        {
            "dataset": name,
            "percent": percent,
            "method": method,
            "ours": accuracy,
            "printed": printed.loc[(title_of(name), percent), method],
            "rows": sum(class_sizes(name)) - sum(class_sizes(name)) * percent // 100,
        }
        for name in PICKED
        for percent in PERCENTS
        for method in ("OTP", "LP", "LS")
        if (accuracy := ours.get((name, percent, method))) is not None
    ]
    found = pd.DataFrame(rows, columns=["dataset", "percent", "method", "ours", "printed", "rows"])
    found["same"] = (found["ours"] - found["printed"]).abs() < 10.0**-paper.DIGITS / 2 + 1e-9
    return found


def of_one_split(found: pd.DataFrame) -> list[str]:
    """Return the data sets whose printed values are those of the named split, but for one at most.

    The data set with the diagnosis is left out: 1 is its value on every split.
    """
    whole = found.groupby("dataset", sort=False)["same"].agg(["sum", "size"])
    enough = (whole["sum"] >= whole["size"] - SPARED) & (whole["size"] > SPARED + 1)
    return [name for name in whole.index[enough] if name != LEAKY]


def said(found: pd.DataFrame) -> str:
    """Say in a line which data sets these are."""
    names = of_one_split(found)
    if not names:
        return "No data set's printed accuracies are those of the one split that the code names."
    own = found[found["dataset"].isin(names)]
    return (
        f"The printed accuracies of {' and '.join(map(title_of, names))} are each those of one "
        "split, which was picked by hand, and not means of ten: on these splits our run gives "
        f"{int(own['same'].sum())} of the {len(own)} values to the last digit."
    )


def of(found: pd.DataFrame, dataset: str) -> str:
    """Say what the named split makes of a data set."""
    own = found[found["dataset"] == dataset]
    if own.empty:
        return "The split that the code names has not been run."
    same, otp = int(own["same"].sum()), own[own["method"] == "OTP"].set_index("percent")
    lead = f"On the split that the public code names (seed {PICKED[dataset]}) "
    if dataset in of_one_split(found):
        others = own[~own["same"]]
        but = "".join(
            f" (but for {row.method} at {row.percent} %: {row.ours:.4f}, printed {row.printed:.4f})"
            for row in others.itertuples()
        )
        return (
            f"{lead}our run gives {same} of the {len(own)} printed values of OTP, LP and LS to the "
            f"fourth decimal{but}. So the paper prints this split, which was picked by hand, and "
            "not a mean of ten; a mean of others differs from it as any split may."
        )
    listed = ", ".join(f"{row.ours:.4f} at {percent} %" for percent, row in otp.iterrows())
    return f"{lead}OTP has {listed}; {same} of {len(own)} cells are as printed."


def section(found: pd.DataFrame) -> str:
    """Show how many printed values the named splits give."""
    text = (
        "The public code names a seed for each data set, and draws nine others without one. Below, "
        "how many of the printed accuracies (OTP, LP, LS; all percentages) our run on the named "
        "split gives to the fourth decimal. One may agree by chance; all of a data set cannot. "
        f"({title_of(LEAKY)} has 1.0000 on every split.)"
    )
    grouped = found.groupby("dataset", sort=False)
    rows = [
        [
            title_of(str(name)),
            str(PICKED[str(name)]),
            "–".join(map(str, sorted({own["rows"].min(), own["rows"].max()}))),
            f"{int(own['same'].sum())} of {len(own)}",
        ]
        for name, own in grouped
    ]
    head = ["Data set", "seed", "rows to be labelled", "values as printed"]
    return f"{text} {said(found)}\n\n{formats.pipes(head, rows).rstrip()}"
