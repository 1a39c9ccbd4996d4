"""Lines of several solvers: cost over time, shares of instances, gaps against sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from ndsvrp.plot.style import INK, Colour, canvas, log_axis, open_axes, palette

DASHES = ("-", "--", ":", "-.")
FEW = 6  # lines whose legend fits into the picture


@dataclass(frozen=True)
class PlotLine:
    """One line of a picture."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int | Colour = 0  #: a position in the palette, or the colour itself
    dash: int = 0  #: position in DASHES, which repeat
    points: bool = False  #: draw points without a line between them


def colours_of(lines: Sequence[PlotLine]) -> list[Any]:
    """Return the colour of each line."""
    colours = palette(1 + max((line.colour for line in lines if isinstance(line.colour, int)), default=0))
    return [colours[line.colour] if isinstance(line.colour, int) else line.colour for line in lines]


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
    """Draw lines with a legend and return the figure. `steps` draws staircases, `top` ends the y axis.

    The legend of many lines is beside the picture. The x axis begins where the first line is below `top`.
    """
    with matplotlib.rc_context({"text.parse_math": False}):  # names may have a $
        figure, axes = canvas(7.2 if len(lines) <= FEW else 8.8, 4.2)
        for line, colour in zip(lines, colours_of(lines), strict=True):
            y = [value if math.isfinite(value) else math.nan for value in line.y]
            axes.plot(
                line.x, y, color=colour, linestyle="" if line.points else DASHES[line.dash % len(DASHES)],
                linewidth=1.6, marker="o" if markers or line.points else None, markersize=5 if line.points else 4,
                drawstyle="steps-post" if steps else "default",
                label=line.label if not line.label.startswith("_") else f" {line.label}",  # _: not in the legend
            )  # fmt: skip
        if log_x:
            log_axis(axes)
        if top is not None:
            lowest = min([0.0, *(y for line in lines for y in line.y if math.isfinite(y))])
            axes.set_ylim(lowest - 0.03 * top, top)
            seen = [x for line in lines for x, y in zip(line.x, line.y, strict=True) if y <= top]
            if seen and min(seen) < max(seen):
                axes.set_xlim(min(seen), max(seen) * 1.08 if log_x else max(seen))
        open_axes(axes, x_label, y_label, title)
        beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(lines) > FEW else {}
        axes.legend(frameon=False, fontsize=8, labelcolor=INK, **beside)
    return figure
