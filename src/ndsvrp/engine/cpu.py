"""The engine on the CPU: chains over threads, in the native core."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import ndsvrp._core as _core
from ndsvrp.engine.base import Ints, Numbers, Recipe, State, View
from ndsvrp.engine.ticks import Ticks
from ndsvrp.errors import EngineError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

NEIGHBOURS = 256  # length of neighbour lists, if not asked otherwise: what related and string removal can reach
SLICE = 0.02  # seconds between two looks at the clock
RULES = {None: 0, "string": 1, "related": 2, "random": 3}


@dataclass
class CpuState:
    """Chains in the native core."""

    problems: tuple[Problem, ...]
    which: Ints
    chains: Any
    per_unit: npt.NDArray[np.float64]  #: (chains,) ticks per unit
    made: int = 0  #: reconstructions by the last `rebuild`

    def costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the current solutions."""
        return np.asarray(self.chains.costs() / self.per_unit)

    def best_costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the best solution each chain has seen."""
        return np.asarray(self.chains.costs(best=True) / self.per_unit)

    def missing(self) -> Ints:
        """(chains,) required customers that those best solutions leave out."""
        return np.asarray(self.chains.missing(best=True))

    def numbers(self) -> Numbers:
        """All of these."""
        return Numbers(self.costs(), self.best_costs(), self.missing(), self.made)

    def snapshot(self) -> Callable[[], Numbers]:
        """The numbers as they are now."""
        numbers = self.numbers()
        return lambda: numbers


def instance_fields(ticks: Ticks) -> dict[str, Any]:
    """Return a problem as the core takes it, without the neighbour lists, which the core makes."""
    points, exact, whole = ticks.points, ticks.exact_points, ticks.whole
    weights, ranks = ticks.sort_ranks()
    return {
        **ticks.fields,
        "x": None if points is None else np.ascontiguousarray(points[:, 0], np.float32),
        "y": None if points is None else np.ascontiguousarray(points[:, 1], np.float32),
        "scale": 1.0,
        "box_margin": ticks.box_margin,
        "xd": None if exact is None else np.ascontiguousarray(exact[:, 0]),
        "yd": None if exact is None else np.ascontiguousarray(exact[:, 1]),
        "whole_scale": whole[0] if whole else 0.0,
        "whole_shift": whole[1] if whole else 0.0,
        "length": ticks.length_matrix,
        "time": ticks.time_matrix,
        "rank": ranks,
        "sort_weight": weights,
    }


def make_instance(ticks: Ticks, neighbours: int = NEIGHBOURS) -> Any:
    """The native form of a problem."""
    return _core.make_instance(**instance_fields(ticks), near_count=neighbours)


@dataclass
class CpuEngine:
    """Five verbs on one or more CPU cores. Results do not depend on the number of threads."""

    threads: int = 1
    isa: str = "auto"  #: instruction set of the core: auto, base, avx2
    neighbours: int = NEIGHBOURS  #: length of neighbour lists
    name: str = "cpu"
    runs_ahead: bool = False
    _pace: float = field(default=0.0, repr=False)  #: seconds per step of all chains, measured as we go

    def start(
        self,
        problems: Sequence[Problem],
        which: npt.ArrayLike,
        init: Solution | None = None,
        *,
        first: int | Ints = 0,
        soon: Recipe | None = None,
    ) -> CpuState:
        """Chains with a first solution: the given one, one route per customer, or (limited fleet) nobody served."""
        which = np.ascontiguousarray(which, np.int32)
        ticks = [Ticks(problem) for problem in problems]
        numbers = drawn_as(first, np.arange(len(which))).astype(np.int64)
        chains = _core.Chains([make_instance(t, self.neighbours) for t in ticks], which, self.isa, numbers)
        tours = [first_tour(t) if init is None else tour_of(init) for t in ticks]
        for chain, index in enumerate(which):
            chains.set_tour(chain, tours[index])
        self._pace = 0.0
        return CpuState(tuple(problems), which, chains, np.array([ticks[index].per_unit for index in which]))

    def view(self, state: CpuState) -> View:
        """The current solutions, for a policy."""
        return View(*state.chains.view())

    def device_view(self, state: CpuState) -> View:
        """The same."""
        return self.view(state)

    def rebuild(
        self,
        state: CpuState,
        recipe: Recipe,
        removed: Ints | None,
        temperature: npt.NDArray[np.float64],
        seed: int,
        iteration: int,
        *,
        deadline: float | None = None,
    ) -> None:
        """K reconstructions in sequence per chain, accepted by annealing."""
        given = given_removals(state, recipe, removed, temperature.shape[1], self.neighbours)
        heat = np.ascontiguousarray(temperature * state.per_unit[:, None])
        native, steps, begin = native_recipe(recipe), temperature.shape[1], 0
        state.made = 0
        while begin < steps:  # in slices, so that Ctrl-C gets a word in
            end = min(steps, begin + (max(1, int(SLICE / self._pace)) if self._pace > 0 else 1))
            now = time.perf_counter()
            if deadline is not None and now >= deadline:
                break
            seconds = None if deadline is None else deadline - now
            state.made += state.chains.improve(native, given, heat, begin, end, seed, iteration, self.threads, seconds)
            self._pace = (time.perf_counter() - now) / (end - begin)
            begin = end

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
        given = given_removals(state, recipe, removed, rollouts, self.neighbours)
        deltas = state.chains.evaluate(native_recipe(recipe), given, rollouts, seed, iteration, keep_best, self.threads)
        return np.asarray(deltas / state.per_unit[:, None])

    def exchange(self, state: CpuState, reach: npt.NDArray[np.float64], seed: int, iteration: int) -> None:
        """Chains too far behind the others of their problem go on from one that is not."""
        state.chains.exchange(reach_in_ticks(state, reach, state.per_unit), seed, iteration)

    def export(self, state: CpuState, chain: int, *, best: bool = True) -> Solution:
        """The best (or the current) solution of a chain as routes."""
        return solution_of(state.chains.tour(chain, best=best))


def reach_in_ticks(
    state: State, reach: npt.NDArray[np.float64], per_unit: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """(chains,) of what `Engine.exchange` is given, checked."""
    if np.shape(reach) != (len(state.problems),) or not np.all(reach >= 0):
        raise EngineError(f"a reach of at least 0 for each of {len(state.problems)} problems, got {reach}")
    return np.ascontiguousarray(reach[state.which] * per_unit, np.float64)


def drawn_as(first: int | Ints, chains: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers by which these chains of a batch draw random numbers; see `Engine.start`."""
    return chains + first if np.ndim(first) == 0 else np.asarray(first)[chains]


def given_removals(state: State, recipe: Recipe, removed: Ints | None, rollouts: int, neighbours: int) -> Ints | None:
    """The customers to remove, checked, or None where a rule says it."""
    check_removal(recipe, removed, neighbours)
    if removed is None:
        return None
    removed = np.ascontiguousarray(removed, np.int32)
    check_shape(state, recipe, removed.shape, rollouts)
    sizes = np.array([state.problems[i].customers for i in state.which])
    ordered = np.sort(removed, axis=-1)
    if np.any(ordered[..., 0] < 1) or np.any(ordered[..., -1] > sizes[:, None]):
        raise EngineError("customers to remove must be between 1 and N")
    if np.any(ordered[..., 1:] == ordered[..., :-1]):
        raise EngineError("a customer is removed twice in one rollout")
    return removed


def check_removal(recipe: Recipe, removed: object | None, neighbours: int) -> None:
    """Either a rule or a list, and no more neighbours than there are lists of."""
    if (removed is None) == (recipe.rule is None):
        raise EngineError("a recipe needs either a rule or the customers to remove")
    if recipe.rule == "related" and recipe.removals > neighbours + 1:
        raise EngineError(f"related removal reaches {neighbours + 1} customers, not {recipe.removals}")


def check_shape(state: State, recipe: Recipe, shape: tuple[int, ...], rollouts: int) -> None:
    """(chains, K, M)."""
    expected = (len(state.which), rollouts, recipe.removals)
    if tuple(shape) != expected:
        raise EngineError(f"customers to remove have shape {tuple(shape)}, expected {expected}")


def first_tour(ticks: Ticks) -> Ints:
    """One route per customer that can be served, or, where the fleet is limited, nobody served."""
    if ticks.problem.vehicles is not None:
        return np.zeros(0, np.int32)
    served = np.flatnonzero(ticks.fields["demand"][1:] <= ticks.fields["capacity"]) + 1
    return np.stack([served, np.zeros_like(served)], axis=1).ravel().astype(np.int32)


def tour_of(solution: Solution) -> Ints:
    """Routes one after another, each ended by a 0."""
    return np.array([c for route in solution.routes for c in (*route, 0)], np.int32)


def solution_of(tour: Ints) -> Solution:
    """What `tour_of` was made of."""
    ends = np.flatnonzero(tour == 0)
    return Solution(route[:-1] for route in np.split(tour, ends + 1)[:-1])


def native_recipe(recipe: Recipe) -> Any:
    """The recipe as the core takes it."""
    return _core.Recipe(**{**vars(recipe), "rule": RULES[recipe.rule]})
