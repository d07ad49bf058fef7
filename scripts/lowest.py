"""Print the lower bound of every package in pyproject.toml as a constraint for pip."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lower_bound(requirement: str) -> str:
    """Turn `name>=version` into `name==version`."""
    match = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
    if match is None:
        message = f"{requirement!r} has no lower bound"
        raise ValueError(message)
    return "{}=={}".format(*match.groups())


def main() -> None:
    """Print one constraint a line."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        requirements += [name for name in extra if not name.startswith("otprop[")]
    print("\n".join(sorted({lower_bound(requirement) for requirement in requirements})))


if __name__ == "__main__":
    main()
