"""Packing: which customers share a vehicle by their demands, for fleets that must be nearly full.

Greedy insertion leaves a little room in every vehicle and some customer without one. A packing fills one vehicle after
another by the subset of neighbouring customers with the largest sum that fits, which is exact (subset sums as the bits
of an integer). Customers that are left over are packed anew with those of a few vehicles, until all have one.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Floats, Ints
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.problem import Problem
from ndsvrp.search.fleet import capacity_alone

UNITS = 1 << 14  # of a capacity, at most: in larger ones demands are rounded up
NEARLY_WHOLE = 1e-6
AROUND = 25  # nearest customers of the first one of a vehicle, of which a subset is chosen at a time
MOST_AROUND = 20 * AROUND  # customers among which a vehicle is filled at first
WORK = 5_000_000  # customers that are looked at while vehicles are packed anew: some seconds
A_ROUND = 500  # what a round takes besides, in such customers
ANEW = (2, 3, 4, 6)  # vehicles that are packed anew in a round


def can_pack(problem: Problem) -> bool:
    """Return whether vehicles are limited, and nothing but the capacity limits routes."""
    return problem.vehicles is not None and capacity_alone(problem)


def packed(problem: Problem, seed: int, deadline: float | None = None) -> Ints | None:
    """Return a tour of all required customers within capacity and fleet; None if none is found."""
    assert problem.vehicles is not None
    units, capacity = _whole(problem.demand, problem.capacity)
    if units[problem.required].sum() > problem.vehicles * capacity:
        return None
    demand: list[int] = units.tolist()
    loads, left = _first_loads(problem, demand, capacity, deadline)
    random, work = np.random.default_rng((seed, len(demand))), 0
    while left and loads and work < WORK and not _is_over(deadline):
        chosen = _neighbours(problem, loads, random)
        work += A_ROUND + len(demand) + len(chosen) * (len(left) + sum(len(loads[i]) for i in chosen))
        left = _pack_anew(loads, chosen, left, demand, capacity, random)
    fields = ticks_of(problem).fields
    if left or any(fields["demand"][load].sum() > fields["capacity"] for load in loads):
        return None
    return np.array([stop for load in loads if load for stop in (*load, 0)], np.int32)


def _first_loads(
    problem: Problem, demand: list[int], capacity: int, deadline: float | None
) -> tuple[list[list[int]], list[int]]:
    """Fill one vehicle after another, each from the customer farthest from the depot. Return who is left over, too."""
    assert problem.vehicles is not None
    left, loads = np.flatnonzero(problem.required), list[list[int]]()
    away = problem.length(np.zeros_like(left), left)
    while len(left) and len(loads) < problem.vehicles and not _is_over(deadline):
        first = int(left[np.argmax(away)])
        others = left[left != first]
        away_from = problem.length(np.full_like(others, first), others)
        near = np.argpartition(away_from, MOST_AROUND)[:MOST_AROUND] if len(others) > MOST_AROUND else slice(None)
        around = others[near][np.argsort(away_from[near], kind="stable")]
        loads.append([first])
        for begin in range(0, len(around), AROUND):
            nearest = around[begin : begin + AROUND].tolist()
            chosen = _fill(nearest, demand, capacity - sum(demand[customer] for customer in loads[-1]))
            loads[-1] += chosen
            if len(chosen) < len(nearest):
                break
        stays = ~np.isin(left, loads[-1])
        left, away = left[stays], away[stays]
    return loads, left.tolist()


def _neighbours(problem: Problem, loads: list[list[int]], random: np.random.Generator) -> list[int]:
    """Return some vehicles: those of the customers nearest to a random one, roughly."""
    customers = np.array([customer for load in loads for customer in load])
    vehicle_of = np.repeat(np.arange(len(loads)), [len(load) for load in loads])
    centre = customers[int(random.random() * len(customers))]
    away = problem.length(np.full_like(customers, centre), customers) * (0.5 + random.random(len(customers)))
    nearest = vehicle_of[np.argsort(away, kind="stable")]
    found, places = np.unique(nearest, return_index=True)
    count = ANEW[int(random.random() * len(ANEW))]
    chosen: list[int] = found[np.argsort(places)][:count].tolist()
    return chosen


def _pack_anew(
    loads: list[list[int]], chosen: list[int], left: list[int], demand: list[int], capacity: int,
    random: np.random.Generator,
) -> list[int]:  # fmt: skip
    """Pack the customers of these vehicles anew, with those left over, unless that leaves more demand over.

    Return who is left over. Half of the rounds prefer large customers.
    """
    pool = [*left, *(customer for i in chosen for customer in loads[i])]
    spread = max(demand[customer] for customer in pool) / 2
    large_first = random.random() < 0.5
    keys = random.random(len(pool)) * spread - [demand[customer] * large_first for customer in pool]
    rest, new = [pool[i] for i in np.argsort(keys).tolist()], []
    for _ in chosen:
        new.append(_fill(rest, demand, capacity))
        taken = set(new[-1])
        rest = [customer for customer in rest if customer not in taken]
    if sum(demand[customer] for customer in rest) > sum(demand[customer] for customer in left):
        return left
    for i, load in zip(chosen, new, strict=True):
        loads[i] = load
    return rest


def _fill(customers: list[int], demand: list[int], room: int) -> list[int]:
    """Return the customers whose demands have the largest sum that fits; the first ones, where sums are equal."""
    within, reached = (1 << room + 1) - 1, [1]  # bit s of reached[k]: some of the last k customers demand s
    for customer in reversed(customers):
        reached.append((reached[-1] | reached[-1] << demand[customer]) & within)
    needed, load = reached[-1].bit_length() - 1, []
    for after, customer in zip(reversed(reached[:-1]), customers, strict=True):
        if needed >= demand[customer] and after >> needed - demand[customer] & 1:
            load.append(customer)
            needed -= demand[customer]
    return load


def _whole(demand: Floats, capacity: float) -> tuple[npt.NDArray[np.int64], int]:
    """Return demands and capacity in whole units, few enough: decimals as they are, others rounded up."""
    if not demand.any():
        return np.zeros(len(demand), np.int64), 0
    for decimals in range(5):
        exact, most = demand * 10**decimals, capacity * 10**decimals
        whole = np.rint(exact)
        if 1 <= most < 1 << 53 and np.abs(exact - whole).max() < NEARLY_WHOLE:
            common = int(np.gcd.reduce(np.append(whole, int(most + NEARLY_WHOLE)).astype(np.int64))) or 1
            if most <= UNITS * common:
                return whole.astype(np.int64) // common, int(most + NEARLY_WHOLE) // common
    return np.ceil(demand * (UNITS / capacity)).astype(np.int64), UNITS


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.perf_counter() >= deadline
