"""The random numbers of the paper's sets, drawn in the order in which the authors' public generators draw them.

Our own generators (`generate`) follow the same recipes with other random numbers. These functions exist to obtain the
test sets themselves. They are written for Mersenne Twister generators that are shared by all instances of a set, so
instance i depends on those before it.

- CVRP (Kool et al. 2019): numpy's legacy generator gives all depots, then all customers, then all demands.
- VRPTW and PCVRP: Python's `random` gives the layouts of Queiroga et al. (2021), one instance after the other. The
  customers of an instance are in the order in which CPython iterates over the set of their points. Torch gives
  one float32 number per customer, for the centre of the window or for the prize.
"""

import math
import random
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.generate.layouts import uniform_capacity

Arrays = dict[str, npt.NDArray[Any]]
Point = tuple[int, int]

GRID = 1000  # coordinates and times in these units; published sets are divided by it
DEPOT = (500, 500)
SEEDS = 2, 6  # customers that attract others
HALVING = 40.0  # distance over which the attraction halves
ROUTE_SIZE = 8.0, 12.0
LARGEST_DEMAND = 10
HORIZON, WIDTH, SERVICE = 1800.0, 400.0, 50.0
LOW, HIGH, SHARE = 0.1, 0.2, 0.5  # of prizes

f32 = np.float32


def draw(variant: str, customers: int, count: int, seed: int, whole: int | None = None) -> Arrays:
    """Return the first `count` instances of a set with `whole` instances, under the names of an `.npz` set."""
    if variant == "cvrp":
        return {name: array[:count] for name, array in _uniform(customers, whole or count, seed).items()}
    arrays = _clustered(customers, count, seed)
    numbers = torch_uniform(seed, (count, customers))
    if variant == "vrptw":
        return arrays | _windows(arrays["node_xy"], numbers)
    return arrays | {"prize": _prizes(arrays["demand"], numbers)}


def _uniform(n: int, count: int, seed: int) -> Arrays:
    """Draw depots, customers and demands of a whole set, one kind after the other."""
    numbers = np.random.RandomState(seed)
    return {
        "depot_xy": numbers.uniform(size=(count, 2)),
        "node_xy": numbers.uniform(size=(count, n, 2)),
        "demand": numbers.randint(1, 10, size=(count, n), dtype=np.int64),
        "capacity": np.full(count, uniform_capacity(n)),
    }


def _clustered(n: int, count: int, seed: int) -> Arrays:
    """Draw clustered customers around a depot in the centre, their demands and the capacities."""
    numbers = random.Random(seed)
    drawn = [_layout(numbers, n) for _ in range(count)]
    points, demands, capacities = zip(*drawn, strict=True)
    return {
        "depot_xy": np.tile(np.array(DEPOT, f32) / f32(GRID), (count, 1)),
        "node_xy": np.array(points).astype(f32) / f32(GRID),
        "demand": np.array(demands),
        "capacity": np.array(capacities),
    }


def _layout(numbers: random.Random, n: int) -> tuple[list[Point], list[int], int]:
    """Draw one instance: points, demands and capacity."""
    seed_count, route_size = numbers.randint(*SEEDS), numbers.uniform(*ROUTE_SIZE)
    taken: set[Point] = {DEPOT}
    seeds: list[Point] = []
    customers: set[Point] = set()  # apart from `taken`: its order becomes that of the customers
    while len(seeds) < seed_count:
        seeds.append(_free_point(numbers, taken))
        taken.add(seeds[-1])
        customers.add(seeds[-1])
    scale = 1.0 / max(_attraction(point, seeds) for point in seeds)
    while len(customers) < n:
        point = _free_point(numbers, taken)
        if numbers.random() <= _attraction(point, seeds) * scale:
            taken.add(point)
            customers.add(point)
    demands = [int(LARGEST_DEMAND * numbers.random() + 1) for _ in range(n)]
    capacity = max(max(demands), math.ceil(route_size * sum(demands) / n))
    numbers.shuffle(demands)
    return list(customers), demands, capacity


def _free_point(numbers: random.Random, taken: set[Point]) -> Point:
    while True:
        point = _coordinate(numbers), _coordinate(numbers)
        if point not in taken:
            return point


def _coordinate(numbers: random.Random) -> int:
    """Return `randint(0, GRID)`, which takes most of the time if it is called."""
    bits = (GRID + 1).bit_length()
    while (drawn := numbers.getrandbits(bits)) > GRID:
        pass
    return drawn


def _attraction(point: Point, seeds: list[Point]) -> float:
    x, y = point
    total = 0.0
    for a, b in seeds:
        total += 2 ** (-math.sqrt((x - a) ** 2 + (y - b) ** 2) / HALVING)
    return total


def _windows(points: npt.NDArray[np.float32], numbers: npt.NDArray[np.float32]) -> Arrays:
    """Return the time windows for (B, N) random numbers, in float32 as the published ones."""
    count, n = numbers.shape
    away = _distance_to_depot(points) * f32(GRID)
    earliest = np.ceil(away) + f32(1)
    latest = f32(HORIZON) - np.ceil(away + f32(SERVICE)) - f32(1)
    centre = earliest + np.round((latest - earliest) * numbers)
    ready, due = np.maximum(centre - f32(WIDTH / 2), earliest), np.minimum(centre + f32(WIDTH / 2), latest)
    return {
        "depot_tw": np.tile(np.array([0.0, HORIZON], f32) / f32(GRID), (count, 1)),
        "node_tw": np.stack([ready, due], axis=-1) / f32(GRID),
        "service": np.full((count, n), f32(SERVICE / GRID)),
    }


def _distance_to_depot(points: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the lengths as torch computes them: float32, the second square added by a fused multiply-add.

    Where a length is close to a whole number, the last bit decides on which side of it the window begins.
    """
    offset = np.array(DEPOT, f32) / f32(GRID) - points
    first, second = offset[..., 0] * offset[..., 0], offset[..., 1].astype(np.float64)
    lengths: npt.NDArray[np.float32] = np.sqrt((second * second + first.astype(np.float64)).astype(f32))
    return lengths


def _prizes(demand: npt.NDArray[Any], numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the prizes for (B, N) random numbers, in float32 as the published ones."""
    least, most = demand.min(axis=1, keepdims=True), demand.max(axis=1, keepdims=True)
    factor = (demand - least).astype(f32) / (most - least).astype(f32)
    by_demand, by_chance = (f32(LOW) + part * f32(HIGH - LOW) for part in (factor, numbers))
    return f32(SHARE) * by_demand + f32(1 - SHARE) * by_chance


def torch_uniform(seed: int, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return what `torch.manual_seed(seed); torch.rand(shape)` gives on a CPU, without torch.

    Both libraries start the Mersenne Twister in the same way; torch uses the lower 24 bits of each word.
    """
    words = np.random.RandomState(seed).randint(0, 2**32, size=shape, dtype=np.uint32)
    return (words & np.uint32(2**24 - 1)).astype(f32) * f32(2.0**-24)
