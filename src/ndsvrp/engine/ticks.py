"""A problem in whole ticks: what every engine computes with.

Lengths, times and prizes become 32-bit integers, so that sums are exact in any order: a running cost never drifts,
and all machines agree route by route. Under an integer metric a tick is the metric's own unit (a tenth for
`dimacs`), and nothing is lost. Under `none` a tick is a power of two, small enough that the largest number of the
problem takes 28 bits: finer than float32. What a person gets to see is computed anew by `check`, in float64.

Float times and demands are rounded so that what fits in ticks passes `check`: a stop never takes less time than it
does, and the tolerance of `check` makes up for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import EngineError
from ndsvrp.features import FEATURES
from ndsvrp.metric import Floats, Metric
from ndsvrp.problem import Problem

Ints = npt.NDArray[np.int32]
LARGEST = 1 << 28  # a start time, a service time and two lengths still add up within 32 bits
REQUIRED = 1 << 29  # kRequired of the core: the prize that says that there is no leaving out
DEAR = 64.0  # times the longest way: beyond this, a prize says no more than: serve if at all possible
EVER = 1.001  # times the latest that a vehicle could be anywhere: due dates after that are never missed
MARGIN, COARSE = 3, 2.0**-20  # a length from float32 coordinates is off by so many ticks, and by so much of itself
NEARLY = 0.999  # of the tolerance of `check` is used: the rest is for the rounding of float64


@dataclass(frozen=True, eq=False)
class Ticks:
    """The numbers of a problem as an engine takes them. Index 0 is the depot."""

    problem: Problem

    @cached_property
    def per_unit(self) -> float:
        """Ticks per unit of length and prize."""
        largest, metric = self._largest(), self.problem.metric
        if not metric.is_integer:
            return _power_of_two(LARGEST, largest)
        if largest * metric.scale > LARGEST:
            raise EngineError(f"numbers up to {largest:g} are too large for the metric '{metric}': use 'none'")
        return float(metric.scale)

    @cached_property
    def per_time(self) -> float:
        """Ticks per unit of time: that of lengths, unless durations are given apart."""
        if self.problem.duration is None:
            return self.per_unit
        return _power_of_two(LARGEST, self._largest_time())

    def _largest(self) -> float:
        reach = self._reach
        parts = [reach]
        if self.problem.has_windows and self.problem.duration is None:
            parts.append(self._largest_time())
        if self.problem.prize is not None:
            prize = float(np.max(self.problem.prize))
            parts.append(min(prize, DEAR * reach) if reach > 0 else prize)
        return max(parts)

    @cached_property
    def _reach(self) -> float:
        """No length is larger."""
        if self.problem.distance is not None:
            return float(np.max(self.problem.distance))
        assert self.problem.coordinates is not None
        return float(np.hypot(*np.ptp(self.problem.coordinates, axis=0))) + 1.0 / self.problem.metric.scale * (
            self.problem.metric.is_integer
        )

    # --- capacity ----------------------------------------------------------------------------

    @cached_property
    def demand_per_unit(self) -> float:
        """Whole demands stay as they are; fractions are counted in a power of two."""
        most = 1 << 30
        if self.problem.capacity_tolerance == 0 and self.problem.capacity <= most:
            return 1.0
        return _power_of_two(most, self.problem.capacity)

    @cached_property
    def capacity(self) -> int:
        """What a vehicle carries, in units of `demand`."""
        slack = NEARLY * self.problem.capacity_tolerance
        return int(np.floor((self.problem.capacity + slack) * self.demand_per_unit))

    @cached_property
    def demand(self) -> Ints:
        """What each customer takes, rounded up; more than any vehicle has for those nobody can serve."""
        demand = np.ceil(self.problem.demand * self.demand_per_unit)
        demand[self._unreachable()] = self.capacity + 1  # fits no vehicle
        return demand.astype(np.int32)

    def _unreachable(self) -> npt.NDArray[np.bool_]:
        """Optional customers that no vehicle of its own could serve in time."""
        problem = self.problem
        if problem.windows is None:
            return np.zeros(len(problem.demand), bool)
        nodes, depot = np.arange(len(problem.demand)), np.zeros(len(problem.demand), int)
        ready, due, service = (values.astype(np.int64) for values in (self.ready, self.due, self.service))
        start = np.maximum(ready[0] + self._time(depot, nodes), ready)
        late = (start > due) | (start + service + self._time(nodes, depot) > due[0])
        return np.asarray(late & ~problem.required & (nodes > 0))

    def _time(self, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Travel times in ticks, as the core computes them for a problem with windows."""
        matrix = self.length_matrix if self.time_matrix is None else self.time_matrix
        if matrix is not None:
            return matrix[a, b].astype(np.int64)
        assert self.exact_points is not None and self.whole is not None
        d, (scale, shift) = self.exact_points[a] - self.exact_points[b], self.whole
        length = np.sqrt(d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1])
        return np.asarray(np.floor(length * scale + shift), np.int64)

    # --- windows -----------------------------------------------------------------------------

    @cached_property
    def ready(self) -> Ints:
        """From the opening of the depot on."""
        assert self.problem.windows is not None
        ready = np.maximum(self.problem.windows[:, 0] - self.problem.windows[0, 0], 0.0) * self.per_time
        return _int32(np.rint(ready) if self.problem.has_whole_times else np.ceil(ready))

    @cached_property
    def due(self) -> Ints:
        """Latest starts, from the opening of the depot on."""
        due = self._due * self.per_time
        # The half is for the rounding of the way there.
        return _int32(np.rint(due) if self.problem.has_whole_times else np.floor(due - 0.5))

    @cached_property
    def service(self) -> Ints:
        """Service times."""
        if self.problem.service is None:
            service = np.zeros(len(self.problem.demand))
        else:
            service = self.problem.service * self.per_time
        if self.problem.has_whole_times:
            return _int32(np.rint(service))
        service = np.ceil(service + 0.5)  # and so is this one
        service[0] = 0.0
        return _int32(service)

    @cached_property
    def _due(self) -> Floats:
        """Due dates from the opening of the depot on, with the tolerance of `check`, and none later than a vehicle
        could ever be: a due date that stands for `any time` must not make the ticks coarse."""
        problem = self.problem
        assert problem.windows is not None
        windows = problem.windows - problem.windows[0, 0]
        horizon = windows[0, 1]
        furthest = self._reach if problem.duration is None else float(np.max(problem.duration))
        service = 0.0 if problem.service is None else float(np.sum(np.minimum(problem.service, horizon)))
        ready = float(np.max(windows[:, 0], where=windows[:, 0] <= horizon, initial=0.0))
        latest = EVER * (ready + service + (problem.customers + 1) * furthest)
        if problem.metric.is_integer:
            latest = float(np.ceil(latest))
        return np.asarray(np.minimum(windows[:, 1] + NEARLY * problem.time_tolerance, latest))

    def _largest_time(self) -> float:
        problem = self.problem
        parts = [float(np.max(self._due))]
        if problem.service is not None:
            parts.append(float(np.max(np.minimum(problem.service, parts[0]))))
        if problem.duration is not None:
            parts.append(float(np.max(problem.duration)))
        return max(parts)

    # --- prizes ------------------------------------------------------------------------------

    @cached_property
    def prize(self) -> Ints | None:
        """None where nobody can be left out: no prizes, and a fleet without limit."""
        if self.problem.prize is None and self.problem.vehicles is None:
            return None
        prize = np.zeros(len(self.problem.demand)) if self.problem.prize is None else self.problem.prize
        ticks = self._whole(np.minimum(prize, self.largest_prize))
        ticks[self.problem.required] = REQUIRED
        return ticks

    @property
    def largest_prize(self) -> float:
        """Prizes above count as much: at least 64 times the longest way."""
        return LARGEST / self.per_unit

    @property
    def vehicles(self) -> int:
        """How many routes there may be."""
        limit = self.problem.vehicles
        return self.problem.customers if limit is None else min(limit, self.problem.customers)

    # --- distances ---------------------------------------------------------------------------

    @cached_property
    def points(self) -> Floats | None:
        """(N+1, 2) in ticks, relative to the corner of the bounding box; None where a matrix rules."""
        if self.problem.coordinates is None or self.problem.distance is not None:
            return None
        return np.asarray((self.problem.coordinates - self.problem.coordinates.min(axis=0)) * self.per_unit)

    @cached_property
    def exact_points(self) -> Floats | None:
        """(N+1, 2) for float64 lengths. None where float32 is enough: float lengths that no window depends on."""
        if self.points is None or self.whole is None:
            return None
        return self.problem.coordinates if self.problem.metric.is_integer else self.points

    @cached_property
    def whole(self) -> tuple[float, float] | None:
        """(scale, shift): a length in ticks is floor(distance of exact points * scale + shift)."""
        metric = self.problem.metric
        if metric.is_integer:
            return float(metric.scale), 0.5 if metric in (Metric.ROUND, Metric.EXACT) else 0.0
        return (1.0, 0.5) if self.problem.has_windows else None

    @cached_property
    def box_margin(self) -> int:
        """Ticks by which a length taken from float32 coordinates may be off."""
        return MARGIN + int(self._reach * self.per_unit * COARSE)

    @cached_property
    def length_matrix(self) -> Ints | None:
        """(N+1, N+1) if the problem has one."""
        distance = self.problem.distance
        return None if distance is None else self._whole(distance)

    @cached_property
    def time_matrix(self) -> Ints | None:
        """(N+1, N+1) if times are given apart from lengths."""
        duration = self.problem.duration
        if duration is None or not self.problem.has_windows:
            return None
        return _int32(np.rint(duration * self.per_time))

    # --- sort orders of SISRs ----------------------------------------------------------------

    def sort_ranks(self) -> tuple[Ints, Ints]:
        """Weights (sorts+1,) of the random order and of each sort order, and ranks (sorts, N+1).

        Random 4, far from the depot 2, close to it 1, and what each feature adds (Christiaens & Vanden Berghe 2020).
        """
        problem = self.problem
        nodes, depot = np.arange(len(problem.demand)), np.zeros(len(problem.demand), int)
        away = problem.length(depot, nodes)
        keys = [(2, -away), (1, away)]
        for feature in FEATURES:
            if feature.present(problem):
                keys += [(weight, key(problem)) for weight, key in feature.sort_keys]
        ranks = np.zeros((len(keys), len(nodes)), np.int32)
        for row, (_, key) in zip(ranks, keys, strict=True):
            row[1 + np.argsort(key[1:], kind="stable")] = np.arange(1, len(nodes))
        return np.array([4, *(weight for weight, _ in keys)], np.int32), ranks

    def _whole(self, values: Floats) -> Ints:
        return _int32(np.rint(values * self.per_unit))


def _int32(ticks: Floats) -> Ints:
    return np.clip(ticks, -LARGEST * 2, LARGEST * 2).astype(np.int32)


def _power_of_two(most: int, largest: float) -> float:
    """The largest one that takes `largest` to no more than `most`."""
    if not largest < 1e150:  # the squares of lengths have to be numbers still
        raise EngineError(f"numbers up to {largest:g} are too large")
    return float(2.0 ** min(1000.0, np.floor(np.log2(most / largest)))) if largest > 1e-290 else 1.0
