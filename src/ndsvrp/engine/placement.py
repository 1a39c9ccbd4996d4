"""How much memory a block of the GPU engine needs, and which part of it is in shared memory.

The sizes are those of native/include/ndsvrp/memory.hpp. Drafts come first into shared memory, then the table of gaps
where there is one, then the part of the instance that insertion reads, then the solution.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

import ndsvrp._core as _core
from ndsvrp.engine.base import Ints, Recipe

BEYOND = 32  # kBeyond of memory.hpp
SLACK = 8  # stops that a copied route has beside its customers
COLUMNS = 128  # a table of gaps has a multiple of this
ENOUGH_COLUMNS = 256  # with fewer, shared memory is better used for the table than for the solution
LARGEST_PART = 2  # customers of a part that has numbers of its own, at least, times those of a typical one
SPECULATED = 8  # steps of a chain that are made at once, a warp each
SPECULATION_BYTES = 512  # kSpeculationBytes of speculate.hpp
LANES = 32  # of a warp
EVALUATE_THREADS = 960  # per multiprocessor when rollouts are evaluated: registers per thread follow from it

Distance = Literal["FloatPoints", "WholePoints", "Matrix"]
Placement = Literal["auto", "drafts", "global"]


class Kind(NamedTuple):
    """What kernels are compiled for."""

    rules: tuple[str, ...]  #: structs of rules.hpp
    distance: Distance


class Sizes(NamedTuple):
    """The fields of struct Sizes of types.hpp, in their order."""

    customers: int
    removed: int
    routes: int
    pool: int
    stops: int
    locations: int


@dataclass(frozen=True)
class Shape:
    """Sizes of the problems of a batch."""

    kind: Kind
    sizes: tuple[int, ...]  #: customers of each problem
    longest: int  #: customers of the longest possible route
    typical: int  #: customers of a typical route

    @property
    def customers(self) -> int:
        """Return the customers of the largest problem."""
        return max(self.sizes)


@dataclass(frozen=True)
class Layout:
    """The workspace of a block: sizes, bytes, and which parts are in shared memory."""

    work: Sizes
    teams: int
    shared: int  #: bytes of shared memory
    workspace: int  #: bytes of global memory per block, if drafts are there
    near_drafts: bool
    near_instance: bool
    near_solution: bool
    columns: int = 0  #: of the table of gaps; 0: there is none
    speculates: bool = False  #: a warp per step, not per insertion order
    links: bool = False  #: routes are linked (linked.cu)

    @property
    def threads(self) -> int:
        """Return the threads of a block: a warp per team."""
        return 32 * self.teams


def longest_route(demand: Ints, capacity: int) -> int:
    """Return how many customers a vehicle can carry at most."""
    carried = np.cumsum(np.sort(demand[1:].astype(np.int64)))
    return max(1, int(np.searchsorted(carried, capacity, side="right")))


def typical_route(demand: Ints, capacity: int) -> int:
    """Return the customers of a route if all routes are full."""
    fitting = demand[1:][demand[1:] <= capacity].astype(np.int64)
    routes = max(1, -(-int(fitting.sum()) // max(1, capacity)))
    return max(1, -(-len(fitting) // routes))


def home_sizes(shape: Shape) -> Sizes:
    """Return the sizes of chains in global memory, enough for any step."""
    n = shape.customers
    return Sizes(n, n + 1, 2 * (n + 1), _core.pool_for(n), BEYOND, 0)


def removed_at_most(shape: Shape, recipe: Recipe) -> int:
    """Return how many customers a step removes at most, or how many random removal needs to draw from."""

    retries: int = _core.limits(shape.kind.rules)[1]

    def of(n: int) -> int:
        if recipe.rule == "string":
            return min(n, removed_by_strings(recipe, shape.kind))
        if recipe.rule == "random" and (recipe.regions > 1 or 4 * min(recipe.removals, n) > n):
            return min(n, 4 * recipe.removals + retries)
        return min(n, recipe.removals + retries)

    return max(of(n) for n in shape.sizes)


def stops_at_most(shape: Shape, removed: int) -> int:
    """Return the stops of a draft in the worst case: of routes that are touched, copied or opened, and of those that
    move because they outgrow their room (by six customers or more each time)."""
    segments, n = 2 * removed, shape.customers
    moves = removed // 6 * (3 * shape.longest // 2 + 11)
    most = 24 * n + 224  # what the CPU engine gives it
    return min(most, min(n, segments * shape.longest) + SLACK * segments + removed + moves) + BEYOND


def stops_typical(shape: Shape, recipe: Recipe, removed: int) -> int:
    """Return a number of stops that is enough for nearly all drafts."""
    routes = min(recipe.removals if recipe.rule != "string" else removed // 4, -(-shape.customers // shape.typical))
    copied = (2 if recipe.all_routes else 1) * routes * (shape.typical + SLACK)
    return min(stops_at_most(shape, removed), copied + 2 * shape.typical + 4 * (1 + SLACK) + BEYOND)


def work_sizes(shape: Shape, recipe: Recipe, removed: int, stops: int) -> Sizes:
    """Return the sizes of the workspace of a block."""
    n = shape.customers
    locations = n + 1 if recipe.all_routes and recipe.insert_near > 0 else 0
    return Sizes(n, removed, n + removed + 1, _core.pool_for(n), (stops + 3) // 4 * 4, locations)


@lru_cache(64)  # every launch asks
def layout_to_improve(shape: Shape, recipe: Recipe, limit: int, placement: Placement = "auto") -> Layout:
    """Return the layout of a block that makes steps: for the worst case, with a table of gaps if it can use one."""
    removed = removed_at_most(shape, recipe)
    work = work_sizes(shape, recipe, removed, stops_at_most(shape, removed))
    columns = columns_at_most(shape, recipe, removed)
    layouts = [_layout(shape, recipe, work, c) for c in range(columns, -1, -COLUMNS)]  # the largest table first
    fitting = [layout for layout in layouts if layout.workspace <= limit]
    if placement == "global" or not fitting:
        return layouts[0]
    parts = _bytes(shape, work, 1, 0)
    rest = parts["inputs"] + parts["solution"]
    enough = min(ENOUGH_COLUMNS, fitting[0].columns)
    beside_all = (each for each in fitting if each.columns >= enough and each.workspace + rest <= limit)
    chosen = next(beside_all, fitting[0])
    chosen = replace(chosen, shared=chosen.workspace, workspace=0, near_drafts=True)
    if placement == "drafts" or chosen.shared + parts["inputs"] > limit:
        return chosen
    chosen = replace(chosen, shared=chosen.shared + parts["inputs"], near_instance=True)
    if chosen.shared + parts["solution"] > limit:
        return chosen
    return replace(chosen, shared=chosen.shared + parts["solution"], near_solution=True)


@lru_cache(64)
def layout_to_speculate(shape: Shape, recipe: Recipe, limit: int, placement: Placement = "auto") -> Layout:
    """Return the layout of a block that makes several steps at once: drafts in global memory, one per step."""
    removed = removed_at_most(shape, recipe)
    work = work_sizes(shape, recipe, removed, stops_at_most(shape, removed))
    parts = _bytes(shape, work, 0, 0)
    workspace = SPECULATED * (parts["common"] + parts["own"])
    layout = Layout(work, SPECULATED, SPECULATION_BYTES, workspace, False, False, False, speculates=True)
    for name in ("inputs", "solution"):
        shared = layout.shared + parts[name]
        if placement == "global" or shared > limit or (placement == "drafts" and name == "solution"):
            break
        layout = replace(layout, shared=shared, near_instance=True, near_solution=name == "solution")
    return layout


@lru_cache(64)
def layout_to_link(shape: Shape, recipe: Recipe, limit: int) -> Layout | None:
    """Return the layout of a block that makes several steps at once on linked routes, in parts with numbers of their
    own; None if it cannot, or if parts of a typical size are too large."""
    kind = shape.kind
    fits_recipe = (
        recipe.rule == "string" and 2 * recipe.string_average <= LANES
        and recipe.orders == 1 and recipe.all_routes and 0 < recipe.insert_near <= LANES
    )  # fmt: skip
    fits_problem = kind.distance != "Matrix" and "RouteLimits" not in kind.rules and shape.customers < 1 << 16
    if not (fits_recipe and fits_problem):
        return None
    layout = linked_layout(kind, removed_by_strings(recipe, kind), shape.customers, limit)
    enough = shape.customers if recipe.regions == 1 else LARGEST_PART * shape.customers // recipe.regions
    return layout if layout.work.customers >= min(enough, shape.customers) else None


@lru_cache(64)
def linked_layout(kind: Kind, removed: int, all_customers: int, limit: int) -> Layout:
    """Return the layout for the largest parts that fit shared memory. Their size depends on the kind of problem and on
    how much a step removes, not on the instance, so that few kernels are compiled."""

    def layout(customers: int) -> Layout:
        routes = customers // 4 + 32 + removed + 2
        # Slots have up to 5 stops besides their customers. A draft copies up to 32 routes, with 8 more stops each.
        pool, stops = 2 * customers + 5 * routes + 64 + BEYOND, customers + 33 * 8 + BEYOND
        local = Sizes(customers, removed, routes, pool, (stops + 3) // 4 * 4, 0)
        near, far = _core.local_layout(*kind, *local[:5], all_customers, SPECULATED)
        shared = SPECULATION_BYTES + near
        return Layout(local, SPECULATED, shared, far, False, False, False, speculates=True, links=True)

    low, high = 1, 1 << 14
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if layout(middle).shared <= limit else (low, middle)
    return layout(low)


def removed_by_strings(recipe: Recipe, kind: Kind) -> int:
    """Return how many customers string removal takes at most: 4 average / (1 + longest) strings, and unserved ones on
    the way."""
    retries: int = _core.limits(kind.rules)[1]
    return 5 * int(np.ceil(recipe.string_average)) + recipe.string_longest + 2 + retries


def columns_at_most(shape: Shape, recipe: Recipe, removed: int) -> int:
    """Return the columns of the table of gaps: stops of the routes that a step touches; 0: no table."""
    if recipe.all_routes or recipe.orders > _core.TEAMS:
        return 0
    stops = min(shape.customers, removed * shape.longest) + 2 * removed
    most: int = _core.limits(shape.kind.rules)[0]
    return min(most, -(-stops // COLUMNS) * COLUMNS)


@lru_cache(64)
def layouts_to_evaluate(
    shape: Shape, recipe: Recipe, limit: int, placement: Placement = "auto"
) -> tuple[Layout | None, Layout]:
    """Return two layouts of a block that evaluates rollouts: a typical one in shared memory, and one for the worst case
    in global memory. The first is None if it would leave most of a multiprocessor idle."""
    removed = removed_at_most(shape, recipe)
    far = _layout(shape, recipe, work_sizes(shape, recipe, removed, stops_at_most(shape, removed)))
    near = _layout(shape, recipe, work_sizes(shape, recipe, removed, stops_typical(shape, recipe, removed)))
    if placement == "global" or near.workspace > limit // 2:
        return None, far
    return replace(near, shared=near.workspace, workspace=0, near_drafts=True), far


def _layout(shape: Shape, recipe: Recipe, work: Sizes, columns: int = 0) -> Layout:
    teams = min(recipe.orders, _core.TEAMS)
    parts = _bytes(shape, work, 1 if teams == recipe.orders else 2, columns)
    workspace = parts["common"] + teams * parts["own"] + parts["table"]
    return Layout(work, teams, 0, workspace, False, False, False, columns)


def _bytes(shape: Shape, sizes: Sizes, drafts: int, columns: int) -> dict[str, int]:
    """Return the bytes that the parts of a block's memory take; see `layout` of bind.cpp."""
    taken: dict[str, int] = _core.layout(*shape.kind, *sizes, drafts, columns)
    return taken


def chain_bytes(shape: Shape) -> int:
    """Return the bytes of a chain in global memory."""
    return _bytes(shape, home_sizes(shape), 0, 0)["chain"]
