"""Time the transport solvers against POT's and regot's on the same problems, in one run."""

from __future__ import annotations

import argparse
import math
import os
import warnings
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import common
import numpy as np
import ot
import regot
from common import number, yes
from scipy.special import softmax
from sklearn.preprocessing import minmax_scale

from otprop.transport import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from otprop.transport import TransportResult

TOL = 1e-6
OURS = "otprop newton, float32"
POT = "POT sinkhorn_knopp"

# What the issue asks for.
FASTER_THAN_POT = 10
FASTER_THAN_REGOT = 20
TARGET_CASE = "MNIST, ε = 0.9"
HARD_CASE = "optdigits, ε = 0.01"

SINKHORN_STEPS = 2_000
POT_STEPS = 1_000
FIRST_RUNG = 4
# regot stops by the L2 norm of the dual's gradient; here the number of steps decides instead.
REGOT_TOL = 1e-14
BLOCK = 500


class Case(NamedTuple):
    """A problem: costs of shape (u, l), rounded once to single precision, and ε."""

    name: str
    cost: NDArray[np.float32]
    epsilon: float


class Limits(NamedTuple):
    """How long to measure."""

    repeats: int
    repeat_budget: float
    ladder_cap: float


@dataclass
class Row:
    """One line of the table."""

    case: str
    method: str
    seconds: float
    error: float
    steps: int
    sweeps: int
    repeats: int
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """Whether the error, by the common ruler, is at most the tolerance."""
        return self.error <= TOL


def cases(*, quick: bool) -> Iterator[Case]:
    """Build the problems: a cost matrix between the labelled rows and the others."""
    X, y = common.load_table("optdigits")
    yield from _cases("optdigits", minmax_scale(X), y, (0.01, 0.1), quick=quick)
    pixels, y = common.load_mnist()
    yield from _cases("MNIST", pixels / 255.0, y, (0.9, 5.0), quick=quick)


def _cases(
    name: str, X: NDArray[Any], y: NDArray[Any], epsilons: tuple[float, ...], *, quick: bool
) -> Iterator[Case]:
    if quick:
        X, y = X[:800], y[:800]
    labelled, others = common.split(y, seed=0)
    A, B = X[labelled], X[others]
    squares = (B * B).sum(axis=1)[:, None] + (A * A).sum(axis=1)
    cost = np.maximum(squares - 2 * B @ A.T, 0).astype(np.float32)
    for epsilon in epsilons:
        yield Case(f"{name}, ε = {epsilon:g}", cost, epsilon)


def error_of_plan(plan: NDArray[np.float64]) -> float:
    """Return the L1 error of the sources' marginal of a plan (l, u), its columns normalised."""
    with np.errstate(all="ignore"):
        mass = (plan / plan.sum(axis=0)).mean(axis=1)
    return _error(mass)


def error_of_potentials(case: Case, f: NDArray[np.float64]) -> float:
    """Return the same for the plan that potentials stand for, in double precision."""
    mass = np.zeros(len(f))
    for start in range(0, len(case.cost), BLOCK):
        cost = case.cost[start : start + BLOCK].astype(np.float64)
        mass += softmax((f - cost) / case.epsilon, axis=1).sum(axis=0)
    return _error(mass / len(case.cost))


def _error(mass: NDArray[np.float64]) -> float:
    error = float(np.abs(mass - 1 / len(mass)).sum())
    return error if math.isfinite(error) else math.inf


def run_otprop(
    case: Case,
    method: str,
    call: Callable[[], TransportResult],
    limits: Limits,
) -> Row:
    """Time a solve of ours; the caller has warmed it up."""
    result, seconds, repeats = common.timed(call, limits.repeats, limits.repeat_budget)
    return Row(
        case=case.name,
        method=method,
        seconds=seconds,
        error=error_of_potentials(case, result.f),
        steps=result.n_iter,
        sweeps=result.n_sweeps,
        repeats=repeats,
        details={"said to have converged": result.converged, "said error": result.marginal_error},
    )


def newton_on_one_core(cost: NDArray[np.float32], epsilon: float) -> TransportResult:
    """Solve with a single core at hand, where the system lets a process say so."""
    if not hasattr(os, "sched_setaffinity"):
        return solve(cost, epsilon, tol=TOL)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return solve(cost, epsilon, tol=TOL)
    finally:
        os.sched_setaffinity(0, cores)


def otprop_rows(case: Case, limits: Limits) -> Iterator[Row]:
    """Run our solvers: Newton in both precisions and on one thread, and Sinkhorn."""
    single, double = case.cost, case.cost.astype(np.float64)
    newton32, newton64 = (partial(solve, cost, case.epsilon, tol=TOL) for cost in (single, double))
    on_one_core = partial(newton_on_one_core, single, case.epsilon)
    sinkhorn = partial(solve, single, case.epsilon, tol=TOL, solver="sinkhorn")
    # The same call once before compiles all that it needs.
    newton32()
    newton64()
    sinkhorn(max_iter=5)
    for method, call in (
        (OURS, newton32),
        ("otprop newton, float64", newton64),
        ("otprop newton, float32, one core", on_one_core),
        (
            f"otprop sinkhorn, float32, ≤ {SINKHORN_STEPS:,} steps",
            partial(sinkhorn, max_iter=SINKHORN_STEPS),
        ),
    ):
        yield run_otprop(case, method, call, limits)


def pot_row(case: Case, limits: Limits) -> Row:
    """Run POT as the paper's code calls it: its defaults, 1,000 iterations to 1e-9."""
    cost = np.ascontiguousarray(case.cost.T, np.float64)
    a, b = (np.full(size, 1 / size) for size in cost.shape)
    knopp = partial(ot.bregman.sinkhorn_knopp, a, b, cost, case.epsilon, stopThr=1e-9, log=True)
    knopp(numItermax=10)
    (plan, log), seconds, repeats = common.timed(
        partial(knopp, numItermax=POT_STEPS), limits.repeats, limits.repeat_budget
    )
    steps = int(log["niter"]) + 1
    details = {"last error of its own (L2, targets)": float(log["err"][-1])}
    return Row(case.name, POT, seconds, error_of_plan(plan), steps, steps, repeats, details)


class Rung(NamedTuple):
    """What regot reaches in a number of steps."""

    steps: int
    seconds: float
    error: float


class Peer(NamedTuple):
    """A solver of regot's, and whether it gets the cost matrix or its transpose."""

    solver: str
    shape: str

    def plan(self, result: Any) -> NDArray[np.float64]:  # noqa: ANN401 - regot has no types
        """Return the plan in the shape (l, u)."""
        return result.plan if self.shape == "l × u" else result.plan.T


PEERS = tuple(Peer(f"sinkhorn_{n}", s) for n in ("splr", "ssns") for s in ("l × u", "u × l"))


def regot_row(case: Case, peer: Peer, limits: Limits, ours: Row) -> Row:
    """Find the fewest steps that reach the tolerance, or the best within the cap; time them."""
    matrix = case.cost.T if peer.shape == "l × u" else case.cost
    cost = np.asfortranarray(matrix, np.float64)
    a, b = (np.full(size, 1 / size) for size in cost.shape)
    run = partial(getattr(regot, peer.solver), cost, a, b, case.epsilon, tol=REGOT_TOL)
    run(max_iter=1)

    def rung(max_iter: int) -> Rung:
        result, seconds, _ = common.timed(partial(run, max_iter=max_iter))
        return Rung(int(result.niter), seconds, error_of_plan(peer.plan(result)))

    rungs = climb(rung, limits.ladder_cap)
    rungs += narrow(rung, rungs, limits.ladder_cap)
    best = min(rungs, key=lambda r: (max(r.error, TOL), r.seconds))
    _, seconds, repeats = common.timed(
        partial(run, max_iter=best.steps), limits.repeats, limits.repeat_budget
    )
    return Row(
        case=case.name,
        method=f"regot {peer.solver}, {peer.shape}",
        seconds=seconds,
        error=best.error,
        steps=best.steps,
        sweeps=best.steps,
        repeats=repeats,
        details={
            "ladder": [r._asdict() for r in rungs],
            **at_equal_error(case, ours, best, seconds),
        },
    )


def climb(rung: Callable[[int], Rung], cap: float) -> list[Rung]:
    """Double the steps until the tolerance is reached, the solver stops, or the cap is in sight."""
    steps = FIRST_RUNG
    rungs = [rung(steps)]
    while rungs[-1].error > TOL and rungs[-1].steps == steps:
        if _spent(rungs) + 2 * rungs[-1].seconds > cap:
            break
        steps *= 2
        rungs.append(rung(steps))
    return rungs


def narrow(rung: Callable[[int], Rung], rungs: list[Rung], cap: float) -> list[Rung]:
    """Halve the gap between the last rung, if it reached the tolerance, and the one below."""
    few, enough = rungs[-2].steps if len(rungs) > 1 else 1, rungs[-1].steps
    found: list[Rung] = []
    if rungs[-1].error > TOL:
        return found
    while enough - few > max(1, enough // 20) and _spent(found) < cap:
        found.append(rung((few + enough) // 2))
        if found[-1].error <= TOL:
            enough = found[-1].steps
        else:
            few = found[-1].steps
    return found


def _spent(rungs: list[Rung]) -> float:
    return sum(rung.seconds for rung in rungs)


def at_equal_error(case: Case, ours: Row, best: Rung, seconds: float) -> dict[str, Any]:
    """Time our Newton to the error that a peer reached, no smaller than our tolerance."""
    if not math.isfinite(best.error):
        return {}
    if best.error <= TOL:
        return {"ratio at equal error": seconds / ours.seconds}
    again = partial(solve, case.cost, case.epsilon, tol=best.error)
    result, ours_then, _ = common.timed(again, repeats=ours.repeats)
    return {
        "otprop's seconds to that error": ours_then,
        "otprop's error then": error_of_potentials(case, result.f),
        "ratio at equal error": seconds / ours_then,
    }


def rows_of(case: Case, limits: Limits) -> Iterator[Row]:
    """Run every method on a case."""
    rows: dict[str, Row] = {}
    for row in otprop_rows(case, limits):
        rows[row.method] = row
        yield row
    yield pot_row(case, limits)
    for peer in PEERS:
        yield regot_row(case, peer, limits, rows[OURS])


def table(rows: list[Row]) -> str:
    """Lay out the rows as Markdown."""
    ours = {row.case: row.seconds for row in rows if row.method == OURS}
    header = (
        "case",
        "method",
        "seconds",
        "L1 error",
        "steps",
        "sweeps",
        "converged",
        "× time of otprop",
        "× at equal error",
    )
    return common.markdown_table(
        header,
        (
            (
                row.case,
                row.method,
                number(row.seconds),
                f"{row.error:.1e}",
                f"{row.steps:,}",
                f"{row.sweeps:,}" if row.method.startswith("otprop") else "–",
                yes(row.converged),
                number(row.seconds / ours[row.case]),
                number(row.details.get("ratio at equal error")),
            )
            for row in rows
        ),
    )


def better_regot(rows: list[Row]) -> Row:
    """Return regot's faster run among those that converged, else its run of least error."""
    peers = [row for row in rows if row.method.startswith("regot")]
    return min(peers, key=lambda row: (max(row.error, TOL), row.seconds))


class Verdict(NamedTuple):
    """A target and whether it is met."""

    target: str
    met: bool
    found: str


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Hold the rows against the targets."""
    by_case = {name: [r for r in rows if r.case == name] for name in {r.case for r in rows}}
    newton = [row for row in rows if row.method.startswith("otprop newton")]
    worst = max(row.error for row in newton)
    found = [Verdict(f"otprop newton: error ≤ {TOL:g} in all cases", worst <= TOL, f"{worst:.1e}")]
    for case, chosen in sorted(by_case.items()):
        row = {r.method: r for r in chosen}
        ours, pot = row[OURS], row[POT]
        if case == TARGET_CASE:
            ratio = pot.seconds / ours.seconds
            text = f"{number(ratio)} × (POT: {number(pot.seconds)} s to {pot.error:.1e})"
            target = f"{case}: ≥ {FASTER_THAN_POT} × faster than POT's 1,000 iterations"
            found.append(Verdict(target, ratio >= FASTER_THAN_POT, text))
        if case == HARD_CASE:
            text = f"{number(ours.seconds)} s to {ours.error:.1e}; POT {number(pot.seconds)} s"
            met = ours.seconds < pot.seconds and ours.converged
            found.append(
                Verdict(
                    f"{case}: faster than POT, and converged", met, f"{text} to {pot.error:.1e}"
                )
            )
        peer = better_regot(chosen)
        ratio = peer.details.get("ratio at equal error", math.nan)
        text = f"{number(ratio)} × at an error of {max(peer.error, TOL):.1e} ({peer.method})"
        target = f"{case}: ≥ {FASTER_THAN_REGOT} × faster than the better regot solver"
        found.append(Verdict(target, ratio >= FASTER_THAN_REGOT, text))
    return found


def explanation() -> str:
    """Say how the numbers were found."""
    return f"""All sources have the same mass, and all targets; l is 15 % of the rows, u the rest.
Every solver gets the same cost matrix, in single precision; solvers in double precision get those
values converted. The cost's computation is not timed, nor compilation (a warm-up comes before).

* *seconds*: median of the repeats. otprop uses all cores unless the line says otherwise, POT the
  threads of NumPy's matrix products, regot its own: one in `sinkhorn_splr`, all cores in parts of
  `sinkhorn_ssns`.
* *L1 error*: of the sources' marginal of the column-normalised plan, computed for all methods by
  one function in double precision. *converged*: it is at most {TOL:g}.
* *steps*: of the method. *sweeps*: passes over the costs or the shares kept from them.
* *POT* runs as the paper's code calls it: `sinkhorn_knopp`, {POT_STEPS:,} iterations, 1e-9.
* *regot* stops by another error, so its number of steps was doubled from {FIRST_RUNG} until the L1
  error was at most {TOL:g}, and the gap then halved; the line tells the fewest steps found, or the
  best error within the cap of seconds. Both orientations of the matrix were tried.
* *× at equal error*: regot's time over that of otprop newton, float32, solving only to the error
  that regot reached (but no less than {TOL:g})."""


def main() -> None:
    """Run all cases; print and write the table and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of repeats a method")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds of a regot ladder")
    parser.add_argument("--quick", action="store_true", help="800 rows a set; writes nothing")
    options = parser.parse_args()
    about = common.machine(("numpy", "scipy", "numba", "POT", "regot", "otprop"))
    limits = Limits(options.repeats, options.budget, options.cap)
    warnings.filterwarnings("ignore", module="ot")
    rows: list[Row] = []
    whole = common.OtherWork()
    for case in cases(quick=options.quick):
        others = common.OtherWork()
        for row in rows_of(case, limits):
            row.details["cores busy with other work"] = others.cores()
            others = common.OtherWork()
            rows.append(row)
            print(
                f"{row.case}: {row.method}: {number(row.seconds)} s to {row.error:.1e} "
                f"in {row.steps} steps",
                flush=True,
            )
    disturbance = common.disturbance(whole.cores())
    judged = verdicts(rows)
    lines = [f"* {'met' if v.met else '**not met**'}: {v.target}: {v.found}" for v in judged]
    body = "\n\n".join([table(rows), disturbance, explanation(), "## Targets", "\n".join(lines)])
    print("\n" + body)
    if not options.quick:
        results = {
            "rows": [asdict(row) | {"converged": row.converged} for row in rows],
            "targets": [v._asdict() for v in judged],
        }
        common.write("solver", "Solvers", body, results, about)


if __name__ == "__main__":
    main()
