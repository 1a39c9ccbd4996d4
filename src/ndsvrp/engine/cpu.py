"""The engine on the CPU: chains over threads, in the native core."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import ndsvrp._core as _core
from ndsvrp.engine import shared
from ndsvrp.engine.base import ChainStats, Floats, Init, Ints, Recipe, Regions, Removals, View
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

SLICE = 0.02  # seconds between two looks at the clock
TABULATED = 500  # customers up to which a table of all lengths fits the second-level cache of a core
COMPARED = 1000  # customers of a matrix up to which all triples of nodes are compared: it takes 0.05 s
SPLIT = 1e-7  # seconds per customer and region that splitting and merging take at most


@dataclass
class CpuState:
    """Chains in the native core."""

    problems: tuple[Problem, ...]
    problem_of: Ints
    chains: Any  #: `_core.Chains`
    per_unit: Floats  #: (chains,) ticks per unit
    instances: list[Any]  #: `_core.Instance` of each problem
    numbers: npt.NDArray[np.int64]  #: (chains,) by which they draw random numbers
    made: int = 0  #: reconstructions by the last `improve`
    _parts: dict[int, Any] = field(default_factory=dict, repr=False)  #: `_core.Chains` by number of regions

    def parts(self, regions: int) -> Any:
        """Return chains for the parts of all solutions."""
        if regions not in self._parts:
            numbers = shared.numbers_of_parts(self.numbers, regions)
            problem_of = np.repeat(self.problem_of, regions)
            self._parts[regions] = _core.Chains(self.instances, problem_of, self.chains.isa[4:], numbers)
        return self._parts[regions]

    def first_chains(self) -> list[int]:
        """Return the first chain of each problem."""
        return [int(np.argmax(self.problem_of == i)) for i in range(len(self.problems))]

    def stats(self) -> ChainStats:
        current, best = self.chains.costs() / self.per_unit, self.chains.costs(best=True) / self.per_unit
        missing, now = self.chains.missing(best=True), self.chains.missing(best=False)
        return ChainStats(current, best, missing, now, self.made)

    def snapshot(self) -> Callable[[], ChainStats]:
        stats = self.stats()
        return lambda: stats


@dataclass
class CpuEngine:
    """An engine on one or more CPU cores. Results do not depend on the number of threads."""

    threads: int = 1
    isa: str = "auto"  #: instruction set of the core: auto, base, avx2
    neighbours: int = shared.NEIGHBOURS  #: length of neighbour lists
    name: str = "cpu"
    runs_ahead: bool = False
    _pace: float = field(default=0.0, repr=False)  #: seconds per step of all chains, measured during the search

    def start(
        self, problems: Sequence[Problem], problem_of: npt.ArrayLike, init: Init = None, *,
        first: int | Ints = 0, precompile: Sequence[Recipe] = (),
    ) -> CpuState:  # fmt: skip
        problem_of = np.ascontiguousarray(problem_of, np.int32)
        ticks = [ticks_of(problem) for problem in problems]
        numbers = shared.drawn_as(first, np.arange(len(problem_of))).astype(np.int64)
        instances = [shared.make_instance(t, self.neighbours) for t in ticks]
        for problem, of_problem, instance in zip(problems, ticks, instances, strict=True):
            if problem.customers <= TABULATED:
                instance.tabulate()
            if of_problem.points is None and problem.customers <= COMPARED:
                instance.find_shortcuts(self.isa)
        chains = _core.Chains(instances, problem_of, self.isa, numbers)
        tours = shared.first_tours(ticks, init)
        for chain, index in enumerate(problem_of):
            chains.set_tour(chain, tours[index])
        chains.reserve(min(self.threads, len(problem_of)))
        self._pace = 0.0
        per_unit = np.array([ticks[index].per_unit for index in problem_of])
        state = CpuState(tuple(problems), problem_of, chains, per_unit, instances, numbers)
        for recipe in precompile:
            if recipe.regions > 1:
                state.parts(recipe.regions)  # allocating them takes time, of which a search may have little
        return state

    def spawn(self, state: CpuState, count: int) -> CpuState:
        """Return `count` other chains for each problem, with its first solution.

        They draw random numbers as chains 0, 1, … of the problem.
        """
        problem_of = np.repeat(np.arange(len(state.problems), dtype=np.int32), count)
        numbers = np.tile(np.arange(count, dtype=np.int64), len(state.problems))
        chains = _core.Chains(state.instances, problem_of, self.isa, numbers)
        chains.reserve(min(self.threads, len(problem_of)))
        first = state.first_chains()
        for chain, problem in enumerate(problem_of):
            chains.set_tour(chain, state.chains.tour(first[problem]))
        per_unit = state.per_unit[first][problem_of]
        return CpuState(state.problems, problem_of, chains, per_unit, state.instances, numbers)

    def tour(self, state: CpuState, chain: int, *, best: bool = True) -> Ints:
        """Return the best (or the current) solution of a chain: its routes one after another, each ended by a 0."""
        return np.asarray(state.chains.tour(chain, best=best))

    def place(self, state: CpuState, chain: int, tour: Ints) -> bool:
        """Make a tour the current and the best solution of a chain.

        Return whether its routes are in time and within the limits on routes. Loads must be within the capacity.
        """
        state.chains.set_tour(chain, tour)
        return bool(state.chains.feasible(chain))

    def limit_vehicles(self, state: CpuState, vehicles: int) -> None:
        """Let the steps of all chains, from now on, use no more routes than these."""
        state.chains.limit_vehicles(vehicles)

    def construct(self, state: CpuState, deadline: float | None) -> bool:
        state.chains.construct(self.threads, None if deadline is None else max(0.0, deadline - time.perf_counter()))
        return True

    def view(self, state: CpuState, *, on_device: bool = False) -> View:
        return View(*state.chains.view())

    def improve(
        self, state: CpuState, recipe: Recipe, removed: Removals, temperature: Floats, seed: int, iteration: int, *,
        deadline: float | None = None,
    ) -> None:  # fmt: skip
        shared.check_removal(recipe, removed, self.neighbours)
        native, steps, begin = shared.native_recipe(recipe), temperature.shape[1], 0
        state.made, regions = 0, recipe.regions
        customers = sum(state.problems[index].customers for index in state.problem_of)
        if deadline is not None and deadline - time.perf_counter() < SPLIT * customers * regions:
            if callable(removed):
                return
            regions = 1  # too late to split: whole solutions are improved for the rest of the time
        with _split(state, regions, seed, iteration, self.threads) as chains:
            if callable(removed):
                own = chains.customers()
                removed = np.asarray(removed(Regions(own[:, 0], own[:, 1:])))
                steps = min(steps, removed.shape[1])
            given = shared.given_removals(state, recipe, removed, steps)
            in_ticks = np.repeat(temperature[:, :steps] * state.per_unit[:, None], regions, axis=0)
            while begin < steps:  # in slices, so that Ctrl-C is noticed
                end = min(steps, begin + (max(1, int(SLICE / self._pace)) if self._pace > 0 else 1))
                now = time.perf_counter()
                if deadline is not None and now >= deadline:
                    break
                seconds = None if deadline is None else deadline - now
                span = native, given, in_ticks, begin, end, seed, iteration, self.threads, seconds
                state.made += chains.improve(*span)
                self._pace = (time.perf_counter() - now) / (end - begin)
                begin = end

    def serve_required(
        self, state: CpuState, recipe: Recipe, temperature: Floats, unit: int, steps: range, seed: int,
        deadline: float | None = None,
    ) -> int:  # fmt: skip
        """Make these steps, or fewer, until the current solutions serve all required customers, of limited fleets.

        Return how many customers are left, of all chains. A step of a chain, at its temperature, (chains,) float64, is
        judged by its length and by what stays unserved: each required customer costs `unit` ticks times the steps so
        far that have left it so. Costs mean nothing afterwards.
        """
        native, in_ticks = shared.native_recipe(recipe), temperature * state.per_unit
        seconds = None if deadline is None else max(0.0, deadline - time.perf_counter())
        state.chains.serve_required(native, in_ticks, unit, steps.start, steps.stop, seed, self.threads, seconds)
        return int(state.chains.missing().sum())

    def evaluate(
        self, state: CpuState, recipe: Recipe, removed: Ints | None, rollouts: int, seed: int, iteration: int,
        keep_best: bool, *, always: bool = False,
    ) -> Floats:  # fmt: skip
        shared.check_removal(recipe, removed, self.neighbours)
        given = shared.given_removals(state, recipe, removed, rollouts)
        native = shared.native_recipe(recipe)
        deltas = state.chains.evaluate(native, given, rollouts, seed, iteration, keep_best, always, self.threads)
        return np.asarray(deltas / state.per_unit[:, None])

    def exchange(self, state: CpuState, reach: Floats, seed: int, iteration: int, *, groups: int = 1) -> None:
        group_of = shared.groups_of(state.problem_of, groups)
        state.chains.exchange(shared.reach_in_ticks(state, reach, state.per_unit), group_of, seed, iteration)

    def set_prices(self, state: CpuState, prices: Floats) -> None:
        state.chains.set_prices(shared.prices_in_ticks(state, prices, state.per_unit))

    def tours(self, state: CpuState, *, best: bool = True) -> list[Ints]:
        return [self.tour(state, chain, best=best) for chain in range(len(state.problem_of))]

    def restart(self, state: CpuState, tours: Sequence[Ints | None]) -> None:
        for chain, tour in enumerate(tours):
            if tour is not None:
                state.chains.set_tour(chain, tour)

    def export(self, state: CpuState, chain: int, *, best: bool = True) -> Solution:
        return shared.solution_of(state.chains.tour(chain, best=best))


@contextmanager
def _split(state: CpuState, regions: int, seed: int, iteration: int, threads: int) -> Iterator[Any]:
    """Give the chains to improve: those of the state, or, with regions, parts of their solutions, merged in the end."""
    if regions == 1:
        yield state.chains
        return
    parts = state.parts(regions)
    state.chains.split(parts, seed, iteration, threads)
    try:
        yield parts
    finally:  # also after Ctrl-C: no solution is left in parts
        state.chains.merge(parts, threads)
