"""Chains on a GPU: where their memory is, and what the CPU wants to know of them.

The numbers of all chains lie in one block, which goes to the CPU in one copy: that is the only time anybody waits, and
with a snapshot, which is a copy that has been ordered before, not for what was launched since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import ChainStats, Ints, Sized
from ndsvrp.engine.device import Device
from ndsvrp.engine.placement import Shape
from ndsvrp.engine.structs import RECORD
from ndsvrp.errors import EngineError

WORDS = RECORD.itemsize // 8  # int64 numbers that a record takes


@dataclass
class Group:
    """The chains of a batch whose problems are of one kind."""

    shape: Shape
    members: Ints  #: (m,) numbers of the chains in the batch
    instances: Any  #: bytes of the problems' records, and behind them their arrays
    problem_of: Any  #: (m,) int32 problem of each chain, within the group
    number: Any  #: members, on the device
    key: Any  #: the numbers by which they draw random numbers
    memory: Any  #: (m, bytes) the chains
    records: Any  #: (m, WORDS) int64: of each a `RECORD`
    made: Any  #: (m,) int32 steps made by the last call of rebuild; -1 for good if one found too little room
    plans: dict[Any, Any] = field(default_factory=dict)
    scratch: Any = None


class Seen(NamedTuple):
    """What was read of all chains, in the order of the batch."""

    records: npt.NDArray[Any]  #: (chains,) of `RECORD`
    made: Ints  #: (chains,)


@dataclass
class CudaState:
    """Chains on a GPU."""

    problems: tuple[Sized, ...]
    problem_of: Ints
    groups: list[Group]
    block: Any  #: int64: the records of all chains, group by group, and behind them the steps they made
    units: npt.NDArray[np.float64]  #: (chains,) ticks per unit
    per_unit: Any  #: the same on the GPU
    device: Device
    _seen: Seen | None = field(default=None, repr=False)  #: of the block as it is; None: something was launched since

    def costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the current solutions."""
        return self.stats().costs

    def best_costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the best solution each chain has seen."""
        return self.stats().best_costs

    def missing(self) -> Ints:
        """(chains,) required customers that those best solutions leave out."""
        return self.stats().missing

    def stats(self) -> ChainStats:
        """All of these; the GPU is waited for only if it was given something to do since the last look."""
        return self._numbers(self.look())

    def snapshot(self) -> Callable[[], ChainStats]:
        """The numbers as they will be when all is done that has been launched up to here."""
        arrived = self.device.read(self.block)
        return lambda: self._numbers(self._checked(arrived()))

    def changed(self) -> None:
        """Something was launched: what is known is not true any more."""
        self._seen = None

    def look(self) -> Seen:
        """What there is to know of all chains; here the GPU is waited for."""
        if self._seen is None:
            self._seen = self._checked(self.device.read(self.block)())
        return self._seen

    def _checked(self, block: npt.NDArray[np.int64]) -> Seen:
        """What a block says. Refuses to go on if a step found too little room: that would be a mistake of
        `placement.py`."""
        chains = len(self.problem_of)
        records = block[: chains * WORDS].view(RECORD)
        made = block[chains * WORDS :].view(np.int32)[:chains]
        if np.any(made < 0):
            raise EngineError("a reconstruction found too little room on the GPU; please report this")
        if len(self.groups) > 1:
            places = np.argsort(np.concatenate([group.members for group in self.groups]))
            records, made = records[places], made[places]
        return Seen(records, made)

    def _numbers(self, seen: Seen) -> ChainStats:
        current, best = seen.records["current"], seen.records["best"]
        return ChainStats(
            current["cost"] / self.units, best["best_cost"] / self.units, best["best_unserved"], int(seen.made.sum())
        )


def block_of_numbers(torch: Any, chains: int) -> tuple[Any, Any, Any]:
    """A block for the numbers of so many chains, and the two parts of it: (chains, WORDS) int64 records, (chains,)
    int32 steps made."""
    records = chains * WORDS
    block = torch.zeros(records + (chains + 1) // 2, dtype=torch.int64, device="cuda")
    return block, block[:records].view(chains, WORDS), block[records:].view(torch.int32)[:chains]
