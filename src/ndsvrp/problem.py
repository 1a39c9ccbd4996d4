"""The problem: frozen and validated once, by its constructor."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Never, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints import CONSTRAINTS, FIELDS, constraints_of, refuse
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.field_values import checked_array, checked_field, checked_names, checked_switch
from ndsvrp.geo import haversine
from ndsvrp.metric import FLOAT_TOLERANCE, Floats, Metric
from ndsvrp.scope import checks_keywords
from ndsvrp.solution import NOT_ROUTES, Solution, in_order
from ndsvrp.text import printable

SMALLEST = 1e-150  # of the scale of the numbers: their squares are not 0


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """A routing problem. Index 0 of every array is the depot, 1 … N are the customers.

    Constraints are fields with neutral defaults: no windows, no prizes, any number of vehicles.
    Distances come from `coordinates` under `metric`, or from a full matrix. The objective is the
    travelled distance plus the prizes of unserved customers plus the cost of each vehicle used.

    The constructor takes anything array-like for an array, and keeps read-only float64. Problems are equal if all their
    fields are, except `name`.
    """

    demand: Floats  #: (N+1,) what each customer takes of a vehicle; the depot's is 0
    capacity: float  #: what a vehicle can carry
    coordinates: Floats | None = None  #: (N+1, 2)
    distance: Floats | None = None  #: (N+1, N+1) used as given, from row to column; may be asymmetric
    duration: Floats | None = None  #: (N+1, N+1) travel times; None: equal to the distances
    windows: Floats | None = None  #: (N+1, 2) earliest and latest start of service; depot: opening hours
    service: Floats | None = None  #: (N+1,) time spent at each customer; matters only if times are limited
    prize: Floats | None = None  #: (N+1,) lost if the customer is unserved; 0: the customer is required
    vehicles: int | None = None  #: largest number of routes; None: no limit
    max_distance: float | None = None  #: of each route; None: no limit
    max_duration: float | None = None  #: of each route: travel, service and waiting; None: no limit
    vehicle_cost: float | None = None  #: of each route, whatever its distance; None: nothing
    metric: Metric = Metric.NONE  #: how lengths between coordinates are rounded
    geographic: bool = False  #: coordinates are longitude and latitude in degrees; distances in km, unless given
    clock_times: bool = False  #: times are minutes since midnight, which pages show as 08:30
    names: tuple[str, ...] | None = None  #: (N+1,) of depot and customers, all different
    name: str = "problem"

    @checks_keywords
    def __init__(
        self,
        *,
        demand: npt.ArrayLike,
        capacity: SupportsFloat,
        coordinates: npt.ArrayLike | None = None,
        distance: npt.ArrayLike | None = None,
        duration: npt.ArrayLike | None = None,
        windows: npt.ArrayLike | None = None,
        service: npt.ArrayLike | None = None,
        prize: npt.ArrayLike | None = None,
        vehicles: SupportsIndex | None = None,
        max_distance: SupportsFloat | None = None,
        max_duration: SupportsFloat | None = None,
        vehicle_cost: SupportsFloat | None = None,
        metric: Metric | str = Metric.NONE,
        geographic: bool = False,
        clock_times: bool = False,
        names: Sequence[str] | None = None,
        name: str = "problem",
        **unknown: Never,
    ) -> None:
        given = dict(locals())
        for field in dataclasses.fields(Problem):
            self._set(field.name, given[field.name])
        self._validate()

    def _validate(self) -> None:
        if self.metric not in tuple(Metric):
            raise InstanceError(f"unknown '{self.metric}' (known: {', '.join(Metric)})", field="metric")
        self._set("metric", Metric(self.metric))
        for switch in ("geographic", "clock_times"):
            self._set(switch, checked_switch(switch, getattr(self, switch)))
        if not isinstance(self.name, str):
            raise InstanceError(f"must be text, got {type(self.name).__name__}", field="name")
        demand = checked_array("demand", self.demand, None, finite=False)
        if demand.ndim != 1 or len(demand) < 2:
            raise InstanceError(f"needs a depot and at least one customer, got shape {demand.shape}", field="demand")
        if self.names is not None:
            self._set("names", checked_names(self.names, len(demand)))
        try:
            self._check_values(len(demand))
        except InstanceError as error:
            raise self._named(error) from None

    def _check_values(self, n: int) -> None:
        for name, shape in {"coordinates": (n, 2), "distance": (n, n), "duration": (n, n)}.items():
            if (value := getattr(self, name)) is not None:
                self._set(name, checked_array(name, value, shape))
        for field in FIELDS:
            if (value := getattr(self, field.name)) is not None or field.required:
                self._set(field.name, checked_field(field, value, n))
        self._check_travel()
        self._check_scale()
        units = {"distance": "length", **{field.name: field.unit for field in FIELDS}}
        for name, unit in units.items():
            value = getattr(self, name)
            if value is not None and (unit == "length" or (unit == "time" and self.has_times)):
                whole = self._whole(name, value)
                self._set(name, whole if whole.ndim else float(whole))
        for constraint in CONSTRAINTS:
            constraint.check(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(Problem) if field.name != "name"]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.capacity, self.demand.tobytes()))

    def __repr__(self) -> str:
        """Return one line; the arrays would fill pages of a notebook."""
        from ndsvrp.variants import description

        return f"<Problem '{printable(self.name)}': {description(self)}>"

    @property
    def customers(self) -> int:
        """N, the number of customers."""
        return len(self.demand) - 1

    @property
    def has_windows(self) -> bool:
        """Whether customers have time windows."""
        return self.windows is not None

    @property
    def has_prizes(self) -> bool:
        """Whether customers may stay unserved for a prize."""
        return self.prize is not None

    @property
    def is_on_the_sphere(self) -> bool:
        """Whether the distances follow from latitude and longitude."""
        if not self.geographic or self.coordinates is None or self.distance is None:
            return False
        return np.array_equal(haversine(self.coordinates), self.distance)

    @cached_property
    def has_times(self) -> bool:
        """Whether feasibility depends on travel and service times."""
        return any(constraint.limits_times for constraint in constraints_of(self))

    @cached_property
    def required(self) -> npt.NDArray[np.bool_]:
        """(N+1,) customers that must be served (the depot's entry is False)."""
        required = np.ones(len(self.demand), bool) if self.prize is None else self.prize == 0
        required[0] = False
        required.flags.writeable = False
        return required

    @property
    def time_tolerance(self) -> float:
        """By how much a due date may be exceeded if times are floats; integer metrics are exact."""
        if self.windows is None or self.has_whole_times:
            return 0.0
        return FLOAT_TOLERANCE * float(self.windows[0, 1] - self.windows[0, 0])

    @property
    def capacity_tolerance(self) -> float:
        """By how much a load may exceed the capacity if demands are floats; whole demands are exact."""
        whole = self.capacity == np.floor(self.capacity) and np.all(self.demand == np.floor(self.demand))
        return 0.0 if whole else FLOAT_TOLERANCE * self.capacity

    @property
    def has_whole_times(self) -> bool:
        """Whether all times are whole numbers of ticks, so that they are compared exactly."""
        return self.metric.is_integer and self.duration is None

    @property
    def time_scale(self) -> int:
        """Units of `comparable_times` per unit of time."""
        return self.metric.scale if self.has_whole_times else 1

    def comparable_times(self, times: Floats) -> Floats:
        """Return times as they are added and compared: in whole ticks if times are whole, else as given."""
        return self.metric.ticks(times) if self.has_whole_times else times

    def length(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
        """Return the distance from nodes `a` to nodes `b`, element by element, float64."""
        a, b = np.asarray(a), np.asarray(b)
        if self.distance is not None:
            return np.asarray(self.distance[a, b])
        return self._euclid(a, b)

    def travel_time(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
        """Return the travel time from nodes `a` to nodes `b`, element by element, float64."""
        if self.duration is not None:
            return np.asarray(self.duration[np.asarray(a), np.asarray(b)])
        return self.length(a, b)

    def name_of(self, node: int) -> str:
        """Return the name of a customer or of the depot; without names its number, or `depot`."""
        if self.names is not None:
            return self.names[node]
        return str(node) if node else "depot"

    def in_words(self, node: int) -> str:
        """Return a node for a message: `customer 3`, `customer 3 ('kiosk')`, `the depot`."""
        name = f" ('{printable(self.names[node])}')" if self.names is not None else ""
        return f"customer {node}{name}" if node else "the depot"

    def solution(self, routes: Iterable[Iterable[str | SupportsIndex]]) -> Solution:
        """Return a solution from routes of names or numbers of customers, for a warm start or for `check`."""
        numbers = {self.name_of(node): node for node in range(1, len(self.demand))}

        def number(customer: Any) -> Any:
            if isinstance(customer, str) and customer not in numbers:
                raise InstanceError(f"there is no customer '{printable(customer)}'", field="routes")
            return numbers[customer] if isinstance(customer, str) else customer

        def customers(route: Any) -> list[Any]:
            if isinstance(route, str):  # iterating over its letters would find other names
                raise InstanceError(f"'{printable(route)}' is not a list of customers", field="routes")
            return [number(customer) for customer in in_order(route)]

        try:
            return Solution([customers(route) for route in routes])
        except TypeError:
            raise NdsError(NOT_ROUTES) from None

    def side(self) -> float:
        """Return the larger side of the bounding box: the unit of temperatures and policy inputs.

        With a distance matrix, this is the largest distance over the square root of two.
        """
        if self.distance is not None:
            side = float(np.max(self.distance)) / np.sqrt(2.0)
        else:
            assert self.coordinates is not None
            side = float(np.max(np.ptp(self.coordinates, axis=0)))
        return side if side > 0 else 1.0

    def time_unit(self) -> float:
        """Return the unit of times in policy inputs: the side, or the same of the duration matrix."""
        if self.duration is None:
            return self.side()
        longest = float(np.max(self.duration)) / np.sqrt(2.0)
        return longest if longest > 0 else 1.0

    def replace(self, **changes: Any) -> Problem:
        """Return a changed copy, validated again. Distances on the sphere follow new coordinates."""
        if changes.get("coordinates") is not None and self.is_on_the_sphere:
            changes = {"distance": None, **changes}
        return dataclasses.replace(self, **changes)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _named(self, error: InstanceError) -> InstanceError:
        """Return an error about a customer with its name, if it has one."""
        if self.names is None or not error.node or not error.message.endswith(f"(customer {error.node})"):
            return error
        message = f"{error.message[:-1]}, '{printable(self.names[error.node])}')"
        return InstanceError(message, file=error.file, line=error.line, field=error.field, node=error.node)

    def _euclid(self, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Floats:
        assert self.coordinates is not None
        d = self.coordinates[a] - self.coordinates[b]
        return self.metric.apply(np.sqrt(d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]))

    def _check_travel(self) -> None:
        if self.coordinates is None and self.distance is None:
            raise InstanceError("needs coordinates or a distance matrix", field="coordinates")
        if self.geographic and self.distance is None:
            self._set_distances_on_the_sphere()
        if self.duration is not None and self.distance is None:
            raise InstanceError("a duration matrix needs a distance matrix beside it", field="duration")
        for field in ("distance", "duration"):
            matrix = getattr(self, field)
            if matrix is None:
                continue
            if np.any(matrix < 0):
                row, column = np.argwhere(matrix < 0)[0]
                raise InstanceError(
                    f"{matrix[row, column]:g} from node {row} to node {column} is negative", field=field, node=int(row)
                )

    def _check_scale(self) -> None:
        """Refuse a problem whose numbers are all so small that their squares would become 0."""
        travel = "coordinates" if self.distance is None else "distance"
        scales = {travel: self.side(), "capacity": self.capacity}
        if self.duration is not None:
            scales["duration"] = self.time_unit()
        for field, scale in scales.items():
            if 0 < scale < SMALLEST:
                raise InstanceError(f"too small, below {SMALLEST:g}: use another unit", field=field)

    def _set_distances_on_the_sphere(self) -> None:
        if self.metric is not Metric.NONE:
            what = f"'{self.metric}' rounds lengths in a plane; those between latitudes and longitudes are not rounded"
            raise InstanceError(what, field="metric")
        assert self.coordinates is not None
        distance = haversine(self.coordinates)
        distance.flags.writeable = False
        self._set("distance", distance)

    def _whole(self, field: str, values: npt.ArrayLike) -> Floats:
        """Refuse values that are not whole ticks of an integer metric, which is exact end to end.

        Values that are whole up to rounding become the float nearest to that number of ticks.
        """
        values = np.asarray(values, np.float64)
        if not self.metric.is_integer:
            return values
        rows = values.reshape(len(values) if values.ndim else 1, -1)
        ticks = self.metric.ticks(rows)
        broken = np.abs(rows * self.metric.scale - ticks) > np.clip(1e-9 * np.abs(ticks), 1e-9, 1e-3)
        unit = {1: "a whole number", 10: "a multiple of 0.1", 1000: "a multiple of 0.001"}[self.metric.scale]
        refuse(
            field,
            np.asarray(broken.any(axis=1)).reshape(values.shape[:1]),
            lambda i: f"{rows[i][broken[i]][0]:g} is not {unit}, as the metric '{self.metric}' needs (use 'none')",
        )
        whole = (ticks / self.metric.scale + 0.0).reshape(values.shape)  # + 0.0: no -0.0
        whole.flags.writeable = False
        return whole


def require_problem(call: str, value: Any) -> None:
    """Raise unless the value is a problem, with what to do instead."""
    if isinstance(value, Problem):
        return
    hint = {"Model": "call model.problem() or model.solve()"}.get(type(value).__name__, "see ndsvrp.Problem")
    if isinstance(value, str | os.PathLike):
        hint = "ndsvrp.read(path) reads one"
    raise NdsError(f"{call} needs a Problem, got {type(value).__name__} ({hint})")


def require_problems(call: str, problems: Any) -> Sequence[Problem]:
    """Return several problems as a sequence; raise unless they can be one."""
    if isinstance(problems, str | set | frozenset) or not isinstance(problems, Iterable):
        raise NdsError(f"{call} needs a list of problems, got {type(problems).__name__}")
    return problems if isinstance(problems, Sequence) else list(problems)  # large sets are sequences that read later
