"""Fleet size: at most so many routes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ndsvrp.constraints.base import Constraint, Facts, Field, Violation, Visits
from ndsvrp.metric import Floats
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
            yield Violation("fleet", f"{visits.count:,} routes for {amount(problem.vehicles, 'vehicle')}")

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
    """Return how many vehicles the demand of the required customers takes at least."""
    return fewest(problem.demand[problem.required], problem.capacity + problem.capacity_tolerance)


def fewest(needs: Floats, most: float) -> int:
    """Return how many vehicles take these needs at least, if each takes up to `most` of them.

    By their sum, or by how many are more than half of it: of these, a vehicle takes one.
    """
    if not 0 < most < math.inf:
        return 0
    by_sum = math.ceil(float(np.sum(needs)) / most * (1 - 1e-9))  # less than the rounding of a sum
    return max(by_sum, int(np.count_nonzero(needs > most / 2 * (1 + 1e-9))))


FLEET = Fleet()
