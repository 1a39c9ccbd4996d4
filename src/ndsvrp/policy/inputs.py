"""What the network reads: numbers per node, the current solutions, distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.features import FEATURES
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem

NODE_INPUTS = 2 + sum(len(feature.inputs) for feature in FEATURES)
"""Numbers per node: two coordinates, and those of every feature. One layout for all problems, so that one set of
weights can serve them all."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """A batch of problems of one size with their current solutions, on one device. Node 0 is the depot."""

    nodes: Tensor  #: (B, N+1, NODE_INPUTS) float32
    matrix: Tensor | None  #: (N+1, N+1) float32 distances of the one problem of the batch, in units of its side
    previous: Tensor  #: (B, N+1) int64
    next: Tensor  #: (B, N+1) int64
    route: Tensor  #: (B, N+1) int64, -1: in none

    @property
    def coordinates(self) -> Tensor:
        """(B, N+1, 2)."""
        return self.nodes[..., :2]

    def showing(self, view: Sequence[Any] | Tensor) -> Inputs:
        """The same problems with other solutions: three arrays or tensors, as in `View`, or a tensor (3, B, N+1)."""
        device = self.nodes.device
        if isinstance(view, Tensor):  # all three in one: one kernel instead of three
            previous, following, route = view.to(device, torch.int64)
        else:
            previous, following, route = (torch.as_tensor(part).to(device, torch.int64) for part in view)
        return replace(self, previous=previous, next=following, route=route)

    def tensors(self) -> tuple[Tensor, ...]:
        """All of them, as `of_tensors` takes them back."""
        parts = (self.nodes, self.previous, self.next, self.route)
        return parts if self.matrix is None else (*parts, self.matrix)

    @classmethod
    def of_tensors(cls, *parts: Tensor) -> Inputs:
        """The opposite of `tensors`."""
        nodes, previous, following, route, *matrix = parts
        return cls(nodes, matrix[0] if matrix else None, previous, following, route)

    def part(self, begin: int, end: int) -> Inputs:
        """Some of the batch."""
        cut = {name: getattr(self, name)[begin:end] for name in ("nodes", "previous", "next", "route")}
        return replace(self, **cut)


def static_inputs(
    problems: Sequence[Problem], coordinates: Floats, device: str | torch.device, matrix: Floats | None = None
) -> Inputs:
    """Inputs with nobody served yet. coordinates: (B, N+1, 2) in unit scale; problems: (B,), or one for all of them."""
    features = np.stack([feature_inputs(problem) for problem in problems])
    features = np.broadcast_to(features, (len(coordinates), *features.shape[1:]))
    nodes = torch.from_numpy(np.concatenate([coordinates, features], axis=-1, dtype=np.float32)).to(device)
    nobody = torch.zeros(nodes.shape[:2], dtype=torch.int64, device=device)
    far = None if matrix is None else torch.from_numpy(np.asarray(matrix, np.float32)).to(device)
    return Inputs(nodes, far, nobody, nobody, nobody - 1)


def feature_inputs(problem: Problem) -> Floats:
    """(N+1, NODE_INPUTS - 2): what every feature shows of the problem; zeros for those it does not have."""
    columns: list[Floats] = []
    for feature in FEATURES:
        if feature.present(problem):
            columns += [inputs(problem) for inputs in feature.inputs]
        else:
            columns += [np.zeros(len(problem.demand))] * len(feature.inputs)
    return np.stack(columns, axis=1)
