"""A solution: its routes."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import SupportsIndex

Route = tuple[int, ...]  #: customers (1 … N) in the order of visit; the depot at both ends is implied


@dataclass(frozen=True)
class Solution:
    """Routes of customers. Not validated here: use `ndsvrp.check`."""

    routes: tuple[Route, ...]

    def __init__(self, routes: Iterable[Iterable[SupportsIndex]]) -> None:
        object.__setattr__(self, "routes", tuple(tuple(map(index, route)) for route in routes))
