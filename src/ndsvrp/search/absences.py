"""Absences: a search for solutions that serve all required customers, where vehicles are few.

Which customers are hard to serve shows only in the course of a search. So it counts how many steps have left each of
them unserved (Christiaens & Vanden Berghe 2020, fleet minimization). A step is accepted if it lowers the sum of these
counts over the unserved customers, whatever it does to lengths. So a customer that was often absent is served, and
others that rarely were make room for it. In the end those are unserved that are easy to serve.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ndsvrp.constraints.shortage import least_vehicles
from ndsvrp.engine.base import Ints, Recipe
from ndsvrp.engine.cpu import CpuEngine, CpuState
from ndsvrp.engine.shared import solution_of, tour_of
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

HOT = 0.1  # temperature, for a bounding box of side 1, of steps that do not change the sum
MOST = 6_000  # steps for each customer and fleet
SLICE = 500  # steps between two looks at the clock, and at Ctrl-C
UNIT = 1 << 36  # ticks of one absence: more than a step changes lengths


@dataclass
class Absences:
    """A search by absences for one problem with limited vehicles, on the CPU. The counts last as long as it."""

    problem: Problem
    recipe: Recipe
    seed: int
    deadline: float | None = None  #: on the clock of `time.perf_counter`
    is_over: Callable[[], bool] = lambda: False  #: whether something else ends it
    _engine: CpuEngine = field(default_factory=CpuEngine, init=False)
    _state: CpuState = field(init=False)
    _steps: int = field(default=0, init=False)  #: made so far

    def __post_init__(self) -> None:
        self._state = self._engine.start([self.problem], [0])
        self._recipe = replace(self.recipe, weigh_unserved=False, serve_bonus=0.0, open_route=0.0, regions=1)
        self._hot = np.array([HOT * self.problem.side()])

    def serve_required(self, tour: Ints) -> Ints | None:
        """Return a tour that serves all required customers, found from a given one; None if none is found.

        The more customers are left, the sooner it ends without a step that leaves fewer.
        """
        self._engine.restart(self._state, [tour])
        most, fewest = MOST * self.problem.customers, self.problem.customers
        begin = since = self._steps
        while self._steps - begin < most:
            left = self._step()
            if left == 0:
                return self._engine.tour(self._state, 0, best=False)
            if left < fewest:
                fewest, since = left, self._steps
            is_hopeless = self._steps - since > most / fewest
            if is_hopeless or (self.deadline is not None and time.perf_counter() >= self.deadline) or self.is_over():
                break
        return None

    def with_fewer_vehicles(self, tour: Ints) -> Iterator[Ints]:
        """Yield tours that serve all required customers, each with fewer routes than the one before.

        The route with the fewest customers is taken apart, as long as a solution without it is found.
        """
        least = max(1, least_vehicles(self.problem))
        found: Ints | None = tour
        while found is not None and len(routes := solution_of(found).routes) > least:
            left = Solution(sorted(routes, key=len)[1:])
            self._engine.limit_vehicles(self._state, len(left.routes))
            found = self.serve_required(tour_of(left))
            if found is not None:
                yield found

    def _step(self) -> int:
        """Make a slice of steps. Return how many required customers are left."""
        steps = range(self._steps, self._steps + SLICE)
        self._steps = steps.stop
        return self._engine.serve_required(
            self._state, self._recipe, self._hot, UNIT, steps, self.seed, self.deadline
        )  # fmt: skip
