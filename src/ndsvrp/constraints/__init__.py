"""The constraints: one record each, in its own file. Every other module loops over `CONSTRAINTS`.

A record holds everything that Python knows about its constraint: fields of `Problem`, names in files, checks,
violations, ticks, policy inputs. Its C++ rule is in `rules.hpp`. The order of the records is the order of policy
inputs, of arrays in `.npz` sets and of lines in `nds info`.
"""

from typing import Any

from ndsvrp.constraints.base import Constraint, Field, Input, Violation, Visits, refuse
from ndsvrp.constraints.capacity import CAPACITY
from ndsvrp.constraints.fleet import FLEET
from ndsvrp.constraints.prizes import PRIZES
from ndsvrp.constraints.route_limits import MAX_DISTANCE, MAX_DURATION
from ndsvrp.constraints.time_windows import TIME_WINDOWS
from ndsvrp.constraints.vehicle_cost import VEHICLE_COST

__all__ = [
    "CAPACITY", "CONSTRAINTS", "FIELDS", "FLEET", "MAX_DISTANCE", "MAX_DURATION", "PRIZES", "TIME_WINDOWS",
    "VEHICLE_COST", "Constraint", "Field", "Input", "Violation", "Visits", "constraints_of", "refuse",
]  # fmt: skip

CONSTRAINTS: tuple[Constraint, ...] = (CAPACITY, TIME_WINDOWS, PRIZES, FLEET, MAX_DISTANCE, MAX_DURATION, VEHICLE_COST)
FIELDS = tuple(field for constraint in CONSTRAINTS for field in constraint.fields)


def constraints_of(problem: Any) -> tuple[Constraint, ...]:
    """Return the constraints that a problem, or a batch of problems, has."""
    return tuple(constraint for constraint in CONSTRAINTS if constraint.present(problem))
