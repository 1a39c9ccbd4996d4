"""Training in several processes, started by `torchrun`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.distributed

from ndsvrp.engine.device import available
from ndsvrp.errors import EngineError


class Process(NamedTuple):
    """This process, one of `processes`."""

    rank: int
    processes: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether it is the process that writes files and messages."""
        return self.rank == 0


@contextmanager
def joined(device: str) -> Iterator[Process]:
    """Join the process group, if there are several processes. `auto` is a GPU if there is one."""
    rank, processes = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    chosen = choose_device(device)
    if processes == 1:
        yield Process(rank, processes, chosen)
        return
    # Gradients are exchanged between GPUs, rewards between CPUs.
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Process(rank, processes, chosen)
        torch.distributed.barrier()  # a process that leaves early would break the connections of the others
    finally:
        torch.distributed.destroy_process_group()


def choose_device(name: str) -> torch.device:
    """Return the device of this process. `auto` is a GPU if there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise EngineError(f"unknown device '{name}': one of auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise EngineError("device 'cuda': torch finds no GPU here")
    if name == "cpu" or (name == "auto" and not available()):
        return torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def agreed(process: Process, answer: bool) -> bool:
    """Return the answer of the leading process: clocks differ, and all must stop after the same batch."""
    if process.processes == 1:
        return answer
    word = torch.tensor([float(answer)])
    torch.distributed.broadcast(word, 0)
    return bool(word.item() > 0)
