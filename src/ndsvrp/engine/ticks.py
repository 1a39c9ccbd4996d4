"""A problem in whole ticks: the numbers that every engine computes with.

Lengths, times and prizes become 32-bit integers, so that sums are exact in any order: a running cost never drifts, and
all engines agree route by route. Under an integer metric a tick is the metric's own unit (a tenth for `dimacs`), and
nothing is lost. Under `none` a tick is a power of two, small enough that the largest number of the problem takes 28
bits: finer than float32. Reported costs are computed by `check`, in float64.

Each constraint converts its own fields. Float times and demands are rounded so that whatever fits in ticks passes
`check`: a stop never takes less time than it does, and the tolerance of `check` makes up for it.

`Ticks` has one scale for all numbers but those of a duration matrix. Where that would lose precision, and where
vehicles have a cost, `ticks_of` returns `OwnScales` (own_scales.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints import CONSTRAINTS, VEHICLE_COST, Constraint, constraints_of
from ndsvrp.errors import EngineError
from ndsvrp.metric import Floats, Metric, power_of_two
from ndsvrp.problem import Problem

Ints = npt.NDArray[np.int32]
Nodes = npt.NDArray[np.int64]
LARGEST = 1 << 28  # a start time, a service time and two lengths still add up within 32 bits
FINE = 1 << 20  # ticks of what matters, at least: rounding changes an objective by less than 1e-6 of it
FINE_TIME = 1 << 14  # ticks of a limit on times, at least: a stop loses up to two of them to rounding
MISSING, LARGEST_COST = 1 << 44, 1 << 57  # of a required customer, usually; of a solution
MARGIN, COARSE = 3, 2.0**-20  # absolute (ticks) and relative error of a length from float32 coordinates


@dataclass(frozen=True, eq=False)
class Ticks:
    """The numbers of a problem as an engine takes them. Index 0 is the depot."""

    problem: Problem
    xp: ClassVar[Any] = np  #: the library of the arrays
    codes_prizes: ClassVar[bool] = False  #: whether prizes take part in choosing the scale, or may exceed it
    largest_cost: ClassVar[float] = float(LARGEST_COST)

    @property
    def vehicle_cost(self) -> int:
        """The cost of a vehicle, which is part of each length out of the depot."""
        return 0

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints that the problem has."""
        return constraints_of(self.problem)

    @cached_property
    def has_times(self) -> bool:
        """Whether feasibility depends on travel and service times."""
        return any(constraint.limits_times for constraint in self.constraints)

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields of the native `Instance` that the constraints fill; None: not used."""
        return {name: value for constraint in CONSTRAINTS for name, value in constraint.native(self).items()}

    @cached_property
    def unreachable(self) -> npt.NDArray[np.bool_]:
        """(N+1,) optional customers that fit no route of their own, as `check` has it."""
        optional = ~self.problem.required & (np.arange(len(self.problem.demand)) > 0)
        found = np.zeros_like(optional)
        if np.any(optional):
            for constraint in self.constraints:
                found |= constraint.unreachable(self.problem)
        return found & optional

    @cached_property
    def excluded(self) -> npt.NDArray[np.bool_]:
        """(N+1,) optional customers that fit no route. By a matrix, others may be on the way to an unreachable one."""
        return self.unreachable if self.problem.distance is None else np.zeros_like(self.unreachable)

    @cached_property
    def alone(self) -> Ints | None:
        """(N+1,) 1: fits a route of its own; None: all do that are not excluded."""
        only_with_others = self.unreachable & ~self.excluded
        return (~only_with_others).astype(np.int32) if np.any(only_with_others) else None

    @cached_property
    def per_unit(self) -> float:
        """Ticks per unit of length and prize."""
        if self.has_times and self.problem.duration is None:
            return self.scale_for(max(self.largest_length, self.largest_time))
        return self.scale_for(self.largest_length)

    @cached_property
    def per_time(self) -> float:
        """Ticks per unit of time: those of lengths, unless there is a duration matrix."""
        return self.per_unit if self.problem.duration is None else power_of_two(LARGEST, self.largest_time)

    def scale_for(self, largest: float) -> float:
        """Return ticks per unit for numbers up to this one: those of an integer metric, if they fit."""
        metric = self.problem.metric
        is_whole = metric.is_integer and largest * metric.scale <= LARGEST
        return float(metric.scale) if is_whole else power_of_two(LARGEST, largest)

    @property
    def has_whole_lengths(self) -> bool:
        """Whether lengths are exact: those of an integer metric in its own ticks."""
        return self.problem.metric.is_integer and self.per_unit == self.problem.metric.scale

    @property
    def has_whole_times(self) -> bool:
        """Whether times are exact."""
        return self.problem.has_whole_times and self.per_time == self.problem.metric.scale

    @cached_property
    def largest_length(self) -> float:
        """The largest length or prize that has to fit."""
        return max(self.longest, *(float(np.max(rule.largest_length(self))) for rule in self.constraints))

    @cached_property
    def largest_time(self) -> float:
        """The largest time that has to fit."""
        return max(self.longest_time, *(float(np.max(rule.largest_time(self))) for rule in self.constraints))

    @cached_property
    def is_scarce(self) -> bool:
        """Whether some customers may have to stay unserved: too few vehicles, or none that reaches them."""
        vehicles, customers = self.problem.vehicles, self.problem.customers
        return (vehicles is not None and vehicles < customers) or bool(np.any(self.unreachable))

    @cached_property
    def missing(self) -> int:
        """The cost in ticks of leaving a required customer unserved: more than all optional ones together."""
        problem = self.problem
        if problem.prize is None or not self.is_scarce:
            return MISSING
        prizes, required = float(np.sum(problem.prize)) * self.per_unit, int(np.count_nonzero(problem.required))
        missing = max(MISSING, 1 << int(prizes).bit_length())
        if missing > MISSING and prizes + required * missing > LARGEST_COST:
            raise EngineError(
                f"prizes up to {np.max(problem.prize):g} beside lengths up to {self.longest:g}, where vehicles do not "
                "reach all customers: costs would take more than 64 bits"
            )
        return missing

    @property
    def is_fine(self) -> bool:
        """Whether ticks represent the objective to 1e-6, and are fine enough for the limits on times."""
        if self.problem.metric.is_integer and not self.has_whole_lengths:
            return False  # lengths of points are rounded once only
        if self.problem.has_whole_times and self.has_times:
            return self.has_whole_times
        matters = min(self.longest, cost_bound(self.problem)) * self.per_unit
        limits = [float(rule.least_limit(self)) for rule in self.constraints if rule.limits_times]
        in_time = min(limits, default=np.inf) * self.per_time if self.longest_time > 0 else np.inf
        fine = all(rule.is_fine(self) for rule in self.constraints)
        return fine and (self.has_whole_lengths or matters >= FINE or self.longest == 0) and in_time >= FINE_TIME

    @cached_property
    def longest(self) -> float:
        """An upper bound on all lengths."""
        if self.problem.distance is not None:
            return float(np.max(self.problem.distance))
        assert self.problem.coordinates is not None
        return float(np.hypot(*np.ptp(self.problem.coordinates, axis=0))) + 1.0 / self.problem.metric.scale * (
            self.problem.metric.is_integer
        )

    @property
    def longest_time(self) -> float:
        """An upper bound on all travel times."""
        return self.longest if self.problem.duration is None else float(np.max(self.problem.duration))

    @property
    def most(self) -> float:
        """The largest length or prize that ticks can hold."""
        return LARGEST / self.per_unit

    def lengths(self, values: Floats) -> Ints:
        """Return lengths or prizes in ticks, to the nearest."""
        return self._int32(self.xp.round(values * self.per_unit))

    def times(self, values: Floats, rounding: Callable[[Floats], Floats]) -> Ints:
        """Return times in ticks; `rounding` applies to float times, whole ones are exact."""
        ticks = values * self.per_time
        return self._int32(self.xp.round(ticks) if self.has_whole_times else rounding(ticks))

    @cached_property
    def points(self) -> Floats | None:
        """(N+1, 2) in ticks, relative to the corner of the bounding box; None if there is a matrix."""
        if self.problem.coordinates is None or self.problem.distance is not None:
            return None
        return np.asarray((self.problem.coordinates - self.problem.coordinates.min(axis=0)) * self.per_unit)

    @cached_property
    def exact_points(self) -> Floats | None:
        """(N+1, 2) for float64 lengths. None if float32 is enough: float lengths that no constraint limits."""
        if self.points is None or self.whole is None:
            return None
        return self.problem.coordinates if self.problem.metric.is_integer else self.points

    @cached_property
    def whole(self) -> tuple[float, float] | None:
        """(scale, shift): a length in ticks is floor(distance of exact points * scale + shift)."""
        metric = self.problem.metric
        if metric.is_integer:
            return float(metric.scale), 0.5 if metric in (Metric.ROUND, Metric.EXACT) else 0.0
        limited = any(constraint.limits_lengths for constraint in self.constraints)
        return (1.0, 0.5) if limited or self.has_times else None

    @cached_property
    def box_margin(self) -> int:
        """Largest error, in ticks, of a length from float32 coordinates."""
        return 0 if self.points is None else MARGIN + int(self.longest * self.per_unit * COARSE)

    @cached_property
    def length_matrix(self) -> Ints | None:
        """(N+1, N+1) if the problem has one."""
        distance = self.problem.distance
        return None if distance is None else self.lengths(distance)

    @cached_property
    def time_matrix(self) -> Ints | None:
        """(N+1, N+1) if there is a duration matrix and times are limited."""
        duration = self.problem.duration
        return None if duration is None or not self.has_times else self._int32(np.rint(duration * self.per_time))

    def sort_ranks(self) -> tuple[Ints, Ints]:
        """Return weights (sorts+1,) of the random order and of each sort order, and ranks (sorts, N+1).

        Random 4, far from the depot 2, close to it 1, and those of each constraint (Christiaens & Vanden Berghe 2020).
        """
        problem = self.problem
        nodes, depot = np.arange(len(problem.demand)), np.zeros(len(problem.demand), int)
        away = problem.length(depot, nodes)
        keys = [(2, -away), (1, away)]
        for constraint in self.constraints:
            keys += constraint.sort_keys(problem)
        ranks = np.zeros((len(keys), len(nodes)), np.int32)
        for row, (_, key) in zip(ranks, keys, strict=True):
            row[1 + np.argsort(key[1:], kind="stable")] = np.arange(1, len(nodes))
        return np.array([4, *(weight for weight, _ in keys)], np.int32), ranks

    def _int32(self, ticks: Any) -> Ints:
        whole: Ints = self.xp.asarray(self.xp.clip(ticks, -LARGEST * 2, LARGEST * 2), dtype=self.xp.int32)
        return whole


def cost_bound(problem: Problem) -> float:
    """Return a bound on the lowest cost: no optional customer is served, each required one has its own route.

    Infinite if there are no prizes, or if the fleet is too small for that.
    """
    required = np.flatnonzero(problem.required)
    if problem.prize is None or (problem.vehicles is not None and problem.vehicles < len(required)):
        return float("inf")
    depot = np.zeros(len(required), int)
    there_and_back = problem.length(depot, required) + problem.length(required, depot)
    vehicles = (problem.vehicle_cost or 0.0) * len(required)
    return float(np.sum(problem.prize) + np.sum(there_and_back) + vehicles)


def ticks_of(problem: Problem) -> Ticks:
    """Return a problem in ticks, in one scale if that is fine enough and vehicles have no cost."""
    from ndsvrp.engine.own_scales import OwnScales

    ticks = Ticks(problem)
    if not VEHICLE_COST.present(problem) and ticks.is_fine:
        return ticks
    own = OwnScales(problem)
    own.refuse_coarse()
    return own
