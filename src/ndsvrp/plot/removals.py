"""Solutions with the customers that a ruin removes."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from ndsvrp.check import check
from ndsvrp.errors import NdsError
from ndsvrp.plot.routes import draw_routes
from ndsvrp.plot.style import INK, canvas_of
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

MARK = "#c1121f"


@dataclass(frozen=True)
class RemovalPanel:
    """A solution, and the customers that one rollout removes."""

    problem: Problem
    solution: Solution
    removed: Sequence[int]
    title: str


def plot_removals(panels: Sequence[RemovalPanel], columns: int) -> Figure:
    """Draw each solution, with its removed customers circled in red."""
    figure, found = canvas_of(len(panels), columns, 2.2, 2.3)
    for axes, panel in zip(found, panels, strict=True):
        points = panel.problem.coordinates
        if points is None:
            raise NdsError(f"'{panel.problem.name}' has no coordinates, only distances: its routes cannot be drawn")
        unserved = check(panel.problem, panel.solution).unserved
        draw_routes(axes, points, panel.solution.routes, unserved, scale=0.35)
        rings = points[list(panel.removed)]
        axes.scatter(
            rings[:, 0], rings[:, 1], s=34, facecolors="none", edgecolors=MARK, linewidths=1.1, zorder=5,
            label="removed",
        )  # fmt: skip
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(panel.title, color=INK, fontsize=7)
    return figure
