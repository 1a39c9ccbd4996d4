"""Batches of instances that a GPU draws, uploads and prepares for the network, without a wait by the CPU.

The numbers are those of `InstanceRecipe.problems`, bit by bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ndsvrp.arrays import Array
from ndsvrp.counter_random import Words
from ndsvrp.engine.batched import upload_batch
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.cuda_state import CudaState
from ndsvrp.engine.device import Device
from ndsvrp.engine.upload import Upload
from ndsvrp.generate.attraction import CELLS, PATIENCE
from ndsvrp.generate.instances import Instances
from ndsvrp.policy.inputs import Inputs, constraint_columns
from ndsvrp.problem import Problem

THREADS = 256  # of a block that places the customers of one instance
SHARED = 1092  # bytes that its threads share
AT_ONCE = 1024  # instances whose customers are placed by one launch: 120 KiB of grid each


class InstanceRecipe(Protocol):
    """How instances of one size are made, on a CPU and on a device: generated, or resampled from given ones."""

    def problems(self, seed: int, first: int, count: int) -> list[Problem]:
        """Return instances `first` … `first + count - 1` of a seed."""

    def draw(self, seed: int, numbers: Array, place: Any = ...) -> Instances:
        """Return the instances with these numbers as arrays, in their library and on their device."""


@dataclass(frozen=True, eq=False)
class GpuBatch:
    """Instances of one size on the GPU of an engine."""

    engine: CudaEngine
    instances: Instances
    upload: Callable[[], Upload]  #: for `CudaEngine.start_upload`; waits for a few numbers
    inputs: Inputs  #: without solutions

    def __len__(self) -> int:
        return len(self.instances)

    def start(self, first: int) -> CudaState:
        """Return one chain per instance, with random numbers as for chains `first`, `first + 1`, …"""
        return self.engine.start_upload(self.upload(), first=first)


def draw_on_gpu(
    engine: CudaEngine, device: torch.device, recipe: InstanceRecipe, seed: int, first: int, count: int
) -> GpuBatch:
    """Launch all that makes instances `first` … `first + count - 1` of a seed, and return without waiting."""
    place = partial(place_clustered, engine.device)
    instances = recipe.draw(seed, torch.arange(first, first + count, device=device), place)
    return GpuBatch(engine, instances, upload_batch(engine.device, instances, engine.neighbours), inputs_of(instances))


def place_clustered(
    gpu: Device, words: Words, depot: Tensor, seeds: Tensor, customers: int, anywhere: int, halving: float,
    patience: int = PATIENCE,
) -> Tensor:  # fmt: skip
    """Return (B, N+1) int32 cells as `generate.attraction.place`, by a kernel (clustered_layout.cu)."""
    count = len(depot)
    cells = torch.empty((count, customers + 1), dtype=torch.int32, device=depot.device)
    taken = torch.empty((min(count, AT_ONCE), -(-CELLS // 32)), dtype=torch.int32, device=depot.device)
    for begin in range(0, count, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        gpu.launch(
            gpu.kernel("clustered_layout", "place_clustered", ()), len(cells[part]), THREADS, SHARED,
            words.one[part], words.two[part], depot[part], seeds[part], np.int32(customers), np.int32(anywhere),
            np.float32(halving).view(np.int32), np.int32(patience), taken.zero_(), cells[part],
        )  # fmt: skip
    return cells


def inputs_of(drawn: Instances) -> Inputs:
    """Return `static_inputs` of a batch: in unit scale, and zeros for what the problems do not have."""
    (low, high), side = drawn.box(), drawn.side()[:, None]
    points = (drawn.coordinates - ((low + high) / 2)[:, None]) / side[..., None] + 0.5
    zeros = torch.zeros_like(drawn.demand)
    nodes = torch.cat([points, constraint_columns(torch, drawn)], dim=-1).float()
    return Inputs(nodes, None, zeros, zeros, zeros - 1)
