"""Several small pictures side by side: lines, and dots with standard errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from ndsvrp.plot.lines import DASHES, PlotLine, colours_of
from ndsvrp.plot.style import FAINT, INK, canvas_of, open_axes, solver_colours

COLUMNS = 3


@dataclass(frozen=True)
class LinePanel:
    """Lines with a title."""

    title: str
    lines: Sequence[PlotLine]


@dataclass(frozen=True)
class Dot:
    """A value with its standard error, and the one that the paper prints."""

    label: str
    value: float | None
    error: float | None = None
    published: float | None = None


@dataclass(frozen=True)
class DotPanel:
    """Dots with a title, the first one at the top."""

    title: str
    dots: Sequence[Dot]


def plot_line_panels(
    panels: Sequence[LinePanel], *, x_label: str, y_label: str, log_x: bool = False, columns: int = COLUMNS
) -> Figure:
    """Draw a panel of lines with markers each, and one legend below. Lines with one label have one colour."""
    with matplotlib.rc_context({"text.parse_math": False}):
        figure, found = canvas_of(len(panels), columns, 3.6, 2.9)
        labels = list(dict.fromkeys(line.label for panel in panels for line in panel.lines))
        colours = iter(colours_of([line for panel in panels for line in panel.lines]))
        handles: dict[str, Line2D] = {}
        for axes, panel in zip(found, panels, strict=True):
            for line in panel.lines:
                (handles[line.label],) = axes.plot(
                    line.x, line.y, color=next(colours), linestyle=DASHES[line.dash % len(DASHES)],
                    linewidth=1.6, marker="o", markersize=3.5,
                )  # fmt: skip
            if log_x:
                axes.set_xscale("log")
                ticks = sorted({x for line in panel.lines for x in line.x})
                axes.set_xticks(ticks)
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
                axes.xaxis.set_minor_formatter(NullFormatter())
            open_axes(axes, x_label, y_label, panel.title)
        if len(labels) > 1:
            wide = 2 * min(columns, len(panels))
            figure.legend(
                [handles[label] for label in labels], labels, loc="outside lower center", ncols=min(wide, len(labels)),
                frameon=False, fontsize=8, labelcolor=INK,
            )  # fmt: skip
    return figure


def plot_dot_panels(panels: Sequence[DotPanel], *, x_label: str, columns: int = COLUMNS) -> Figure:
    """Draw a panel of dots each. Values of the paper are hollow."""
    most = max(len(panel.dots) for panel in panels)
    with matplotlib.rc_context({"text.parse_math": False}):
        figure, found = canvas_of(len(panels), columns, 3.6, 1.1 + 0.34 * most)
        colours = solver_colours([dot.label for panel in panels for dot in panel.dots])
        for axes, panel in zip(found, panels, strict=True):
            for at, dot in enumerate(panel.dots):
                if dot.value is not None:
                    axes.errorbar(
                        dot.value, at, xerr=dot.error, fmt="o", color=colours[dot.label], markersize=5, capsize=2.5,
                        linewidth=1.4,
                    )  # fmt: skip
                if dot.published is not None:
                    axes.plot(dot.published, at, "D", mfc="none", mec=FAINT, markersize=5.5, mew=1.2, zorder=1)
            axes.axvline(0.0, color="#d5dae0", linewidth=1.0, zorder=0)
            axes.set_yticks(range(len(panel.dots)), [dot.label for dot in panel.dots])
            axes.set_ylim(len(panel.dots) - 0.5, -0.5)
            open_axes(axes, x_label, "", panel.title)
        if any(dot.published is not None for panel in panels for dot in panel.dots):
            ours = Line2D([], [], marker="o", linestyle="", color=INK, markersize=5)
            theirs = Line2D([], [], marker="D", linestyle="", mfc="none", mec=FAINT, markersize=5.5)
            figure.legend(
                [ours, theirs], ["ours", "published"], loc="outside lower center", ncols=2, frameon=False, fontsize=8,
                labelcolor=INK,
            )  # fmt: skip
    return figure
