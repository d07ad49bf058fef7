"""The commands, by subject."""

from __future__ import annotations

import typer

from otprop.app import bench

app = typer.Typer(
    help="Label the unlabelled rows of a table by regularised optimal transport.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")


@app.callback()
def _root() -> None:
    """Let every command be named, even where there is one only."""
