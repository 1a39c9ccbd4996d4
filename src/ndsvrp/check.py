"""The judge: cost and violations from problem and routes alone, in float64.

Plain numpy, sharing no code with the engines. Every solution that leaves the program went through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np
import numpy.typing as npt

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
    routes = _check_visits(problem, solution, violations)
    stops = np.array([0, *(c for route in routes.values() for c in (*route, 0))])  # all routes, one after another
    distance = fsum(problem.length(stops[:-1], stops[1:]).tolist())
    broken = [*_overloaded(problem, routes), *_late(problem, routes, stops)]
    violations += sorted(broken, key=lambda violation: violation.route or 0)
    if problem.vehicles is not None and len(solution.routes) > problem.vehicles:
        violations.append(Violation("fleet", f"{len(solution.routes)} routes for {problem.vehicles} vehicles"))
    absent = np.ones(len(problem.demand), bool)
    absent[stops] = False
    unserved = np.flatnonzero(absent)
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
    return Report(cost, distance, lost, tuple(violations), tuple(unserved.tolist()))


def _check_visits(problem: Problem, solution: Solution, violations: list[Violation]) -> dict[int, Route]:
    """The routes that serve somebody, by number, without the customers that do not exist."""
    routes: dict[int, Route] = {}
    customers, seen = problem.customers, set[int]()
    for number, route in enumerate(solution.routes, start=1):
        if not route:
            violations.append(Violation("empty", "serves nobody", number))
        known = []
        for customer in route:
            if not 1 <= customer <= customers:
                violations.append(Violation("unknown", f"there is no customer {customer}", number))
                continue
            if customer in seen:
                violations.append(Violation("twice", f"customer {customer} is served twice", number))
            seen.add(customer)
            known.append(customer)
        if known:
            routes[number] = tuple(known)
    return routes


def _overloaded(problem: Problem, routes: dict[int, Route]) -> Iterator[Violation]:
    demand: list[float] = problem.demand.tolist()
    most = problem.capacity + problem.capacity_tolerance
    for number, route in routes.items():
        load = fsum([demand[c] for c in route])
        if load > most:
            yield Violation("capacity", f"load {load:g} is above the capacity {problem.capacity:g}", number)


def _late(problem: Problem, routes: dict[int, Route], stops: npt.NDArray[np.int64]) -> Iterator[Violation]:
    if problem.windows is None:
        return
    # Plain lists: one call of numpy per array, none per stop.
    comparable = problem.comparable_times
    ready = comparable(problem.windows[:, 0]).tolist()
    due = (comparable(problem.windows[:, 1]) + problem.time_tolerance).tolist()
    steps = comparable(problem.travel_time(stops[:-1], stops[1:]))
    if problem.service is not None:
        steps = steps + comparable(problem.service)[stops[:-1]]
    step, start = steps.tolist(), 0
    for number, route in routes.items():
        time = ready[0]
        for leg, there in enumerate((*route, 0), start):
            time += step[leg]
            if time < ready[there]:
                time = ready[there]
            if time > due[there]:
                who = "the depot" if there == 0 else f"customer {there}"
                reached, latest = time / problem.time_scale, problem.windows[there, 1]
                yield Violation("windows", f"{who} is reached at {reached:g}, after {latest:g}", number)
                break  # what follows is late because of this
        start += len(route) + 1
