"""Fleet size: at most so many routes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ndsvrp.constraints.base import Constraint, Facts, Field, Violation, Visits
from ndsvrp.text import amount, spread

if TYPE_CHECKING:
    from ndsvrp.engine.ticks import Ticks
    from ndsvrp.problem import Problem


class Fleet(Constraint):
    """The number of vehicles. In a search, a limited fleet may leave required customers unserved."""

    name = "fleet size"
    fields = (Field("vehicles", count=True, header="VEHICLES", solomon=("NUMBER",)),)

    def violations(self, problem: Problem, visits: Visits) -> Iterator[Violation]:
        if problem.vehicles is not None and visits.count > problem.vehicles:
            yield Violation("fleet", f"{visits.count} routes for {problem.vehicles} vehicles")

    def native(self, ticks: Ticks) -> dict[str, Any]:
        problem = ticks.problem
        return {"vehicles": min(problem.vehicles or problem.customers, problem.customers)}

    def summary(self, problem: Problem) -> str | None:
        return None if problem.vehicles is None else f"at most {amount(problem.vehicles, 'vehicle')}"

    def facts(self, problems: Sequence[Problem]) -> Facts:
        limits = [problem.vehicles for problem in problems if problem.vehicles is not None]
        limit = f"at most {spread(limits)}" if limits else "as many as it takes"
        if 0 < len(limits) < len(problems):
            limit += f" in {len(limits):,} of {len(problems):,} instances"
        least = [fewest_vehicles(problem) for problem in problems]
        return [("vehicles", f"{limit}; the demand takes at least {spread(least)}" if any(least) else limit)]


def fewest_vehicles(problem: Problem) -> int:
    """Return a lower bound: required demand over capacity, or how many required customers fill more than half."""
    demand = problem.demand[problem.required]
    load = float(np.sum(demand))
    most = problem.capacity + problem.capacity_tolerance
    by_load = math.ceil((load - problem.capacity_tolerance) / problem.capacity - 1e-9)
    # In floats every vehicle may exceed its capacity by the tolerance.
    by_load = by_load if problem.capacity_tolerance == 0 else math.ceil(load / most - 1e-9)
    return max(by_load, int(np.count_nonzero(demand > most / 2 * (1 + 1e-12))))


def shortage(problem: Problem) -> str | None:
    """Return why the fleet is too small for the required customers, where arithmetic shows it."""
    least = fewest_vehicles(problem)
    if problem.vehicles is None or problem.vehicles >= least:
        return None
    return f"{amount(problem.vehicles, 'vehicle')} cannot serve all required customers: their demand takes {least}"


FLEET = Fleet()
