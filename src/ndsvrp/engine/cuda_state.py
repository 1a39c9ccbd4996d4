"""Chains on a GPU: their memory, and their numbers for the CPU.

The records of all chains are in one block, which goes to the CPU in one copy. Reading it is the only time that the CPU
waits. A snapshot orders the copy at once, so that reading it does not wait for later launches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import ChainStats, Floats, Ints, Sized
from ndsvrp.engine.device import Device
from ndsvrp.engine.placement import Shape
from ndsvrp.engine.structs import RECORD
from ndsvrp.errors import EngineError

OWN_HEAD = 3  # kOwnHead of native/cuda/block.hpp
WORDS = RECORD.itemsize // 8  # int64 numbers that a record takes


@dataclass
class Group:
    """The chains of a batch whose problems have the same rules and distance."""

    shape: Shape
    members: Ints  #: (m,) numbers of the chains in the batch
    instances: Any  #: bytes: the records of the problems, then their arrays
    problem_of: Any  #: (m,) int32 index within the group of the problem of each chain
    number: Any  #: members, on the device
    key: Any  #: (m,) int32 numbers by which they draw random numbers
    memory: Any  #: (m, bytes) the chains
    records: Any  #: (m, WORDS) int64: of each a `RECORD`
    made: Any  #: (m,) int32 steps of the last `improve`; -1 for good if one ran out of memory
    plans: dict[Any, Any] = field(default_factory=dict)
    workspaces: dict[Any, Any] = field(default_factory=dict)  #: by layout and blocks, the last ones used
    parts: dict[int, "Parts"] = field(default_factory=dict)  #: by number of regions
    exchanging: dict[int, Any] = field(default_factory=dict)  #: (m,) int32 who exchanges with whom, by their groups


@dataclass
class Parts(Group):
    """The parts of the solutions of a group, as chains: native/include/ndsvrp/regions.hpp."""

    own: Any = None  #: (parts, OWN_HEAD + N) int32: numbers of each part, then its customers


class Seen(NamedTuple):
    """The numbers of all chains, in the order of the batch."""

    records: npt.NDArray[Any]  #: (chains,) of `RECORD`
    made: Ints  #: (chains,)


@dataclass
class CudaState:
    """Chains on a GPU."""

    problems: tuple[Sized, ...]
    problem_of: Ints
    groups: list[Group]
    block: Any  #: int64: the records of all chains, group by group, then the steps they made
    units: Floats  #: (chains,) ticks per unit
    per_unit: Any  #: the same on the GPU
    device: Device
    _seen: Seen | None = field(default=None, repr=False)  #: what was read; None: something was launched since

    def stats(self) -> ChainStats:
        return self._stats(self.look())

    def snapshot(self) -> Callable[[], ChainStats]:
        arrived = self.device.read(self.block)
        return lambda: self._stats(self._checked(arrived()))

    def changed(self) -> None:
        """Note that something was launched: what was read is out of date."""
        self._seen = None

    def look(self) -> Seen:
        """Return the numbers of all chains. Waits for the GPU if something was launched since the last call."""
        if self._seen is None:
            self._seen = self._checked(self.device.read(self.block)())
        return self._seen

    def _checked(self, block: npt.NDArray[np.int64]) -> Seen:
        """Return the numbers in a block. Raises if a step ran out of memory, which is a bug in `placement.py`."""
        chains = len(self.problem_of)
        records = block[: chains * WORDS].view(RECORD)
        made = block[chains * WORDS :].view(np.int32)[:chains]
        if np.any(made < 0):
            raise EngineError("a reconstruction found too little room on the GPU; please report this")
        if len(self.groups) > 1:
            places = np.argsort(np.concatenate([group.members for group in self.groups]))
            records, made = records[places], made[places]
        return Seen(records, made)

    def _stats(self, seen: Seen) -> ChainStats:
        current, best = seen.records["current"], seen.records["best"]
        return ChainStats(
            current["cost"] / self.units,
            best["best_cost"] / self.units,
            best["best_unserved"],
            current["unserved_required"],
            int(seen.made.sum()),
        )


def block_of_records(torch: Any, chains: int) -> tuple[Any, Any, Any]:
    """Return the block of all chains, and its parts: (chains, WORDS) int64 records, (chains,) int32 steps made."""
    records = chains * WORDS
    block = torch.zeros(records + (chains + 1) // 2, dtype=torch.int64, device="cuda")
    return block, block[:records].view(chains, WORDS), block[records:].view(torch.int32)[:chains]
