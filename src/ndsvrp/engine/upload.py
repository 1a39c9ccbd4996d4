"""The device form of problems: one block of bytes per kind, made on the CPU (on the GPU: batched.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

import ndsvrp._core as _core
from ndsvrp.engine.base import Floats, Init, Ints, Sized
from ndsvrp.engine.placement import Kind, Shape, longest_route, typical_route
from ndsvrp.engine.shared import first_tours, instance_fields
from ndsvrp.engine.structs import INSTANCE, POINTERS
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.problem import Problem

AT_ONCE = 1 << 24  # pairs of customers that are compared at once for neighbour lists


@dataclass(eq=False)
class UploadGroup:
    """The chains whose problems have the same rules and distance."""

    shape: Shape
    members: Ints  #: (m,) numbers of the chains in the batch
    problem_of: Ints  #: (m,) index within the group of the problem of each chain
    table: npt.NDArray[Any] | None
    """(problems,) of `INSTANCE`; pointers are offsets in the block. None: the block is on the GPU already."""
    block: Any  #: bytes: room for the table, then the arrays
    tours: Any  #: (problems, longest) int32 first solutions
    lengths: Any  #: (problems,) int32 of them


@dataclass(eq=False)
class Upload:
    """A batch of problems and its chains."""

    problems: tuple[Sized, ...]
    problem_of: Ints
    per_unit: Floats  #: (chains,) ticks per unit
    groups: list[UploadGroup]


def prepare(
    problems: Sequence[Problem], problem_of: npt.ArrayLike, init: Init, neighbours: int
) -> Upload:  # fmt: skip
    """Make the device form of problems, without a GPU."""
    problem_of = np.ascontiguousarray(problem_of, np.int32)
    ticks = [ticks_of(problem) for problem in problems]
    fields = [instance_fields(t) for t in ticks]
    kinds = [kind_of(f) for f in fields]
    tours, groups = first_tours(ticks, init), []
    for kind in dict.fromkeys(kinds[i] for i in problem_of):
        inside = [i for i, other in enumerate(kinds) if other == kind]
        members = np.flatnonzero(np.isin(problem_of, inside)).astype(np.int32)
        within = np.searchsorted(inside, problem_of[members]).astype(np.int32)
        mine = [fields[i] for i in inside]
        shape = Shape(
            kind,
            tuple(len(f["demand"]) - 1 for f in mine),
            max(longest_route(f["demand"], f["capacity"]) for f in mine),
            max(typical_route(f["demand"], f["capacity"]) for f in mine),
        )
        groups.append(
            UploadGroup(shape, members, within, *_block(mine, neighbours), *in_rows([tours[i] for i in inside]))
        )
    return Upload(tuple(problems), problem_of, np.array([ticks[i].per_unit for i in problem_of]), groups)


def send(torch: Any, group: UploadGroup, device: str = "cuda") -> Any:
    """Send a block to the GPU and return it, pointers and neighbour lists filled in."""
    if group.table is None:
        return group.block
    block = torch.empty(group.block.size, dtype=torch.uint8, device=device)
    table = group.table.copy()
    for name in POINTERS:
        table[name] += (table[name] > 0) * np.uint64(block.data_ptr())
    group.block[: table.nbytes] = table.view(np.uint8)
    block.copy_(torch.as_tensor(group.block))
    if group.shape.kind.distance != "Matrix":
        _fill_near(torch, group.table, block)
    return block


def near_by_points(torch: Any, x: Any, y: Any, count: int) -> Any:
    """Return (B, n+1, count) int32: the nearest customers of each, nearest first; zeros for the depot.

    x, y: (B, n+1) float32. As neighbours.hpp has it: by the square of the distance in float32, then by number.
    """
    batch, nodes = x.shape
    near = x.new_zeros((batch, nodes, count), dtype=torch.int32)
    number = torch.arange(1, nodes, device=x.device)
    step = max(1, AT_ONCE // (batch * nodes))
    for begin in range(1, nodes, step) if count else ():
        end = min(nodes, begin + step)
        across, up = (z[:, begin:end, None] - z[:, None, 1:] for z in (x, y))
        square = across.mul_(across).add_(up.mul_(up))  # one rounding per operation, as there
        key = (square.view(torch.int32).long() << 32) | number  # floats above 0 stand in the order of their bits
        key.diagonal(begin - 1, 1, 2).fill_(torch.iinfo(torch.int64).max)
        near[:, begin:end] = key.topk(count, largest=False).values & 0xFFFFFFFF
    return near


def _fill_near(torch: Any, table: npt.NDArray[Any], block: Any) -> None:
    """Compute the neighbour lists. Consecutive problems of one size are done together."""

    def part(name: str, first: int, count: int, length: int, kind: Any) -> Any:
        """Return (count, length) the arrays of consecutive problems."""
        begin, room = int(table[name][first]), room_of(4 * length)
        return block[begin : begin + count * room].view(kind).view(count, room // 4)[:, :length]

    first = 0
    for (n, each), run in groupby(zip(table["n"].tolist(), table["near_count"].tolist(), strict=True)):
        count = len(list(run))
        x, y = (part(name, first, count, n + 1, torch.float32) for name in "xy")
        part("near", first, count, (n + 1) * each, torch.int32).copy_(near_by_points(torch, x, y, each).flatten(1))
        first += count


def _block(fields: list[dict[str, Any]], neighbours: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return the records, and a block with room for them and with their arrays: each array of all problems together."""
    table = np.zeros(len(fields), INSTANCE)
    for record, problem in zip(table, fields, strict=True):
        n = len(problem["demand"]) - 1
        record["n"], record["near_count"] = n, min(neighbours, n - 1)
        record["sorts"] = len(problem["sort_weight"]) - 1
    arrays = [{**problem, "near": _near(problem, neighbours)} for problem in fields]
    parts, used = [], room_of(table.nbytes)
    for name in arrays[0]:
        for i, problem in enumerate(arrays):
            value = problem[name]
            if isinstance(value, np.ndarray):
                table[name][i] = used
                parts.append((used, np.ascontiguousarray(value).reshape(-1).view(np.uint8)))
                used += room_of(value.nbytes)
            elif value is not None:
                table[name][i] = value
    durations = table["time"] > 0
    table["time"] = np.where(durations, table["time"], table["length"])
    table["weight"] = table["demand"]
    block = np.zeros(used, np.uint8)
    for at, data in parts:
        block[at : at + data.size] = data
    return table, block


def _near(problem: dict[str, Any], neighbours: int) -> Ints:
    """Return neighbour lists by a matrix. For points only their room: the GPU computes them."""
    if problem["length"] is not None:
        return np.asarray(_core.make_instance(**problem, near_count=neighbours).near)
    n = len(problem["demand"]) - 1
    return np.zeros((n + 1, min(neighbours, n - 1)), np.int32)


def in_rows(tours: list[Ints]) -> tuple[Ints, Ints]:
    """Return tours as rows of an array, and their lengths."""
    rows = np.zeros((len(tours), max(1, *(len(tour) for tour in tours))), np.int32)
    for row, tour in zip(rows, tours, strict=True):
        row[: len(tour)] = tour
    return rows, np.array([len(tour) for tour in tours], np.int32)


def kind_of(fields: Mapping[str, Any]) -> Kind:
    """Return the kind of an instance with these fields; None: a null pointer. The core decides which rules apply."""
    record = np.zeros((), INSTANCE)
    for name, value in fields.items():
        if value is not None:
            record[name] = 1 if name in POINTERS else value
    rules, distance = _core.kind_of(record.tobytes())
    return Kind(rules, distance)


def room_of(size: int) -> int:
    """Return the bytes that an array takes: each begins at a multiple of 16."""
    return -(-size // 16) * 16
