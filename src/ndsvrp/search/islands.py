"""Islands: groups of chains that anneal apart; then all chains improve children of what they found.

docs/core.md#islands says how.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ndsvrp.counter_random import key_of
from ndsvrp.engine.base import Init, Ints, State
from ndsvrp.engine.cpu import CpuEngine, CpuState
from ndsvrp.engine.shared import solution_of, tour_of
from ndsvrp.problem import Problem
from ndsvrp.search.asa import Search
from ndsvrp.search.crossover import Room, room_of
from ndsvrp.search.fleet import within_fleet
from ndsvrp.search.population import Population
from ndsvrp.search.stopping import ExponentialCooling


@dataclass
class IslandSearch(Search):
    """A search in two parts: annealing with exchange inside of groups only, then generations of children.

    For any engine and ruin. The chains of the state anneal first, and have a child each then. The first chain of a
    problem has its best solution instead, so that the best of all chains is always the best found.
    """

    _cpu: CpuEngine = field(default_factory=CpuEngine, init=False)
    _in_time: CpuState = field(init=False)  #: a chain for each problem, which tells whether routes are in time
    _near: list[Ints] = field(init=False)  #: (N+1, L) nearest customers, by problem
    _rooms: list[Room] = field(init=False)

    def run(self) -> str:
        """Anneal islands, then make and improve children until the budget is spent. Return why the search ended."""
        state, stopped = self._anneal()
        if stopped is None:  # a long iteration may have passed the share of the search that ignores the fleet
            state, stopped = self._limit_fleet_when_due(state, 1.0)
        if stopped is not None:
            return stopped
        populations, ends = self._populations(state), self._generations()
        if ends[0] >= 1.0:
            return "time"
        for begin, end in pairwise(ends):
            self.engine.restart(state, self._children(populations))
            stopped = self._improve_children(state, begin, end)
            if stopped is not None:
                return stopped
            self._select(state, populations, self.settings.least_apart * (1.0 - end) / (1.0 - ends[0]))
        return "time"

    def _anneal(self) -> tuple[State, str | None]:
        """Anneal the islands for their share of the search. Return the chains, and why the search ends, if it does."""
        state, stopped = self._begin()
        share = (1 - self._begun) * self.settings.anneal_share
        while stopped is None and (used := self.budget.fraction(self.iteration + 1) - self._begun) < share:
            state, stopped = self._limit_fleet_when_due(state, used / share)
            if stopped is None:
                temperatures = np.array([cool(used / share) for cool in self._cooling])
                stopped = self._iterate(state, temperatures, self.settings.islands)
        finished = self._pipeline.finish(self._report)  # whatever ended it: every iteration is reported
        return state, stopped or finished

    def _improve_children(self, state: State, begin: float, end: float) -> str | None:
        """Make steps between two shares of the budget. Return why the search ends, if it does."""
        warm, cold = max(self.settings.warm, self.settings.cold), self.settings.cold
        cooling = [ExponentialCooling(warm * side, cold * side) for side in self._sides]
        stopped = None
        while stopped is None and (used := self.budget.fraction(self.iteration + 1)) < end:
            part = max(0.0, used - begin) / (end - begin)
            stopped = self._iterate(state, np.array([cool(part) for cool in cooling]), groups=0)
        finished = self._pipeline.finish(self._report)
        return stopped or finished

    def _generations(self) -> list[float]:
        """Return the shares of the budget between which children are improved, as many steps as are asked for."""
        settings, used = self.settings, self.budget.fraction(self.iteration + 1)
        steps = (settings.rollouts + settings.rule_steps) * settings.regions
        iterations = max(1.0, settings.child_steps * self.problems[0].customers / steps)
        # The share of the budget that an iteration takes:
        each = used / self.iteration if self.iteration else 1.0 / (self.budget.iterations or 1)
        ends: list[float] = np.linspace(used, 1.0, 1 + max(1, round((1.0 - used) / (iterations * each)))).tolist()
        return ends

    def _start(self, problems: Sequence[Problem], init: Init) -> State:
        self._in_time = self._cpu.start(problems, np.arange(len(problems)))
        self._near = [instance.near for instance in self._in_time.instances]
        self._rooms = [room_of(problem) for problem in problems]
        return super()._start(problems, init)

    def _limit_fleet(self) -> State:
        """Go on from the solutions of the chains, cut to the fleet; in the first of each problem from the best one."""
        assert self.state is not None
        current = self.engine.tours(self.state, best=False)
        state = super()._limit_fleet()
        best, tours = self.engine.tours(state), list[Ints]()
        for problem, chains in zip(self.problems, self._chains(), strict=True):
            tours.append(best[chains[0]])
            tours += [tour_of(within_fleet(problem, solution_of(current[chain]))) for chain in chains[1:]]
        self.engine.restart(state, tours)
        return state

    def _populations(self, state: State) -> list[Population]:
        """Return the best solution of each island.

        Of islands with the same one, as after a warm start, all but one contribute the current solution of its chain.
        """
        stats, best = state.stats(), self.engine.tours(state)
        current = self.engine.tours(state, best=False)
        populations, size = [], self.settings.solutions // self.settings.islands
        for problem, chains in zip(self.problems, self._chains(), strict=True):
            costs, tours = [], list[Ints]()
            for i in range(0, len(chains), size):
                chain = min(chains[i : i + size], key=lambda chain: stats.best_costs[chain])
                is_known = any(np.array_equal(best[chain], tour) for tour in tours)
                costs.append(stats.costs[chain] if is_known else stats.best_costs[chain])
                tours.append(current[chain] if is_known else best[chain])
            populations.append(Population(problem.customers, np.array(costs), tours))
        return populations

    def _children(self, populations: Sequence[Population]) -> list[Ints]:
        """Return a tour for each chain: for the first of a problem its best solution, for the others a child."""
        tours: list[Ints] = []
        for problem, chains in enumerate(self._chains()):
            population, near, room = populations[problem], self._near[problem], self._rooms[problem]
            tours.append(population.best)
            for number in range(1, len(chains)):  # a problem takes the course that it would take alone
                words = key_of(self.seed, self.iteration, number)
                tour, parent = population.child(near, room, words, self.settings.tournament)
                is_feasible = self._cpu.place(self._in_time, problem, tour)
                tours.append(tour if is_feasible else parent)  # a route became late when it lost customers
        return tours

    def _select(self, state: State, populations: Sequence[Population], least: float) -> None:
        """Let the improved children take the places of other solutions, one after another."""
        costs, tours = state.stats().best_costs, self.engine.tours(state)
        for population, chains in zip(populations, self._chains(), strict=True):
            for chain in chains:
                population.admit(float(costs[chain]), tours[chain], least)

    def _chains(self) -> list[range]:
        """Return the chains of each problem."""
        size = self.settings.solutions
        return [range(i * size, (i + 1) * size) for i in range(len(self.problems))]
