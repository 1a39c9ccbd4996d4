"""Places of customers, slow and obvious, and what a packed block holds: for tests with and without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ndsvrp.counter_random import Words
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.generate.config import Clustered
from ndsvrp.train.config import Source
from ndsvrp.train.drawn import place_clustered

CPU = torch.device("cpu")
SIDE, OF_SEEDS, OF_CANDIDATES = 1001, 0x510E527F, 0x9B05688C
POWERS = [0.00011498084, -0.0012917893, 0.009597169, -0.05549928, 0.2402261, -0.6931472, 1.0]
SOURCES = [
    Source(problem=problem, layout=layout, depot=depot, customers_per_route=routes)
    for problem in ("cvrp", "vrptw", "pcvrp", "pcvrptw")
    for layout, depot in (("uniform", ""), ("clustered", ""), ("clustered", "cornered"), ("clustered", "random"))
    for routes in ((), (1.0, 12.0))
]


def named(source: Source) -> str:
    return f"{source.problem}-{source.layout}-{source.depot}-{source.customers_per_route}"


def halved(t: Any) -> Any:
    """2^-t in float32, operation by operation as the kernel has it."""
    whole = np.minimum(t, 100).astype(np.int32)
    f = np.where(whole < 100, t - whole.astype(np.float32), np.float32(0))
    power = np.float32(POWERS[0])
    for more in POWERS[1:]:
        power = power * f + np.float32(more)
    return power * np.ldexp(np.float32(1), -whole)


def pull(cells: Any, seeds: list[int], halving: float) -> Any:
    total = np.zeros(np.shape(cells), np.float32)
    for seed in seeds:
        dx, dy = cells // SIDE - seed // SIDE, cells % SIDE - seed % SIDE
        total = total + halved(np.sqrt((dx * dx + dy * dy).astype(np.float32)) / np.float32(halving))
    return total


def cells_of(words: Any, n: int, depot: int, fewest: int, most: int, halving: float, patience: int) -> list[int]:
    """One instance. words: (amount, kind) -> numbers."""

    def drawn(amount: int, kind: int) -> Any:
        return words(amount, kind)[0].numpy()

    head = drawn(1000, OF_SEEDS)
    cells = [int(head[1]) * SIDE**2 >> 32 if depot < 0 else depot]
    seeds = min(n, fewest + (int(head[0]) * (most - fewest + 1) >> 32))
    for word in head[2:]:
        cell = int(word) * SIDE**2 >> 32
        if len(cells) <= seeds and cell not in cells:
            cells.append(cell)
    centres = cells[1:]
    scale = np.float32(1) / pull(np.array(centres), centres, halving).max()
    taken, tried, chunk = set(cells), 0, 4096
    while len(cells) <= n:
        block = drawn(2 * (tried + chunk), OF_CANDIDATES)[2 * tried :]
        candidates = block[::2] * SIDE**2 >> 32
        doubled = np.ldexp(np.float32(1), np.minimum(np.arange(tried, tried + chunk) // patience, 120))
        chance = pull(candidates, centres, halving) * scale * doubled
        for cell in candidates[block[1::2].astype(np.float32) * np.float32(2**-32) < chance].tolist():
            if cell not in taken and len(cells) <= n:
                taken.add(cell)
                cells.append(cell)
        tried, chunk = tried + chunk, 2 * chunk
    return cells


class ByReference:
    """In the place of a `Device`, with that for a kernel."""

    def __init__(self) -> None:
        self.read = lambda tensor: lambda: tensor.numpy().copy()

    def kernel(self, file: str, name: str, macros: Any) -> str:
        return name

    def launch(self, kernel: str, grid: int, threads: int, shared: int, *arguments: Any) -> None:
        assert kernel == "place_clustered"
        first, one, two, n, depot, fewest, most, halving, patience, taken, cells = arguments
        assert len(taken) >= grid == len(cells) and not taken.any()
        key = [int(word) >> shift & 0xFFFFFFFF for word in (one, two) for shift in (0, 32)]
        for i in range(grid):
            words = Words(torch.tensor([int(first) + i]), key)
            found = cells_of(
                words, int(n), int(depot), int(fewest), int(most), float(halving.view(np.float32)), int(patience)
            )
            cells[i] = torch.tensor(found, dtype=torch.int32)


def cells_by(launcher: Any, n: int, key: Sequence[int], first: int, count: int, patience: int, **changes: Any) -> Any:
    """As `place_clustered`, on whatever device the launcher has."""
    device = CPU if not hasattr(launcher, "arch") else torch.device("cuda")
    return place_clustered(launcher, device, Clustered(**changes), n, key, first, count, patience).cpu()


def unpacked(block: Any, count: int) -> list[SimpleNamespace]:
    """Records of a block, with the bytes of what they point to in the place of addresses."""
    base, data = block.data_ptr(), block.cpu().numpy()
    found = []
    for record in data[: count * INSTANCE.itemsize].view(INSTANCE):
        nodes = int(record["n"]) + 1
        values: dict[str, Any] = {}
        for name in INSTANCE.names or ():
            value = record[name].item()
            if INSTANCE[name] == np.uint64 and value:
                each = {"near": 4 * int(record["near_count"]), "xd": 8, "yd": 8}.get(name, 4)
                value = data[value - base :][: nodes * each].tobytes()
                assert len(value) == nodes * each
            values[name] = value
        found.append(SimpleNamespace(**values))
    return found
