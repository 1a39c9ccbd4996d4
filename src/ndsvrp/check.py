"""Check solutions: cost and violations from problem and routes alone, in float64.

Plain numpy, sharing no code with the engines. Every solution that the program returns went through `check`.
"""

from dataclasses import dataclass
from math import fsum

import numpy as np

from ndsvrp.constraints import Violation, Visits, constraints_of
from ndsvrp.problem import Problem
from ndsvrp.solution import Route, Solution

__all__ = ["Report", "Violation", "check"]


@dataclass(frozen=True)
class Report:
    """The result of `check`. The cost is that of the routes, feasible or not."""

    cost: float  #: distance + lost prizes
    distance: float
    lost_prizes: float
    violations: tuple[Violation, ...]
    unserved: tuple[int, ...]  #: customers in no route, required or optional

    @property
    def feasible(self) -> bool:
        """Whether there are no violations."""
        return not self.violations


def check(problem: Problem, solution: Solution) -> Report:
    """Return the cost of a solution and everything that it violates."""
    violations: list[Violation] = []
    routes = _check_visits(problem, solution, violations)
    stops = np.array([0, *(c for route in routes.values() for c in (*route, 0))])
    distance = fsum(problem.length(stops[:-1], stops[1:]).tolist())
    visits, constraints = Visits(routes, stops, len(solution.routes)), constraints_of(problem)
    broken = [violation for constraint in constraints for violation in constraint.violations(problem, visits)]
    violations += sorted(broken, key=lambda violation: violation.route or len(solution.routes) + 1)
    is_unserved = np.ones(len(problem.demand), bool)
    is_unserved[stops] = False
    unserved = np.flatnonzero(is_unserved)
    lost = sum(constraint.lost(problem, unserved) for constraint in constraints)
    required = unserved[problem.required[unserved]]
    if len(required):
        shown = ", ".join(map(str, required[:20])) + (", …" if len(required) > 20 else "")
        violations.append(Violation("unserved", f"{len(required)} required customers are not served: {shown}"))
    scale = problem.metric.scale
    if problem.metric.is_integer:  # sums of tenths are tenths, despite the rounding of float64
        distance, lost = round(distance * scale) / scale, round(lost * scale) / scale
        cost = round((distance + lost) * scale) / scale
    else:
        cost = distance + lost
    return Report(cost, distance, lost, tuple(violations), tuple(unserved.tolist()))


def _check_visits(problem: Problem, solution: Solution, violations: list[Violation]) -> dict[int, Route]:
    """Return the routes that are not empty, by number, without unknown customers."""
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
