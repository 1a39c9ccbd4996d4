"""Parts of solutions as inputs of the network: windows of one size.

The parts of a solution (`Regions`) differ in size, but the network takes a batch of one size. The customers of all
parts are put in one sequence, part after part and route after route. The window of a part begins where its customers
do. If they are fewer than the window holds, it shows customers of the next part behind them, or, at the end of the
sequence, of the part before; if they are more, it shows a stretch of them. A route that is cut begins or ends at the
depot. A window has no distance matrix: the network computes distances from coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ndsvrp.policy.inputs import Inputs, columns_by_side

SPARE = 1.25  # customers of a window, as a multiple of those of a part in the mean
MULTIPLE = 16  # of which the customers of a window usually are a multiple


class Divided(NamedTuple):
    """Solutions that are divided into parts; whole numbers of any type."""

    nodes: Tensor  #: (chains, N+1, inputs) of `Inputs`
    view: Tensor  #: (3, chains, N+1) of `View`
    counts: Tensor  #: (parts,) of `Regions`
    customers: Tensor  #: (parts, N) of `Regions`


class Windows(NamedTuple):
    """Windows of S customers, one per part."""

    inputs: Inputs  #: (parts, S+1), node 0 the depot
    nodes: Tensor  #: (parts, S+1) int64: which node of the problem each one is


def window_size(customers: int, regions: int, removals: int) -> int:
    """Return how many customers a window shows: at least as many as are to be removed."""
    return min(customers, max(removals, MULTIPLE * (1 + int(SPARE * customers / regions) // MULTIPLE)))


def windows(divided: Divided, shift: Tensor, removals: int) -> Windows:
    """Return the windows of all parts.

    shift: (parts,) in [0, 1), which stretch of a large part a window shows; removals: customers that will be removed.
    """
    static, customers = divided.nodes, divided.customers.to(torch.int64)
    chains, nodes, _ = static.shape
    regions, n = len(customers) // chains, nodes - 1
    size = window_size(n, regions, removals)
    counts = divided.counts.to(torch.int64).view(chains, regions)
    ends = counts.cumsum(1)
    begins = ends - counts
    # All customers of a solution, part after part.
    place = torch.arange(n, device=static.device).expand(chains, n).contiguous()
    part = torch.searchsorted(ends, place, right=True).clamp(max=regions - 1)
    inside = part * customers.shape[1] + place - begins.gather(1, part)
    sequence = customers.reshape(chains, -1).gather(1, inside)
    hidden = (counts - size).clamp(min=0)
    first = (begins + (shift.view(chains, regions) * (hidden + 1)).long()).clamp(max=n - size)
    shown = first[:, :, None] + torch.arange(size, device=static.device)
    shown = sequence.gather(1, shown.view(chains, -1)).view(-1, size)
    index = torch.cat([shown.new_zeros(len(shown), 1), shown], dim=1)
    return Windows(_inputs(static, divided.view.to(torch.int64), index, regions), index)


def _inputs(static: Tensor, view: Tensor, index: Tensor, regions: int) -> Inputs:
    """Return the inputs at these nodes, in a box of side 1 around them."""
    seen = static.repeat_interleave(regions, 0)
    seen = seen.gather(1, index[:, :, None].expand(-1, -1, seen.shape[2]))
    points = seen[:, :, :2]
    low = points.amin(1, keepdim=True)
    side = (points.amax(1, keepdim=True) - low).amax(2, keepdim=True).clamp(min=1e-6)
    unit = torch.ones_like(seen[:, :1])
    for column in columns_by_side():  # one by one: a list would be copied to the GPU, which a graph cannot do
        unit[:, :, column] = side[:, :, 0]
    seen = torch.cat([points - low, seen[:, :, 2:]], dim=2) / unit
    previous, following, route = view.repeat_interleave(regions, 1)
    local = torch.zeros_like(previous)
    local = local.scatter(1, index, torch.arange(index.shape[1], device=index.device).expand_as(index))
    previous, following = (local.gather(1, beside.gather(1, index)) for beside in (previous, following))
    return Inputs(seen, None, previous, following, _renumbered(route.gather(1, index)))


def _renumbered(route: Tensor) -> Tensor:
    """Return routes (parts, S+1) numbered from 0; -1 stays. The customers of a route are next to each other."""
    begins = torch.zeros_like(route)
    begins[:, 1:] = (route[:, 1:] != route[:, :-1]) & (route[:, 1:] >= 0)
    return torch.where(route >= 0, begins.cumsum(1) - 1, -1)
