"""`otprop bench`: run the paper's experiments, and read what came of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from otprop import datasets
from otprop.app.progress import RunProgress
from otprop.benchmark import records
from otprop.benchmark.limits import can_limit_time
from otprop.benchmark.methods import METHODS
from otprop.benchmark.protocols import PROTOCOLS
from otprop.benchmark.run import Selection, Settings, load_plugins, run, sized
from otprop.benchmark.splits import PERCENTS, SEEDS

app = typer.Typer(help="The paper's experiments: run them, read them.", no_args_is_help=True)

# The diagnosis is among the features: only for those who ask for it by name.
_BY_NAME_ONLY = ("wdbc-leaky", "mnist-70000")
_QUICK_SETS = ("iris", "wine", "heart", "ionosphere", "dermatology", "wdbc")
_QUICK_SEEDS = 3
_QUICK_PERCENTS = (15,)

Out = Annotated[Path, typer.Option("--out", help="Folder of the results; made if it is not there.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder that holds the data files; else they are downloaded."),
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="A Python file that adds methods or data sets; may be repeated."),
]


@app.command("run")
def run_command(  # noqa: PLR0917 - Typer calls by keyword
    out: Out,
    protocol: Annotated[
        str, typer.Option(help="Protocols, separated by commas.")
    ] = "published,described,honest",
    dataset: Annotated[
        str | None,
        typer.Option(
            "--datasets",
            help="Data sets, separated by commas; all but wdbc-leaky and mnist-70000.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--methods", help="Methods, separated by commas; all.")
    ] = None,
    percent: Annotated[
        str | None, typer.Option("--percents", help="Percentages of labelled rows; 15,25,35.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many splits, seeds 0, 1, …; 10.")
    ] = None,
    data: Data = None,
    plugin: Plugin = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as the machine bears.")
    ] = None,
    fit_limit: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds that a single fit may take.")
    ] = None,
    *,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run again what failed or ran out of time.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Six small data sets, three seeds, 15 % labelled.")
    ] = False,
) -> None:
    """Run what has not been run yet; kill it and start it again as you like."""
    plugins = tuple(path.resolve() for path in plugin or ())
    load_plugins(plugins)
    if fit_limit is not None and not can_limit_time():
        raise typer.BadParameter("This system cannot interrupt a fit: leave --fit-limit out.")
    usual = _QUICK_SETS if quick else _default_sets()
    selection = Selection(
        protocols=_names(protocol, tuple(PROTOCOLS), "protocol"),
        methods=_names(method, tuple(METHODS), "method") if method else None,
        datasets=_names(dataset, datasets.names(), "data set") if dataset else usual,
        percents=_percents(percent) if percent else _QUICK_PERCENTS if quick else PERCENTS,
        seeds=range(seeds or (_QUICK_SEEDS if quick else len(SEEDS))),
    )
    out.mkdir(parents=True, exist_ok=True)
    done = records.results(out)
    tasks = selection.tasks()
    left = [t for t in tasks if t not in done or (retry and done[t].status != "ok")]
    typer.echo(f"{len(tasks)} tasks, {len(tasks) - len(left)} of them done before.", err=True)
    # One process loads each first: what cannot be had ends the run here, not in every result.
    rows = max(
        (_rows(name, data) for name in dict.fromkeys(task.dataset for task in left)), default=0
    )
    workers, threads = sized(rows, workers)
    settings = Settings(
        folder=out,
        data=data,
        fit_limit=fit_limit,
        workers=workers,
        threads=threads,
        plugins=plugins,
    )
    with RunProgress(len(left)) as progress:
        run(left, settings, progress.show)
    typer.echo(
        f"{len(left)} run, {progress.failed} of them failed or out of time. "
        f"Read them: otprop bench report {out}",
        err=True,
    )


@app.command("report")
def report_command(
    folders: Annotated[list[Path], typer.Argument(help="Folders of results.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to; `report` in the first folder.")
    ] = None,
) -> None:
    """Write tables, tests and figures of the results."""
    from otprop.benchmark.report import write_report  # noqa: PLC0415 - Matplotlib takes a second

    frame = records.read(folders)
    if frame.empty:
        raise typer.BadParameter(f"There are no results in {', '.join(map(str, folders))}.")
    target = out or folders[0] / "report"
    write_report(frame, target)
    typer.echo(f"Written: {target / 'index.md'}")


@app.command("pack")
def pack_command(
    folder: Annotated[Path, typer.Argument(help="Folder of results; no run may be under way.")],
) -> None:
    """Put the results into one small file, to keep or to publish; a run goes on beside it."""
    if not records.results(folder):
        raise typer.BadParameter(f"There are no results in {folder}.")
    typer.echo(f"Written: {records.pack(folder)}")


@app.command("figure")
def figure_command(
    names: Annotated[list[str], typer.Argument(help="rounds, bipartite")],
    out: Annotated[Path, typer.Option("--out", help="Folder; made if it is not there.")] = Path(
        "figures"
    ),
) -> None:
    """Draw the paper's Figure 4 (rounds) or Figure 3 (bipartite)."""
    from otprop.benchmark.report import (  # noqa: PLC0415 - Matplotlib takes a second
        DRAWINGS,
        write_figures,
    )

    for path in write_figures(_names(",".join(names), tuple(DRAWINGS), "figure"), out):
        typer.echo(f"Written: {path}")


@app.command("list")
def list_command(plugin: Plugin = None) -> None:
    """Tell what protocols, methods and data sets there are."""
    load_plugins(plugin or ())
    for name, known in PROTOCOLS.items():
        typer.echo(f"protocol {name}: {known.title}; {', '.join(known.methods)}")
    typer.echo(f"methods: {', '.join(METHODS)}")
    typer.echo(f"data sets: {', '.join(datasets.names())}")


def _default_sets() -> tuple[str, ...]:
    return tuple(name for name in datasets.names() if name not in _BY_NAME_ONLY)


def _rows(name: str, data: Path | None) -> int:
    try:
        return len(datasets.load(name, data=data).target)
    except datasets.DatasetError as error:
        raise typer.BadParameter(str(error)) from error


def _names(text: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return the names in a list with commas; say which are known if one is not."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [name for name in found if name not in known]
    if unknown or not found:
        raise typer.BadParameter(
            f"there is no {what} {', '.join(map(repr, unknown)) or 'given'}; "
            f"known are {', '.join(known)}"
        )
    return found


def _percents(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = (0,)
    if min(found) <= 0 or max(found) >= 100:  # noqa: PLR2004 - per cent
        raise typer.BadParameter(f"percentages are whole numbers from 1 to 99; got {text!r}")
    return found
