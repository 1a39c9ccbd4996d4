"""Layouts: coordinates, demands and capacities of a batch, uniform or by the X generator."""

import math
from typing import NamedTuple

import numpy as np

from ndsvrp.arrays import Array, arange, cast, full, namespace, number
from ndsvrp.counter_random import Words
from ndsvrp.errors import NdsError
from ndsvrp.generate.attraction import CELLS, SIDE, Place
from ndsvrp.generate.config import Clustered, Uniform

GRID = SIDE - 1  # largest coordinate of the X generator
LARGE_PER_ROUTE = 1.5  # customers with a large demand, where most are small

#: Customers → capacity of the uniform layout: Kool et al. 2019, Drakulic et al. 2023 (500), Ye et al. 2024 (from 1000).
CAPACITY = {20: 30, 50: 40, 100: 50, 500: 100, 1000: 200, 2000: 300}

RANGES = {"unitary": (1, 1), "1-10": (1, 10), "5-10": (5, 10), "1-100": (1, 100), "50-100": (50, 100)}

# Kinds of random words: any numbers that differ.
COORDINATES, DEMAND, LARGE_DEMAND = 0x6A09E667, 0xBB67AE85, 0x2B992DDF
ROUTE_SIZE, CAPACITY_KIND, SEED_COUNT, DEPOT = 0x1F83D9AB, 0x5BE0CD19, 0x85EBCA77, 0x27D4EB2F


class Nodes(NamedTuple):
    """Coordinates, demands and capacities of a batch."""

    coordinates: Array  #: (B, N+1, 2) float64 in the unit square, the depot first
    demand: Array  #: (B, N) int64 of the customers
    capacity: Array  #: (B,) int64


def uniform_capacity(n: int) -> int:
    """Return the capacity for n customers: linear between the published sizes, rounded; constant outside of them."""
    return round(float(np.interp(n, list(CAPACITY), list(CAPACITY.values()))))


def uniform(words: Words, n: int, config: Uniform) -> Nodes:
    """Draw depot and customers in the unit square, and demands in a range, all with equal probability."""
    coordinates = unit(words(2 * (n + 1), COORDINATES)).reshape(-1, n + 1, 2)
    demand = between(words(n, DEMAND), config.smallest, config.largest)
    return Nodes(coordinates, demand, full(demand, demand.shape[:1], uniform_capacity(n), "int64"))


def clustered(words: Words, n: int, config: Clustered, place: Place) -> Nodes:
    """Draw an instance of the X generator. No two customers share a grid point, and none is at the depot."""
    if n >= CELLS:
        raise NdsError(f"{n} customers do not fit on a grid of {SIDE} x {SIDE} points")
    anywhere = {"random": n, "clustered": 0, "random-clustered": n // 2}[config.customers]
    seeds = between(words(1, SEED_COUNT), *config.seeds)[:, 0]
    depot = between(words(1, DEPOT), 0, CELLS - 1)[:, 0]
    if config.depot != "random":
        depot = full(depot, depot.shape, {"centred": GRID // 2 * (SIDE + 1), "cornered": 0}[config.depot], "int64")
    xp = namespace(depot)
    cells = cast(place(words, depot, xp.clip(seeds, 0, n - anywhere), n, anywhere, config.halving), "int64")
    points = xp.stack([cells // SIDE, cells % SIDE], axis=-1)
    size = _route_size(words, config)
    demand = _demand(words, points[:, 1:], size, config.demand)
    capacity = cast(xp.floor(size), "int64") if config.demand == "unitary" else capacity_for(size, demand)
    return Nodes(cast(points, "float64") / number(depot, GRID), demand, capacity)


def customers_per_route(words: Words, demand: Array, fewest: float, most: float) -> Array:
    """Return (B,) capacities for a number of average customers that is uniform on a logarithmic scale."""
    low, high = math.log2(fewest), math.log2(most)
    return capacity_for(_power_of_two(low + (high - low) * unit(words(1, CAPACITY_KIND))[:, 0]), demand)


def capacity_for(size: Array, demand: Array) -> Array:
    """Return (B,) capacities for `size` average customers, rounded up, and at least the largest demand."""
    xp = namespace(demand)
    mean = cast(demand.sum(axis=1), "float64") / number(demand, demand.shape[1])
    return xp.maximum(cast(xp.ceil(size * mean), "int64"), xp.amax(demand, axis=1))


def unit(words: Array) -> Array:
    """Return float64 numbers in [0, 1)."""
    return cast(words, "float64") * 2.0**-32


def between(words: Array, low: int, high: int) -> Array:
    """Return whole numbers from low to high, both included."""
    return low + (words * (high - low + 1) >> 32)


def _route_size(words: Words, config: Clustered) -> Array:
    """Return (B,) float64 customers per route."""
    u = unit(words(1, ROUTE_SIZE))[:, 0]
    if config.route_size != "triangular":
        low, high = map(float, config.route_size.split("-"))
        return low + (high - low) * u
    xp, (low, mode, high) = namespace(u), (3.0, 6.0, 25.0)
    rising = low + xp.sqrt(u * ((high - low) * (mode - low)))
    falling = high - xp.sqrt((1.0 - u) * ((high - low) * (high - mode)))
    return xp.where(u * (high - low) < mode - low, rising, falling)


def _demand(words: Words, points: Array, route_size: Array, kind: str) -> Array:
    """Return (B, N) int64 demands. points: (B, N, 2) on the grid."""
    n, xp = points.shape[1], namespace(points)
    random = words(n, DEMAND)
    if kind == "quadrant":
        right, upper = points[..., 0] >= GRID / 2, points[..., 1] >= GRID / 2
        return xp.where(right == upper, between(random, 51, 100), between(random, 1, 50))
    if kind == "many-small":
        large = xp.round(number(points, LARGE_PER_ROUTE * n) / route_size)
        distinct = (words(n, LARGE_DEMAND) << 20) + arange(random, 0, n)  # so that all sorts agree
        rank = xp.argsort(xp.argsort(distinct, axis=1), axis=1)
        return xp.where(rank < large[:, None], between(random, 50, 100), between(random, 1, 10))
    return between(random, *RANGES[kind])


def _power_of_two(x: Array) -> Array:
    """Return 2^x for x >= 0, accurate to 1e-12, by operations that round once."""
    whole = namespace(x).floor(x)
    fraction, power = x - whole, 1.0
    for k in range(12, 0, -1):  # the Taylor series
        power = power * fraction * (math.log(2.0) / k) + 1.0
    return power * cast(1 << cast(whole, "int64"), "float64")
