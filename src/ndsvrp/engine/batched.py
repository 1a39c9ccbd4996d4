"""Problems that were drawn on the GPU, packed there: all at once, and nothing goes to the CPU and back.

What `ticks.py` says of one problem is said here of a batch, for what is drawn for training: problems of one size by
their coordinates, whole demands, any number of vehicles, a depot that opens at 0 and has time for a vehicle to each
customer. What is packed is the same bits: the tests compare them. In between the last bit may be another, as of a way
that is a square root here and `hypot` there. (Where a tensor on a GPU is divided by a number of the CPU, torch
multiplies by its inverse: never done here but with powers of two.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.engine.device import Device
from ndsvrp.engine.placement import Shape
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.engine.ticks import COARSE, LARGEST, MARGIN, Ticks
from ndsvrp.engine.upload import Upload, UploadGroup, kind_of, near_by_points, room_of
from ndsvrp.generate.instances import Instances

FIELDS: Any = INSTANCE.fields  # type and place of each
KINDS = {"i4": torch.int32, "u8": torch.int64, "f4": torch.float32, "f8": torch.float64}
BIAS, FRACTION = 1023, 52  # of the exponent of a float64, and the bits behind it


class Size(NamedTuple):
    """What is asked of problems whose chains have started."""

    customers: int
    vehicles: None = None


def pack_drawn(device: Device, drawn: Instances, neighbours: int) -> Callable[[], Upload]:
    """Launch all that `pack` and `upload` do, one chain per problem. Whoever calls what is returned waits for the few
    numbers that the CPU has to know. device: a `Device`. There are no sort orders: nobody in training asks for them."""
    (count, nodes), where = drawn.demand.shape, drawn.demand.device
    n = nodes - 1
    ticks = BatchTicks(drawn)
    arrays = ticks.arrays()
    near = near_by_points(torch, arrays["x"], arrays["y"], min(neighbours, n - 1))
    arrays["near"] = near.flatten(1)
    used, places = room_of(count * INSTANCE.itemsize), {}
    for name, array in arrays.items():
        places[name] = used, room_of(array.shape[1] * array.itemsize)
        used += count * places[name][1]
    block = torch.zeros(used, dtype=torch.uint8, device=where)
    number = torch.arange(count, device=where)
    exact = "xd" in arrays
    fields: dict[str, Any] = {
        "n": n, "capacity": drawn.capacity, "vehicles": n, "scale": 1.0, "box_margin": ticks.error_margin(),
        "whole_scale": float(exact), "whole_shift": 0.5 * exact, "near_count": near.shape[2],
    }  # fmt: skip
    for name, (begin, room) in places.items():
        rows = block[begin : begin + count * room].view(arrays[name].dtype).view(count, -1 if room else 0)
        rows[:, : arrays[name].shape[1]].copy_(arrays[name])
        fields[name] = block.data_ptr() + begin + room * number
    table = block[: count * INSTANCE.itemsize].view(count, INSTANCE.itemsize)
    for name, value in fields.items():
        kind, begin = FIELDS[name][:2]
        table[:, begin : begin + kind.itemsize].view(KINDS[kind.str[1:]])[:, 0] = value
    customer = torch.arange(1, nodes, dtype=torch.int32, device=where)
    tours = torch.stack([customer, torch.zeros_like(customer)], dim=1).view(1, 2 * n).repeat(count, 1)
    lengths = torch.full((count,), 2 * n, dtype=torch.int32, device=where)
    known = device.read(torch.cat([ticks.per_unit[:, 0], ticks.routes().double()]))

    def packed() -> Upload:
        *_, longest, typical = numbers = known()
        shape = Shape(kind_of(arrays), (n,) * count, int(longest), int(typical))
        all_of_them = np.arange(count, dtype=np.int32)
        group = UploadGroup(shape, all_of_them, all_of_them, None, block, tours, lengths)
        return Upload((Size(n),) * count, all_of_them, numbers[:-2].copy(), [group])

    return packed


@dataclass(frozen=True, eq=False)
class BatchTicks(Ticks):
    """The numbers of drawn instances as an engine takes them. Constraints with a generator convert their own."""

    problem: Any  #: `Instances`
    xp: ClassVar[Any] = torch

    @cached_property
    def longest(self) -> Any:
        """(B, 1) upper bounds on all lengths."""
        low, high = self.problem.box()
        span = high - low
        return torch.sqrt(span[:, :1] * span[:, :1] + span[:, 1:] * span[:, 1:])

    @cached_property
    def per_unit(self) -> Any:
        """(B, 1) ticks per unit of length, time and prize: powers of two."""
        largest = self.longest
        for constraint in self.constraints:
            largest = torch.clip(largest, constraint.largest_length(self), None)
            largest = torch.clip(largest, constraint.largest_time(self), None)
        mantissa, exponent = torch.frexp(largest)
        power = (LARGEST.bit_length() - 1) - exponent.long() + (mantissa == 0.5)
        return ((BIAS + power) << FRACTION).view(torch.float64)

    def arrays(self) -> dict[str, Tensor]:
        """Return what the native instances point to, (B, N+1) each."""
        low, _ = self.problem.box()
        x, y = ((self.problem.coordinates - low[:, None]) * self.per_unit[..., None]).unbind(-1)
        arrays = {"demand": self.problem.demand.to(torch.int32), "x": x.float(), "y": y.float()}
        for constraint in self.constraints:
            arrays |= constraint.native(self) if constraint.generator else {}
        return {**arrays, "xd": x, "yd": y} if self.has_times else arrays

    def error_margin(self) -> Any:
        """Return (B,) `Ticks.box_margin`."""
        return MARGIN + (self.longest * self.per_unit * COARSE)[:, 0].long()

    def routes(self) -> Tensor:
        """Return (2,) the largest `longest_route` and `typical_route`."""
        n, capacity = self.problem.customers, self.problem.capacity
        carried = self.problem.demand[:, 1:].sort(dim=1).values.cumsum(dim=1)
        longest = (carried <= capacity[:, None]).sum(dim=1)
        full = torch.clamp((carried[:, -1] + capacity - 1) // capacity, min=1)
        return torch.stack([longest, (n + full - 1) // full]).amax(dim=1)
