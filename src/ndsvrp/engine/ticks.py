"""A problem in whole ticks: the numbers that every engine computes with.

Lengths, times and prizes become 32-bit integers, so that sums are exact in any order: a running cost never drifts, and
all engines agree route by route. Under an integer metric a tick is the metric's own unit (a tenth for `dimacs`), and
nothing is lost. Under `none` a tick is a power of two, small enough that the largest number of the problem takes 28
bits: finer than float32. Reported costs are computed by `check`, in float64.

Each constraint converts its own fields. Float times and demands are rounded so that whatever fits in ticks passes
`check`: a stop never takes less time than it does, and the tolerance of `check` makes up for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints import CONSTRAINTS, Constraint, constraints_of
from ndsvrp.errors import EngineError
from ndsvrp.metric import Floats, Metric, power_of_two
from ndsvrp.problem import Problem

Ints = npt.NDArray[np.int32]
Nodes = npt.NDArray[np.int64]
LARGEST = 1 << 28  # a start time, a service time and two lengths still add up within 32 bits
MARGIN, COARSE = 3, 2.0**-20  # absolute (ticks) and relative error of a length from float32 coordinates


@dataclass(frozen=True, eq=False)
class Ticks:
    """The numbers of a problem as an engine takes them. Index 0 is the depot."""

    problem: Problem
    xp: ClassVar[Any] = np  #: the library of the arrays

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
        """(N+1,) optional customers that fit no route."""
        found = np.zeros(len(self.problem.demand), bool)
        for constraint in self.constraints:
            found |= constraint.unreachable(self)
        found[0] = False
        return found & ~self.problem.required

    @cached_property
    def per_unit(self) -> float:
        """Ticks per unit of length and prize."""
        parts = [self.longest, *(constraint.largest_length(self) for constraint in self.constraints)]
        if self.has_times and self.problem.duration is None:
            parts.append(self._largest_time)
        largest, metric = max(float(np.max(part)) for part in parts), self.problem.metric
        if not metric.is_integer:
            return power_of_two(LARGEST, largest)
        if largest * metric.scale > LARGEST:
            raise EngineError(f"numbers up to {largest:g} are too large for the metric '{metric}': use 'none'")
        return float(metric.scale)

    @cached_property
    def per_time(self) -> float:
        """Ticks per unit of time: those of lengths, unless there is a duration matrix."""
        if self.problem.duration is None:
            return self.per_unit
        return power_of_two(LARGEST, self._largest_time)

    @cached_property
    def _largest_time(self) -> float:
        parts = (constraint.largest_time(self) for constraint in self.constraints)
        return max(self.longest_time, *(float(np.max(part)) for part in parts))

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
        return self._int32(self.xp.round(ticks) if self.problem.has_whole_times else rounding(ticks))

    def travel_time(self, a: Nodes, b: Nodes) -> Nodes:
        """Return travel times in ticks, as the core computes them for a problem whose times are limited."""
        return self.travel_length(a, b) if self.time_matrix is None else self.time_matrix[a, b].astype(np.int64)

    def travel_length(self, a: Nodes, b: Nodes) -> Nodes:
        """Return lengths in ticks, as the core computes them for a problem whose lengths or times are limited."""
        if self.length_matrix is not None:
            return self.length_matrix[a, b].astype(np.int64)
        assert self.exact_points is not None and self.whole is not None
        d, (scale, shift) = self.exact_points[a] - self.exact_points[b], self.whole
        length = np.sqrt(d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1])
        return np.asarray(np.floor(length * scale + shift), np.int64)

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
        return MARGIN + int(self.longest * self.per_unit * COARSE)

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
