"""The device form of generated instances, made on the GPU for a whole batch, without a wait by the CPU.

Generated instances have one size, coordinates, whole demands, any number of vehicles, and a depot that opens at 0 and
stays open long enough for a trip to each customer. Tests compare the bytes with those of `upload.py`. In between the
last bit may differ, as between a square root here and `hypot` there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.engine.device import Device
from ndsvrp.engine.placement import Shape
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.engine.ticks import COARSE, LARGEST, MARGIN, MISSING, Ticks
from ndsvrp.engine.upload import Upload, UploadGroup, kind_of, near_by_points, room_of
from ndsvrp.generate.instances import Instances

FIELDS: Any = INSTANCE.fields  # type and offset of each
DTYPES = {"i4": torch.int32, "i8": torch.int64, "u8": torch.int64, "f4": torch.float32, "f8": torch.float64}
BIAS, FRACTION = 1023, 52  # of the exponent of a float64, and the bits after it


class Size(NamedTuple):
    """What a state needs to know of a problem."""

    customers: int
    vehicles: None = None


def upload_batch(device: Device, instances: Instances, neighbours: int) -> Callable[[], Upload]:
    """Launch all that makes the device form of instances, with one chain each, and return a function for the result.

    Calling that function waits for the few numbers that the CPU needs. There are no sort orders: training does not use
    them.
    """
    (count, nodes), where = instances.demand.shape, instances.demand.device
    n = nodes - 1
    ticks = BatchTicks(instances)
    arrays = ticks.arrays()
    near = near_by_points(torch, arrays["x"], arrays["y"], min(neighbours, n - 1))
    arrays["near"] = near.flatten(1)
    block, addresses = _block_of(arrays, count)
    exact = "xd" in arrays
    fields: dict[str, Any] = {
        "n": n, "capacity": instances.capacity, "vehicles": n, "scale": 1.0, "box_margin": ticks.error_margin(),
        "whole_scale": float(exact), "whole_shift": 0.5 * exact, "near_count": near.shape[2], "missing": MISSING,
        **addresses, "weight": addresses["demand"],
    }  # fmt: skip
    structs = block[: count * INSTANCE.itemsize].view(count, INSTANCE.itemsize)
    for name, value in fields.items():
        dtype, begin = FIELDS[name][:2]
        structs[:, begin : begin + dtype.itemsize].view(DTYPES[dtype.str[1:]])[:, 0] = value
    customer = torch.arange(1, nodes, dtype=torch.int32, device=where)
    tours = torch.stack([customer, torch.zeros_like(customer)], dim=1).view(1, 2 * n).repeat(count, 1)
    lengths = torch.full((count,), 2 * n, dtype=torch.int32, device=where)
    known = device.read(torch.cat([ticks.per_unit[:, 0], ticks.routes().double()]))

    def upload() -> Upload:
        *_, longest, typical = numbers = known()
        shape = Shape(kind_of(arrays), (n,) * count, int(longest), int(typical))
        chains = np.arange(count, dtype=np.int32)
        group = UploadGroup(shape, chains, chains, None, block, tours, lengths)
        return Upload((Size(n),) * count, chains, numbers[:-2].copy(), [group])

    return upload


def _block_of(arrays: Mapping[str, Tensor], count: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return memory with room for the structs of the instances and then their arrays, and the addresses of these.

    arrays: (instances, length) each; addresses: (instances,).
    """
    used, begins = room_of(count * INSTANCE.itemsize), {}
    rooms = {name: room_of(array.shape[1] * array.itemsize) for name, array in arrays.items()}
    for name, room in rooms.items():
        begins[name] = used
        used += count * room
    where = arrays["demand"].device
    block, number = torch.zeros(used, dtype=torch.uint8, device=where), torch.arange(count, device=where)
    for name, array in arrays.items():
        begin, room = begins[name], rooms[name]
        rows = block[begin : begin + count * room].view(array.dtype).view(count, -1 if room else 0)
        rows[:, : array.shape[1]].copy_(array)
    return block, {name: block.data_ptr() + begin + rooms[name] * number for name, begin in begins.items()}


@dataclass(frozen=True, eq=False)
class BatchTicks(Ticks):
    """The numbers of generated instances as an engine takes them. Constraints with a generator convert their own."""

    problem: Any  #: `Instances`
    xp: ClassVar[Any] = torch
    is_scarce: ClassVar[bool] = False

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
