"""Where the paper's method, chosen honestly, falls below giving every row the largest class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replication_records import DATASETS, accuracy_of_largest_class, class_sizes

from otprop.benchmark import formats
from otprop.benchmark.protocols.honest import FOLDS
from otprop.benchmark.tables import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


def runs_of_otp(results: pd.DataFrame) -> pd.DataFrame:
    """Return the honest runs of OTP, with what is needed to judge them."""
    own = results[(results["protocol"] == "honest") & (results["method"] == "OTP")]
    own = own[(own["status"] == "ok") & own["dataset"].isin(DATASETS)].copy()
    own["largest"] = own["dataset"].map(accuracy_of_largest_class)
    for name in ("validated", "rounds"):
        own[name] = [details[name] for details in own["details"]]
    rows = own["dataset"].map(lambda name: sum(class_sizes(name)))
    labelled = (rows * own["percent"]) // 100
    own["validated_on"], own["targets"] = labelled // FOLDS, rows - labelled
    own["collapsed"] = own["accuracy"].astype(float) < own["largest"]
    return own


def said(results: pd.DataFrame) -> str:
    """Say in a line how many runs collapsed."""
    found = runs_of_otp(results)
    fallen = found[found["collapsed"]]
    if fallen.empty:
        return f"Under `honest` none of OTP's {len(found)} runs falls below the largest class."
    names = ", ".join(
        f"{title_of(name)} {count}" for name, count in fallen["dataset"].value_counts().items()
    )
    return (
        f"Under `honest` {len(fallen)} of OTP's {len(found)} runs fall below the accuracy of "
        f"giving every row the largest class ({names}), though {_converged(fallen)}."
    )


def _converged(fallen: pd.DataFrame) -> str:
    solved = int(fallen["converged"].astype(bool).sum())
    if solved == len(fallen):
        return "every solve converged"
    return f"every solve converged in {solved} of them"


def section(results: pd.DataFrame, checks: Mapping[str, Any]) -> str:
    """List the runs that collapsed, and say why."""
    found = runs_of_otp(results)
    fallen = found[found["collapsed"]].sort_values("accuracy")
    if fallen.empty:
        return said(results)
    parts = [said(results), _listed(fallen), _why(found, fallen)]
    return "\n\n".join([*parts, *_followed(checks)])


def _listed(fallen: pd.DataFrame) -> str:
    head = ["Data set", "labelled", "seed", "accuracy", "largest class", "validated"]
    head += ["targets in a fold", "targets", "rounds", "ε", "α", "scaling"]
    rows = [
        [
            title_of(run.dataset),
            f"{run.percent} %",
            str(run.seed),
            f"{run.accuracy:.4f}",
            f"{run.largest:.4f}",
            f"{run.validated:.4f}",
            str(run.validated_on),
            str(run.targets),
            str(run.rounds),
            f"{run.parameters['epsilon']:.3g}",
            f"{run.parameters['alpha']:g}",
            run.parameters["scaling"],
        ]
        for run in fallen.itertuples()
    ]
    return formats.pipes(head, rows).rstrip()


def _why(found: pd.DataFrame, fallen: pd.DataFrame) -> str:
    upright = found[~found["collapsed"] & found["dataset"].isin(set(fallen["dataset"]))]
    worst = fallen.iloc[0]
    return (
        f"Why: the parameters are validated on the labelled rows alone, where "
        f"{fallen['validated_on'].min()} to {fallen['validated_on'].max()} rows at a time are "
        f"targets, and that goes well ({fallen['validated'].min():.4f} to "
        f"{fallen['validated'].max():.4f} of them right). The fit then has "
        f"{fallen['targets'].min()} to {fallen['targets'].max()} targets and goes through "
        f"{fallen['rounds'].median():.0f} rounds (median; {upright['rounds'].median():.0f} in the "
        f"{len(upright)} other runs on the same data sets). In each the rule `rows` makes every "
        f"source give the same mass, to ever fewer open targets, which are no fair sample of the "
        f"classes; labels joined in error become sources for the next round. Validation cannot "
        f"see that. The worst is {title_of(worst.dataset)}, {worst.percent} %, seed {worst.seed}: "
        f"{worst.validated:.4f} validated, {worst.accuracy:.4f} reached."
    )


def _followed(checks: Mapping[str, Any]) -> list[str]:
    """Show the rounds of the worst run, beside the vote of the same sources."""
    if "collapse" not in checks:
        return []
    found = checks["collapse"]
    reached = found["accuracies"]
    lost = min(reached["one round"], reached["vote"]) > reached["rounds"]
    lead = (
        f"The rounds of {title_of(found['dataset'])}, {found['percent']} %, seed {found['seed']}, "
        f"run once more ({reached['rounds']:.4f}): how many of the labels that joined are right, "
        f"how many of the rows are of the largest class, and how many were given it. With the same "
        f"ε and scaling all targets in one round (α = 0) reach {reached['one round']:.4f}, and the "
        f"kernel vote, without any rule on the mass, {reached['vote']:.4f}"
        f"{': it is the later rounds that lose it' * lost}."
    )
    rows = [
        [
            "–".join(map(str, sorted({part["first"], part["last"]}))),
            str(part["open"]),
            str(part["joined"]),
            *(f"{part[name]:.0%}" for name in ("right", "of largest", "given largest")),
        ]
        for part in found["parts"]
    ]
    head = ["rounds", "open before", "joined", "right", "of the largest class", "given it"]
    return [lead, formats.pipes(head, rows).rstrip()]
