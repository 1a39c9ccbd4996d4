"""Splitting a solution into regions and merging it again, in slow Python."""

from __future__ import annotations

from collections.abc import Sequence

from ndsvrp.engine.base import Recipe
from parity.reference import MASK64, Chain, Random, chain_key, key_of


def middle(route: list[int]) -> int:
    """Return the middle customer of a route."""
    return route[(len(route) + 1) // 2 - 1]


def split(chain: Chain, regions: int, key: int) -> list[Chain]:
    """Return a part for each region, perhaps without customers."""
    numbers = chain.numbers
    candidates = [middle(route) for route in chain.routes] or list(range(1, numbers.n + 1))
    first = Random(key_of(key, MASK64 - 1)).below(len(candidates))
    centres = [candidates[(i * len(candidates) + first) // regions] for i in range(regions)]

    def region_of(c: int) -> int:
        return min(range(regions), key=lambda i: (numbers.length[centres[i]][c], i))

    free, parts = max(0, numbers.vehicles - len(chain.routes)), []
    for i in range(regions):
        part = Chain(numbers)
        part.routes = [list(route) for route in chain.routes if region_of(middle(route)) == i]
        part.absent = [c for c in chain.absent if region_of(c) == i]
        part.relief = chain.relief
        part.own = [c for route in part.routes for c in route] + part.absent
        part.vehicles = len(part.routes) + free // regions + (i < free % regions)
        part.best, part.best_cost, part.best_is_now = part.copy(), part.cost(), True
        parts.append(part)
    return parts


def merge(chain: Chain, parts: Sequence[Chain]) -> None:
    """Make the solution of the parts that of the chain. The best solutions of the parts make one, too."""
    chain.routes = [route for part in parts for route in part.routes]
    chain.absent = [c for part in parts for c in part.absent]
    chain.best_is_now = False
    if sum(part.best_cost for part in parts) < chain.best_cost:
        chain.best_cost = sum(part.best_cost for part in parts)
        chain.best = [route for part in parts for route in part.best]


def improve(
    chain: Chain, recipe: Recipe, temperatures: Sequence[float], seed: int, iteration: int, number: int,
    given: Sequence[Sequence[Sequence[int]]] | None = None,
) -> int:  # fmt: skip
    """Make steps in each region; `number` is that of the chain. Return how many were accepted.

    given: for each part and step the customers to remove, of which those of other parts are left out.
    """
    parts = split(chain, recipe.regions, chain_key(seed, iteration, number))
    accepted = 0
    for i, part in enumerate(parts):
        if part.own:
            key = chain_key(seed, iteration, number * recipe.regions + i)
            lists = None if given is None else [[c for c in each if c in part.own] for each in given[i]]
            accepted += part.improve(recipe, lists, temperatures, key)
    merge(chain, parts)
    return accepted
