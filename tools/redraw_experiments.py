"""Draw pictures of docs/experiments again, from the rows in results/experiments.

    python tools/redraw_experiments.py [FOLDER]

For the experiments whose pictures show solvers: after a change of how they are drawn. `nds experiment` draws them, too,
but runs again what was run by another version or on another machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from ndsvrp.bench.rows import Row
from ndsvrp.experiments import generalization, main_table, runtime_limits
from ndsvrp.experiments.rows import read_rows
from ndsvrp.experiments.scales import PROBLEMS
from ndsvrp.experiments.searches import NAMES
from ndsvrp.experiments.sets import DISTRIBUTIONS
from ndsvrp.experiments.summaries import summarise
from ndsvrp.plot.style import write

ROOT = Path(__file__).parents[1]
ROWS, PICTURES = ROOT / "results/experiments", ROOT / "docs/experiments/img"


def rows_of(experiment: str) -> list[Row]:
    """Return the rows, each with its series: baselines first, in the order of NAMES, however they ended."""
    rows = read_rows(ROWS / f"{experiment}.jsonl")
    order = list(NAMES)
    named = [row | {"series": row.get("series") or NAMES[row["solver"]]} for row in rows]
    return sorted(named, key=lambda row: order.index(row["solver"]) if row["solver"] in order else len(order))


def problem_of(name: str) -> str:
    """Return the problem of a set such as cvrp500."""
    return next(problem for problem in PROBLEMS if name.startswith(problem))


def sets_of(rows: list[Row]) -> list[str]:
    """Return the sets by size, and those of a size by problem."""
    sizes = {row["set"]: row["customers"] for row in rows if "customers" in row}
    return sorted(sizes, key=lambda name: (sizes[name], PROBLEMS.index(problem_of(name))))


def by_problem(sets: list[str]) -> list[str]:
    return sorted(sets, key=lambda name: PROBLEMS.index(problem_of(name)))


def first_of(sets: list[str]) -> dict[str, str]:
    """Return the series that others are compared with."""
    return {name: NAMES[main_table.FIRST[problem_of(name)]] for name in sets}


def draw_main_table() -> Figure:
    rows = rows_of("main-table")
    first = first_of(by_problem(sets_of(rows)))
    return main_table.picture(summarise(rows, first), list(first))


def draw_runtime_limits() -> Figure:
    rows = rows_of("runtime-limits")
    first = dict.fromkeys(by_problem(sets_of(rows)), "SISRs")
    return runtime_limits.picture(summarise(rows, first, longest=True), list(first))


def draw_distributions() -> Figure:
    name = "generalization-distribution"
    columns = {f"cvrp500-{column}": column for column in DISTRIBUTIONS}
    first = dict.fromkeys(columns, "HGS")
    return generalization.picture(name, summarise(rows_of(name), first), columns, first)


def draw_sizes() -> Figure:
    name = "generalization-size"
    rows = rows_of(name)
    sets = sets_of(rows)
    first = first_of(sets)
    return generalization.picture(name, summarise(rows, first), dict(zip(sets, sets, strict=True)), first)


DRAW = {
    "main-table": draw_main_table, "runtime-limits": draw_runtime_limits,
    "generalization-distribution": draw_distributions, "generalization-size": draw_sizes,
}  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    for name, draw in DRAW.items():
        write(draw(), folder / f"{name}.png")
        print(folder / f"{name}.png")


if __name__ == "__main__":
    main()
