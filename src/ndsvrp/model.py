"""Build a problem piece by piece: depot, customers with names, fleet, matrices."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from math import isinf, nan
from numbers import Real
from typing import TYPE_CHECKING, Any, Never, Unpack

import numpy as np
import numpy.typing as npt

from ndsvrp.clock import minutes
from ndsvrp.constraints import FIELDS
from ndsvrp.constraints.time_windows import filled_windows
from ndsvrp.errors import InstanceError, NdsError, warn
from ndsvrp.geo import haversine, looks_like_degrees
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem
from ndsvrp.scope import refuse_keyword, refuse_unnamed
from ndsvrp.text import amount, printable

if TYPE_CHECKING:
    from ndsvrp.search.options import SolveOptions
    from ndsvrp.search.result import Result

Window = Sequence[float | str | None]

_OTHER_NAMES = {
    "add_client": "add_customer adds a customer",
    "add_location": "add_depot and add_customer take x and y, or lat and lon",
    "add_vehicle_type": "set_fleet describes the vehicles, which are all alike",
    "add_edge": "set_matrix sets the distances and durations of all edges",
    "add_client_group": "groups of customers are not supported",
    "add_profile": "set_matrix sets the distances and durations, which are those of all vehicles",
    "data": "problem returns the problem",
}
"""By the names of PyVRP: how it is done here."""


class Model:
    """A problem under construction.

        model = ndsvrp.Model()
        model.add_depot(x=0, y=0)
        model.add_customer(x=3, y=4, name="bakery", demand=2, window=(8, 12), service=0.25)
        model.set_fleet(vehicles=3, capacity=20)
        result = model.solve(time=10)

    Locations are `x` and `y` in a plane, or `lat` and `lon` in degrees, with distances in km; with `set_matrix` they
    may be left out. Customers are numbered from 1 in the order in which they are added.
    """

    __slots__ = (  # no other attribute can be set
        "__weakref__", "_customers", "_depot", "_fleet", "_matrices", "clock_times", "metric", "name"
    )  # fmt: skip

    def __init__(
        self,
        name: str = "problem",
        *,
        metric: Metric | str = Metric.NONE,
        clock_times: bool = False,
        **unknown: Never,
    ) -> None:
        _refuse_unknown("Model", Model.__init__, unknown)
        self.name, self.metric, self.clock_times = name, metric, clock_times
        self._depot: dict[str, Any] | None = None
        self._customers: list[dict[str, Any]] = []
        self._fleet: dict[str, Any] | None = None
        self._matrices: dict[str, npt.ArrayLike | None] = {}

    def __repr__(self) -> str:
        """Return one line with what there is so far."""
        parts = ["no depot" if self._depot is None else "depot", amount(len(self._customers), "customer")]
        parts += [f"{name} {value}" for name, value in (self._fleet or {}).items() if value is not None]
        parts += [f"{name} matrix" for name in self._matrices]
        return f"<Model '{printable(str(self.name))}': {', '.join(parts)}>"

    if not TYPE_CHECKING:  # or a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Refuse a name that there is not, with ours for those of PyVRP."""
            hint = f"; {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
            raise AttributeError(f"'Model' has no '{name}'{hint}", name=name, obj=self)

    def add_depot(
        self,
        x: float | None = None,
        y: float | None = None,
        *,
        lat: float | None = None,
        lon: float | None = None,
        name: str = "depot",
        window: Window | None = None,
        **unknown: Never,
    ) -> None:
        """Add the depot. `window`: its opening hours; without them it is open as long as the customers need.

        Times are numbers, or clock times such as "08:30", which are minutes since midnight.
        """
        _refuse_unknown("add_depot", Model.add_depot, unknown)
        if self._depot is not None:
            raise NdsError("add_depot: a second depot is not supported")
        self._depot = {"name": name, **_location(x, y, lat, lon, "the depot"), **_hours(window, "the depot")}

    def add_customer(
        self,
        x: float | None = None,
        y: float | None = None,
        *,
        lat: float | None = None,
        lon: float | None = None,
        name: str | None = None,
        demand: float = 0.0,
        window: Window | None = None,
        service: float | str = 0.0,
        prize: float = 0.0,
        **unknown: Never,
    ) -> int:
        """Add a customer and return its number. Without a name it is called by its number.

        `window`: earliest and latest start of service; None: when the depot is open. `prize`: lost if the customer
        stays unserved; 0: the customer is required. With clock times such as "08:30" in windows, all times are
        minutes, travel times, too; `service` may then be "0:15".
        """
        _refuse_unknown("add_customer", Model.add_customer, unknown)
        number = len(self._customers) + 1
        who = f"customer {number if name is None else name!r}"
        numbers = {
            "demand": _number("demand", demand, who),
            "service": _time("service", service, who),
            "prize": _number("prize", prize, who),
        }
        place = _location(x, y, lat, lon, who)
        hours = _hours(window, who)
        hours["clock"] += (True,) if isinstance(service, str) else ()
        called = str(number) if name is None or (isinstance(name, str) and not name) else name
        self._customers.append({"name": called, **place, **numbers, **hours})
        return number

    def set_fleet(
        self,
        vehicles: int | None = None,
        capacity: float | None = None,
        max_distance: float | None = None,
        max_duration: float | None = None,
        vehicle_cost: float | None = None,
        **unknown: Never,
    ) -> None:
        """Describe the vehicles, which are all alike. None: no limit, no cost."""
        _refuse_unknown("set_fleet", Model.set_fleet, unknown)
        if self._fleet is not None:
            raise NdsError("set_fleet: called before; vehicles that differ are not supported")
        fleet = {
            "vehicles": vehicles, "capacity": capacity, "max_distance": max_distance, "max_duration": max_duration,
            "vehicle_cost": vehicle_cost,
        }  # fmt: skip
        for field, value in fleet.items():
            if np.ndim(value) > 0:  # type: ignore[arg-type]
                raise NdsError(f"set_fleet: {field} is one number for all; vehicles that differ are not supported")
        self._fleet = fleet

    def set_matrix(
        self, distance: npt.ArrayLike | None = None, duration: npt.ArrayLike | None = None, **unknown: Never
    ) -> None:
        """Set distances, durations or both: (N+1, N+1) from row to column, the depot first, may be asymmetric.

        Durations without distances stand beside those of the locations.
        """
        _refuse_unknown("set_matrix", Model.set_matrix, unknown)
        given = {"distance": distance, "duration": duration}
        self._matrices |= {name: matrix for name, matrix in given.items() if matrix is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of depot and customers."""
        return tuple(node["name"] for node in (self._depot, *self._customers) if node is not None)

    @property
    def has_demands(self) -> bool:
        """Whether a customer has a demand, which takes vehicles with a capacity."""
        return any(node["demand"] for node in self._customers)

    def problem(self) -> Problem:
        """Return the problem, validated."""
        if self._depot is None:
            raise InstanceError("no depot, add_depot adds it", field="depot")
        if not self._customers:
            raise InstanceError("none, add_customer adds one", field="customers")
        nodes, fleet = [self._depot, *self._customers], self._fleet or {}
        columns: dict[str, Any] = {
            field.name: np.array([node.get(field.name, 0.0) for node in nodes], np.float64)
            for field in FIELDS
            if field.columns == 1
        }
        for field in ("service", "prize"):
            columns[field] = columns[field] if np.any(columns[field]) else None
        fields = columns | {name: value for name, value in fleet.items() if value is not None}
        if fields.get("capacity") is None:
            if self.has_demands:
                raise InstanceError("customers have demands; set_fleet sets the capacity", field="capacity")
            fields["capacity"] = 1.0
        fields |= self._travel(nodes)
        fields |= {"names": self.names, "name": self.name, "metric": self.metric, "clock_times": self._clock(nodes)}
        windows = np.array([node["window"] for node in nodes])
        if not np.all(np.isnan(windows)):
            fields["windows"] = filled_windows(windows, Problem(**fields))
        return Problem(**fields)

    def solve(self, *unnamed: Never, **options: Unpack[SolveOptions]) -> Result:
        """Solve the problem; the options are those of `ndsvrp.solve`."""
        refuse_unnamed("solve", unnamed)
        from ndsvrp.search.solve import solve

        return solve(self.problem(), **options)

    def _clock(self, nodes: list[dict[str, Any]]) -> bool:
        """Return whether times are clock times; refuse windows of plain numbers beside them, which may be hours."""
        kinds = {is_clock for node in nodes for is_clock in node["clock"]}
        if len(kinds) > 1:
            first = next(number for number, node in enumerate(nodes) if False in node["clock"])
            what = f"'{nodes[first]['name']}' has a plain number, others have clock times such as 08:30"
            raise InstanceError(what, field="windows", node=first)
        return self.clock_times or True in kinds

    def _travel(self, nodes: list[dict[str, Any]]) -> dict[str, Any]:
        """Return coordinates and matrices."""
        kinds = {node["kind"] for node in nodes}
        distance, duration = self._matrices.get("distance"), self._matrices.get("duration")
        if len(kinds) > 1:
            odd = next(number for number, node in enumerate(nodes) if node["kind"] != nodes[0]["kind"])
            what = f"the depot has {nodes[0]['kind']}, '{nodes[odd]['name']}' has {nodes[odd]['kind']}"
            raise InstanceError(what, field="coordinates", node=odd)
        located, geographic = kinds != {"no location"}, kinds == {"lat and lon"}
        if not located and distance is None:
            what = "needs locations (x and y, or lat and lon), or a matrix of distances"
            raise InstanceError(what, field="coordinates")
        points = np.array([node["point"] for node in nodes], np.float64) if located else None
        if points is not None and distance is None and not geographic:
            warn_of_degrees(points, self.name)
        if points is not None and duration is not None and distance is None:
            distance = haversine(points) if geographic else _plane(points, self.metric)
        return {"coordinates": points, "geographic": geographic, "distance": distance, "duration": duration}


def warn_of_degrees(points: npt.NDArray[np.float64], what: str) -> None:
    """Warn if coordinates that are used as a plane look like degrees."""
    if looks_like_degrees(points):
        warn(f"{what}: coordinates look like degrees and are used as a plane; lat and lon are distances on the earth")


def _plane(points: npt.NDArray[np.float64], metric: Metric | str) -> npt.NDArray[np.float64]:
    """Return all lengths between points of a plane."""
    n = len(points)
    flat = Problem(demand=np.zeros(n), capacity=1.0, coordinates=points, metric=metric)
    return flat.length(np.arange(n)[:, None], np.arange(n)[None, :])


def _refuse_unknown(call: str, method: Any, unknown: dict[str, Any]) -> None:
    for name in unknown:
        refuse_keyword(call, name, (p for p in signature(method).parameters if p not in ("self", "unknown")))


def _number(field: str, value: Any, who: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise NdsError(f"{field} must be a number, got {value!r} ({who})")
    try:
        return float(value)
    except OverflowError:
        raise NdsError(f"{field} is too large ({who})") from None


def _time(field: str, value: Any, who: str) -> float:
    if not isinstance(value, str):
        return _number(field, value, who)
    if (time := minutes(value)) is None:
        raise NdsError(f"{field} must be a number or a time such as 08:30, got {value!r} ({who})")
    return time


def _location(x: Any, y: Any, lat: Any, lon: Any, who: str) -> dict[str, Any]:
    """Return `point` (x and y, or longitude and latitude) and its `kind`."""
    for kind, given in (("x and y", {"x": x, "y": y}), ("lat and lon", {"lon": lon, "lat": lat})):
        missing = [name for name, value in given.items() if value is None]
        if len(missing) == 1:
            raise NdsError(f"{missing[0]} is missing ({who})")
        if not missing:
            if kind == "x and y" and (lat, lon) != (None, None):
                raise NdsError(f"a location is x and y, or lat and lon, not both ({who})")
            return {"kind": kind, "point": [_number(name, value, who) for name, value in given.items()]}
    return {"kind": "no location", "point": None}


def _hours(window: Any, who: str) -> dict[str, Any]:
    """Return `window`, and as `clock` which of its times are clock times."""
    if window is None:
        return {"window": (nan, nan), "clock": ()}
    if isinstance(window, str | set | frozenset) or not hasattr(window, "__len__") or len(window) != 2:
        raise NdsError(f"window must be two numbers, earliest and latest start, got {window!r} ({who})")
    given = [time for time in window if time is not None]
    times = [nan if time is None else _time("window", time, who) for time in window]
    if any(isinf(time) for time in times):  # would be blamed on the depot, whose hours follow from the customers
        raise NdsError(f"window must be finite, None restricts nothing, got {window!r} ({who})")
    return {"window": tuple(times), "clock": tuple(isinstance(time, str) for time in given)}
