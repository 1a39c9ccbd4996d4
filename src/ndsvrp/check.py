"""Check solutions: cost and violations from problem and routes alone, in float64.

Plain numpy, sharing no code with the engines. Every solution that the program returns went through `check`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import fsum
from typing import Any

import numpy as np

from ndsvrp.constraints import Violation, Visits, constraints_of
from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem, require_problem
from ndsvrp.solution import Solution, require_solution
from ndsvrp.text import amount, printable

__all__ = ["Report", "Violation", "check"]

MOST = 100  # violations listed; a file may state millions


@dataclass(frozen=True)
class Report:
    """The result of `check`. The cost is that of the routes, feasible or not."""

    cost: float  #: distance + lost prizes + vehicle costs
    distance: float
    lost_prizes: float
    violations: tuple[Violation, ...]
    unserved: tuple[int, ...]  #: customers in no route, required or optional
    vehicle_costs: float = 0.0  #: of all vehicles used
    page: Callable[[Any], str] | None = field(default=None, compare=False, repr=False)  #: `Result.to_html`

    @property
    def feasible(self) -> bool:
        """Whether there are no violations."""
        return not self.violations

    def __call__(self, file: Any = None) -> str:
        """Return the HTML page of the result that this belongs to, and write it: `result.report("out.html")`."""
        if self.page is None:
            raise NdsError("only the report of a Result has a page")
        return self.page(file)


def check(problem: Problem, solution: Solution) -> Report:
    """Return the cost of a solution and everything that it violates, up to a hundred violations."""
    require_problem("check", problem)
    require_solution("what is checked", solution)
    visits, constraints = Visits.of(problem, solution), constraints_of(problem)
    violations, stops = _first(_visits(problem, solution, visits)), visits.stops
    distance = fsum(problem.length(stops[:-1], stops[1:]).tolist())
    broken = [violation for constraint in constraints for violation in _first(constraint.violations(problem, visits))]
    violations += sorted(broken, key=lambda violation: violation.route or len(solution.routes) + 1)
    is_unserved = np.ones(len(problem.demand), bool)
    is_unserved[stops] = False
    unserved = np.flatnonzero(is_unserved)
    lost = sum(constraint.lost(problem, unserved) for constraint in constraints)
    vehicles = sum(constraint.vehicle_costs(problem, visits) for constraint in constraints)
    required = unserved[problem.required[unserved]]
    if len(required):
        names = [printable(problem.name_of(customer)) for customer in required[:20].tolist()]
        shown = ", ".join(names) + (", …" if len(required) > 20 else "")
        verb = "is" if len(required) == 1 else "are"
        what = f"{amount(len(required), 'required customer')} {verb} not served: {shown}"
        violations.append(Violation("unserved", what))
    if len(violations) > MOST:
        violations[MOST:] = [Violation("more", "… and more")]
    scale = problem.metric.scale
    if problem.metric.is_integer:  # sums of tenths are tenths, despite the rounding of float64
        distance, lost, vehicles = (round(part * scale) / scale for part in (distance, lost, vehicles))
        cost = round((distance + lost + vehicles) * scale) / scale
    else:
        cost = distance + lost + vehicles
    return Report(cost, distance, lost, tuple(violations), tuple(unserved.tolist()), vehicles)


def _first(violations: Iterable[Violation]) -> list[Violation]:
    """Return the first MOST + 1 violations: the last of them tells that the list is cut."""
    return list(islice(violations, MOST + 1))


def _visits(problem: Problem, solution: Solution, visits: Visits) -> Iterator[Violation]:
    """Yield what is wrong with the visits, whatever the constraints."""
    is_whole = len(visits.stops) == 1 + sum(len(route) + 1 for route in solution.routes)  # none is empty or unknown
    if is_whole and np.all(np.bincount(visits.stops)[1:] <= 1):
        return
    seen = set[int]()
    for number, route in enumerate(solution.routes, start=1):
        if not route:
            yield Violation("empty", "serves nobody", number)
        for customer in route:
            if not 1 <= customer <= problem.customers:
                yield Violation("unknown", f"there is no customer {customer}", number)
            elif customer in seen:
                yield Violation("twice", f"{problem.in_words(customer)} is served twice", number)
            seen.add(customer)
