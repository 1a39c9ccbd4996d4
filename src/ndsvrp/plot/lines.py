"""Lines of several solvers: cost over time, shares of instances, gaps against sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter

from ndsvrp.plot.style import INK, canvas, open_axes, palette

DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class PlotLine:
    """One line of a picture."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0  #: position in the palette
    dash: int = 0  #: position in DASHES, which repeat


def plot_lines(
    lines: Sequence[PlotLine],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    steps: bool = False,
    markers: bool = False,
    top: float | None = None,
) -> Figure:
    """Draw lines with a legend and return the figure. `steps` draws staircases, `top` ends the y axis."""
    with matplotlib.rc_context({"text.parse_math": False}):  # names may have a $
        figure, axes = canvas(7.2, 4.2)
        colours = palette(1 + max((line.colour for line in lines), default=0))
        for line in lines:
            y = [value if math.isfinite(value) else math.nan for value in line.y]
            axes.plot(
                line.x, y, color=colours[line.colour], linestyle=DASHES[line.dash % len(DASHES)], linewidth=1.6,
                marker="o" if markers else None, markersize=4, drawstyle="steps-post" if steps else "default",
                label=line.label if not line.label.startswith("_") else f" {line.label}",  # _: not in the legend
            )  # fmt: skip
        if log_x:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            axes.xaxis.set_minor_formatter(LogFormatter())  # plain numbers, if there is room
        if top is not None:
            lowest = min([0.0, *(y for line in lines for y in line.y if math.isfinite(y))])
            axes.set_ylim(lowest - 0.03 * top, top)
        open_axes(axes, x_label, y_label, title)
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    return figure
