"""Capacity: the customers of a route demand no more than a vehicle holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from ndsvrp.constraints.base import Constraint, Facts, Field, Input, Violation, Visits, per_node, refuse, zero_at_depot
from ndsvrp.errors import InstanceError
from ndsvrp.metric import NEARLY, Floats, power_of_two
from ndsvrp.text import compared, number, spread, summary

if TYPE_CHECKING:
    from ndsvrp.engine.ticks import Ticks
    from ndsvrp.problem import Problem

MOST = 1 << 30  # capacity in units of demand: a load and a demand still add up within 32 bits


def _demand(xp: Any, data: Any) -> Any:
    return xp.asarray(data.demand, dtype=xp.float64) / per_node(xp.asarray(data.capacity, dtype=xp.float64))


class Capacity(Constraint):
    """Demand and capacity. Every problem has them."""

    name = "capacity"
    fields = (
        Field("demand", 1, required=True, section="DEMAND", solomon=("DEMAND",)),
        Field("capacity", required=True, header="CAPACITY", solomon=("CAPACITY",)),
    )
    inputs = (Input("demand", _demand),)

    def check(self, problem: Problem) -> None:
        capacity, demand = problem.capacity, problem.demand
        if not np.isfinite(capacity) or capacity <= 0:
            raise InstanceError(f"{capacity:g} is not a capacity", field="capacity")
        zero_at_depot("demand", demand)
        refuse("demand", demand < 0, lambda i: f"{demand[i]:g} is negative")
        refuse(
            "demand", demand > capacity, lambda i: "{} is above the capacity {}".format(*compared(demand[i], capacity))
        )

    def sort_keys(self, problem: Problem) -> list[tuple[int, Floats]]:
        return [(4, -problem.demand)]  # large first

    def route_figures(self, problem: Problem, visits: Visits) -> dict[str, dict[int, float]]:
        demand: list[float] = problem.demand.tolist()
        return {"load": {number: fsum([demand[c] for c in route]) for number, route in visits.routes.items()}}

    def violations(self, problem: Problem, visits: Visits) -> Iterator[Violation]:
        if not visits.routes:
            return
        most, demand = problem.capacity + problem.capacity_tolerance, problem.demand
        nearly = np.add.reduceat(demand[visits.stops], visits.ends[:-1])  # the error of a sum is below a billionth
        for (route_number, route), rough in zip(visits.routes.items(), nearly.tolist(), strict=True):
            if rough > most * (1 - 1e-9) and (load := fsum(demand[list(route)])) > most:
                text = "load {} is above the capacity {}".format(*compared(load, problem.capacity))
                yield Violation("capacity", text, route_number)

    def native(self, ticks: Ticks) -> dict[str, Any]:
        """Return whole demands as they are, fractions in units of a power of two, rounded up.

        An excluded customer gets a demand that fits no vehicle.
        """
        problem = ticks.problem
        whole = problem.capacity_tolerance == 0 and problem.capacity <= MOST
        per_unit = 1.0 if whole else power_of_two(MOST, problem.capacity)
        capacity = int(np.floor((problem.capacity + NEARLY * problem.capacity_tolerance) * per_unit))
        demand = np.minimum(np.ceil(problem.demand * per_unit), capacity)  # each fits a vehicle of its own
        demand[ticks.excluded] = capacity + 1
        return {"capacity": capacity, "demand": demand.astype(np.int32)}

    def summary(self, problem: Problem) -> str | None:
        return f"capacity {number(problem.capacity)}" if np.any(problem.demand) else None  # else nobody stated it

    def facts(self, problems: Sequence[Problem]) -> Facts:
        if not any(np.any(problem.demand) for problem in problems):
            return [("demand", "none")]
        demand = summary([problem.demand[1:] for problem in problems])
        return [("demand", demand), ("capacity", spread(problem.capacity for problem in problems))]


CAPACITY = Capacity()
