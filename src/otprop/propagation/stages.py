"""The kinds of rounds on a graph: one mechanism, told apart by who speaks, and how far."""

from __future__ import annotations

from typing import NamedTuple


class Stage(NamedTuple):
    """A round, and how often it is repeated.

    In a round some rows speak, each for the class it has; what they say diffuses, the classes'
    totals are balanced, and every row that was not given its label decides anew.
    """

    part: float  # of each class's rows that speak, the most certain first
    steps: int | None = None  # of a random walk that starts at the speakers; None: the kernel
    diffusion: float = 0.0  # κ of the kernel
    keeps: bool = False  # whether a row that has spoken keeps its label and speaks on
    times: int = 1  # at the most; a stage ends when no label changes


_FROZEN = 20
_REVISABLE = 12
_SHARPENED = Stage(1.0, steps=4, times=40)

ROUNDS: dict[str, tuple[Stage, ...]] = {
    # The first labelling stands.
    "none": (),
    # Algorithm 2 as it stands: a twentieth joins in each round and stays.
    "frozen": tuple(Stage((r + 1) / _FROZEN, diffusion=0.9, keeps=True) for r in range(_FROZEN)),
    # All compete anew in each round, for a growing number of places.
    "revisable": (
        *(Stage(0.2 + 0.8 * (r + 1) / _REVISABLE, diffusion=0.97) for r in range(_REVISABLE)),
        _SHARPENED,
    ),
    # All speak from the first round on; they are heard far at first, then nearby.
    "annealed": (
        Stage(1.0, steps=40, times=15),
        Stage(1.0, steps=10, times=20),
        Stage(1.0, steps=4, times=20),
    ),
}
