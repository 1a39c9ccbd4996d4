"""A population of solutions: annealed side by side, then recombined. docs/core.md#population says how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ndsvrp.counter_random import key_of
from ndsvrp.engine.base import ChainStats, Floats, Init, Ints, State
from ndsvrp.engine.cpu import CpuEngine, CpuState
from ndsvrp.problem import Problem
from ndsvrp.search.asa import Search
from ndsvrp.search.crossover import Room, apart, below, cross, neighbours, room_of
from ndsvrp.search.pipeline import Launched


class Population:
    """The solutions of one problem that are kept, as many as at the start."""

    def __init__(self, customers: int, costs: Floats, tours: list[Ints]) -> None:
        self.customers = customers
        self.tours = list(tours)
        self.costs = np.append(costs, np.inf)  # the last place is for a child
        self._neighbours = np.stack([neighbours(tour, customers) for tour in (*tours, tours[0])])
        self._apart = np.stack([apart(each, self._neighbours) for each in self._neighbours])
        np.fill_diagonal(self._apart, np.inf)
        self._apart[-1] = self._apart[:, -1] = np.inf

    @property
    def best(self) -> Ints:
        """Return the tour of the cheapest solution."""
        return self.tours[int(np.argmin(self.costs[:-1]))]

    def child(self, near: Ints, room: Room, words: Sequence[int], draws: int) -> tuple[Ints, Ints]:
        """Return the tours of a child of two different solutions, and of its first parent, for four random words."""
        first, second = (self.tours[parent] for parent in self.parents(words[0], words[1], draws))
        return cross(first, second, near, room, words[2], words[3]), first

    def parents(self, first: int, second: int, draws: int) -> tuple[int, int]:
        """Return the numbers of two different solutions for two random words, each the cheapest of some drawn ones."""
        everyone = range(len(self.tours))
        chosen = self._cheapest(everyone, first, draws)
        return chosen, self._cheapest([number for number in everyone if number != chosen], second, draws)

    def _cheapest(self, among: Sequence[int], word: int, draws: int) -> int:
        """Draw solutions by the digits of one random number, and return the cheapest of them."""
        digits, drawn = below(word, len(among) ** draws), []
        for _ in range(draws):
            digits, digit = divmod(digits, len(among))
            drawn.append(among[digit])
        return min(drawn, key=lambda number: float(self.costs[number]))

    def admit(self, cost: float, tour: Ints, least: float) -> int | None:
        """Let a child replace a solution. Return the number of that solution; None if the child is not kept.

        Of the two solutions that are closest, the more expensive one leaves if they are closer than `least`, or equal;
        else the most expensive one of all does. The cheapest one always stays.
        """
        child = len(self.tours)
        self.costs[child] = cost
        self._neighbours[child] = neighbours(tour, self.customers)
        self._place(child)
        one, other = divmod(int(np.argmin(self._apart)), child + 1)
        if self._apart[one, other] < least or self._apart[one, other] == 0.0:
            leaves = max(one, other, key=lambda i: (self.costs[i], i))
        else:
            leaves = child - int(np.argmax(self.costs[::-1]))  # the child, if it costs as much
        if leaves != child:
            self.costs[leaves], self.tours[leaves] = cost, tour
            self._neighbours[leaves] = self._neighbours[child]
            self._place(leaves)
        self._apart[child] = self._apart[:, child] = np.inf
        return None if leaves == child else leaves

    def _place(self, number: int) -> None:
        self._apart[number] = self._apart[:, number] = apart(self._neighbours[number], self._neighbours)
        self._apart[number, number] = np.inf


@dataclass
class PopulationSearch(Search):
    """A search that anneals the solutions of a population without exchange, then recombines them.

    For the CPU engine, with rules. The chains of `_held` are the populations, those of `_children` the next children of
    each problem.
    """

    engine: CpuEngine
    _held: CpuState = field(init=False)
    _children: CpuState = field(init=False)
    _near: list[Ints] = field(init=False)  #: (N+1, L) nearest customers, by problem
    _rooms: list[Room] = field(init=False)

    def run(self) -> str:
        """Anneal, then make and improve children until the budget is spent. Return why the search ended."""
        _, stopped = self._begin()
        stopped = stopped or self._anneal() or self._recombine()
        self._pipeline.finish(self._report)
        return stopped

    def _anneal(self) -> str | None:
        """Anneal the solutions for their share of the search. Return why the search ends, if it does."""
        settings, share, stopped = self.settings, self.settings.anneal_share, None
        steps = max(1, settings.rollouts * settings.chains // settings.population)
        while stopped is None and (used := self.budget.fraction(self.iteration + 1)) < share:
            self.iteration += 1
            temperatures = np.array([cool(used / share) for cool in self._cooling])
            self._improve(self._held, np.repeat(temperatures, settings.population)[:, None].repeat(steps, axis=1))
            stopped = self._pipeline.push(Launched(self.iteration, temperatures, self._held.snapshot()), self._report)
        return stopped

    def _recombine(self) -> str:
        """Make children, improve them, and let them take places in the population. Return why the search ends."""
        settings, share, stopped = self.settings, self.settings.anneal_share, None
        populations, schedule = self._populations(), self._child_temperatures()
        while stopped is None:
            self.iteration += 1
            left = (1.0 - self.budget.fraction(self.iteration)) / (1.0 - share)
            self._make_children(populations)
            self._improve(self._children, schedule)
            self._select(populations, settings.least_apart * left)
            launched = Launched(self.iteration, schedule[:: settings.chains, -1], self._snapshot())
            stopped = self._pipeline.push(launched, self._report)
        return stopped

    def _start(self, problems: Sequence[Problem], init: Init) -> State:
        state = super()._start(problems, init)
        assert isinstance(state, CpuState)
        self._held = state
        self._children = self.engine.spawn(state, self.settings.chains)
        self._near = [instance.near for instance in state.instances]
        self._rooms = [room_of(problem) for problem in problems]
        return state

    def _improve(self, state: CpuState, temperatures: Floats) -> None:
        self.engine.improve(
            state, self._recipe, None, temperatures, self.seed, self.iteration, deadline=self.budget.deadline
        )

    def _populations(self) -> list[Population]:
        """Return the best solutions of the chains, which become their current ones.

        Of chains with the same best solution, as after a warm start, all but one contribute their current one.
        """
        size, populations = self.settings.population, []
        for number, problem in enumerate(self.problems):
            chains = range(number * size, (number + 1) * size)
            tours: list[Ints] = []
            for chain in chains:
                best = self.engine.tour(self._held, chain)
                is_known = any(np.array_equal(best, other) for other in tours)
                tours.append(self.engine.tour(self._held, chain, best=False) if is_known else best)
                self.engine.place(self._held, chain, tours[-1])
            populations.append(Population(problem.customers, self._held.stats().costs[chains], tours))
        return populations

    def _child_temperatures(self) -> Floats:
        """Return (children, K) the temperatures of the steps of each child."""
        settings = self.settings
        steps = settings.child_steps * self.problems[0].customers
        falling = np.geomspace(max(settings.warm, settings.cold), settings.cold, steps)
        return np.repeat(np.outer(self._sides, falling), settings.chains, axis=0)

    def _make_children(self, populations: Sequence[Population]) -> None:
        """Give the children routes of two parents each."""
        for child, problem in enumerate(self._children.problem_of):
            number = child % self.settings.chains  # a problem takes the course that it would take alone
            words = key_of(self.seed, self.iteration, number)
            tour, parent = populations[problem].child(
                self._near[problem], self._rooms[problem], words, self.settings.tournament
            )
            if not self.engine.place(self._children, child, tour):
                self.engine.place(self._children, child, parent)  # a route became late when it lost customers

    def _select(self, populations: Sequence[Population], least: float) -> None:
        """Let the children take the places of other solutions, one after another."""
        costs = self._children.stats().best_costs
        for child, problem in enumerate(self._children.problem_of):
            tour = self.engine.tour(self._children, child)
            place = populations[problem].admit(float(costs[child]), tour, least)
            if place is not None:
                self.engine.place(self._held, problem * self.settings.population + place, tour)

    def note_best(self) -> None:
        """Keep what the children have found, too."""
        if self.state is not None:
            best, size = self._children.stats().best_costs, self.settings.population
            for child, problem in enumerate(self._children.problem_of):
                held = self._held.stats().best_costs[problem * size : (problem + 1) * size]
                if best[child] < held.min():
                    worst = problem * size + int(np.argmax(held))
                    self.engine.place(self._held, worst, self.engine.tour(self._children, child))
        super().note_best()

    def _snapshot(self) -> Callable[[], ChainStats]:
        """Return the numbers of the populations, with the steps that the children made."""
        stats = self._held.stats()._replace(made=self._children.made)
        return lambda: stats
