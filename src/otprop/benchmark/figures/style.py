"""What all figures share: colours, sizes, and how they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path

# Okabe and Ito's palette, which colour-blind readers tell apart; from dark to light in grey print.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
VERMILLION, SKY, YELLOW = "#D55E00", "#56B4E9", "#F0E442"
CLASSES = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, YELLOW)
INK, GREY, PALE = "#000000", "#8C8C8C", "#D9D9D9"

FONT_SIZE = 12.0  # points: legible when a figure is printed at half its width
STYLE: dict[Any, Any] = {
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "xtick.labelsize": FONT_SIZE,
    "ytick.labelsize": FONT_SIZE,
    "legend.fontsize": FONT_SIZE,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "otprop",  # the same bytes at every run
}
RESOLUTION = 150  # dots per inch
FORMATS = ("svg", "png")

styled = mpl.rc_context(STYLE)


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def write(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, the same bytes at every run, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.{ending}" for ending in FORMATS]
    with mpl.rc_context(STYLE):
        figure.savefig(files[0], metadata={"Date": None})
        figure.savefig(files[1], dpi=RESOLUTION)
    return files
