"""A child of two solutions, and how far solutions are apart: functions of tours.

A tour is (stops,) int32: the routes of a solution one after another, each ended by a 0. Crossover computes in whole
numbers, so that all machines agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Floats, Ints
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.problem import Problem
from ndsvrp.search.fleet import capacity_alone

TAKEN = 10, 40  # percent of the routes of the second parent that a child gets: the least and the most


def below(word: int, count: int) -> int:
    """Return a number from 0 to count - 1 for a random word of 32 bits."""
    return word * count >> 32


def cross(first: Ints, second: Ints, near: Ints, room: Room, stop: int, share: int) -> Ints:
    """Return the tour of a child: some neighbouring routes of the second parent, the rest as in the first.

    The routes are those of a random customer and of its nearest customers. The routes of the first parent lose the
    customers that the child already has; what is left of them is joined. A customer that neither serves stays unserved,
    and so do those of the smallest loads, if there are more routes than vehicles.

    near: (N+1, L) nearest customers of each, nearest first. stop, share: random words, which choose the customer and
    the share of routes.
    """
    served = second[second > 0]
    if len(served) == 0:
        return first
    begins, ends = _spans(second)
    route_of = np.full(len(near), -1)
    route_of[served] = np.repeat(np.arange(len(ends)), ends - begins)
    seed = int(served[below(stop, len(served))])
    least, most = TAKEN
    count = max(1, (len(ends) * (least + below(share, most - least + 1)) + 50) // 100)
    around = route_of[np.concatenate(([seed], near[seed]))]
    found, places = np.unique(around[around >= 0], return_index=True)
    chosen = found[np.argsort(places)][:count]
    taken = np.concatenate([second[begins[r] : ends[r] + 1] for r in chosen])
    is_taken = np.zeros(len(near), bool)
    is_taken[taken] = True
    is_taken[0] = False
    begins, ends = _spans(first)
    loses = np.logical_or.reduceat(is_taken[first], begins) if len(ends) else np.zeros(0, bool)
    stays = np.repeat(~loses, ends - begins + 1)
    rests = [route[~is_taken[route]] for route in (first[begins[r] : ends[r]] for r in np.flatnonzero(loses))]
    return room.within_fleet(np.concatenate([taken, first[stays], *room.joined(rests)]))


def _spans(tour: Ints) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return (routes,) where each route begins, and the 0 that ends it."""
    ends = np.flatnonzero(tour == 0)
    return np.concatenate(([0], ends + 1))[:-1], ends


@dataclass(frozen=True)
class Room:
    """Demands and the capacity of vehicles, in whole numbers, and how many there are."""

    demand: Ints  #: (N+1,)
    capacity: int
    vehicles: int | None = None

    def within_fleet(self, tour: Ints) -> Ints:
        """Return the tour with the largest loads only, as many routes as there are vehicles."""
        begins, ends = _spans(tour)
        if self.vehicles is None or len(ends) <= self.vehicles:
            return tour
        loads = np.add.reduceat(self.demand[tour], begins)
        rank = np.argsort(np.argsort(-loads, kind="stable"))
        kept: Ints = tour[np.repeat(rank < self.vehicles, ends - begins + 1)]
        return kept

    def joined(self, rests: list[Ints]) -> list[Ints]:
        """Return routes, each ended by a 0, of what is left of others: the largest load first, to the first with room.

        A child has routes of one parent beside those of the other, often more than either. Where vehicles are nearly
        full, steps at a low temperature cannot close them.
        """
        routes: list[tuple[int, list[Ints]]] = []
        loads = [int(self.demand[rest].sum()) for rest in rests]
        for i in sorted(range(len(rests)), key=lambda i: -loads[i]):
            if len(rests[i]) == 0:
                continue
            at = next((k for k, (load, _) in enumerate(routes) if load + loads[i] <= self.capacity), len(routes))
            if at == len(routes):
                routes.append((0, []))
            load, parts = routes[at]
            routes[at] = load + loads[i], [*parts, rests[i]]
        return [np.concatenate([*parts, [0]]).astype(np.int32) for _, parts in routes]


def room_of(problem: Problem) -> Room:
    """Return the room of vehicles; none where joined routes may be late or too long."""
    fields = ticks_of(problem).fields
    capacity = int(fields["capacity"]) if capacity_alone(problem) else 0
    return Room(fields["demand"], capacity, problem.vehicles)


def neighbours(tour: Ints, customers: int) -> Ints:
    """Return (2, N+1) the stops before and after each customer; -1 where it is unserved."""
    out = np.full((2, customers + 1), -1, np.int32)
    at = np.flatnonzero(tour)
    out[0, tour[at]] = np.concatenate(([0], tour))[at]
    out[1, tour[at]] = tour[at + 1]
    return out


def apart(one: Ints, others: Ints) -> Floats:
    """Return (others,) the share of pairs of a customer and a neighbour in its route that differ; 0: the same routes.

    A reversed route is the same route. one: (2, N+1), others: (others, 2, N+1), both by `neighbours`.
    """
    before, after = one[:, 1:] == others[:, :, 1:], one[::-1, 1:] == others[:, :, 1:]
    kept = np.maximum(before.sum(axis=1), after.sum(axis=1))  # of the two neighbours of each customer, in any order
    return np.asarray(1.0 - kept.sum(axis=1) / (2 * kept.shape[1]))
