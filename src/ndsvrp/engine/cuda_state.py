"""Chains on a GPU: where their memory is, and what the CPU wants to know of them.

The numbers of all chains lie in one block, which goes to the CPU in one copy: that is the only time anybody waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Ints, Numbers
from ndsvrp.engine.device import RECORD, Device
from ndsvrp.engine.placement import Shape
from ndsvrp.errors import EngineError
from ndsvrp.problem import Problem

COST, BEST_COST, MISSING = RECORD.index("cost"), RECORD.index("best_cost"), RECORD.index("missing")


@dataclass
class Group:
    """The chains of a batch whose problems are of one kind."""

    shape: Shape
    members: Ints  #: (m,) numbers of the chains in the batch
    instances: Any  #: bytes of the problems' records, and behind them their arrays
    which: Any  #: (m,) int32 problem of each chain, within the group
    number: Any  #: members, on the device
    key: Any  #: the numbers by which they draw random numbers
    memory: Any  #: (m, bytes) the chains
    records: Any  #: (m, 9) int64, their numbers
    made: Any  #: (m,) int32 steps made by the last call; -1 for good if one found too little room
    plans: dict[Any, Any] = field(default_factory=dict)
    scratch: Any = None


class Seen(NamedTuple):
    """What was read of all chains, in the order of the batch."""

    records: npt.NDArray[np.int64]  #: (chains, 9); see `RECORD`
    made: Ints  #: (chains,)


@dataclass
class CudaState:
    """Chains on a GPU."""

    problems: tuple[Problem, ...]
    which: Ints
    groups: list[Group]
    block: Any  #: int64: the records of all chains, group by group, and behind them the steps they made
    units: npt.NDArray[np.float64]  #: (chains,) ticks per unit
    per_unit: Any  #: the same on the GPU
    device: Device
    _seen: Seen | None = field(default=None, repr=False)  #: of the block as it is; None: something was launched since

    def costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the current solutions."""
        return self.numbers().costs

    def best_costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the best solution each chain has seen."""
        return self.numbers().best_costs

    def missing(self) -> Ints:
        """(chains,) required customers that those best solutions leave out."""
        return self.numbers().missing

    def numbers(self) -> Numbers:
        """All three; the GPU is waited for only if it was given something to do since the last look."""
        records = self.look().records
        return Numbers(
            records[:, COST] / self.units, records[:, BEST_COST] / self.units, records[:, MISSING].astype(np.int32)
        )

    def changed(self) -> None:
        """Something was launched: what is known is not true any more."""
        self._seen = None

    def look(self) -> Seen:
        """What there is to know of all chains. Refuses to go on if a step found too little room: that would be a
        mistake of `placement.py`."""
        if self._seen is None:
            block, chains = self.device.fetch(self.block), len(self.which)
            records = block[: chains * len(RECORD)].reshape(chains, -1)
            made = block[chains * len(RECORD) :].view(np.int32)[:chains]
            if len(self.groups) > 1:
                places = np.argsort(np.concatenate([group.members for group in self.groups]))
                records, made = records[places], made[places]
            self._seen = Seen(records, made)
        if np.any(self._seen.made < 0):
            raise EngineError("a reconstruction found too little room on the GPU; please report this")
        return self._seen


def block_of_numbers(torch: Any, chains: int) -> tuple[Any, Any, Any]:
    """A block for the numbers of so many chains, and the two parts of it: (chains, 9) int64 records, (chains,) int32
    steps made."""
    records = chains * len(RECORD)
    block = torch.zeros(records + (chains + 1) // 2, dtype=torch.int64, device="cuda")
    return block, block[:records].view(chains, len(RECORD)), block[records:].view(torch.int32)[:chains]
