"""Exchanging tails of routes, in slow Python: the moves are made, then judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ndsvrp.engine.base import Recipe

if TYPE_CHECKING:
    from parity.reference import Chain, Draft, Random


def moves(chain: Chain, c: int, neighbours: int, margin: float) -> Iterator[Draft]:
    """Yield the moves of customer c in their order. Its new edge is longer than the old one by less than the margin."""
    numbers, routes = chain.numbers, chain.routes
    a = next(r for r, route in enumerate(routes) if c in route)
    stop = routes[a].index(c)
    reversible = numbers.symmetric and not numbers.windows
    after, before = [*routes[a], 0][stop + 1], [0, *routes[a]][stop]
    for v in numbers.near[c][:neighbours]:
        b = next((r for r, route in enumerate(routes) if v in route), None)
        if b is None or b == a:
            continue
        other = routes[b].index(v)
        later = numbers.length[c][v] - numbers.length[c][after] < margin
        earlier = numbers.length[v][c] - numbers.length[before][c] < margin
        for p, q in [(stop + 1, other)] * later + [(stop, other + 1)] * earlier:
            yield {a: routes[a][:p] + routes[b][q:], b: routes[b][:q] + routes[a][p:]}
        if reversible:
            for p, q in [(stop + 1, other + 1)] * later + [(stop, other)] * earlier:
                yield {a: routes[a][:p] + routes[b][:q][::-1], b: routes[a][p:][::-1] + routes[b][q:]}
    if stop + 1 < len(routes[a]) and len(routes) < chain.vehicles:
        yield {a: routes[a][: stop + 1], len(routes): routes[a][stop + 1 :]}


def best_move(chain: Chain, recipe: Recipe, margin: float, random: Random) -> Draft | None:
    """Return the first of the cheapest feasible moves of a random customer, if it costs less than the margin."""
    numbers, c = chain.numbers, chain.own[random.below(len(chain.own))]
    if c in chain.absent:
        return None
    best, best_delta = None, margin
    for draft in moves(chain, c, recipe.tails, margin):
        before = sum(numbers.tour_length(chain.routes[r]) for r in draft if r < len(chain.routes))
        delta = sum(numbers.tour_length(route) for route in draft.values()) - before
        if delta < best_delta and all(numbers.feasible(route) for route in draft.values() if route):
            best, best_delta = draft, delta
    return best
