"""Problems that were drawn on the GPU, packed there: all at once, and nothing goes to the CPU and back.

What `ticks.py` says of one problem is said here of a batch, for what is drawn for training: problems of one size by
their coordinates, whole demands, any number of vehicles, a depot that opens at 0 and has time for a vehicle to each
customer. What is packed is the same bits: the tests compare them. In between the last bit may be another, as of a way
that is a square root here and `hypot` there. (Where a tensor on a GPU is divided by a number of the CPU, torch
multiplies by its inverse: never done here but with powers of two.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.constraints.prizes import DEAR
from ndsvrp.constraints.time_windows import EVER
from ndsvrp.engine.device import Device
from ndsvrp.engine.placement import Shape
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.engine.ticks import COARSE, LARGEST, MARGIN
from ndsvrp.engine.upload import Upload, UploadGroup, kind_of, near_by_points, room_of
from ndsvrp.generate.instances import Instances
from ndsvrp.metric import FLOAT_TOLERANCE, NEARLY

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
    ticks = _Ticks(drawn)
    arrays = ticks.arrays()
    near = near_by_points(torch, arrays["x"], arrays["y"], min(neighbours, n - 1))
    arrays["near"] = near.flatten(1)
    used, places = room_of(count * INSTANCE.itemsize), {}
    for name, array in arrays.items():
        places[name] = used, room_of(array.shape[1] * array.itemsize)
        used += count * places[name][1]
    block = torch.zeros(used, dtype=torch.uint8, device=where)
    number = torch.arange(count, device=where)
    windows = drawn.windows is not None
    fields: dict[str, Any] = {
        "n": n, "capacity": drawn.capacity, "vehicles": n, "scale": 1.0, "box_margin": ticks.box_margin(),
        "whole_scale": float(windows), "whole_shift": 0.5 * windows, "near_count": near.shape[2],
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
    known = device.read(torch.cat([ticks.per_unit, ticks.routes().double()]))

    def packed() -> Upload:
        *_, longest, typical = numbers = known()
        shape = Shape(kind_of(arrays), (n,) * count, int(longest), int(typical))
        all_of_them = np.arange(count, dtype=np.int32)
        group = UploadGroup(shape, all_of_them, all_of_them, None, block, tours, lengths)
        return Upload((Size(n),) * count, all_of_them, numbers[:-2].copy(), [group])

    return packed


class _Ticks:
    """`Ticks` of a batch."""

    def __init__(self, drawn: Instances) -> None:
        self.drawn = drawn
        self.low, high = drawn.box()
        span = high - self.low
        self.reach = torch.sqrt(span[:, 0] * span[:, 0] + span[:, 1] * span[:, 1])
        largest = self.reach
        if drawn.windows is not None:
            largest = torch.maximum(largest, self.due.amax(dim=1))
        if drawn.prize is not None:
            largest = torch.maximum(largest, torch.minimum(drawn.prize.amax(dim=1), DEAR * self.reach))
        mantissa, exponent = torch.frexp(largest)
        power = (LARGEST.bit_length() - 1) - exponent.long() + (mantissa == 0.5)
        self.per_unit = ((BIAS + power) << FRACTION).view(torch.float64)  #: (B,) powers of two

    @cached_property
    def due(self) -> Tensor:
        """(B, N+1) with the tolerance of `check`, and none later than a vehicle could ever be."""
        windows, service = self.drawn.windows, self.drawn.service
        assert windows is not None and service is not None
        horizon = windows[:, 0, 1]
        busy = windows[:, :, 0].amax(dim=1) + service.sum(dim=1) + windows.shape[1] * self.reach
        return torch.minimum(windows[:, :, 1] + (NEARLY * (FLOAT_TOLERANCE * horizon))[:, None], (EVER * busy)[:, None])

    def arrays(self) -> dict[str, Tensor]:
        """What a record points to, (B, N+1) each."""
        drawn, per_unit = self.drawn, self.per_unit[:, None]
        points = (drawn.coordinates - self.low[:, None]) * per_unit[..., None]
        arrays = {"demand": drawn.demand, "x": points[..., 0].float(), "y": points[..., 1].float()}
        if drawn.windows is not None and drawn.service is not None:
            service = torch.ceil(drawn.service * per_unit + 0.5)
            service[:, 0] = 0.0
            arrays["ready"] = torch.ceil(drawn.windows[:, :, 0] * per_unit)
            arrays["due"], arrays["service"] = torch.floor(self.due * per_unit - 0.5), service
        if drawn.prize is not None:
            arrays["prize"] = torch.round(torch.minimum(drawn.prize, LARGEST / per_unit) * per_unit)
        whole = {name: array if name in "xy" else array.to(torch.int32) for name, array in arrays.items()}
        return whole if drawn.windows is None else {**whole, "xd": points[..., 0], "yd": points[..., 1]}

    def box_margin(self) -> Tensor:
        """(B,)."""
        return MARGIN + (self.reach * self.per_unit * COARSE).long()

    def routes(self) -> Tensor:
        """(2,): `longest_route` and `typical_route` of those that have the most."""
        n, capacity = self.drawn.customers, self.drawn.capacity
        carried = self.drawn.demand[:, 1:].sort(dim=1).values.cumsum(dim=1)
        longest = (carried <= capacity[:, None]).sum(dim=1)
        full = torch.clamp((carried[:, -1] + capacity - 1) // capacity, min=1)
        return torch.stack([longest, (n + full - 1) // full]).amax(dim=1)
