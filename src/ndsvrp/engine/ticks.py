"""A problem in whole ticks: what every engine computes with.

Lengths, times and prizes become 32-bit integers, so that sums are exact in any order: a running cost never drifts,
and all machines agree route by route. Under an integer metric a tick is the metric's own unit (a tenth for
`dimacs`), and nothing is lost. Under `none` a tick is a power of two, small enough that the largest number of the
problem takes 28 bits: finer than float32. What a person gets to see is computed anew by `check`, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import EngineError
from ndsvrp.features import FEATURES
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem

Ints = npt.NDArray[np.int32]
LARGEST = 1 << 28  # a start time, a service time and two lengths still add up within 32 bits
REQUIRED = 1 << 29  # kRequired of the core: what leaving out a required customer counts


@dataclass(frozen=True, eq=False)
class Ticks:
    """The numbers of a problem as an engine takes them. Index 0 is the depot."""

    problem: Problem

    @cached_property
    def per_unit(self) -> float:
        """Ticks per unit of length, time and prize."""
        metric = self.problem.metric
        if metric.is_integer:
            if self._largest() * metric.scale > LARGEST:
                raise EngineError(
                    f"numbers up to {self._largest():g} are too large for the metric '{metric}': use 'none'"
                )
            return float(metric.scale)
        return float(2.0 ** np.floor(np.log2(LARGEST / self._largest())))

    def _largest(self) -> float:
        problem = self.problem
        reach = self._reach()
        parts = [reach]
        if problem.windows is not None:
            parts.append(float(np.max(np.abs(problem.windows - problem.windows[0, 0]))))
        if problem.service is not None:
            parts.append(float(np.max(problem.service)))
        if problem.duration is not None:
            parts.append(float(np.max(problem.duration)))
        if problem.prize is not None:  # beyond this, a prize says no more than: serve if at all possible
            parts.append(min(float(np.max(problem.prize)), 64.0 * reach))
        return max(max(parts), 1e-300)

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
        """Whole demands stay as they are; fractions are counted in units of the capacity over 2^28."""
        if self.problem.capacity_tolerance == 0 and self.problem.capacity < LARGEST:
            return 1.0
        return LARGEST / self.problem.capacity

    @property
    def capacity(self) -> int:
        """Half the tolerance of `check`: the other half is left for the rounding of the demands."""
        slack = 0.5 * self.problem.capacity_tolerance
        return int(np.floor((self.problem.capacity + slack) * self.demand_per_unit))

    @property
    def demand(self) -> Ints:
        demand = np.rint(self.problem.demand * self.demand_per_unit)
        demand[self._unreachable()] = LARGEST + 1  # fits no vehicle
        return demand.astype(np.int32)

    def _unreachable(self) -> npt.NDArray[np.bool_]:
        """Optional customers that no vehicle of its own could serve in time."""
        problem = self.problem
        if problem.windows is None:
            return np.zeros(len(problem.demand), bool)
        nodes, depot = np.arange(len(problem.demand)), np.zeros(len(problem.demand), int)
        ready, due, service = (values.astype(np.int64) for values in (self.ready, self.due, self.service))
        there = self._whole(problem.travel_time(depot, nodes)).astype(np.int64)
        back = self._whole(problem.travel_time(nodes, depot)).astype(np.int64)
        start = np.maximum(ready[0] + there, ready)
        late = (start > due) | (start + service + back > due[0])
        return np.asarray(late & ~problem.required & (nodes > 0))

    # --- windows -----------------------------------------------------------------------------

    @property
    def ready(self) -> Ints:
        assert self.problem.windows is not None
        return self._whole(self.problem.windows[:, 0] - self.problem.windows[0, 0])

    @property
    def due(self) -> Ints:
        """Half the tolerance of `check`: the other half is left for the rounding of times."""
        assert self.problem.windows is not None
        slack = 0.5 * self.problem.time_tolerance
        return self._whole(self.problem.windows[:, 1] - self.problem.windows[0, 0] + slack)

    @property
    def service(self) -> Ints:
        service = self.problem.service
        return self._whole(np.zeros(len(self.problem.demand)) if service is None else service)

    # --- prizes ------------------------------------------------------------------------------

    @property
    def prize(self) -> Ints | None:
        """None where nobody can be left out: no prizes, and a fleet without limit."""
        if self.problem.prize is None and self.problem.vehicles is None:
            return None
        prize = np.zeros(len(self.problem.demand)) if self.problem.prize is None else self.problem.prize
        ticks = self._whole(np.minimum(prize, LARGEST / self.per_unit))
        ticks[self.problem.required] = REQUIRED
        return ticks

    @property
    def vehicles(self) -> int:
        limit = self.problem.vehicles
        return self.problem.customers if limit is None else min(limit, self.problem.customers)

    # --- distances ---------------------------------------------------------------------------

    @property
    def points(self) -> npt.NDArray[np.float64] | None:
        """(N+1, 2) relative to the corner of the bounding box; None where a matrix rules."""
        if self.problem.coordinates is None or self.problem.distance is not None:
            return None
        return self.problem.coordinates - self.problem.coordinates.min(axis=0)

    @property
    def whole(self) -> tuple[float, float] | None:
        """(scale, shift): a whole length is floor(distance * scale + shift). None under `none`."""
        metric = self.problem.metric
        if not metric.is_integer:
            return None
        return float(metric.scale), 0.5 if metric in (Metric.ROUND, Metric.EXACT) else 0.0

    @property
    def box_margin(self) -> int:
        """Ticks by which a length taken from float32 coordinates may be off."""
        return 3 + int(self._reach() * self.per_unit * 2.0**-20)

    @property
    def length_matrix(self) -> Ints | None:
        distance = self.problem.distance
        return None if distance is None else self._whole(distance)

    @property
    def time_matrix(self) -> Ints | None:
        duration = self.problem.duration
        return None if duration is None else self._whole(duration)

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

    def _whole(self, values: npt.NDArray[np.float64]) -> Ints:
        return np.rint(np.clip(values * self.per_unit, -LARGEST * 2, LARGEST * 2)).astype(np.int32)
