"""The command line: `otprop …`."""

from __future__ import annotations

import sys


def main() -> None:
    """Start the command line, or say what it lacks."""
    try:
        from otprop.app.commands import app  # noqa: PLC0415 - its libraries may be missing
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "otprop":
            raise
        sys.exit(
            f"The command line needs the package {error.name!r}, which comes with the extra "
            "`bench`: pip install 'otprop[bench]'"
        )
    app()
