"""Figures that the paper prints, as data.

`published.csv` holds the tables of Hottung, Wong-Chung and Tierney, *Neural Deconstruction Search for Vehicle Routing
Problems*, TMLR 2025, on ablations and generalization, and two numbers of its text on scalability; the main table is in
`bench/report`. Costs are means, gaps are in percent, as printed.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ndsvrp.bench.report.statistics import gap
from ndsvrp.bench.report.tables import EMPTY, Table

SOURCE = "Published: Hottung, Wong-Chung and Tierney, TMLR 2025; figures as printed"


@dataclass(frozen=True)
class Published:
    """A figure of the paper."""

    experiment: str
    column: str  #: the problem, set or size
    series: str
    cost: float
    gap: float | None  #: as printed; None if it prints none
    seconds: float | None


@cache
def published(experiment: str) -> dict[tuple[str, str], Published]:
    """Return the figures of an experiment by column and series, in the order of the paper."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["experiment"] == experiment]
    return {
        (row["column"], row["series"]): Published(
            experiment, row["column"], row["series"], float(row["cost"]), _number(row["gap"]), _number(row["seconds"])
        )
        for row in rows
    }


def difference(experiment: str, column: str, series: str, to: str) -> float | None:
    """Return the published difference of two series in percent: the printed gap, else that of the printed costs."""
    figures = published(experiment)
    one, other = figures.get((column, series)), figures.get((column, to))
    if one is None or other is None or series == to:
        return None
    return one.gap if one.gap is not None and other.gap is None else gap(one.cost, other.cost)


def table(experiment: str) -> Table | None:
    """Return the paper's table; None if it prints none."""
    figures = published(experiment).values()
    if not figures:
        return None
    columns = list(dict.fromkeys(each.column for each in figures))
    series = list(dict.fromkeys(each.series for each in figures))
    known = published(experiment)
    rows = [
        (name, *(_cell(known.get((column, name))) for column in columns)) for name in series
    ]  # fmt: skip
    return Table(
        "Published", ("series", *columns), (False, *(True for _ in columns)), tuple(rows), (SOURCE,)
    )  # fmt: skip


def _cell(entry: Published | None) -> str:
    if entry is None:
        return EMPTY
    return f"{entry.cost:.2f}" + (f" ({entry.gap:+.2f}%)" if entry.gap is not None else "")


def _number(text: str) -> float | None:
    return float(text) if text else None
