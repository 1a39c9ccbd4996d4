"""Instances for training, drawn where they are used: the recipes of `generate` for a whole batch on a GPU.

The distributions are those of `generate`, the random numbers are others: words that depend on seed and number of the
instance alone (`counter_random.py`), so that they are the same on a CPU and on a GPU, whatever share of a batch is
drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.constraints import PRIZES, TIME_WINDOWS
from ndsvrp.counter_random import Words, for_kernel, key_of
from ndsvrp.engine.batched import Instances, pack_drawn
from ndsvrp.engine.upload import Upload
from ndsvrp.generate.config import Clustered, Prizes, Uniform, Windows
from ndsvrp.generate.places import GRID, RANGES, SIDE, uniform_capacity
from ndsvrp.policy.inputs import Inputs, constraint_columns
from ndsvrp.train.config import Source
from ndsvrp.variants import VARIANTS

# Any numbers: what keeps the parts of an instance apart. Those of clustered places are in places.cu.
OF_PLACES, OF_DEMAND, OF_WINDOWS, OF_PRIZES = 0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A
OF_ROUTE_SIZE, OF_CAPACITY = 0x1F83D9AB, 0x5BE0CD19
KEY = 5  # of the words of instances, beside the run's seed
THREADS = 256  # of a block that places customers
SHARED = 1224  # bytes that its threads share
TOGETHER = 1024  # instances whose customers are placed at once: 120 KiB of grid each
PATIENCE = 8  # times the points of the grid are tried before all probabilities double; see places.cu


@dataclass(frozen=True, eq=False)
class Drawn:
    """Instances on a GPU, ready to be worked on."""

    instances: Instances
    packed: Callable[[], Upload]  #: for `CudaEngine.start_upload`; waits for a few numbers of it
    inputs: Inputs  #: without solutions

    def __len__(self) -> int:
        return len(self.instances.capacity)


def drawn(
    launcher: Any, device: torch.device, neighbours: int, source: Source, customers: int, seed: int, first: int,
    count: int,
) -> Drawn:  # fmt: skip
    """Instances `first` … of a source, drawn and packed by the `Device` of an engine. Nobody waits."""
    instances = draw(launcher, device, source, customers, seed, first, count)
    return Drawn(instances, pack_drawn(launcher, instances, neighbours), inputs_of(instances))


def draw(launcher: Any, device: torch.device, source: Source, n: int, seed: int, first: int, count: int) -> Instances:
    """The like of `data.instances`."""
    key = key_of(seed, KEY)
    words = Words(torch.arange(first, first + count, device=device), key)
    constraints = VARIANTS[source.problem].constraints
    if source.where() == "uniform":
        points = _unit(words(2 * (n + 1), OF_PLACES)).view(count, n + 1, 2)
        uniform = Uniform()
        demand = _between(words(n, OF_DEMAND), uniform.smallest, uniform.largest)
        capacity = torch.full((count,), uniform_capacity(n), device=device)
    else:
        clustered = Clustered(depot=source.depot) if source.depot else Clustered()  # type: ignore[arg-type]  # its words
        cells = place_clustered(launcher, device, clustered, n, key, first, count).long()
        points = torch.stack([cells // SIDE, cells % SIDE], dim=-1) / _number(GRID, device)
        demand = _between(words(n, OF_DEMAND), *RANGES[clustered.demand])
        low, high = map(float, clustered.route_size.split("-"))
        capacity = _for_routes(low + (high - low) * _unit(words(1, OF_ROUTE_SIZE))[:, 0], demand)
    if source.customers_per_route:
        low, high = map(math.log, source.customers_per_route)
        capacity = _for_routes(torch.exp(low + (high - low) * _unit(words(1, OF_CAPACITY))[:, 0]), demand)
    windows = service = prize = None
    if TIME_WINDOWS in constraints:
        windows, service = _windows(points, _unit(words(n, OF_WINDOWS)), Windows())
    if PRIZES in constraints:
        prize = _with_depot(_prizes(demand, _unit(words(n, OF_PRIZES)), Prizes()))
    return Instances(points, _with_depot(demand), capacity, windows, service, prize)


def place_clustered(
    launcher: Any, device: torch.device, config: Clustered, n: int, key: Sequence[int], first: int, count: int,
    patience: int = PATIENCE * SIDE * SIDE,
) -> Tensor:  # fmt: skip
    """(B, N+1) int32 cells of the grid, x * SIDE + y, as `generate.places.clustered` has them, by places.cu."""
    assert config.customers == "clustered"  # others are not drawn here
    fixed = {"random": -1, "centred": GRID // 2 * SIDE + GRID // 2, "cornered": 0}[config.depot]
    cells = torch.empty((count, n + 1), dtype=torch.int32, device=device)
    taken = torch.empty((min(count, TOGETHER), -(-SIDE * SIDE // 32)), dtype=torch.int32, device=device)
    for begin in range(0, count, TOGETHER):
        part = cells[begin : begin + TOGETHER]
        launcher.launch(
            launcher.kernel("places", "place_clustered", ()), len(part), THREADS, SHARED, np.uint64(first + begin),
            *for_kernel(key), np.int32(n), np.int32(fixed), *map(np.int32, config.seeds),
            np.float32(config.halving).view(np.int32), np.int32(patience), taken.zero_(), part,
        )  # fmt: skip
    return cells


def _windows(points: Tensor, u: Tensor, config: Windows) -> tuple[Tensor, Tensor]:
    """(B, N+1, 2) windows and (B, N+1) service times: `constraints.windows` for a batch. u: (B, N)."""
    offset = points[:, 1:] - points[:, :1]
    distance = torch.sqrt(offset[..., 0] * offset[..., 0] + offset[..., 1] * offset[..., 1])
    away = torch.ceil(distance / _number(config.tick, points.device) - 1e-9)
    horizon, width, service = (round(value / config.tick) for value in (config.horizon, config.width, config.service))
    half = width // 2
    closes = torch.clamp(2 * (away.amax(dim=1, keepdim=True) + 1) + service + half, min=horizon)
    earliest, latest = away + 1, closes - service - away - 1
    centre = earliest + torch.round((latest - earliest) * u)
    ready, due = torch.maximum(centre - half, earliest), torch.minimum(centre + half, latest)
    per_unit = _number(1 / config.tick, points.device)
    both = torch.stack([_with_depot(ready), torch.cat([closes, due], dim=1)], dim=-1) / per_unit
    return both, _with_depot(torch.full_like(ready, service)) / per_unit


def _prizes(demand: Tensor, u: Tensor, config: Prizes) -> Tensor:
    """(B, N): `constraints.prizes` for a batch."""
    least, most = demand.amin(dim=1, keepdim=True), demand.amax(dim=1, keepdim=True)
    by_demand = torch.where(most > least, (demand - least).double() / (most - least).clamp(min=1), 0.5)
    mixed = config.share * by_demand + (1 - config.share) * u
    return config.low + (config.high - config.low) * mixed


def _for_routes(size: Tensor, demand: Tensor) -> Tensor:
    """(B,) capacities for routes of so many customers, and for whoever has the largest demand."""
    mean = demand.sum(dim=1) / _number(demand.shape[1], demand.device)
    return torch.maximum(torch.ceil(size * mean).long(), demand.amax(dim=1))


def inputs_of(drawn: Instances) -> Inputs:
    """`static_inputs` of a batch: in unit scale, and zeros for what the problems do not have."""
    (low, high), side = drawn.box(), drawn.side()[:, None]
    points = (drawn.coordinates - ((low + high) / 2)[:, None]) / side[..., None] + 0.5
    zeros = torch.zeros_like(drawn.demand)
    nodes = torch.cat([points, constraint_columns(torch, drawn)], dim=-1).float()
    return Inputs(nodes, None, zeros, zeros, zeros - 1)


def _unit(words: Tensor) -> Tensor:
    """In [0, 1), float64."""
    return words.double() * 2.0**-32


def _between(words: Tensor, low: int, high: int) -> Tensor:
    """Whole numbers from low to high."""
    return low + (words * (high - low + 1) >> 32)


def _with_depot(values: Tensor) -> Tensor:
    """(B, N+1): a 0 in front."""
    return torch.cat([torch.zeros_like(values[:, :1]), values], dim=1)


def _number(value: float, device: torch.device) -> Tensor:
    """To divide by, on the device: where it is a number of the CPU, a GPU multiplies by its inverse."""
    return torch.full((), value, dtype=torch.float64, device=device)
