"""Routes on the plane."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ndsvrp.check import Report, check
from ndsvrp.errors import NdsError
from ndsvrp.metric import Floats, Metric
from ndsvrp.plot.style import FAINT, INK, canvas, check_format, palette, write
from ndsvrp.problem import Problem
from ndsvrp.solution import Route, Solution


def plot_routes(
    problem: Problem, solution: Solution, file: str | Path | None = None, *, title: str | None = None
) -> Figure:
    """Draw the routes. Return the figure, and write it if a file (.png, .svg, .pdf) is given.

    Each route has a colour. Its first and last leg are faint and dashed, the depot is a square, and unserved customers
    are hollow. The title has the name of the problem, the cost from `check`, and the number of routes.
    """
    check_format(file)
    if problem.coordinates is None:
        raise NdsError(f"'{problem.name}' has no coordinates, only distances: its routes cannot be drawn")
    report = check(problem, solution)
    unknown = [str(violation) for violation in report.violations if violation.kind == "unknown"]
    if unknown:
        raise NdsError(unknown[0])
    points = problem.coordinates
    figure, axes = canvas(6.4, 6.4 * _height(points))
    draw_routes(axes, points, solution.routes, report.unserved)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.03)
    axes.set_title(_title(problem, solution, report, title), color=INK, fontsize=10)
    if file is not None:
        write(figure, file)
    return figure


def draw_routes(
    axes: Axes, points: Floats, given: Sequence[Route], unserved: Sequence[int], scale: float = 1.0
) -> None:
    """Draw routes, customers and depot; the label of each artist says what it shows. `scale` is for small axes."""
    routes = _around(points, [route for route in given if route])
    size, width = (scale * each for each in _sizes(len(points) - 1))
    colours = palette(len(routes))
    stops = [c for route in routes for c in route]
    ends = [c for route in routes for c in (route[0], route[-1])]

    def lines(label: str, shapes: Sequence[Floats], **style: Any) -> None:
        axes.add_collection(LineCollection(shapes, label=label, **style))

    def dots(label: str, nodes: list[int], **style: Any) -> None:
        axes.scatter(points[nodes, 0], points[nodes, 1], label=label, **style)

    faint = {"linewidths": 0.8 * width, "linestyles": (0, (4, 3)), "alpha": 0.3}
    lines("legs", [points[[0, c]] for c in ends], colors=np.repeat(colours, 2, axis=0), zorder=1, **faint)
    lines("routes", [points[list(route)] for route in routes], colors=colours, linewidths=width, zorder=2)
    dots("served", stops, s=size, color=np.repeat(colours, [len(route) for route in routes], axis=0), zorder=3)
    hollow = {"facecolors": "none", "edgecolors": FAINT, "linewidths": 0.8 * width**0.5}
    dots("unserved", list(unserved), s=1.3 * size, zorder=3, **hollow)
    dots("depot", [0], s=64 * scale, marker="s", color=INK, edgecolors="white", linewidths=1, zorder=4)


def _around(points: Floats, routes: list[Route]) -> list[Route]:
    """Sort routes by direction from the depot, so that neighbours get different colours."""
    offsets = [np.mean(points[list(route)], axis=0) - points[0] for route in routes]
    order = sorted(range(len(routes)), key=lambda i: (float(np.arctan2(offsets[i][1], offsets[i][0])), i))
    return [routes[i] for i in order]


def _sizes(customers: int) -> tuple[float, float]:
    """Return the area of a customer's dot and the width of a line, in points, for 1 to 10,000 customers."""
    density: float = min(1.0, 120 / customers)
    return max(1.2, 26 * density**0.75), max(0.45, 1.7 * density**0.35)


def _height(points: Floats) -> float:
    """Return height over width of the picture: that of the points, within limits."""
    across, up = np.ptp(points, axis=0)
    return float(np.clip(up / across, 0.5, 1.25)) if across > 0 and up > 0 else 1.0


def _cost(cost: float, metric: Metric) -> str:
    if not metric.is_integer:
        return f"{cost:,.4f}" if cost < 1000 else f"{cost:,.1f}"
    return f"{cost:,.{len(str(metric.scale)) - 1}f}"


def _title(problem: Problem, solution: Solution, report: Report, title: str | None) -> str:
    routes = len(solution.routes)
    words = [f"cost {_cost(report.cost, problem.metric)}", f"{routes} route{'' if routes == 1 else 's'}"]
    if report.unserved:
        words.append(f"{len(report.unserved)} not served")
    if not report.feasible:
        words.append("infeasible")
    return f"{problem.name if title is None else title}: {', '.join(words)}"
