"""Vehicle cost: each vehicle that serves a customer costs the same amount, whatever its distance.

Engines need no rule for it: they see it as a part of every leg out of the depot (engine/own_scales.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ndsvrp.constraints.base import Constraint, Facts, Field, Visits, refuse
from ndsvrp.text import number, spread

if TYPE_CHECKING:
    from ndsvrp.problem import Problem


class VehicleCost(Constraint):
    """A fixed cost per route. It forbids nothing, but changes the objective."""

    name = "vehicle cost"
    fields = (
        Field("vehicle_cost", unit="length", header="VEHICLES_FIXED_COST", arrays=("vehicle_cost",)),  # as in PyVRP
    )

    def present(self, problem: Any) -> bool:
        """Return whether vehicles cost anything."""
        return bool(getattr(problem, "vehicle_cost", None))

    def check(self, problem: Problem) -> None:
        if (cost := problem.vehicle_cost) is not None:
            refuse("vehicle_cost", np.asarray(not 0 <= cost < np.inf), lambda _: f"{cost:g} is not a cost")

    def vehicle_costs(self, problem: Problem, visits: Visits) -> float:
        return (problem.vehicle_cost or 0.0) * len(visits.routes)

    def summary(self, problem: Problem) -> str | None:
        return f"vehicle cost {number(problem.vehicle_cost)}" if problem.vehicle_cost else None

    def facts(self, problems: Sequence[Problem]) -> Facts:
        costs = [problem.vehicle_cost for problem in problems if problem.vehicle_cost]
        return [("vehicle cost", spread(costs))] if costs else []


VEHICLE_COST = VehicleCost()
