"""A solution is its routes; everything else about it follows from the problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from ndsvrp.problem import Problem

Route = tuple[int, ...]  #: customers (1 … N) in the order of visit; the depot at both ends is implied


@dataclass(frozen=True)
class Solution:
    """Routes of customers. Nothing is checked here: `ndsvrp.check` judges a solution."""

    routes: tuple[Route, ...]

    def __init__(self, routes: Iterable[Iterable[SupportsIndex]]) -> None:
        object.__setattr__(self, "routes", tuple(tuple(map(index, route)) for route in routes))

    def unserved(self, problem: Problem) -> npt.NDArray[np.int64]:
        """The customers in no route, ascending."""
        absent = np.ones(len(problem.demand), bool)
        absent[0] = False
        absent[[c for route in self.routes for c in route]] = False
        return np.flatnonzero(absent)
