"""Route limits: the distance of a route, and its duration from departure to return.

A duration counts travel, service and waiting. A vehicle departs at the time that makes it least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints.base import Constraint, Facts, Field, Violation, Visits, refuse
from ndsvrp.constraints.fleet import FLEET
from ndsvrp.constraints.prizes import PRIZES, REQUIRED
from ndsvrp.constraints.time_windows import EVER
from ndsvrp.constraints.timetable import spans
from ndsvrp.metric import FLOAT_TOLERANCE, NEARLY, Floats, Metric
from ndsvrp.text import compared, number, spread

if TYPE_CHECKING:
    from ndsvrp.engine.ticks import Ticks
    from ndsvrp.problem import Problem

NO_LIMIT = (1 << 31) - 1  # in ticks
ALWAYS = 1 << 29  # a due date, in ticks, that is never missed
IDLE_LEGS = 256  # of a route: 28 bits for its length leave less than 20 for a leg


class RouteLimit(Constraint):
    """A limit on a number of each route."""

    def limit(self, problem: Problem) -> float:
        """Return the limit."""
        return float(getattr(problem, self.fields[0].name))

    def is_exact(self, problem: Problem) -> bool:
        """Return whether the number is compared exactly."""
        raise NotImplementedError

    def of_routes(self, problem: Problem, visits: Visits) -> Iterator[tuple[int, float]]:
        """Yield the number of each route, by route."""
        raise NotImplementedError

    def tolerance(self, problem: Problem) -> float:
        """Return by how much `check` lets a route exceed the limit."""
        return 0.0 if self.is_exact(problem) else FLOAT_TOLERANCE * self.limit(problem)

    def check(self, problem: Problem) -> None:
        if not self.present(problem):
            return
        field, limit = self.fields[0].name, self.limit(problem)
        refuse(field, np.asarray(not 0 < limit < np.inf), lambda _: f"{limit:g} is not a limit")
        alone = self._alone(problem)
        # An optional customer that cannot be reached stays unserved.
        refuse(
            field,
            (alone > limit + self.tolerance(problem)) & problem.required,
            lambda i: "unreachable: {} there and back, above the limit {}".format(*compared(alone[i], limit)),
        )

    def unreachable(self, problem: Problem) -> npt.NDArray[np.bool_]:
        return np.asarray(self._alone(problem) > self.limit(problem) + self.tolerance(problem))

    def _alone(self, problem: Problem) -> Floats:
        """Return (N+1,) the number of a route with this customer only."""
        customers = range(1, problem.customers + 1)
        stops = np.array([0, *(node for c in customers for node in (c, 0))])
        routes = self.of_routes(problem, Visits({c: (c,) for c in customers}, stops, problem.customers))
        return np.array([0.0, *(value for _, value in routes)])

    def route_figures(self, problem: Problem, visits: Visits) -> dict[str, dict[int, float]]:
        return {self._what: dict(self.of_routes(problem, visits))}

    def violations(self, problem: Problem, visits: Visits) -> Iterator[Violation]:
        limit, most = self.limit(problem), self.limit(problem) + self.tolerance(problem)
        for route, value in self.of_routes(problem, visits):
            if value > most:
                text = f"{self._what} {number(value)} is above the limit {number(limit)}"
                yield Violation(self.fields[0].name, text, route)

    def summary(self, problem: Problem) -> str | None:
        return f"route {self._what} at most {number(self.limit(problem))}" if self.present(problem) else None

    def facts(self, problems: Sequence[Problem]) -> Facts:
        limits = [self.limit(problem) for problem in problems if self.present(problem)]
        return [(f"route {self._what}", f"at most {spread(limits)}")] if limits else []

    @property
    def _what(self) -> str:
        return self.fields[0].name.removeprefix("max_")


class MaxDistance(RouteLimit):
    """A limit on the distance of a route."""

    name = "distance limit"
    fields = (Field("max_distance", unit="length", header="VEHICLES_MAX_DISTANCE", arrays=("max_distance",)),)
    limits_lengths = True

    def is_exact(self, problem: Problem) -> bool:
        return problem.metric.is_integer

    def of_routes(self, problem: Problem, visits: Visits) -> Iterator[tuple[int, float]]:
        scale = problem.metric.scale
        for route, _, legs in visits.legs(problem.length(visits.stops[:-1], visits.stops[1:]).tolist()):
            distance = fsum(legs)
            yield route, round(distance * scale) / scale if self.is_exact(problem) else distance

    def largest_length(self, ticks: Ticks) -> float:
        """Return the longest route, whose length has to fit into 32 bits."""
        if self.is_idle(ticks):
            return 0.0
        most = self.limit(ticks.problem) + NEARLY * self.tolerance(ticks.problem)
        return _at_most(most, (ticks.problem.customers + 1) * ticks.longest)

    def is_idle(self, ticks: Ticks) -> bool:
        """Return whether no route reaches the limit, and keeping it would make the ticks too coarse."""
        legs = ticks.problem.customers + 1
        return legs > IDLE_LEGS and self.limit(ticks.problem) > EVER * legs * ticks.longest

    def is_fine(self, ticks: Ticks) -> bool:
        """Return whether the tolerance of `check` covers the rounding of all legs, or prizes do not matter for that."""
        if self.is_idle(ticks) or ticks.has_whole_lengths or ticks.largest_length <= self.largest_length(ticks):
            return True
        return NEARLY * self.tolerance(ticks.problem) * ticks.per_unit >= 1 + 0.5 * self.most_legs(ticks.problem)

    def most_legs(self, problem: Problem) -> int:
        """Return a bound on the legs of a route, by capacity."""
        demand = np.cumsum(np.sort(problem.demand[1:]))
        return 1 + int(np.searchsorted(demand, problem.capacity + problem.capacity_tolerance, side="right"))

    def ticks(self, ticks: Ticks) -> int:
        """Return the limit in ticks, less the rounding of all legs of a route, with the cost of a vehicle."""
        problem = ticks.problem
        if self.is_idle(ticks):
            return NO_LIMIT
        if ticks.has_whole_lengths:
            return int(ticks.lengths(np.asarray(min(self.limit(problem), ticks.most)))) + ticks.vehicle_cost
        most = min(self.limit(problem) + NEARLY * self.tolerance(problem), ticks.most)
        return max(1, int(np.floor(most * ticks.per_unit - 0.5 * self.most_legs(problem)))) + ticks.vehicle_cost


class MaxDuration(RouteLimit):
    """A limit on the duration of a route."""

    name = "duration limit"
    fields = (
        Field(
            "max_duration",
            unit="time",
            header="DISTANCE",
            other_header="VEHICLES_MAX_DURATION",
            arrays=("max_duration",),
        ),
    )
    limits_times = True
    metric = Metric.NONE

    def is_exact(self, problem: Problem) -> bool:
        return problem.has_whole_times

    def of_routes(self, problem: Problem, visits: Visits) -> Iterator[tuple[int, float]]:
        """Yield the earliest return less the latest departure with that return."""
        for span in spans(problem, visits):
            yield span.route, (span.end - span.departure) / problem.time_scale

    def largest_time(self, ticks: Ticks) -> float:
        """Return the limit with the tolerance of `check`."""
        problem = ticks.problem
        service = 0.0 if problem.service is None else float(np.sum(problem.service))
        opening = 0.0 if problem.windows is None else float(np.ptp(problem.windows[0]))
        longest = max(opening, service + (problem.customers + 1) * ticks.longest_time)
        longest = float(np.ceil(longest)) if self.is_exact(problem) else longest
        return _at_most(self.limit(problem) + NEARLY * self.tolerance(problem), longest)

    def least_limit(self, ticks: Ticks) -> float:
        return self.largest_time(ticks)

    def ticks(self, ticks: Ticks) -> int:
        """Return the limit in ticks. The half makes up for the rounding of the travel time to the depot."""
        return int(ticks.times(np.asarray(self.largest_time(ticks)), lambda most: np.floor(most - 0.5)))

    def native(self, ticks: Ticks) -> dict[str, Any]:
        """Return both limits. The rule for them needs windows and prizes, if only such that restrict nothing.

        Without windows, a limit on the duration is the due date of the depot, and needs no other rule.
        """
        problem, zeros = ticks.problem, np.zeros(len(ticks.problem.demand), np.int32)
        max_distance = MAX_DISTANCE.ticks(ticks) if MAX_DISTANCE.present(problem) else NO_LIMIT
        max_duration = self.ticks(ticks) if self.present(problem) else NO_LIMIT
        if min(max_distance, max_duration) == NO_LIMIT:
            return {}
        fields: dict[str, Any] = {}
        if not problem.has_windows:
            fields |= {"ready": zeros, "due": zeros + np.int32(min(max_duration, ALWAYS))}
            if max_distance == NO_LIMIT:
                return fields
        if not problem.has_times:
            fields["service"] = zeros
        if not (PRIZES.present(problem) or FLEET.present(problem)):
            fields["prize"] = np.where(problem.required, REQUIRED, 0).astype(np.int32)
        return {**fields, "max_distance": max_distance, "max_duration": max_duration}


def _at_most(limit: float, longest: float) -> float:
    """Return the limit, or a bit more than any route has: a limit that is never reached must not make ticks coarse."""
    return min(limit, EVER * longest) if longest > 0 else limit


MAX_DISTANCE, MAX_DURATION = MaxDistance(), MaxDuration()
