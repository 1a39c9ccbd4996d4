"""The engine on the CPU: chains over threads, in the native core."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp import _core
from ndsvrp.engine.base import Ints, Recipe, View
from ndsvrp.engine.ticks import Ticks
from ndsvrp.errors import EngineError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

NEIGHBOURS = 256  # length of neighbour lists: what related and string removal can reach
SLICE = 0.02  # seconds between two looks at the clock
RULES = {None: 0, "string": 1, "related": 2, "random": 3}


@dataclass
class CpuState:
    """Chains in the native core."""

    problems: tuple[Problem, ...]
    which: Ints
    chains: Any
    per_unit: npt.NDArray[np.float64]  #: (chains,) ticks per unit

    def costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the current solutions."""
        return np.asarray(self.chains.costs() / self.per_unit)

    def best_costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the best solution each chain has seen."""
        return np.asarray(self.chains.costs(best=True) / self.per_unit)

    def missing(self) -> Ints:
        """(chains,) required customers that those best solutions leave out."""
        return np.asarray(self.chains.missing(best=True))


def make_instance(problem: Problem) -> Any:
    """The native form of a problem."""
    ticks = Ticks(problem)
    points, exact, whole = ticks.points, ticks.exact_points, ticks.whole
    weights, ranks = ticks.sort_ranks()
    windows = problem.has_windows
    return _core.make_instance(
        capacity=ticks.capacity,
        vehicles=ticks.vehicles,
        demand=ticks.demand,
        ready=ticks.ready if windows else None,
        due=ticks.due if windows else None,
        service=ticks.service if windows else None,
        prize=ticks.prize,
        x=None if points is None else np.ascontiguousarray(points[:, 0], np.float32),
        y=None if points is None else np.ascontiguousarray(points[:, 1], np.float32),
        scale=1.0,
        box_margin=ticks.box_margin,
        xd=None if exact is None else np.ascontiguousarray(exact[:, 0]),
        yd=None if exact is None else np.ascontiguousarray(exact[:, 1]),
        whole_scale=whole[0] if whole else 0.0,
        whole_shift=whole[1] if whole else 0.0,
        length=ticks.length_matrix,
        time=ticks.time_matrix,
        near_count=NEIGHBOURS,
        rank=ranks,
        sort_weight=weights,
    )


@dataclass
class CpuEngine:
    """Five verbs on one or more CPU cores. Results do not depend on the number of threads."""

    threads: int = 1
    isa: str = "auto"  #: instruction set of the core: auto, base, avx2
    name: str = "cpu"
    _pace: float = field(default=0.0, repr=False)  #: seconds per step of all chains, measured as we go

    def start(
        self,
        problems: Sequence[Problem],
        which: npt.ArrayLike,
        seed: int,
        *,
        rounds: int = 100,
        init: Solution | None = None,
        interrupt: Callable[[], bool] | None = None,
    ) -> CpuState:
        """One route per customer (or, with a limited fleet, as few as greedy insertion needs), then `rounds` rounds
        that remove a quarter at random and reinsert it into all routes, accepting improvements."""
        which = np.ascontiguousarray(which, np.int32)
        chains = _core.Chains([make_instance(problem) for problem in problems], which, self.isa)
        per_unit = np.array([Ticks(problems[i]).per_unit for i in which])
        state = CpuState(tuple(problems), which, chains, per_unit)
        for chain, index in enumerate(which):
            problem = problems[index]
            if init is not None:
                chains.set_tour(chain, tour_of(init))
            elif problem.vehicles is None:
                served = np.flatnonzero(Ticks(problem).demand[1:] <= Ticks(problem).capacity) + 1
                chains.set_tour(chain, tour_of(Solution([c] for c in served)))
        if init is not None:
            return state
        largest = max(problem.customers for problem in problems)
        if any(problem.vehicles is not None for problem in problems):
            everyone = Recipe(rule="random", removals=largest, all_routes=True)
            self.rebuild(state, everyone, None, np.zeros((len(which), 1)), seed, START_ITERATION, interrupt=interrupt)
        if rounds:
            quarter = Recipe(rule="random", removals=max(1, largest // 4), all_routes=True)
            cold = np.zeros((len(which), rounds))
            self.rebuild(state, quarter, None, cold, seed, START_ITERATION + 1, interrupt=interrupt)
        self._pace = 0.0
        return state

    def view(self, state: CpuState) -> View:
        """The current solutions, for a policy."""
        return View(*state.chains.view())

    def rebuild(
        self,
        state: CpuState,
        recipe: Recipe,
        removed: Ints | None,
        temperature: npt.NDArray[np.float64],
        seed: int,
        iteration: int,
        *,
        interrupt: Callable[[], bool] | None = None,
    ) -> int:
        """K reconstructions in sequence per chain, accepted by annealing; returns how many were made per chain."""
        given = self._given(state, recipe, removed, temperature.shape[1])
        heat = np.ascontiguousarray(temperature * state.per_unit[:, None])
        native, steps, done = _native(recipe), temperature.shape[1], 0
        while done < steps:
            count = max(1, int(SLICE / self._pace)) if self._pace > 0 else 1
            stop = min(steps, done + count)
            began = time.perf_counter()
            state.chains.improve(native, given, heat, done, stop, seed, iteration, self.threads)
            self._pace = (time.perf_counter() - began) / (stop - done)
            done = stop
            if interrupt is not None and interrupt():
                break
        return done

    def evaluate(
        self,
        state: CpuState,
        recipe: Recipe,
        removed: Ints | None,
        rollouts: int,
        seed: int,
        iteration: int,
        keep_best: bool,
    ) -> npt.NDArray[np.float64]:
        """(chains, K) change of cost by each of K reconstructions of the same solution; the best may be kept."""
        given = self._given(state, recipe, removed, rollouts)
        deltas = state.chains.evaluate(_native(recipe), given, rollouts, seed, iteration, keep_best, self.threads)
        return np.asarray(deltas / state.per_unit[:, None])

    def replace(self, state: CpuState, source: npt.ArrayLike, target: npt.ArrayLike) -> None:
        """Chain target[i] goes on from the current solution of chain source[i], of the same problem."""
        source, target = np.ascontiguousarray(source, np.int32), np.ascontiguousarray(target, np.int32)
        if np.any(state.which[source] != state.which[target]):
            raise EngineError("solutions can only be exchanged between chains of the same problem")
        state.chains.replace(source, target)

    def export(self, state: CpuState, chain: int, *, best: bool = True) -> Solution:
        """The best (or the current) solution of a chain as routes."""
        tour = state.chains.tour(chain, best=best)
        ends = np.flatnonzero(tour == 0)
        return Solution(route[:-1] for route in np.split(tour, ends + 1)[:-1])

    def _given(self, state: CpuState, recipe: Recipe, removed: Ints | None, rollouts: int) -> Ints | None:
        if (removed is None) == (recipe.rule is None):
            raise EngineError("a recipe needs either a rule or the customers to remove")
        if removed is None:
            return None
        removed = np.ascontiguousarray(removed, np.int32)
        shape = (len(state.which), rollouts, recipe.removals)
        if removed.shape != shape:
            raise EngineError(f"customers to remove have shape {removed.shape}, expected {shape}")
        sizes = np.array([state.problems[i].customers for i in state.which])
        ordered = np.sort(removed, axis=-1)
        if np.any(ordered[..., 0] < 1) or np.any(ordered[..., -1] > sizes[:, None]):
            raise EngineError("customers to remove must be between 1 and N")
        if np.any(ordered[..., 1:] == ordered[..., :-1]):
            raise EngineError("a customer is removed twice in one rollout")
        return removed


START_ITERATION = 1 << 62  # keys of the start solutions: no iteration of a search comes near


def tour_of(solution: Solution) -> Ints:
    """Routes one after another, each ended by a 0."""
    return np.array([c for route in solution.routes for c in (*route, 0)], np.int32)


def _native(recipe: Recipe) -> Any:
    return _core.Recipe(
        rule=RULES[recipe.rule],
        removals=recipe.removals,
        string_average=recipe.string_average,
        string_longest=recipe.string_longest,
        string_split=recipe.string_split,
        string_depth=recipe.string_depth,
        orders=recipe.orders,
        sorted=recipe.sorted_orders,
        all_routes=recipe.all_routes,
        blink=recipe.blink,
        open_route=recipe.open_route,
    )
