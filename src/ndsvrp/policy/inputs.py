"""The input of the network: named columns of numbers per node, the current solutions, distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.constraints import CONSTRAINTS
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem

POINT_INPUTS = ("x", "y")  #: coordinates in unit scale, which come first


def input_names() -> tuple[str, ...]:
    """Return the names of all columns. They are the same for all problems, so that one network serves them all."""
    return (*POINT_INPUTS, *(column.name for constraint in CONSTRAINTS for column in constraint.inputs))


def columns_by_side() -> list[int]:
    """Return the columns in units of the larger side of the bounding box: with another box, they are scaled."""
    by_side = {column.name for constraint in CONSTRAINTS for column in constraint.inputs if column.by_side}
    return [i for i, name in enumerate(input_names()) if name in by_side or name in POINT_INPUTS]


@dataclass(frozen=True, eq=False)
class Inputs:
    """A batch of problems of one size with their current solutions, on one device. Node 0 is the depot."""

    nodes: Tensor  #: (B, N+1, inputs) float32
    matrix: Tensor | None  #: (N+1, N+1) float32 distances of the one problem of the batch, in units of its side
    previous: Tensor  #: (B, N+1) int64
    next: Tensor  #: (B, N+1) int64
    route: Tensor  #: (B, N+1) int64, -1: in none

    @property
    def coordinates(self) -> Tensor:
        """(B, N+1, 2)."""
        return self.nodes[..., :2]

    def showing(self, view: Sequence[Any] | Tensor) -> Inputs:
        """Return the same problems with other solutions: a `View`, or all of it in one tensor (3, B, N+1)."""
        device = self.nodes.device
        if isinstance(view, Tensor):  # one kernel instead of three
            previous, following, route = view.to(device, torch.int64)
        else:
            previous, following, route = (torch.as_tensor(part).to(device, torch.int64) for part in view)
        return replace(self, previous=previous, next=following, route=route)

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors, in the order of `of_tensors`."""
        parts = (self.nodes, self.previous, self.next, self.route)
        return parts if self.matrix is None else (*parts, self.matrix)

    @classmethod
    def of_tensors(cls, *parts: Tensor) -> Inputs:
        """Return the inputs whose `tensors` these are."""
        nodes, previous, following, route, *matrix = parts
        return cls(nodes, matrix[0] if matrix else None, previous, following, route)

    def part(self, begin: int, end: int) -> Inputs:
        """Return part of the batch."""
        cut = {name: getattr(self, name)[begin:end] for name in ("nodes", "previous", "next", "route")}
        return replace(self, **cut)


def static_inputs(
    problems: Sequence[Problem], coordinates: Floats, device: str | torch.device, matrix: Floats | None = None
) -> Inputs:
    """Return inputs with all customers unserved. coordinates: (B, N+1, 2) in unit scale; problems: (B,), or one."""
    columns = np.stack([constraint_columns(np, problem) for problem in problems])
    columns = np.broadcast_to(columns, (len(coordinates), *columns.shape[1:]))
    nodes = torch.from_numpy(np.concatenate([coordinates, columns], axis=-1, dtype=np.float32)).to(device)
    zeros = torch.zeros(nodes.shape[:2], dtype=torch.int64, device=device)
    far = None if matrix is None else torch.from_numpy(np.asarray(matrix, np.float32)).to(device)
    return Inputs(nodes, far, zeros, zeros, zeros - 1)


def constraint_columns(xp: Any, data: Any) -> Any:
    """Return (…, N+1, columns) float64: the inputs of every constraint; zeros for constraints that `data` lacks.

    `data` is a `Problem`, or a batch of problems whose arrays have a leading axis; see `Input`. `xp` is numpy or torch.
    """
    columns = [
        column.column(xp, data) if constraint.present(data) else xp.zeros_like(data.demand)
        for constraint in CONSTRAINTS
        for column in constraint.inputs
    ]
    return xp.stack([xp.asarray(column, dtype=xp.float64) for column in columns], -1)
