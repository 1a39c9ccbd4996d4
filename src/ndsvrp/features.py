"""One record per constraint: the fields it brings to a `Problem`, their checks, its sort keys, its policy inputs.

Each has its like-named struct of rules in `native/include/ndsvrp/rules.hpp`. A new constraint is a record
here, a struct there, and its combinations in `variants.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import InstanceError

if TYPE_CHECKING:
    from ndsvrp.problem import Problem

Key = Callable[["Problem"], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Feature:
    """A constraint of a routing problem."""

    name: str
    fields: tuple[str, ...]  #: fields of `Problem` that belong to it
    check: Callable[[Problem], None]  #: raises InstanceError
    sort_keys: tuple[tuple[int, Key], ...]
    """Orders in which SISRs reinserts: (weight, key); the customer with the smallest key goes first."""
    inputs: tuple[Key, ...]
    """What the learned policy sees of it: numbers (N+1,) in unit scale; all 0 where the problem does not have it."""

    def present(self, problem: Problem) -> bool:
        """Whether the problem has this constraint."""
        return getattr(problem, self.fields[0]) is not None


def refuse(field: str, broken: npt.NDArray[np.bool_], message: Callable[[int], str]) -> None:
    """Raise for the first node whose entry of `broken` is set."""
    if np.any(broken):
        node = int(np.argmax(broken))
        who = "depot" if node == 0 else f"customer {node}"
        raise InstanceError(f"{message(node)} ({who})", field=field, node=node)


def _check_capacity(problem: Problem) -> None:
    capacity, demand = problem.capacity, problem.demand
    if not np.isfinite(capacity) or capacity <= 0:
        raise InstanceError(f"{capacity:g} is not a capacity", field="capacity")
    _zero_at_depot("demand", demand)
    refuse("demand", demand < 0, lambda i: f"{demand[i]:g} is negative")
    refuse("demand", demand > capacity, lambda i: f"{demand[i]:g} is above the capacity {capacity:g}")


def _check_windows(problem: Problem) -> None:
    service = problem.service if problem.service is not None else np.zeros(len(problem.demand))
    refuse("service", service < 0, lambda i: f"{service[i]:g} is negative")
    _zero_at_depot("service", service)
    if problem.windows is None:
        return
    ready, due = problem.windows[:, 0], problem.windows[:, 1]
    refuse("windows", due < ready, lambda i: f"due date {due[i]:g} is before ready time {ready[i]:g}")
    nodes, depot = np.arange(len(problem.demand)), np.zeros(len(problem.demand), int)
    comparable, scale, tolerance = problem.comparable_times, problem.time_scale, problem.time_tolerance
    opens, closes = comparable(ready), comparable(due)
    start = np.maximum(opens[0] + comparable(problem.travel_time(depot, nodes)), opens)
    home = start + comparable(service) + comparable(problem.travel_time(nodes, depot))
    # An optional customer that cannot be reached is merely never served.
    refuse(
        "windows",
        (start > closes + tolerance) & problem.required,
        lambda i: f"unreachable in time: earliest start {start[i] / scale:g}, due date {due[i]:g}",
    )
    refuse(
        "windows",
        (home > closes[0] + tolerance) & problem.required,
        lambda i: f"unreachable in time: back at the depot at {home[i] / scale:g}, which closes at {due[0]:g}",
    )


def _check_prizes(problem: Problem) -> None:
    prize = problem.prize
    if prize is None:
        return
    _zero_at_depot("prize", prize)
    refuse("prize", prize < 0, lambda i: f"{prize[i]:g} is negative")


def _zero_at_depot(field: str, values: npt.NDArray[np.float64]) -> None:
    if values[0] != 0:
        raise InstanceError(f"the depot's is {values[0]:g}, must be 0", field=field, node=0)


def _windows(problem: Problem) -> npt.NDArray[np.float64]:
    assert problem.windows is not None
    return problem.windows


def _required_then_high_prizes(problem: Problem) -> npt.NDArray[np.float64]:
    assert problem.prize is not None
    return np.where(problem.required, -np.inf, -problem.prize)


def _present(problem: Problem) -> npt.NDArray[np.float64]:
    return np.ones(len(problem.demand))


def _since_opening(problem: Problem, column: int) -> npt.NDArray[np.float64]:
    windows = _windows(problem)
    horizon = windows[0, 1] - windows[0, 0]
    return np.asarray(np.clip(windows[:, column] - windows[0, 0], 0.0, horizon) / problem.time_unit())


def _service(problem: Problem) -> npt.NDArray[np.float64]:
    return np.zeros(len(problem.demand)) if problem.service is None else problem.service / problem.time_unit()


def _prize(problem: Problem) -> npt.NDArray[np.float64]:
    assert problem.prize is not None
    return problem.prize / problem.side()


CAPACITY = Feature(
    "capacity",
    ("demand", "capacity"),
    _check_capacity,
    sort_keys=((4, lambda p: -p.demand),),
    inputs=(lambda p: p.demand / p.capacity,),
)
TIME_WINDOWS = Feature(
    "time_windows",
    ("windows", "service"),
    _check_windows,
    sort_keys=(
        (2, lambda p: _windows(p)[:, 1] - _windows(p)[:, 0]),
        (2, lambda p: _windows(p)[:, 0]),
        (2, lambda p: -_windows(p)[:, 1]),
    ),
    inputs=(_present, lambda p: _since_opening(p, 0), lambda p: _since_opening(p, 1), _service),
)
PRIZES = Feature(
    "prizes",
    ("prize",),
    _check_prizes,
    sort_keys=((2, _required_then_high_prizes),),
    inputs=(_present, _prize, lambda p: p.required.astype(np.float64)),
)
FEATURES = (CAPACITY, TIME_WINDOWS, PRIZES)
