"""Draws the picture of README.md: routes, and the gap of solvers after different time limits.

Usage: python tools/draw_readme.py [PICTURE]. Reads results/quality*.jsonl; the search for the routes takes 20 s.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes

from ndsvrp import Problem, solve
from ndsvrp.bench.report.series import hardware_of, sort_rows
from ndsvrp.bench.rows import Row, read_rows
from ndsvrp.data.make import make, problems
from ndsvrp.data.sets import SETS
from ndsvrp.plot.routes import draw_routes
from ndsvrp.plot.style import INK, canvas_of, log_axis, open_axes, solver_colours, write

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/img/routes-and-gaps.png"
SET, INSTANCES = "cvrp500", ("0000", "0001", "0002", "0003")
SEARCH = {"iterations": 4000, "seed": 1}
EPYC, H200 = "1 core, AMD EPYC", "NVIDIA H200"
CORE = {"pyvrp": "PyVRP 0.14.1", "hgs": "HGS (hygese 0.1.0)", "sisr": "SISRs (in ndsvrp)", "hybrid": "ndsvrp (hybrid)"}
"""Solvers on one core, by their names in the rows."""
GPU = {"nds-policy-cuda": "ndsvrp, learned policy, on an H200"}
TOP = 5.6  # percent


def gaps(rows: Iterable[Row], solver: str, hardware: str) -> dict[float, float]:
    """Return the mean gap in percent for each time limit with which the solver has run on all instances.

    Gaps are to the lowest cost of an instance in all rows. A later row of the same run replaces an earlier one.
    """
    chosen = [row for row in rows if row["set"] == SET and row["instance"] in INSTANCES and row.get("feasible")]
    best = {name: min(row["cost"] for row in chosen if row["instance"] == name) for name in INSTANCES}
    found = {}
    runs = [row for row in chosen if row["solver"] == solver and hardware_of(row) == hardware]
    for series in sort_rows(runs).series:
        costs = {name: cost for (name, _), cost in series.costs.items()}
        if set(costs) == set(INSTANCES):
            found[series.budget] = fmean(100 * (costs[name] / best[name] - 1) for name in INSTANCES)
    return dict(sorted(found.items()))


def draw_solution(axes: Axes, problem: Problem) -> None:
    """Draw the routes that a search finds."""
    result = solve(problem, **SEARCH)
    assert problem.coordinates is not None
    draw_routes(axes, problem.coordinates, result.solution.routes, [], scale=0.8)
    axes.set_aspect("equal")
    axes.margins(0.03)
    axes.set_xticks([])
    axes.set_yticks([])
    figures = f"{problem.customers} customers, {len(result.solution.routes)} routes, cost {result.cost:.3f}"
    axes.set_title(f"First instance of {SET}: {figures}", color=INK, fontsize=10)


def draw_gaps(axes: Axes, rows: Iterable[Row]) -> None:
    """Draw a line per solver on a core, and a star for each on a GPU."""
    rows = list(rows)
    colours = solver_colours([*CORE, *GPU])
    for solver, label in CORE.items():
        found = gaps(rows, solver, EPYC)
        front = solver == "hybrid"
        axes.plot(
            list(found), list(found.values()), color=colours[solver], label=label, marker="o", markersize=5,
            linewidth=2.4 if front else 1.6, zorder=4 if front else 3,
        )  # fmt: skip
    for solver, label in GPU.items():
        found = gaps(rows, solver, H200)
        axes.plot(
            list(found), list(found.values()), color=colours[solver], label=label, marker="*", markersize=13,
            linestyle="", zorder=5, clip_on=False,
        )  # fmt: skip
    log_axis(axes)
    axes.set_ylim(0, TOP)
    axes.set_xticks([2, 5, 10, 30, 60], ["2", "5", "10", "30", "60"])
    axes.set_xticks([], minor=True)
    axes.tick_params(colors=INK, labelsize=9)
    title = f"{SET}, mean of {len(INSTANCES)} instances, one core of an AMD EPYC"
    open_axes(axes, "time limit per instance, seconds", "gap to the best of all runs, %", title)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def main() -> None:
    rows = [row for file in sorted(ROOT.glob("results/quality*.jsonl")) for row in read_rows(file)]
    (problem,) = problems(SET, make(SETS[SET], 1))
    figure, (left, right) = canvas_of(2, 2, 4.9, 4.5)
    draw_solution(left, problem)
    draw_gaps(right, [row for row in rows if row["set"] == SET])
    write(figure, Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)


if __name__ == "__main__":
    main()
