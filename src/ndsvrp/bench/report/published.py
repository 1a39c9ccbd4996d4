"""The main table of the paper, with our results beside the published ones.

`published.csv` holds the table "Performance on test data" of Hottung, Wong-Chung and Tierney, *Neural Deconstruction
Search for Vehicle Routing Problems*, TMLR 2025: mean costs, gaps in percent and seconds per instance, as printed. Gaps
are to HGS for the CVRP, and to PyVRP-HGS for the VRPTW and the PCVRP. They are up to 0.1 points away from the gaps of
the printed mean costs, probably because they are means of the gaps of instances.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ndsvrp.bench.report.series import Results, Series, mean_of
from ndsvrp.bench.report.statistics import gap, mean
from ndsvrp.bench.report.summaries import baseline_of, compare_pair
from ndsvrp.data.sets import SETS

PROBLEMS = ("cvrp", "vrptw", "pcvrp")
SECONDS = {100: 5.0, 500: 60.0, 1000: 120.0, 2000: 240.0}
"""The paper's time limits, by the number of customers."""
INSTANCES = {name: SETS[name].instances for name in (f"{problem}{size}" for problem in PROBLEMS for size in SECONDS)}
"""The number of instances of the paper's test sets."""


@dataclass(frozen=True)
class Published:
    """One entry of the paper's table."""

    problem: str
    customers: int
    method: str  #: with its limit, if the paper has several
    cost: float
    gap: float | None  #: None for the method that gaps are to
    seconds: float


@dataclass(frozen=True)
class Entry:
    """One entry of the main table, published or ours."""

    set: str
    budget: float | None  #: None if published
    solver: str
    published: bool
    instances: int
    cost: float | None  #: None for a part of the set
    gap: float | None  #: in percent: of the means if all instances are there, otherwise the mean of paired gaps
    gap_error: float | None  #: standard error of paired gaps
    gap_to: str | None  #: what the gap is to
    seconds: float | None
    iterations: int | None = None  #: the limit that ended the runs, if it was not the time


@cache
def published() -> tuple[Published, ...]:
    """Return all entries of the paper's table, in its order."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            row["problem"], int(row["customers"]), row["method"] + (f", {row['limit']}" if row["limit"] else ""),
            float(row["cost"]), float(row["gap"]) if row["gap"] else None, float(row["seconds"]),
        )
        for row in csv.DictReader(text.splitlines())
    )  # fmt: skip


def main_table(results: Results, baseline: str | None = None) -> list[Entry]:
    """Return the entries of every set of the paper that the rows have, the published ones first."""
    entries: list[Entry] = []
    for problem in PROBLEMS:
        for customers in SECONDS:
            name = f"{problem}{customers}"
            ours = [each for each in results.sets.get(name, []) if each.solved and _has_size(each, customers)]
            if ours:
                theirs = [each for each in published() if (each.problem, each.customers) == (problem, customers)]
                first = next(each for each in theirs if each.gap is None)
                entries += _published_entries(name, theirs, first)
                entries += [_own_entry(results, each, first, baseline) for each in ours]
    return entries


def _has_size(series: Series, customers: int) -> bool:
    """Return whether a set is what its name says; another set may have the name of one of the paper's."""
    return all(row.get("customers", customers) == customers for row in series.runs)


def _published_entries(name: str, theirs: list[Published], first: Published) -> Iterator[Entry]:
    for each in theirs:
        gap_to = None if each.gap is None else f"{first.method}, published"
        yield Entry(name, None, each.method, True, INSTANCES[name], each.cost, each.gap, None, gap_to, each.seconds)


def _own_entry(results: Results, series: Series, first: Published, baseline: str | None) -> Entry:
    """Means of a part of a set say nothing beside means of the whole: only paired gaps do."""
    name, count, seconds, limit = series.set, len(series.solved), mean_of(series, "seconds"), series.iterations
    cost = mean(list(series.costs.values()))
    if count >= INSTANCES[name] and cost is not None:
        to = f"{first.method}, published"
        return Entry(
            name, series.budget, series.solver, False, count, cost, gap(cost, first.cost), None, to, seconds, limit
        )  # fmt: skip
    base = baseline_of(results, series, baseline)
    pair = compare_pair(series, base) if base is not None and base.solver != series.solver else None
    if base is None or pair is None:
        return Entry(name, series.budget, series.solver, False, count, None, None, None, None, seconds, limit)
    return Entry(
        name, series.budget, series.solver, False, count, None, pair.difference, pair.difference_error, base.label,
        seconds, limit,
    )  # fmt: skip
