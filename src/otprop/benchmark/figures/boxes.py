"""Figure 6: how each method's values spread over the data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otprop.benchmark.figures import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

INCHES_A_METHOD = 0.62
MOST_UPRIGHT = 6  # names; with more of them they would touch
OWN = "OTP"


@style.styled
def draw(values: pd.DataFrame, title: str, measure: str) -> Figure:
    """Draw a box a method: quartiles, median, whiskers to 1.5 of their distance, outliers.

    Parameters
    ----------
    values : DataFrame
        One row a problem, one column a method, nothing missing.
    title : str
        What stands above it.
    measure : str
        What the values are.
    """
    methods = list(values.columns)
    figure = style.blank(max(6.0, 1.6 + INCHES_A_METHOD * len(methods)), 4.6)
    axes = figure.subplots()
    drawn = axes.boxplot(
        [values[method].to_numpy(np.float64) for method in methods],
        widths=0.6,
        patch_artist=True,
        medianprops={"color": style.INK, "linewidth": 2.0},
        flierprops={"marker": "o", "markersize": 5, "markerfacecolor": "none"},
    )
    for method, box in zip(methods, drawn["boxes"], strict=True):
        box.set_facecolor(style.SKY if method == OWN else style.PALE)
    slanted = len(methods) > MOST_UPRIGHT
    axes.set_xticks(
        range(1, len(methods) + 1),
        methods,
        rotation=35 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
    )
    axes.set_ylabel(measure)
    axes.set_title(title)
    axes.grid(axis="y", color=style.PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
