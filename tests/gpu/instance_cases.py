"""Cells of clustered customers, slow and obvious, and the contents of an uploaded block: for tests on CPU and GPU."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ndsvrp.arrays import to_numpy
from ndsvrp.counter_random import Words
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.generate.attraction import ANYWHERE, CANDIDATES, SEEDS, SIDE, halved
from ndsvrp.train.config import Source

CPU = torch.device("cpu")
SOURCES = [
    Source(problem=problem, layout=layout, depot=depot, customers_per_route=routes)
    for problem in ("cvrp", "vrptw", "pcvrp", "pcvrptw")
    for layout, depot in (("uniform", ""), ("clustered", ""), ("clustered", "cornered"), ("clustered", "random"))
    for routes in ((), (1.0, 12.0))
]


def named(source: Source) -> str:
    return f"{source.problem}-{source.layout}-{source.depot}-{source.customers_per_route}"


def attraction(cell: int, seeds: list[int], halving: float) -> Any:
    total = np.zeros(1, np.float32)
    for seed in seeds:
        dx, dy = cell // SIDE - seed // SIDE, cell % SIDE - seed % SIDE
        total = total + halved(np.sqrt(np.array([dx * dx + dy * dy], np.float32)) / np.float32(halving))
    return total


def cells_of(words: Words, depot: int, seeds: int, n: int, anywhere: int, halving: float, patience: int) -> list[int]:
    """One instance, candidate by candidate."""
    cells, number = [depot], 0
    for kind, until in ((ANYWHERE, anywhere), (SEEDS, anywhere + seeds)):
        number = 0
        while len(cells) <= until:
            cell = int(words(1, kind, 2 * number)[0, 0]) * SIDE**2 >> 32
            cells += [cell] * (cell not in cells)
            number += 1
    centres, number = cells[1 + anywhere :], 0
    while len(cells) <= n:
        scale = np.float32(1) / np.array([attraction(cell, centres, halving) for cell in centres]).max()
        pairs = to_numpy(words(8192, CANDIDATES, 2 * number)).reshape(4096, 2)
        for word, coin in pairs.tolist():
            cell = word * SIDE**2 >> 32
            chance = attraction(cell, centres, halving) * scale * np.float32(2.0) ** min(number // patience, 120)
            if len(cells) <= n and cell not in cells and np.float32(coin) * np.float32(2**-32) < chance:
                cells.append(cell)
            number += 1
    return cells


def cells_by(
    place: Any, n: int, key: Sequence[int], first: int, count: int, patience: int, device: torch.device = CPU,
    anywhere: int = 0, depot: str = "centred", seeds: tuple[int, int] = (2, 6), halving: float = 40.0,
) -> Any:  # fmt: skip
    """The cells that `place` chooses for instances `first`, `first + 1`, … on a device."""
    words = Words(torch.arange(first, first + count, device=device), key)
    counts = (seeds[0] + torch.arange(count, device=device) % (seeds[1] - seeds[0] + 1)).clamp(max=n - anywhere)
    at = {"centred": 501000, "cornered": 0, "random": 77777}[depot]
    depots = torch.full((count,), at, device=device)
    return place(words, depots, counts, n, anywhere, halving, patience).cpu()


class Host:
    """In the place of a `Device`, for packing on a CPU."""

    def read(self, tensor: Any) -> Any:
        return lambda: tensor.numpy().copy()


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
