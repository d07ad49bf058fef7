"""Compare time and memory of OTPropagation.fit with scikit-learn's LabelSpreading on MNIST."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import number, yes

EPSILON = 0.9
ALPHA = 0.7
ROWS = 10_000
WARM_UP_ROWS = 600
METHODS = ("OTPropagation", "LabelSpreading")
MEMORY_SHARE = 1 / 3

_MIB = 1 << 20


def memory(name: str) -> float:
    """Return this process's resident memory (VmRSS) or its peak (VmHWM) in MiB."""
    status = Path("/proc/self/status")
    if status.is_file():
        found = re.search(rf"^{name}:\s+(\d+) kB", status.read_text(encoding="ascii"), re.MULTILINE)
        if found:
            return int(found[1]) * 1024 / _MIB
    import resource  # noqa: PLC0415 - not on every system

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MIB


def forget_peak() -> None:
    """Let the peak start again from the memory in use now, where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def new_model(method: str) -> Any:  # noqa: ANN401 - either library's estimator
    """Import a library and make its estimator."""
    if method == "OTPropagation":
        from otprop import OTPropagation  # noqa: PLC0415 - the import is timed

        return OTPropagation.paper(epsilon=EPSILON, alpha=ALPHA, n_jobs=-1)
    from sklearn.semi_supervised import LabelSpreading  # noqa: PLC0415 - the import is timed

    return LabelSpreading(kernel="rbf", gamma=1 / EPSILON)


def warm_up(model: Any, X: np.ndarray, y: np.ndarray) -> None:  # noqa: ANN401
    """Fit a few rows, with hard shares and soft ones, so that nothing is left to compile."""
    from sklearn.base import clone  # noqa: PLC0415 - the import is timed

    few = X[:WARM_UP_ROWS], y[:WARM_UP_ROWS]
    clone(model).fit(*few)
    if hasattr(model, "epsilon"):
        for epsilon in (EPSILON / 10, EPSILON * 10):
            clone(model).set_params(epsilon=epsilon).fit(*few)
        # Sinkhorn's first steps meet masses that underflow, for which there is a loop of its own.
        underflow = {"epsilon": EPSILON / 10, "solver": "sinkhorn", "max_iter": 3}
        clone(model).set_params(**underflow).fit(*few)


def compiled() -> int:
    """Count what this process compiled of otprop's loops, not finding it in the cache."""
    loops = {
        id(loop): loop
        for name, module in list(sys.modules.items())
        if name.startswith("otprop")
        for loop in vars(module).values()
        if hasattr(loop, "nopython_signatures")  # a compiled loop
    }
    return sum(sum(loop.stats.cache_misses.values()) for loop in loops.values())


def measure(method: str, rows: int, *, only_warm_up: bool) -> dict[str, Any]:
    """Fit in this process, which does nothing else; return what it took."""
    start = time.perf_counter()
    model = new_model(method)
    result: dict[str, Any] = {"import seconds": time.perf_counter() - start}
    pixels, truth = common.load_mnist()
    X = pixels[:rows].astype(np.float32) / np.float32(255)
    truth = truth[:rows]
    _, unlabelled = common.split(truth, seed=0)
    y = truth.copy()
    y[unlabelled] = -1
    del pixels
    result["MiB loaded"] = memory("VmRSS")
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    warm_up(model, X, y)
    result["warm-up seconds"] = time.perf_counter() - start
    if only_warm_up:
        return result
    forms = compiled()
    result["MiB before"] = memory("VmRSS")
    forget_peak()
    start = time.perf_counter()
    model.fit(X, y)
    result["seconds"] = time.perf_counter() - start
    result["MiB peak"] = memory("VmHWM")
    result["MiB above loaded"] = result["MiB peak"] - result["MiB loaded"]
    result["MiB above"] = result["MiB peak"] - result["MiB before"]
    result["compiled while timed"] = compiled() - forms
    right = model.transduction_[unlabelled] == truth[unlabelled]
    result["accuracy"] = float(right.mean())
    return result | outcome(model)


def outcome(model: Any) -> dict[str, Any]:  # noqa: ANN401 - either library's estimator
    """Return how many rounds or iterations there were and whether they converged."""
    if hasattr(model, "trace_"):
        return {
            "rounds": len(model.trace_),
            "converged": all(done.converged for done in model.trace_),
            "unconverged rounds": sum(not done.converged for done in model.trace_),
            "sweeps": sum(done.n_sweeps for done in model.trace_),
            "marginal error": max(done.marginal_error for done in model.trace_),
        }
    return {"rounds": model.n_iter_, "converged": model.n_iter_ < model.max_iter}


def in_subprocess(method: str, rows: int, cache: str, *, only_warm_up: bool) -> dict[str, Any]:
    """Measure in a process of its own, with `cache` as the folder for compiled loops."""
    command = [sys.executable, __file__, "--child", method, "--rows", str(rows)]
    if only_warm_up:
        command.append("--only-warm-up")
    run = subprocess.run(  # noqa: S603 - this very script
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
    )
    return json.loads(run.stdout.splitlines()[-1])


def compare(rows: int, repeats: int) -> dict[str, Any]:
    """Measure both methods by turns; keep for each the run of median time."""
    with tempfile.TemporaryDirectory() as cache:
        first = in_subprocess("OTPropagation", rows, cache, only_warm_up=True)
        print(f"first use: {first}", flush=True)
        runs: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
        for _ in range(repeats):
            for method in METHODS:
                runs[method].append(in_subprocess(method, rows, cache, only_warm_up=False))
                print(f"{method}: {runs[method][-1]}", flush=True)
    middle = {
        method: sorted(done, key=lambda run: run["seconds"])[(len(done) - 1) // 2]
        for method, done in runs.items()
    }
    return {"first use": first, "runs": runs, "median": middle}


def table(median: dict[str, dict[str, Any]]) -> str:
    """Lay out both methods as Markdown."""
    header = (
        "method",
        "seconds",
        "MiB above baseline",
        "MiB at the peak",
        "accuracy",
        "rounds",
        "converged",
        "import, s",
    )
    return common.markdown_table(
        header,
        (
            (
                method,
                number(run["seconds"]),
                number(run["MiB above"]),
                number(run["MiB peak"]),
                f"{run['accuracy']:.4f}",
                str(run["rounds"]),
                yes(run["converged"]),
                number(run["import seconds"]),
            )
            for method, run in median.items()
        ),
    )


def verdicts(median: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Hold the measurements against the target: faster, and in a third of the memory."""
    ours, theirs = (median[method] for method in METHODS)
    share = ours["MiB above"] / theirs["MiB above"]
    total = ours["MiB peak"] / theirs["MiB peak"]
    return [
        {
            "target": "faster than LabelSpreading",
            "met": ours["seconds"] < theirs["seconds"],
            "found": f"{number(ours['seconds'])} s against {number(theirs['seconds'])} s",
        },
        {
            "target": "in a third of its memory (above the baseline)",
            "met": share <= MEMORY_SHARE,
            "found": f"{share:.2f} of it ({total:.2f} of the whole process's peak)",
        },
        {
            "target": "all rounds converged, nothing compiled while timed",
            "met": ours["converged"] and ours["compiled while timed"] == 0,
            "found": f"{ours['unconverged rounds']} rounds did not; worst marginal error "
            f"{ours['marginal error']:.1e}; {ours['compiled while timed']} compiled",
        },
    ]


def explanation(rows: int, first: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Say how the numbers were found."""
    stopped = "" if theirs["converged"] else " It stopped at its limit of iterations."
    return f"""MNIST's test images ({rows:,} rows, pixels / 255, float32), 15 % of each class known:
`OTPropagation.paper(epsilon={EPSILON}, alpha={ALPHA}, n_jobs=-1)`, all rounds, against
scikit-learn's `LabelSpreading(kernel="rbf", gamma={1 / EPSILON:.4g})`, which has the same kernel
exp(−cost/ε), its other parameters at their defaults.{stopped} *rounds* are its iterations.

Each runs in a process of its own; the line is the run of median time. *seconds* are those of
`fit` after a warm-up on {WARM_UP_ROWS} rows. The baseline of the memory is what is resident after
imports, loading the data and the warm-up. Not included: importing (last column), and compiling,
which happens once after installation: {number(first["warm-up seconds"])} s, warm-up included."""


def main() -> None:
    """Compare both methods; print and write the table and the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="fewer than all; writes nothing")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--only-warm-up", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child, options.rows, only_warm_up=options.only_warm_up)))
        return
    about = common.machine(("numpy", "scipy", "numba", "scikit-learn", "otprop"))
    others = common.OtherWork()
    results = compare(options.rows, options.repeats)
    disturbance = common.disturbance(others.cores())
    judged = verdicts(results["median"])
    lines = [
        f"* {'met' if v['met'] else '**not met**'}: {v['target']}: {v['found']}" for v in judged
    ]
    said = explanation(options.rows, results["first use"], results["median"]["LabelSpreading"])
    body = "\n\n".join(
        [table(results["median"]), disturbance, said, "## Targets", "\n".join(lines)]
    )
    print("\n" + body)
    if options.rows == ROWS:
        common.write("fit", "Fitting", body, results | {"targets": judged}, about)


if __name__ == "__main__":
    main()
