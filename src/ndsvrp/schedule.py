"""The schedule of a solution: figures of each route, times of each stop. The constraint records compute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ndsvrp.constraints import CONSTRAINTS, Visits
from ndsvrp.constraints.timetable import timetables
from ndsvrp.problem import Problem
from ndsvrp.solution import Route, Solution


class StopTimes(NamedTuple):
    """The times of a stop. At the start of a route, the vehicle leaves the depot at `departure`."""

    node: int  #: 0: the depot
    name: str
    arrival: float
    wait: float  #: from the arrival to the start of service
    start: float
    departure: float
    slack: float  #: by how much the start may be delayed before a stop is late or the route too long; may be infinite


@dataclass(frozen=True)
class RouteSchedule:
    """A route: its stops, and figures that the constraints give."""

    number: int  #: from 1, as in `.sol` files
    stops: tuple[StopTimes, ...]  #: depot, customers, depot
    figures: Mapping[str, float]  #: load, distance, duration, …

    @property
    def customers(self) -> Route:
        """The customers in the order of visit."""
        return tuple(stop.node for stop in self.stops[1:-1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the customers in the order of visit."""
        return tuple(stop.name for stop in self.stops[1:-1])

    @property
    def load(self) -> float:
        """The demand of all customers."""
        return self.figures["load"]

    @property
    def distance(self) -> float:
        """The length, from depot to depot."""
        return self.figures["distance"]

    @property
    def duration(self) -> float:
        """The time from departure to return: travel, service and waiting."""
        return self.figures["duration"]


def schedule(problem: Problem, solution: Solution) -> tuple[RouteSchedule, ...]:
    """Return the schedule of each route that is not empty, in float64.

    A vehicle leaves as late as possible without a later return. Without time windows it leaves at 0.
    """
    visits = Visits.of(problem, solution)
    figures: dict[str, dict[int, float]] = {}
    for constraint in CONSTRAINTS:
        figures |= constraint.route_figures(problem, visits)
    return tuple(
        RouteSchedule(
            times.route,
            tuple(
                StopTimes(node, problem.name_of(node), arrival, _wait(arrival, start), start, departure, slack)
                for node, arrival, start, departure, slack in zip(*times[1:], strict=True)
            ),
            {name: by_route[times.route] for name, by_route in figures.items()},
        )
        for times in timetables(problem, visits)
    )


def _wait(arrival: float, start: float) -> float:
    """Return the time between them; 0 where only the rounding of float64 is left."""
    return start - arrival if start - arrival > 1e-9 * abs(start) else 0.0
