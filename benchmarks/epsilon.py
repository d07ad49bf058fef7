"""Compare rules by which epsilon="auto" could choose ε from the labelled rows alone."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import common
import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler

from otprop import OTPropagation
from otprop.propagation import certainty
from otprop.selection.epsilon import EXPONENTS as IN_POWERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

SETS = ("iris", "wine", "heart", "ionosphere", "dermatology", "wdbc")
ALPHA = 0.9
SEEDS = 10
# Candidates: powers of two times the median cost between a labelled
# row and the nearest other.
EXPONENTS = np.array(IN_POWERS)

IN_USE = "in use"
BEST = "best"


class LeftOut(NamedTuple):
    """The other labelled rows' votes on each labelled row, at every candidate."""

    votes: NDArray[np.float64]  # (candidates, rows, classes)
    own: NDArray[np.intp]  # the class of each row

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.votes.shape[2]

    @property
    def share(self) -> NDArray[np.float64]:
        """The share of each row's own class, (candidates, rows)."""
        return self.votes[:, np.arange(len(self.own)), self.own]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the vote is right, (candidates, rows)."""
        return self.votes.argmax(axis=2) == self.own

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """Whether a target with such votes would become a source, (candidates, rows)."""
        return np.array([certainty(votes) for votes in self.votes]) > ALPHA


def log_likelihood(left: LeftOut) -> NDArray[np.float64]:
    """Return the mean log share of the own class, a hundredth spread over all classes."""
    return np.asarray(np.log(0.99 * left.share + 0.01 / left.classes).mean(axis=1))


def brier(left: LeftOut) -> NDArray[np.float64]:
    """Return the mean squared distance between votes and class, negated."""
    return np.asarray(
        -((left.votes - np.eye(left.classes)[left.own]) ** 2).sum(axis=2).mean(axis=1)
    )


def own_share(left: LeftOut) -> NDArray[np.float64]:
    """Return the mean share of the own class."""
    return np.asarray(left.share.mean(axis=1))


def accuracy(left: LeftOut) -> NDArray[np.float64]:
    """Return how many votes are right."""
    return np.asarray(left.right.mean(axis=1))


def net_accepted(left: LeftOut) -> NDArray[np.float64]:
    """Return how many rows are accepted rightly, less how many wrongly, guessing worth nothing."""
    worth = np.where(left.right, 1.0, -1.0 / (left.classes - 1))
    return np.asarray((left.accepted * worth).mean(axis=1))


CRITERIA: dict[str, Callable[[LeftOut], NDArray[np.float64]]] = {
    "log-likelihood": log_likelihood,
    "Brier": brier,
    "own share": own_share,
    "accuracy": accuracy,
    "net accepted": net_accepted,
}
RULES = (*CRITERIA, IN_USE, BEST)


class Choice(NamedTuple):
    """What a rule chose for a set and a seed, and what came of it."""

    data: str
    seed: int
    rule: str
    epsilon: float
    exponent: float
    accuracy: float
    rounds: int


def leave_one_out(X: NDArray[np.float64], own: NDArray[np.intp]) -> tuple[LeftOut, float]:
    """Let the labelled rows vote on one another; return also the scale of the candidates."""
    cost = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(cost, np.inf)
    nearest = cost.min(axis=1)
    scale = float(np.median(nearest[nearest > 0]))
    members = np.eye(own.max() + 1)[own]
    votes = [softmax(-cost / epsilon, axis=1) @ members for epsilon in scale * 2.0**EXPONENTS]
    # A class with one label is nobody's to foretell.
    judged = np.bincount(own)[own] > 1
    return LeftOut(np.array(votes)[:, judged], own[judged]), scale


def transduction(
    X: NDArray[np.float64], y: NDArray[np.intp], labelled: NDArray[np.intp], epsilon: float | str
) -> tuple[OTPropagation, float]:
    """Fit with some rows labelled; return the model and its accuracy on the others."""
    hidden = np.full(len(y), -1)
    hidden[labelled] = y[labelled]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OTPropagation.paper(epsilon=epsilon, alpha=ALPHA).fit(X, hidden)
    unlabelled = hidden < 0
    return model, float((model.transduction_ == y)[unlabelled].mean())


def choices(data: str, seed: int) -> Iterator[Choice]:
    """Let every rule choose for one set and one split."""
    table, labels = common.load_table(data)
    X = StandardScaler().fit_transform(table)
    y = np.unique(labels, return_inverse=True)[1]
    labelled, _ = common.split(y, seed)
    left, scale = leave_one_out(X[labelled], y[labelled])
    candidates = scale * 2.0**EXPONENTS
    fits = [transduction(X, y, labelled, float(epsilon)) for epsilon in candidates]
    reached = np.array([right for _, right in fits])
    # The first of equals is the largest ε.
    chosen = {rule: int(judge(left).argmax()) for rule, judge in CRITERIA.items()}
    chosen[BEST] = int(reached.argmax())
    for rule, c in chosen.items():
        model, right = fits[c]
        exponent = float(EXPONENTS[c])
        yield Choice(data, seed, rule, candidates[c], exponent, right, len(model.trace_))
    model, right = transduction(X, y, labelled, "auto")
    exponent = float(np.log2(model.epsilon_ / scale))
    yield Choice(data, seed, IN_USE, model.epsilon_, exponent, right, len(model.trace_))


def means(found: list[Choice], what: str) -> dict[tuple[str, str], float]:
    """Return the mean over the seeds of a number, for each set and rule, and over the sets."""
    sets = list(dict.fromkeys(choice.data for choice in found))
    mean: dict[tuple[str, str], float] = {}
    for rule in RULES:
        for data in sets:
            values = [getattr(c, what) for c in found if (c.data, c.rule) == (data, rule)]
            mean[data, rule] = float(np.mean(values))
        mean["mean", rule] = float(np.mean([mean[data, rule] for data in sets]))
    return mean


def table(found: list[Choice], what: str, digits: int) -> str:
    """Lay out the means as Markdown, one line a set."""
    mean = means(found, what)
    # The mean of all sets comes last.
    lines = sorted({data: None for data, _ in mean}, key=lambda data: data == "mean")
    return common.markdown_table(
        ("data", *RULES),
        ([data, *(f"{mean[data, rule]:.{digits}f}" for rule in RULES)] for data in lines),
    )


def explanation(seeds: int) -> str:
    """Say how the numbers were found."""
    return f"""Standardised features, 15 % of each class labelled, means over {seeds} splits;
`OTPropagation.paper(alpha={ALPHA})`, accuracy on the unlabelled rows. Candidates are 2^k times the
median cost between a labelled row and the nearest other, k from {EXPONENTS[0]} to {EXPONENTS[-1]}.

Each labelled row is left out in turn and the others vote on its class with weights exp(−cost/ε).
A rule takes the candidate at which the votes have the greatest

* *log-likelihood* of the right classes, a hundredth of each vote spread over all classes,
* *Brier* score, the squared distance to the right class, negated,
* *own share*: mean share of the right class,
* *accuracy*: share of votes that are right, the largest ε among equals,
* *net accepted*: rows certain beyond α and right count 1, certain and wrong −1/(K−1), the largest ε
  among equals.

*{IN_USE}* is what `epsilon="auto"` does. *{BEST}* chooses by the labels that are hidden: no rule
can do better with these candidates."""


def main() -> None:
    """Let all rules choose; print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="write nothing")
    options = parser.parse_args()
    about = common.machine(("numpy", "scipy", "numba", "scikit-learn", "otprop"))
    found: list[Choice] = []
    for data in options.sets:
        for seed in range(options.seeds):
            found += choices(data, seed)
        print(f"{data}: done", flush=True)
    body = "\n\n".join(
        [
            "## Accuracy",
            table(found, "accuracy", 4),
            explanation(options.seeds),
            "## k chosen",
            table(found, "exponent", 1),
            "## Rounds",
            table(found, "rounds", 1),
        ]
    )
    print("\n" + body)
    if not options.quick:
        results: dict[str, Any] = {
            "choices": [choice._asdict() for choice in found],
            "accuracy": {f"{d}, {rule}": v for (d, rule), v in means(found, "accuracy").items()},
        }
        common.write("epsilon", "Choosing ε", body, results, about)


if __name__ == "__main__":
    main()
