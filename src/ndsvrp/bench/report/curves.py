"""What pictures show: cost over time, the share of instances within a gap, gaps against sizes.

Gaps here are to the best cost of an instance (`Results.best`): the lowest in the rows, or the best known if lower.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from ndsvrp.bench.report.series import Instance, Results, Series
from ndsvrp.bench.report.statistics import EQUAL, gap, mean, primal_integral, standard_error
from ndsvrp.bench.rows import Row
from ndsvrp.metric import Floats

POINTS = 120  # of a curve
DECADES = 3  # of time that a curve shows at most


@dataclass(frozen=True)
class Curve:
    """The mean gap of a series to the best costs, over time."""

    set: str
    budget: float
    solver: str
    instances: int
    seconds: tuple[float, ...]
    gaps: tuple[float, ...]  #: in percent, at these times
    solved: int  #: instances of the series, of which the curve has those that all series with a trace solved
    traced: bool = True  #: otherwise a point per time limit
    iterations: int | None = None  #: the limit that ended the runs, if it was not the time
    left_out: tuple[str, ...] = ()  #: series of the set without a trace that did not solve all these instances


@dataclass(frozen=True)
class Integral:
    """The mean primal integral of a series."""

    set: str
    budget: float
    solver: str
    instances: int
    integral: float  #: in percent
    integral_error: float | None  #: standard error over instances
    iterations: None = None  #: a series that its iterations ended has no integral


@dataclass(frozen=True)
class Profile:
    """The gaps of a series to the best costs, from the smallest; infinite where nothing feasible was found."""

    set: str
    budget: float
    solver: str
    gaps: tuple[float, ...]  #: one per instance that all series of the set tried
    tried: int  #: instances that this series tried
    iterations: int | None = None  #: the limit that ended the runs, if it was not the time

    def share(self, within: float) -> float:
        """Return the share of instances with at most this gap in percent."""
        return bisect_right(self.gaps, within + 100 * EQUAL) / len(self.gaps)


@dataclass(frozen=True)
class SizeLine:
    """Mean gaps of a solver against the number of customers, over sets of one family such as cvrp100, cvrp500."""

    family: str
    solver: str
    sizes: tuple[int, ...]
    gaps: tuple[float, ...]  #: in percent
    limits: tuple[str, ...]  #: what ended the runs, from the shortest, each once


def curves(results: Results) -> list[Curve]:
    """Return the curves of all series with a trace, over the instances that all of them have, set by set.

    A solver without traces, such as HGS, has a point for each time limit with which it solved these instances.
    """
    found = []
    for every in results.sets.values():
        series = [each for each in every if _traced(each)]
        shared = sorted(set.intersection(*(set(_traced(each)) for each in series))) if series else []
        if not shared:
            continue
        points: dict[str, list[Series]] = {}  # of solvers without traces, in the order of time limits
        left_out = []
        for each in every:
            if each.solved and not _traced(each):
                if each.solved.keys() >= set(shared):
                    points.setdefault(each.solver, []).append(each)
                else:
                    left_out.append(each.label)
        of_set = [_curve(results, each, shared) for each in series]
        of_set += [_points(results, group, shared) for group in points.values()]
        found += [replace(curve, left_out=tuple(left_out)) for curve in of_set]
    return found


def _points(results: Results, group: Sequence[Series], shared: Sequence[Instance]) -> Curve:
    """Return the gaps of one solver at each of its time limits."""
    last = group[-1]
    gaps = [fmean(gap(each.costs[name], results.best[each.set, name]) for name in shared) for each in group]
    return Curve(
        last.set, last.budget, last.solver, len(shared), tuple(each.budget for each in group), tuple(gaps),
        max(len(each.solved) for each in group), traced=False,
    )  # fmt: skip


def _curve(results: Results, series: Series, shared: Sequence[Instance]) -> Curve:
    traced = _traced(series)
    runs = {instance: traced[instance] for instance in shared}
    first = max(row["trace"][0][0] for rows in runs.values() for row in rows)
    end = series.budget
    if series.ends_by_iterations:
        end = min(end, max(max(row["seconds"], row["trace"][-1][0]) for rows in runs.values() for row in rows))
    start = min(end, max(first, end / 10**DECADES))  # from when on every run has a solution
    times = np.geomspace(start, end, POINTS)
    gaps = np.array([_gaps_at(times, rows, results.best[series.set, instance]) for instance, rows in runs.items()])
    means = tuple(fmean(column) for column in gaps.T.tolist())
    return Curve(
        series.set, series.budget, series.solver, len(runs), tuple(times.tolist()), means, len(traced),
        iterations=series.iterations,
    )  # fmt: skip


def _gaps_at(times: Floats, rows: Sequence[Row], best: float) -> Floats:
    """Return the gap of an instance at each time, a mean over its seeds."""
    gaps = []
    for row in rows:
        trace = np.asarray(row["trace"], float)
        found = np.searchsorted(trace[:, 0], times * (1 + 1e-12), side="right")
        gaps.append(_gaps(trace[np.maximum(found, 1) - 1, 1], best))
    return gaps[0] if len(gaps) == 1 else np.array([fmean(values) for values in zip(*gaps, strict=True)])


def _gaps(costs: Floats, best: float) -> Floats:
    """Return `gap` of each cost."""
    if best == 0:
        return np.array([gap(cost, best) for cost in costs.tolist()])
    return 100.0 * (costs - best) / best


def integrals(results: Results) -> list[Integral]:
    """Return the primal integrals of all series with a trace that ended by their time limit."""
    found = []
    for every in results.sets.values():
        for each in (each for each in every if not each.ends_by_iterations):
            values = [
                fmean(primal_integral(row["trace"], results.best[each.set, instance], each.budget) for row in rows)
                for instance, rows in _traced(each).items()
            ]
            if (integral := mean(values)) is not None:
                found.append(Integral(*each.key, len(values), integral, standard_error(values)))
    return found


def _traced(series: Series) -> dict[Instance, list[Row]]:
    """Return the solved runs with a trace, for every instance that has some."""
    traced = {
        instance: [row for row in by_seed.values() if row.get("trace")] for instance, by_seed in series.solved.items()
    }
    return {instance: rows for instance, rows in traced.items() if rows}


def profiles(results: Results) -> list[Profile]:
    """Return the profiles of all series of sets with at least two, over the instances that all of them tried."""
    found = []
    for name, every in results.sets.items():
        series = [each for each in every if not each.is_skipped]
        shared = set.intersection(*(set(each.rows) for each in series)) if len(series) > 1 else set()
        judged = [instance for instance in shared if (name, instance) in results.best]
        for each in series if judged else []:
            gaps = [
                gap(each.costs[instance], results.best[name, instance]) if instance in each.costs else math.inf
                for instance in judged
            ]
            found.append(Profile(*each.key, tuple(sorted(gaps)), len(each.rows), each.iterations))
    return found


def size_lines(results: Results) -> list[SizeLine]:
    """Return gaps against sizes for families of at least two sizes, each solver with its longest time on each set."""
    points: dict[tuple[str, str], dict[int, list[float]]] = {}
    limits: dict[tuple[str, str], list[Series]] = {}
    for name, every in results.sets.items():
        longest = {each.solver: each for each in every if each.solved}  # in the order of time limits
        for solver, series in longest.items():
            line = re.sub(r"\d+$", "", name) or name, solver
            limits.setdefault(line, []).append(series)
            of_solver = points.setdefault(line, {})
            for instance, by_seed in series.solved.items():
                customers = next(iter(by_seed.values())).get("customers")
                if customers is not None:
                    distance = gap(series.costs[instance], results.best[name, instance])
                    of_solver.setdefault(customers, []).append(distance)
    return [
        SizeLine(
            *line, tuple(sorted(by_size)), tuple(fmean(by_size[size]) for size in sorted(by_size)),
            tuple(dict.fromkeys(each.limit for each in sorted(limits[line], key=lambda each: each.budget))),
        )
        for line, by_size in points.items()
        if len(by_size) > 1
    ]  # fmt: skip
