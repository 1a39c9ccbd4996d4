"""Routes on the plane."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from ndsvrp.check import Report, check
from ndsvrp.errors import NdsError
from ndsvrp.metric import Floats, Metric
from ndsvrp.plot.style import FAINT, INK, canvas, check_format, palette, write
from ndsvrp.problem import Problem
from ndsvrp.solution import Route, Solution

WIDTH = 6.4  # inches
MOST_CLOCKS = 400  # customers whose windows are drawn: those of more could not be told apart
CLOCK = 3.0  # area of a customer with its window, relative to a dot
NARROWEST = 0.05  # share of a turn that a window takes at least, so that it is seen
PRIZE_AREAS = 0.2, 3.0  # least and largest area of a dot, relative to that of the mean prize


def plot_routes(
    problem: Problem, solution: Solution, file: str | PathLike[str] | None = None, *, title: str | None = None
) -> Figure:
    """Draw the routes. Return the figure, and write it if a file (.png, .svg, .pdf) is given.

    Each route has a colour. Its first and last leg are faint and dashed, the depot is a square, and unserved customers
    are hollow. The title has the name of the problem, the cost from `check`, and the number of routes. Prizes are the
    areas of the dots. Time windows of up to 400 customers are sectors of the dots, as on a clock: a full turn from the
    top is the time that the depot is open. A line below the picture says so.
    """
    check_format(file)
    if problem.coordinates is None:
        raise NdsError(f"'{problem.name}' has no coordinates, only distances: its routes cannot be drawn")
    report = check(problem, solution)
    unknown = [str(violation) for violation in report.violations if violation.kind == "unknown"]
    if unknown:
        raise NdsError(unknown[0])
    points = problem.coordinates
    figure, axes = canvas(WIDTH, WIDTH * _height(points))
    draw_routes(axes, points, solution.routes, report.unserved, problem=problem)
    remarks = ["area of a dot: prize"] if problem.prize is not None else []
    if _clocks(problem) is not None:
        remarks.append("sector: time window, clockwise from the top; whole disc: opening hours of the depot")
    if remarks:
        axes.set_xlabel("; ".join(remarks), color=FAINT, fontsize=8)
    axes.set_aspect(_aspect(problem), adjustable="datalim")
    axes.margins(0.03)
    axes.set_title(_title(problem, solution, report, title), color=INK, fontsize=10)
    if file is not None:
        write(figure, file)
    return figure


def draw_routes(
    axes: Axes,
    points: Floats,
    given: Sequence[Route],
    unserved: Sequence[int],
    scale: float = 1.0,
    problem: Problem | None = None,
) -> None:
    """Draw routes, customers and depot; the label of each artist says what it shows.

    `scale` is for small axes. Prizes and time windows are those of the problem, if it is given.
    """
    served = [route for route in given if route]
    routes = [served[i] for i in _around(points, served)]
    size, width = (scale * each for each in _sizes(len(points) - 1))
    clocks = _clocks(problem) if problem is not None else None
    prizes = _relative_prizes(problem) if problem is not None else np.ones(len(points))
    areas = size * prizes * (1.0 if clocks is None else CLOCK)
    colours = palette(len(routes))
    stops = [c for route in routes for c in route]
    ends = [c for route in routes for c in (route[0], route[-1])]

    def lines(label: str, shapes: Sequence[Floats], **style: Any) -> None:
        axes.add_collection(LineCollection(shapes, label=label, **style))

    def dots(label: str, nodes: Sequence[int], area: float = 1.0, **style: Any) -> PathCollection:
        nodes = list(nodes)
        return axes.scatter(points[nodes, 0], points[nodes, 1], s=area * areas[nodes], label=label, **style)

    faint = {"linewidths": 0.8 * width, "linestyles": (0, (4, 3)), "alpha": 0.3}
    lines("legs", [points[[0, c]] for c in ends], colors=np.repeat(colours, 2, axis=0), zorder=1, **faint)
    lines("routes", [points[list(route)] for route in routes], colors=colours, linewidths=width, zorder=2)
    of_stops = np.repeat(colours, [len(route) for route in routes], axis=0)
    hollow = {"facecolors": "none", "edgecolors": FAINT, "linewidths": 0.8 * width**0.5}
    if clocks is None:
        dots("served", stops, color=of_stops, zorder=3)
        dots("unserved", unserved, 1.3, zorder=3, **hollow)
    else:
        edge = {"facecolors": "white", "linewidths": 0.8 * width**0.5, "zorder": 3}
        dots("served", stops, edgecolors=of_stops, **edge)
        dots("unserved", unserved, edgecolors=FAINT, **edge)
        for label, nodes, colour in (("windows", stops, of_stops), ("unserved windows", unserved, FAINT)):
            hands = dots(label, nodes, color=colour, linewidths=0, zorder=3.5)
            hands.set_paths([clocks[c] for c in nodes])
    x, y = points[0]
    axes.scatter(x, y, label="depot", s=64 * scale, marker="s", color=INK, edgecolors="white", linewidths=1, zorder=4)


def _clocks(problem: Problem) -> list[Path] | None:
    """Return a sector per node from the ready time to the due date; None if no windows are drawn."""
    if problem.windows is None or problem.customers > MOST_CLOCKS:
        return None
    opens, closes = problem.windows[0]
    share = np.clip((problem.windows - opens) / max(float(closes - opens), 1e-300), 0.0, 1.0)
    half = Affine2D().scale(0.5)  # the markers of matplotlib have diameter 1
    shapes = []
    for start, end in share.tolist():
        narrow = max(0.0, NARROWEST - (end - start)) / 2
        sector = Path.wedge(90 - 360 * (end + narrow), 90 - 360 * (start - narrow))
        shapes.append(half.transform_path(Path.unit_circle() if end - start >= 1 else sector))
    return shapes


def _relative_prizes(problem: Problem) -> Floats:
    """Return (N+1,) the prize of each customer over their mean, within limits; 1 for required customers."""
    if problem.prize is None:
        return np.ones(len(problem.demand))
    paid = problem.prize > 0
    return np.where(paid, np.clip(problem.prize / problem.prize[paid].mean(), *PRIZE_AREAS), 1.0)


def _aspect(problem: Problem) -> float:
    """Return how much longer a unit of y is than one of x: a degree of latitude, than one of longitude."""
    if not problem.geographic or problem.coordinates is None:
        return 1.0
    return float(1.0 / max(0.01, np.cos(np.deg2rad(problem.coordinates[:, 1].mean()))))


def route_colours(points: Floats, routes: Sequence[Route]) -> Floats:
    """Return (routes, 3) sRGB colours, the same in all pictures; routes side by side differ much."""
    colours = np.empty((len(routes), 3))
    colours[_around(points, routes)] = palette(len(routes))
    return colours


def _around(points: Floats, routes: Sequence[Route]) -> list[int]:
    """Return the order of routes by direction from the depot."""
    offsets = [np.mean(points[list(route)], axis=0) - points[0] for route in routes]
    return sorted(range(len(routes)), key=lambda i: (float(np.arctan2(offsets[i][1], offsets[i][0])), i))


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
