"""The judge: cost and violations from problem and routes alone, in float64.

Plain numpy, sharing no code with the engines. Every solution that leaves the program went through it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ndsvrp.problem import Problem
from ndsvrp.solution import Route, Solution


@dataclass(frozen=True)
class Violation:
    """One broken rule. `route` counts from 1, as in `.sol` files; None: the solution as a whole."""

    kind: str  #: capacity, windows, fleet, unserved, twice, unknown, empty
    message: str
    route: int | None = None

    def __str__(self) -> str:
        return self.message if self.route is None else f"route {self.route}: {self.message}"


@dataclass(frozen=True)
class Report:
    """What `check` found. The cost stands whether or not the solution is feasible."""

    cost: float  #: distance + lost prizes
    distance: float
    lost_prizes: float
    violations: tuple[Violation, ...]
    unserved: tuple[int, ...]  #: customers in no route, allowed or not

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations


def check(problem: Problem, solution: Solution) -> Report:
    """Judge a solution: its cost, and every rule it breaks."""
    violations: list[Violation] = []
    known = _check_visits(problem, solution, violations)
    distance = 0.0
    for number, route in enumerate(solution.routes, start=1):
        route = tuple(c for c in route if 1 <= c <= problem.customers)
        stops = np.array([0, *route, 0])
        distance += float(np.sum(problem.length(stops[:-1], stops[1:])))
        _check_load(problem, number, route, violations)
        _check_times(problem, number, route, violations)
    if problem.vehicles is not None and len(solution.routes) > problem.vehicles:
        violations.append(Violation("fleet", f"{len(solution.routes)} routes for {problem.vehicles} vehicles"))
    unserved = np.flatnonzero(~known)[1:] if not known[0] else np.flatnonzero(~known)
    lost = float(np.sum(problem.prize[unserved])) if problem.prize is not None else 0.0
    missing = unserved[problem.required[unserved]]
    if len(missing):
        shown = ", ".join(map(str, missing[:20])) + (", …" if len(missing) > 20 else "")
        violations.append(Violation("unserved", f"{len(missing)} required customers are not served: {shown}"))
    scale = problem.metric.scale
    if problem.metric.is_integer:  # sums of tenths are tenths, whatever float64 made of them
        distance, lost = round(distance * scale) / scale, round(lost * scale) / scale
        cost = round((distance + lost) * scale) / scale
    else:
        cost = distance + lost
    return Report(cost, distance, lost, tuple(violations), tuple(int(c) for c in unserved))


def _check_visits(problem: Problem, solution: Solution, violations: list[Violation]) -> np.ndarray:
    seen = np.zeros(len(problem.demand), bool)
    for number, route in enumerate(solution.routes, start=1):
        if not route:
            violations.append(Violation("empty", "serves nobody", number))
        for customer in route:
            if not 1 <= customer <= problem.customers:
                violations.append(Violation("unknown", f"there is no customer {customer}", number))
            elif seen[customer]:
                violations.append(Violation("twice", f"customer {customer} is served twice", number))
            else:
                seen[customer] = True
    return seen


def _check_load(problem: Problem, number: int, route: Route, violations: list[Violation]) -> None:
    load = float(np.sum(problem.demand[list(route)]))
    if load > problem.capacity + problem.capacity_tolerance:
        violations.append(Violation("capacity", f"load {load:g} is above the capacity {problem.capacity:g}", number))


def _check_times(problem: Problem, number: int, route: Route, violations: list[Violation]) -> None:
    if problem.windows is None:
        return
    windows, tolerance = problem.windows, problem.time_tolerance
    time, here = float(windows[0, 0]), 0
    for there in (*route, 0):
        time += float(problem.travel_time(here, there))
        if problem.service is not None:
            time += float(problem.service[here])
        if problem.has_whole_times:  # tenths stay tenths
            time = round(time * problem.metric.scale) / problem.metric.scale
        if there != 0:
            time = max(time, float(windows[there, 0]))
        if time > windows[there, 1] + tolerance:
            who = "the depot" if there == 0 else f"customer {there}"
            violations.append(
                Violation("windows", f"{who} is reached at {time:g}, after {windows[there, 1]:g}", number)
            )
            return  # what follows is late because of this
        here = there
