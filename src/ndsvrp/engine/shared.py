"""What the CPU engine and the GPU engine share: native forms of problems, recipes and solutions, and checks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

import ndsvrp._core as _core
from ndsvrp.engine.base import Floats, Init, Ints, Recipe, State
from ndsvrp.engine.ticks import LARGEST_COST, Ticks
from ndsvrp.errors import EngineError
from ndsvrp.solution import Solution

NEIGHBOURS = 256  # default length of neighbour lists, which limits related and string removal
RULES = {None: 0, "string": 1, "related": 2, "random": 3}  # enum RuinRule of types.hpp


def instance_fields(ticks: Ticks) -> dict[str, Any]:
    """Return a problem as the core takes it, without the neighbour lists, which the core makes."""
    exact, whole = ticks.exact_points, ticks.whole
    (x, y), margin = coordinates_of(ticks)
    weights, ranks = ticks.sort_ranks()
    return {
        **ticks.fields,
        "x": np.ascontiguousarray(x, np.float32),
        "y": np.ascontiguousarray(y, np.float32),
        "scale": 1.0,
        "box_margin": margin,
        "xd": None if exact is None else np.ascontiguousarray(exact[:, 0]),
        "yd": None if exact is None else np.ascontiguousarray(exact[:, 1]),
        "whole_scale": whole[0] if whole else 0.0,
        "whole_shift": whole[1] if whole else 0.0,
        "length": ticks.length_matrix,
        "time": ticks.time_matrix,
        "missing": ticks.missing,
        "alone": ticks.alone,
        "rank": ranks,
        "sort_weight": weights,
    }


def coordinates_of(ticks: Ticks) -> tuple[npt.NDArray[Any], int]:
    """Return (2, N+1) coordinates, and how much more than a length two nodes may differ by in ticks."""
    if ticks.points is not None:
        return ticks.points.T, ticks.box_margin
    points, margin = _core.landmark_coordinates(ticks.length_matrix)
    return points, margin


def make_instance(ticks: Ticks, neighbours: int = NEIGHBOURS) -> Any:
    """Return the native form of a problem."""
    return _core.make_instance(**instance_fields(ticks), near_count=neighbours)


def reach_in_ticks(state: State, reach: Floats, per_unit: Floats) -> Floats:
    """Check the argument of `Engine.exchange` and return it for each chain, (chains,)."""
    if np.shape(reach) != (len(state.problems),) or not np.all(reach >= 0):
        raise EngineError(f"a reach of at least 0 for each of {len(state.problems)} problems, got {reach}")
    return np.ascontiguousarray(reach[state.problem_of] * per_unit, np.float64)


def prices_in_ticks(state: State, prices: Floats, per_unit: Floats) -> npt.NDArray[np.int64]:
    """Check the argument of `Engine.set_prices` and return it for each chain, (chains,)."""
    if np.shape(prices) != (len(state.problems),) or not np.all(prices > 0):
        raise EngineError(f"a price above 0 for each of {len(state.problems)} problems, got {prices}")
    return np.minimum(prices[state.problem_of] * per_unit, LARGEST_COST).astype(np.int64)


def groups_of(problem_of: Ints, groups: int) -> Ints:
    """Return (chains,) the group of each chain: the chains of a problem, in order, make `groups` groups of one size."""
    if groups == 1:
        return problem_of
    counts, order = np.bincount(problem_of), np.argsort(problem_of, kind="stable")
    number = np.empty_like(problem_of)
    number[order] = np.concatenate([np.arange(count) for count in counts])
    if groups < 1 or np.any(counts % groups):
        raise EngineError(f"{groups} groups do not divide {sorted(set(counts.tolist()))} chains")
    return np.ascontiguousarray(problem_of * groups + number * groups // counts[problem_of], np.int32)


def drawn_as(first: int | Ints, chains: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the numbers by which these chains of a batch draw random numbers; see `Engine.start`."""
    return chains + first if np.ndim(first) == 0 else np.asarray(first)[chains]


def numbers_of_parts(numbers: npt.NDArray[Any], regions: int) -> npt.NDArray[Any]:
    """Return the numbers by which the parts of chains draw random numbers, from those of the chains."""
    return (numbers[:, None] * regions + np.arange(regions)).ravel().astype(numbers.dtype)


def given_removals(state: State, recipe: Recipe, removed: Ints | None, rollouts: int) -> Ints | None:
    """Check the customers to remove and return them; None if the recipe has a rule."""
    if removed is None:
        return None
    removed = np.asarray(removed)
    if removed.dtype.kind not in "iu":
        raise EngineError(f"customers to remove must be whole numbers, got {removed.dtype}")
    check_shape(state, recipe, removed.shape, rollouts)
    sizes = np.repeat([state.problems[i].customers for i in state.problem_of], recipe.regions)
    ordered, listed = np.sort(removed, axis=-1), removed != 0
    misplaced = not np.all(listed[..., 0]) or np.any(listed[..., 1:] > listed[..., :-1])
    if misplaced or np.any(ordered[..., 0] < 0) or np.any(ordered[..., -1] > sizes[:, None]):
        raise EngineError("customers to remove must be between 1 and N")
    if np.any((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] > 0)):
        raise EngineError("a customer is removed twice in one rollout")
    return np.ascontiguousarray(removed, np.int32)


def check_removal(recipe: Recipe, removed: object | None, neighbours: int) -> None:
    """Check that the recipe has either a rule or customers, and that neighbour lists are long enough."""
    if (removed is None) == (recipe.rule is None):
        raise EngineError("a recipe needs either a rule or the customers to remove")
    if recipe.rule is None and callable(removed) != (recipe.regions > 1):
        raise EngineError("customers to remove are a function of the parts in regions, else an array")
    if recipe.rule == "related" and recipe.removals > neighbours + 1:
        raise EngineError(f"related removal reaches {neighbours + 1} customers, not {recipe.removals}")


def check_shape(state: State, recipe: Recipe, shape: tuple[int, ...], rollouts: int) -> None:
    """Check that the customers to remove are (chains, K, M), or (parts, K, M) in regions."""
    expected = (len(state.problem_of) * recipe.regions, rollouts, recipe.removals)
    if tuple(shape) != expected:
        raise EngineError(f"customers to remove have shape {tuple(shape)}, expected {expected}")


def first_tour(ticks: Ticks) -> Ints:
    """Return one route per customer that can be served, or, if the fleet is limited, no route."""
    if ticks.problem.vehicles is not None:
        return np.zeros(0, np.int32)
    served = np.flatnonzero(~(ticks.unreachable | ticks.excluded)[1:]) + 1
    return np.stack([served, np.zeros_like(served)], axis=1).ravel().astype(np.int32)


def first_tours(ticks: Sequence[Ticks], init: Init) -> list[Ints]:
    """Return the tour that the chains of each problem start from."""
    if init is None:
        return [first_tour(t) for t in ticks]
    return [tour_of(each) for each in ([init] * len(ticks) if isinstance(init, Solution) else init)]


def tour_of(solution: Solution) -> Ints:
    """Return the routes one after another, each ended by a 0."""
    return np.array([c for route in solution.routes for c in (*route, 0)], np.int32)


def solution_of(tour: Ints) -> Solution:
    """Return the solution of a tour."""
    stops, ends = tour.tolist(), np.flatnonzero(tour == 0).tolist()
    return Solution(stops[begin + 1 : end] for begin, end in pairwise([-1, *ends]))


def native_recipe(recipe: Recipe) -> Any:
    """Return the native form of a recipe."""
    return _core.Recipe(**{**vars(recipe), "rule": RULES[recipe.rule]})
