"""Splitting a solution into regions and merging it again, in slow Python."""

from __future__ import annotations

from collections.abc import Sequence

from ndsvrp.engine.base import Recipe
from parity.reference import MASK64, Chain, Random, chain_key, key_of

Item = tuple[int, ...] | list[int]  #: the customers of a route, or one without a route


def place(item: Item) -> int:
    """Return the middle customer of a route, or the customer."""
    return item[(len(item) + 1) // 2 - 1]


def halves(chain: Chain, items: Sequence[Item], low: int, regions: int, key: int) -> tuple[list[Item], list[Item]]:
    """Cut items in two: the first ones, of about `low` of so many shares of the customers, and the others."""
    if not items:
        return [], []
    length, places = chain.numbers.length, [place(item) for item in items]
    random = Random(key)
    i = random.below(len(items))
    j = (i + 1 + random.below(len(items) - 1)) % len(items) if len(items) > 1 else i
    one, other = places[i], places[j]
    keys = [length[one][c] ** 2 - length[other][c] ** 2 for c in places]
    customers = sum(map(len, items))
    share = customers * low // regions
    below, above = min(keys) - 1, max(keys)

    def up_to(border: int) -> int:
        return sum(len(item) for item, k in zip(items, keys, strict=True) if k <= border)

    missing, beyond = share, customers - share
    while above - below > 1 and min(missing, beyond) > customers // 64:
        middle = below + (above - below) // 2
        if up_to(middle) <= share:
            below, missing = middle, share - up_to(middle)
        else:
            above, beyond = middle, up_to(middle) - share
    border = below if missing <= beyond else above
    first = [item for item, k in zip(items, keys, strict=True) if k <= border]
    return first, [item for item, k in zip(items, keys, strict=True) if k > border]


def divided(chain: Chain, items: Sequence[Item], regions: int, key: int, node: int = 1) -> list[list[Item]]:
    """Return the items of each region, by cuts, which are numbered as the nodes of a binary heap are."""
    if regions == 1:
        return [list(items)]
    low = regions // 2
    first, others = halves(chain, items, low, regions, key_of(key, node))
    return divided(chain, first, low, key, 2 * node) + divided(chain, others, regions - low, key, 2 * node + 1)


def split(chain: Chain, regions: int, key: int) -> list[Chain]:
    """Return a part for each region, perhaps without customers."""
    numbers, parts = chain.numbers, []
    items: list[Item] = [*map(tuple, chain.routes), *([c] for c in chain.absent)]
    free = max(0, numbers.vehicles - len(chain.routes))
    for i, own in enumerate(divided(chain, items, regions, key_of(key, MASK64 - 1))):
        part = Chain(numbers)
        part.routes = [list(item) for item in own if isinstance(item, tuple)]
        part.absent = [item[0] for item in own if isinstance(item, list)]
        part.own = [c for item in own for c in item]
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
