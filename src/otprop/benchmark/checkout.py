"""The git commit that the code comes from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_PATIENCE = 10  # seconds


def commit(folder: Path = _PACKAGE) -> str | None:
    """Return the commit that a folder of code is checked out from.

    Parameters
    ----------
    folder : path
        The package, if not given.

    Returns
    -------
    str or None
        The commit's name, with "-dirty" behind it if the folder holds anything else; None if git
        does not keep the folder, as when the package is installed.
    """
    git = shutil.which("git")
    if git is None:
        return None
    # An environment inside another project's checkout is not that project's code.
    if not _said(git, folder, "ls-files", "."):
        return None
    name = _said(git, folder, "rev-parse", "--verify", "HEAD")
    if not name:
        return None
    changed = _said(git, folder, "status", "--porcelain", "--", ".")
    return f"{name}-dirty" if changed or changed is None else name


def _said(git: str, folder: Path, *arguments: str) -> str | None:
    """Return what git says of a folder; None if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - git with arguments of our own
            [git, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
