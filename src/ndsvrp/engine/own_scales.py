"""Ticks for problems whose numbers differ too much for one scale, such as windows at 1e8 beside lengths of 1.

Lengths and times get a scale each, and become matrices. Optional customers that cost more than they can save are never
served, and their lengths need not fit. What still cannot be represented to 1e-6 of the objective is refused.

Matrices also let engines see the cost of a vehicle as a part of each length out of the depot, but not of times.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.ticks import FINE, FINE_TIME, LARGEST, Ints, Ticks, cost_bound
from ndsvrp.errors import EngineError
from ndsvrp.metric import FLOAT_TOLERANCE, Floats, power_of_two

MOST_NODES = 5_001  # of a problem that becomes a matrix: 100 MB each for lengths and times
MOST_WITH_COST = 10_001  # of a problem with a vehicle cost: 400 MB each
FINE_BESIDE_COST = 1 << 15  # ticks of what matters, at least, where a route costs more than the longest leg
DEAREST = 2000.0  # times the longest leg: a vehicle cost for which ticks are fine enough
ROWS = 256  # of a matrix that are computed at once


class OwnScales(Ticks):
    """The numbers of a problem in two scales."""

    codes_prizes: ClassVar[bool] = True

    def refuse_coarse(self) -> None:
        """Raise EngineError if the scales are too coarse."""
        nodes, lengths = len(self.problem.demand), f"lengths up to {self.longest:g}"
        cost = self.problem.vehicle_cost or 0.0
        if cost and nodes > MOST_WITH_COST:
            raise EngineError(f"a vehicle cost takes a matrix: that is done for up to {MOST_WITH_COST - 1:,} customers")
        if not cost and self.problem.distance is None and nodes > MOST_NODES:
            largest = max(self.largest_length, *(float(np.max(rule.largest_time(self))) for rule in self.constraints))
            raise EngineError(
                f"{lengths} and other numbers up to {largest:g} need scales of their own, which takes a matrix: that "
                f"is done for up to {MOST_NODES - 1} customers"
            )
        matters = min(self.longest, cost_bound(self.problem)) * self.per_unit
        is_dear = cost > self.longest
        if is_dear and not self.has_whole_lengths and 0 < matters < FINE_BESIDE_COST:
            what = f"a vehicle cost of {cost:g} beside {lengths}: no scale of whole ticks is fine enough for both"
            raise EngineError(f"{what}; up to {DEAREST * self.longest:g} is possible")
        if not is_dear and not self.has_whole_lengths and 0 < matters < FINE:  # 0: the lowest cost is 0 in any scale
            raise EngineError(
                f"{lengths} beside limits up to {self.largest_length:g} and costs up to {cost_bound(self.problem):g}: "
                "no scale of whole ticks represents the objective to 1e-6"
            )
        shortest = min(self._time_limits, default=0.0)
        if not self.has_whole_times and 0 < shortest * self.per_time < FINE_TIME:
            raise EngineError(
                f"a duration limit of {shortest:g} beside times up to {self.largest_time:g}: no scale of whole ticks "
                "is fine enough for both"
            )

    @cached_property
    def hopeless(self) -> npt.NDArray[np.bool_]:
        """(N+1,) optional customers that no solution of the lowest cost serves."""
        problem, bound = self.problem, cost_bound(self.problem)
        nodes = np.arange(len(problem.demand))
        if problem.distance is not None:  # each route has a way to the customer and a way on
            ways = problem.distance + np.where(nodes == nodes[:, None], np.inf, 0.0)
            least = ways.min(axis=0) + ways.min(axis=1)
        else:  # no route there is shorter than there and back, but for the rounding of each leg
            slack = len(nodes) / problem.metric.scale if problem.metric.is_integer else 0.0
            least = 2 * problem.length(0 * nodes, nodes) - slack
        least = least + (problem.vehicle_cost or 0.0)
        return np.asarray((least > bound * (1 + 1e-9)) & ~problem.required & (nodes > 0))

    @cached_property
    def longest(self) -> float:
        """An upper bound on all lengths that a route may have: between nodes that may be served, within the limit."""
        kept, problem = ~self.hopeless, self.problem
        unit = 1.0 / problem.metric.scale * problem.metric.is_integer
        limit = np.inf if problem.max_distance is None else problem.max_distance * (1 + FLOAT_TOLERANCE) + unit
        if problem.distance is not None:
            between = np.ix_(kept, kept)
            return min(limit, float(np.max(np.where(np.eye(len(kept), dtype=bool), 0.0, problem.distance)[between])))
        assert problem.coordinates is not None
        return min(limit, float(np.hypot(*np.ptp(problem.coordinates[kept], axis=0))) + unit)

    @cached_property
    def vehicle_cost(self) -> int:
        """The cost of a vehicle in ticks."""
        return int(np.rint((self.problem.vehicle_cost or 0.0) * self.per_unit))

    @cached_property
    def largest_length(self) -> float:
        """The largest length or limit that has to fit, with the cost of a vehicle."""
        return super().largest_length + (self.problem.vehicle_cost or 0.0)

    @property
    def _time_limits(self) -> list[float]:
        return [rule.least_limit(self) for rule in self.constraints if rule.limits_times]

    @cached_property
    def largest_time(self) -> float:
        """The end of the opening hours, or else the limit on durations: no vehicle is on its way after it."""
        return next(iter(self._time_limits), 0.0)

    @cached_property
    def per_unit(self) -> float:
        """Ticks per unit of length and prize."""
        return self.scale_for(self.largest_length)

    @cached_property
    def per_time(self) -> float:
        """Ticks per unit of time."""
        whole = self.problem.has_whole_times
        return self.scale_for(self.largest_time) if whole else power_of_two(LARGEST, self.largest_time)

    @cached_property
    def excluded(self) -> npt.NDArray[np.bool_]:
        return super().excluded | self.hopeless

    @property
    def points(self) -> None:
        """None: there is a matrix."""
        return None

    @cached_property
    def length_matrix(self) -> Ints:
        """(N+1, N+1), to the nearest tick; out of the depot with the cost of a vehicle."""
        matrix = self._matrix(self.problem.length, self.per_unit)
        matrix[0, 1:] += self.vehicle_cost
        return matrix

    @cached_property
    def time_matrix(self) -> Ints | None:
        """(N+1, N+1) if times are limited."""
        return self._matrix(self.problem.travel_time, self.per_time) if self.has_times else None

    def _matrix(self, value: Any, scale: float) -> Ints:
        nodes = np.arange(len(self.problem.demand))
        matrix = np.empty((len(nodes), len(nodes)), np.int32)
        for begin in range(0, len(nodes), ROWS):
            matrix[begin : begin + ROWS] = self._int32(np.rint(value(nodes[begin : begin + ROWS, None], nodes) * scale))
        return matrix

    def _int32(self, ticks: Floats) -> Ints:
        """Whatever is above the largest number is never reached, or never in time."""
        return np.clip(ticks, -1, LARGEST + 1).astype(np.int32)
