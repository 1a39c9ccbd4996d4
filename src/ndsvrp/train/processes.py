"""Several processes, started by `torchrun`: who we are, and how we talk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.distributed

from ndsvrp.engine.device import available
from ndsvrp.errors import EngineError


class Place(NamedTuple):
    """This process among all."""

    rank: int
    processes: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether it is the one that writes."""
        return self.rank == 0


@contextmanager
def joined(device: str) -> Iterator[Place]:
    """Find our place, and meet the others if there are any. `auto` is a GPU where there is one."""
    rank, processes = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    chosen = _device(device)
    if processes == 1:
        yield Place(rank, processes, chosen)
        return
    # Gradients travel between GPUs; rewards are on the CPU.
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Place(rank, processes, chosen)
        torch.distributed.barrier()  # nobody leaves while another still works: that would break its connections
    finally:
        torch.distributed.destroy_process_group()


def _device(name: str) -> torch.device:
    if name not in ("auto", "cpu", "cuda"):
        raise EngineError(f"unknown device '{name}': one of auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise EngineError("device 'cuda': torch finds no GPU here")
    if name == "cpu" or (name == "auto" and not available()):
        return torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def agreed(place: Place, answer: bool) -> bool:
    """What the leading process decided: clocks differ, and all must stop after the same batch."""
    if place.processes == 1:
        return answer
    word = torch.tensor([float(answer)])
    torch.distributed.broadcast(word, 0)
    return bool(word.item() > 0)
