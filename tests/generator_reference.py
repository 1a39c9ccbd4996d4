"""The recipes of `generate` one instance at a time with numpy's generators: other numbers, the same distributions."""

from __future__ import annotations

from math import ceil, exp, floor, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndsvrp.generate import uniform_capacity
from ndsvrp.generate.config import Clustered, DepotPosition, Prizes, Uniform, Windows
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem

Ints = npt.NDArray[np.int64]

GRID = 1000  # largest coordinate of the X generator
SIDE = GRID + 1  # points along one side
LARGE_PER_ROUTE = 1.5  # customers with a large demand, where most are small

RANGES = {"unitary": (1, 1), "1-10": (1, 10), "5-10": (5, 10), "1-100": (1, 100), "50-100": (50, 100)}


class Places(NamedTuple):
    """Coordinates (N+1, 2), demands (N,) and the capacity of one instance."""

    coordinates: Floats
    demand: Ints
    capacity: int


def uniform(n: int, rng: np.random.Generator, config: Uniform) -> Places:
    """Depot and customers uniform in the unit square, demands uniform in a range."""
    coordinates = rng.random((n + 1, 2))
    demand = rng.integers(config.smallest, config.largest, n, endpoint=True)
    return Places(coordinates, demand, uniform_capacity(n))


def clustered(n: int, rng: np.random.Generator, config: Clustered) -> Places:
    """The X generator. No two customers share a point of the grid, and none is at the depot."""
    if n > SIDE * SIDE - 1:
        raise ValueError(n)
    route_size = _route_size(rng, config)
    depot = _depot(rng, config.depot)
    anywhere = {"random": n, "clustered": 0, "random-clustered": n // 2}[config.customers]
    around = n - anywhere
    cells = _draw(anywhere, depot, rng)
    if around:
        seeds = min(int(rng.integers(*config.seeds, endpoint=True)), around)
        centres = _draw(seeds, np.concatenate([depot, cells]), rng)
        cells = _attract(n, depot, np.concatenate([cells, centres]), centres, rng, config.halving)
    points = _points(np.concatenate([depot, cells]))
    demand = _demand(points[1:], route_size, rng, config.demand)
    capacity = floor(route_size) if config.demand == "unitary" else ceil(route_size * float(np.mean(demand)))
    return Places(points / GRID, demand, max(capacity, int(np.max(demand))))


def _route_size(rng: np.random.Generator, config: Clustered) -> float:
    if config.route_size == "triangular":
        return float(rng.triangular(3, 6, 25))
    low, high = map(float, config.route_size.split("-"))
    return float(rng.uniform(low, high))


def _depot(rng: np.random.Generator, position: DepotPosition) -> Ints:
    """(1,) the depot's cell: x * SIDE + y."""
    centre = GRID // 2 * SIDE + GRID // 2
    return np.array([{"random": int(rng.integers(SIDE * SIDE)), "centred": centre, "cornered": 0}[position]])


def _points(cells: Ints) -> Ints:
    return np.stack([cells // SIDE, cells % SIDE], axis=-1)


def _draw(count: int, taken: Ints, rng: np.random.Generator) -> Ints:
    """`count` different cells that are not taken, uniformly."""
    found = np.empty(0, np.int64)
    while len(found) < count:
        more = rng.integers(SIDE * SIDE, size=count - len(found) + 8)
        found = _distinct(np.concatenate([found, more]), taken)
    return found[:count]


def _attract(n: int, depot: Ints, cells: Ints, seeds: Ints, rng: np.random.Generator, halving: float) -> Ints:
    """Add customers until there are n, each point drawn in proportion to what it feels of the seeds.

    A point is drawn uniformly and accepted with the sum of 2^(-distance / halving) over the seeds, relative
    to the largest such sum at a seed. Once as many points were tried as the grid has, the rest is drawn by
    exponential keys over all free points, which is the same distribution and always ends.
    """
    centres = _points(seeds)
    scale = 1 / np.max(_pull(centres, centres, halving))
    tried, chunk = 0, 32 * (n - len(cells))
    while len(cells) < n and tried < SIDE * SIDE:
        chunk = min(max(chunk, 256), 1 << 17)
        candidates = rng.integers(SIDE * SIDE, size=chunk)
        accepted = candidates[rng.random(chunk) <= scale * _pull(_points(candidates), centres, halving)]
        cells = _distinct(np.concatenate([cells, accepted]), depot)
        tried += chunk
    if len(cells) < n:
        free = np.ones(SIDE * SIDE, bool)
        free[depot], free[cells] = False, False
        left = np.flatnonzero(free)
        weight = np.minimum(scale * _pull(_points(left), centres, halving), 1.0)
        key = rng.exponential(size=len(left)) / np.maximum(weight, 1e-300)
        cells = np.concatenate([cells, left[np.argsort(key)[: n - len(cells)]]])
    return cells[:n]


def _pull(points: Ints, centres: Ints, halving: float) -> Floats:
    """(P,) attraction of all centres at each point."""
    total = np.zeros(len(points))
    for x, y in centres:
        total += np.exp2(-np.hypot(points[:, 0] - x, points[:, 1] - y) / halving)
    return total


def _distinct(cells: Ints, taken: Ints) -> Ints:
    """The cells that are not taken, each once, in their order."""
    _, first = np.unique(cells, return_index=True)
    cells = cells[np.sort(first)]
    return cells[~np.isin(cells, taken)]


def _demand(points: Ints, route_size: float, rng: np.random.Generator, kind: str) -> Ints:
    n = len(points)
    if kind == "quadrant":
        right, upper = (points >= GRID / 2).T
        return np.where(right == upper, rng.integers(51, 101, n), rng.integers(1, 51, n))
    if kind == "many-small":
        large = min(n, round(LARGE_PER_ROUTE * n / route_size))
        demand = np.concatenate([rng.integers(50, 101, large), rng.integers(1, 11, n - large)])
        return rng.permutation(demand)
    return rng.integers(*RANGES[kind], n, endpoint=True)


def windows(coordinates: Floats, rng: np.random.Generator, config: Windows) -> tuple[Floats, Floats]:
    """(N+1, 2) windows and (N+1,) service times.

    The centre of a window is uniform between the earliest moment a vehicle can be there and the latest
    from which it can still serve and return; both ends are clipped to these two.
    """
    offset = coordinates[1:] - coordinates[0]
    away = np.ceil(np.hypot(offset[:, 0], offset[:, 1]) / config.tick - 1e-9)
    horizon, width, service = (round(value / config.tick) for value in (config.horizon, config.width, config.service))
    half = width // 2
    horizon = max(horizon, 2 * int(np.max(away) + 1) + service + half)
    earliest, latest = away + 1, horizon - service - away - 1
    centre = earliest + np.rint((latest - earliest) * rng.random(len(away)))
    ready, due = np.maximum(centre - half, earliest), np.minimum(centre + half, latest)
    per_unit = 1 / config.tick  # dividing by 1000 gives the float nearest to a thousandth; multiplying may not
    both = np.concatenate([[[0.0, horizon]], np.stack([ready, due], axis=-1)]) / per_unit
    return both, np.concatenate([[0.0], np.full(len(away), service / per_unit)])


def prizes(demand: Ints, rng: np.random.Generator, config: Prizes) -> Floats:
    """(N+1,) prizes: `share` of them linear in demand from the smallest to the largest, the rest uniform."""
    spread = int(np.ptp(demand))
    by_demand = (demand - np.min(demand)) / spread if spread else np.full(len(demand), 0.5)
    mixed = config.share * by_demand + (1 - config.share) * rng.random(len(demand))
    return np.concatenate([[0.0], config.low + (config.high - config.low) * mixed])


def full_problem(
    n: int, rng: np.random.Generator, layout: str, config: Clustered, routes: tuple[float, ...] = ()
) -> Problem:
    """Return a PCVRPTW instance."""
    place = uniform(n, rng, Uniform()) if layout == "uniform" else clustered(n, rng, config)
    capacity = place.capacity
    if routes:
        size = exp(rng.uniform(log(routes[0]), log(routes[1])))
        capacity = max(ceil(size * float(np.mean(place.demand))), int(np.max(place.demand)))
    times, service = windows(place.coordinates, rng, Windows())
    return Problem(
        coordinates=place.coordinates, demand=np.concatenate([[0.0], place.demand]), capacity=capacity, windows=times,
        service=service, prize=prizes(place.demand, rng, Prizes()),
    )  # fmt: skip
