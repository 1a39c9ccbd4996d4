"""A solution: its routes."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, SupportsIndex

from ndsvrp.errors import NdsError

Route = tuple[int, ...]  #: customers (1 … N) in the order of visit; the depot at both ends is implied

NOT_ROUTES = "a solution is a list of routes, a route a list of customer numbers"
NAMES = "a solution has the numbers of customers; problem.solution(routes) takes their names"


@dataclass(frozen=True)
class Solution:
    """Routes of customers. Not validated here: use `ndsvrp.check`."""

    routes: tuple[Route, ...]

    def __init__(self, routes: Iterable[Iterable[SupportsIndex]]) -> None:
        if isinstance(routes, str):
            raise NdsError(NOT_ROUTES)
        try:
            plain = tuple(tuple(map(_number, in_order(route))) for route in routes)
        except TypeError:
            raise NdsError(NOT_ROUTES) from None
        object.__setattr__(self, "routes", plain)


def in_order(route: Any) -> Any:
    """Return the customers of a route; raise TypeError for a set, which has no order."""
    if isinstance(route, set | frozenset):
        raise TypeError
    return route


def _number(customer: SupportsIndex | str) -> int:
    if isinstance(customer, str):
        raise NdsError(NAMES)
    return index(customer)


def require_solution(what: str, value: Any) -> None:
    """Raise unless the value is a solution; `what` needs it."""
    if isinstance(value, Solution):
        return
    hint = "ndsvrp.Solution(routes) makes one"
    if isinstance(value, str | os.PathLike):
        hint = "ndsvrp.read_solution(file)[0] reads one"
    elif hasattr(value, "solution"):
        hint = "its attribute solution is one"
    elif isinstance(value, tuple) and value and isinstance(value[0], Solution):
        hint = "its first element is one: solution, cost = ndsvrp.read_solution(file)"
    raise NdsError(f"{what} must be a Solution, got {type(value).__name__} ({hint})")
