"""Time windows: service starts between a ready time and a due date. Vehicles may wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ndsvrp.clock import clock, compared_times
from ndsvrp.constraints.base import Constraint, Facts, Field, Input, Violation, Visits, per_node, refuse, zero_at_depot
from ndsvrp.constraints.timetable import earliest_starts
from ndsvrp.metric import FLOAT_TOLERANCE, NEARLY, Floats, Metric
from ndsvrp.text import spread, summary

if TYPE_CHECKING:
    from ndsvrp.engine.ticks import Ticks
    from ndsvrp.problem import Problem

EVER = 1.001  # times the latest that a vehicle could be anywhere: a later due date is never missed


def _since_opening(data: Any) -> Any:
    """Return (…, N+1, 2) windows, in time since the opening of the depot."""
    return data.windows - data.windows[..., :1, :1]


def _within_hours(xp: Any, data: Any, column: int) -> Any:
    windows = _since_opening(data)
    within = xp.minimum(xp.clip(windows[..., column], 0.0, None), windows[..., :1, 1])
    return within / per_node(data.time_unit())


def _service(xp: Any, data: Any) -> Any:
    return xp.zeros_like(data.demand) if data.service is None else data.service / per_node(data.time_unit())


class TimeWindows(Constraint):
    """Windows and service times. Service times alone constrain nothing."""

    name = "time windows"
    fields = (
        Field(
            "windows", 2, unit="time", section="TIME_WINDOW", solomon=("READY TIME", "DUE DATE"),
            table=("ready", "due"), arrays=("depot_tw", "node_tw"),
        ),
        Field("service", 1, unit="time", section="SERVICE_TIME", header="SERVICE_TIME", solomon=("SERVICE TIME",)),
    )  # fmt: skip
    limits_times = True
    metric = Metric.DIMACS
    inputs = (
        Input("has_windows", lambda xp, data: xp.ones_like(data.demand)),
        Input("ready", lambda xp, data: _within_hours(xp, data, 0), by_side=True),
        Input("due", lambda xp, data: _within_hours(xp, data, 1), by_side=True),
        Input("service", _service, by_side=True),
    )
    generator = "windows"

    def check(self, problem: Problem) -> None:
        service = problem.service if problem.service is not None else np.zeros(len(problem.demand))
        refuse("service", service < 0, lambda i: f"{service[i]:g} is negative")
        zero_at_depot("service", service)
        if problem.windows is None:
            return
        ready, due = problem.windows[:, 0], problem.windows[:, 1]

        def told(text: str, one: float, other: float) -> str:
            return text.format(*compared_times(problem, one, other))

        refuse("windows", due < ready, lambda i: told("due date {} is before ready time {}", due[i], ready[i]))
        start, late, home, late_home = self._alone(problem)
        # An optional customer that cannot be reached stays unserved.
        refuse(
            "windows",
            late & problem.required,
            lambda i: told("unreachable in time: earliest start {}, due date {}", start[i], due[i]),
        )
        refuse(
            "windows",
            late_home & problem.required,
            lambda i: told("unreachable in time: back at the depot at {}, which closes at {}", home[i], due[0]),
        )

    def unreachable(self, problem: Problem) -> npt.NDArray[np.bool_]:
        _, late, _, late_home = self._alone(problem)
        return late | late_home

    def _alone(self, problem: Problem) -> tuple[Floats, npt.NDArray[np.bool_], Floats, npt.NDArray[np.bool_]]:
        """Return (N+1,) each for a route with one customer: start of service, is it late, return, is that late."""
        assert problem.windows is not None
        nodes, depot = np.arange(len(problem.demand)), np.zeros(len(problem.demand), int)
        comparable, scale, tolerance = problem.comparable_times, problem.time_scale, problem.time_tolerance
        opens, closes = comparable(problem.windows[:, 0]), comparable(problem.windows[:, 1])
        service = 0.0 if problem.service is None else comparable(problem.service)
        start = np.maximum(opens[0] + comparable(problem.travel_time(depot, nodes)), opens)
        home = start + service + comparable(problem.travel_time(nodes, depot))
        return start / scale, start > closes + tolerance, home / scale, home > closes[0] + tolerance

    def sort_keys(self, problem: Problem) -> list[tuple[int, Floats]]:
        assert problem.windows is not None
        ready, due = problem.windows.T
        return [(2, due - ready), (2, ready), (2, -due)]  # narrow first, early first, late first

    def violations(self, problem: Problem, visits: Visits) -> Iterator[Violation]:
        """Yield the first stop of each route that is reached too late."""
        comparable, stops, windows = problem.comparable_times, visits.stops, problem.windows
        assert windows is not None
        ready, due = comparable(windows[:, 0]), comparable(windows[:, 1]) + problem.time_tolerance
        legs = comparable(problem.travel_time(stops[:-1], stops[1:]))
        if problem.service is not None:
            legs = legs + comparable(problem.service)[stops[:-1]]
        reached = earliest_starts(visits, legs, ready)
        late = np.flatnonzero(reached > due[stops[1:]])
        of_route = np.searchsorted(visits.ends, late, side="right") - 1
        numbers = list(visits.routes)
        for index in np.unique(of_route, return_index=True)[1].tolist():  # later stops are late because of this one
            there, when = int(stops[late[index] + 1]), float(reached[late[index]]) / problem.time_scale
            times = compared_times(problem, when, float(windows[there, 1]))
            message = "{} is reached at {}, after {}".format(problem.in_words(there), *times)
            yield Violation("windows", message, numbers[of_route[index]])

    def largest_time(self, ticks: Ticks) -> Any:
        return ticks.xp.amax(_due(ticks), axis=-1, keepdims=True)

    def least_limit(self, ticks: Ticks) -> float:
        """Return how long the depot is open, or longer than any route takes."""
        return float("inf") if ticks.problem.windows is None else float(_due(ticks)[0])

    def native(self, ticks: Ticks) -> dict[str, Any]:
        """Return times since the opening of the depot, rounded so that what fits in ticks passes `check`."""
        xp, problem = ticks.xp, ticks.problem
        fields: dict[str, Any] = {"ready": None, "due": None, "service": None}
        if problem.windows is not None:
            # The halves make up for the rounding of the travel times to and from a customer.
            fields["ready"] = ticks.times(xp.clip(_since_opening(problem)[..., 0], 0.0, None), xp.ceil)
            fields["due"] = ticks.times(_due(ticks), lambda due: xp.floor(due - 0.5))
        if ticks.has_times:
            service = xp.zeros_like(problem.demand) if problem.service is None else problem.service
            fields["service"] = ticks.times(service, lambda service: xp.ceil(service + 0.5))
            fields["service"][..., 0] = 0
        return fields

    def facts(self, problems: Sequence[Problem]) -> Facts:
        windows = [problem.windows for problem in problems if problem.windows is not None]
        if not windows:
            return []
        widths = [window[1:, 1] - window[1:, 0] for window in windows]
        hours = [float(window[0, 1] - window[0, 0]) for window in windows]
        shares = [width / open_for for width, open_for in zip(widths, hours, strict=True) if open_for > 0]
        share = f" and {100 * float(np.mean(np.concatenate(shares))):.1f}% of the hours" if shares else ""
        service = [problem.service[1:] for problem in problems if problem.service is not None]
        hours_text = " to ".join(spread(w[0, end] for w in windows) for end in (0, 1))
        if len(problems) == 1 and problems[0].clock_times:
            hours_text = " to ".join(map(clock, windows[0][0].tolist()))
        return [
            ("depot hours", hours_text),
            ("window width", summary(widths) + share),
            ("service time", summary(service) if service else "none"),
        ]


def _due(ticks: Ticks) -> Any:
    """Return (…, N+1) due dates since the opening of the depot, with the tolerance of `check`.

    None is later than a vehicle could ever be: a due date that means `any time` must not make the ticks coarse.
    """
    xp, problem = ticks.xp, ticks.problem
    windows = _since_opening(problem)
    ready, due, horizon = windows[..., 0], windows[..., 1], windows[..., :1, 1]
    service = xp.zeros_like(problem.demand) if problem.service is None else xp.minimum(problem.service, horizon)
    ready = xp.amax(xp.where(ready <= horizon, ready, 0.0), axis=-1, keepdims=True)  # at least the depot's 0
    latest = EVER * (ready + xp.sum(service, axis=-1, keepdims=True) + (problem.customers + 1) * ticks.longest_time)
    tolerance = 0.0 if problem.has_whole_times else NEARLY * (FLOAT_TOLERANCE * horizon)
    latest = xp.where(latest > 0, xp.ceil(latest) if problem.metric.is_integer else latest, horizon)
    return xp.minimum(due + tolerance, latest)


def filled_windows(windows: Floats, problem: Problem) -> Floats:
    """Return (N+1, 2) windows whose undefined entries (nan) restrict nothing. `problem` is the same without windows.

    A customer may be served while the depot is open. The depot opens at 0, or earlier for an earlier customer, and
    closes when the last vehicle can be back.
    """
    filled, customers = windows.copy(), np.arange(1, len(windows))
    service = np.zeros(len(windows)) if problem.service is None else problem.service
    back = service[1:] + problem.travel_time(customers, np.zeros_like(customers))
    ready, due = filled[:, 0], filled[:, 1]
    if np.isnan(ready[0]):
        ready[0] = min(0.0, np.nanmin(ready, initial=0.0))
    if np.isnan(due[0]):
        latest = due[1:] + back
        if np.any(np.isnan(latest)):  # somebody may be served at any time, after all others of a route
            fit = np.cumsum(np.sort(problem.demand[1:])) <= problem.capacity + problem.capacity_tolerance
            stops = int(np.count_nonzero(fit))
            longest = max(_longest(problem), float(back.max(initial=0.0)))
            begin = np.nanmax(windows, initial=max(0.0, ready[0]))
            latest = np.append(latest, begin + stops * float(service.max()) + (stops + 1) * longest)
        due[0] = np.nanmax(latest)
        due[0] = np.ceil(due[0]) if problem.metric.is_integer else due[0]
    ready[1:] = np.where(np.isnan(ready[1:]), ready[0], ready[1:])
    due[1:] = np.where(np.isnan(due[1:]), due[0], due[1:])
    return filled


def _longest(problem: Problem) -> float:
    """Return a bound on all travel times."""
    if problem.duration is not None:
        return float(problem.duration.max())
    if problem.distance is not None:
        return float(problem.distance.max())
    assert problem.coordinates is not None
    return float(np.hypot(*np.ptp(problem.coordinates, axis=0))) + 1.0


TIME_WINDOWS = TimeWindows()
