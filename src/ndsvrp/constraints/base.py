"""The base of all constraint records, and helpers that several records share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import InstanceError
from ndsvrp.metric import Floats, Metric
from ndsvrp.solution import Route, Solution

if TYPE_CHECKING:
    from ndsvrp.engine.ticks import Ticks
    from ndsvrp.problem import Problem

Facts = list[tuple[str, str]]  #: rows of two columns for `nds info`
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Field:
    """A field of `Problem` that belongs to a constraint, and its names in instance files."""

    name: str
    columns: int = 0  #: numbers per node; 0: one number for the whole problem
    required: bool = False  #: every problem has it
    count: bool = False  #: a whole number from 1
    unit: Literal["length", "time"] | None = None  #: a length or time is whole ticks under an integer metric
    section: str | None = None  #: of a VRPLIB file, without _SECTION: a row per node
    header: str | None = None  #: header field of a VRPLIB file: one number for the problem or for all customers
    other_header: str | None = None  #: another name of the header field, which is read and never written
    solomon: tuple[str, ...] = ()  #: headings in Solomon text
    table: tuple[str, ...] = ()  #: columns of a table of stops, one per number of a node, if not its name
    arrays: tuple[str, ...] = ()  #: of an `.npz` set, if not its name: (array,) or (of the depot, of the customers)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", self.arrays or (self.name,))
        object.__setattr__(self, "table", self.table or (self.name,))

    def shape(self, nodes: int) -> tuple[int, ...]:
        """Return the shape of the values for this many nodes, the depot included."""
        return ((), (nodes,), (nodes, self.columns))[min(self.columns, 2)]


@dataclass(frozen=True)
class Input:
    """A named column of numbers per node that a policy reads.

    `column(xp, data)` returns (…, N+1) in unit scale. `data` is a `Problem`, or a batch of problems with the same
    attributes and methods, whose arrays have a leading axis. `xp` is the library of these arrays: numpy or torch.
    """

    name: str
    column: Callable[[Any, Any], Any]
    by_side: bool = False  #: in units of the larger side of the bounding box, as coordinates are


@dataclass(frozen=True)
class Violation:
    """A broken constraint. `route` counts from 1, as in `.sol` files; None: the solution as a whole."""

    kind: str  #: a constraint, or: unserved, twice, unknown, empty
    message: str
    route: int | None = None

    def __str__(self) -> str:
        return self.message if self.route is None else f"route {self.route}: {self.message}"


@dataclass(frozen=True, eq=False)
class Visits:
    """The routes of a solution as `check` gives them to the constraints."""

    routes: dict[int, Route]  #: by number, without unknown customers and without empty routes
    stops: npt.NDArray[np.int64]  #: depot, customers, depot, … of all these routes, one after another
    count: int  #: routes of the solution, empty ones included

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> Visits:
        """Return the visits of a solution."""
        routes = dict(enumerate(solution.routes, start=1))
        if not all(route and min(route) >= 1 and max(route) <= problem.customers for route in solution.routes):
            known = ((number, tuple(c for c in r if 1 <= c <= problem.customers)) for number, r in routes.items())
            routes = {number: route for number, route in known if route}
        ends = np.cumsum([0, *(len(route) + 1 for route in routes.values())])
        stops, at_depot = np.zeros(ends[-1] + 1, np.int64), np.zeros(ends[-1] + 1, bool)
        at_depot[ends] = True
        stops[~at_depot] = list(chain.from_iterable(routes.values()))
        return cls(routes, stops, len(solution.routes))

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """(routes + 1,) where the depot is in `stops`: before the first route, and after each."""
        return np.flatnonzero(self.stops == 0)

    def legs(self, values: Sequence[_Value]) -> Iterator[tuple[int, Route, Sequence[_Value]]]:
        """Yield number and customers of each route with its part of `values`, which has an entry per leg."""
        start = 0
        for number, route in self.routes.items():
            end = start + len(route) + 1
            yield number, route, values[start:end]
            start = end


class Constraint:
    """Everything that the program knows about one constraint.

    The defaults are those of a constraint that forbids nothing. `docs/architecture.md` says how to add one.
    """

    name: str
    fields: tuple[Field, ...]  #: the first one is None in problems without this constraint
    limits_lengths = False  #: feasibility depends on lengths
    limits_times = False  #: feasibility depends on travel and service times
    metric: Metric | None = None  #: rounding of coordinates that VRPLIB files with this constraint are meant for
    inputs: tuple[Input, ...] = ()  #: of a policy; all 0 in problems without this constraint
    generator: str | None = None  #: name of its recipe in `ndsvrp.generate`

    def present(self, problem: Any) -> bool:
        """Return whether a problem, or a batch of problems, has this constraint."""
        return getattr(problem, self.fields[0].name, None) is not None

    def check(self, problem: Problem) -> None:
        """Raise InstanceError if the fields make no sense."""

    def sort_keys(self, problem: Problem) -> list[tuple[int, Floats]]:
        """Return insertion orders of SISRs as (weight, key); the customer with the smallest key goes first."""
        return []

    def unreachable(self, problem: Problem) -> npt.NDArray[np.bool_] | bool:
        """Return (N+1,) customers whose route of their own would violate this; in float64, as `check` has it."""
        return False

    # For `check`, in plain float64, independent of the engines.

    def violations(self, problem: Problem, visits: Visits) -> Iterator[Violation]:
        """Yield what the routes violate."""
        return iter(())

    def route_figures(self, problem: Problem, visits: Visits) -> dict[str, dict[int, float]]:
        """Return numbers of each route that this is about, by name and route; for problems without it, too."""
        return {}

    def lost(self, problem: Problem, unserved: npt.NDArray[np.int64]) -> float:
        """Return the cost of leaving these customers unserved."""
        return 0.0

    def vehicle_costs(self, problem: Problem, visits: Visits) -> float:
        """Return what the vehicles cost beside their distance."""
        return 0.0

    # For engines, in whole ticks. Constraints with a generator convert batches, too: `ticks.xp` is torch then.

    def largest_length(self, ticks: Ticks) -> Any:
        """Return the largest number in units of length that must fit into ticks: one number, or (…, 1)."""
        return 0.0

    def largest_time(self, ticks: Ticks) -> Any:
        """Return the largest number in units of time that must fit into ticks: one number, or (…, 1)."""
        return 0.0

    def least_limit(self, ticks: Ticks) -> float:
        """Return the smallest limit in units of time, for a constraint that limits times."""
        return float("inf")

    def is_fine(self, ticks: Ticks) -> bool:
        """Return whether the ticks are as fine as this constraint needs, as far as other numbers make them coarse."""
        return True

    def native(self, ticks: Ticks) -> dict[str, Any]:
        """Return the fields of the native `Instance` that this constraint fills; None: not used."""
        return {}

    def summary(self, problem: Problem) -> str | None:
        """Return a few words for the first line of a search, if there is anything to say."""
        return None

    def facts(self, problems: Sequence[Problem]) -> Facts:
        """Return the lines of `nds info`; not all of the problems need to have this constraint."""
        return []


def refuse(field: str, broken: npt.NDArray[np.bool_], message: Callable[[int], str]) -> None:
    """Raise InstanceError for the first node whose entry of `broken` is set. broken: (N+1,), or () for the problem."""
    if np.any(broken):
        node = int(np.argmax(broken))
        if np.ndim(broken) == 0:
            raise InstanceError(message(node), field=field)
        who = "depot" if node == 0 else f"customer {node}"
        raise InstanceError(f"{message(node)} ({who})", field=field, node=node)


def zero_at_depot(field: str, values: Floats) -> None:
    """Raise InstanceError unless the depot's entry is 0."""
    if values[0] != 0:
        raise InstanceError(f"the depot's is {values[0]:g}, must be 0", field=field, node=0)


def per_node(value: Any) -> Any:
    """Return one number per problem so that it broadcasts over the nodes of each problem."""
    return value[..., None] if getattr(value, "ndim", 0) else value
