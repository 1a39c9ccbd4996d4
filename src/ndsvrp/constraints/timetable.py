"""Times of routes: when each vehicle leaves, arrives, waits, serves and returns; in float64, as `check` has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ndsvrp.constraints.base import Visits
    from ndsvrp.metric import Floats
    from ndsvrp.problem import Problem


FEW = 32  # routes for which numpy does not pay


class Span(NamedTuple):
    """A route with its times, in units of `Problem.comparable_times`; stops are depot, customers, depot."""

    route: int
    stops: tuple[int, ...]
    legs: list[float]  #: service at a stop and travel to the next
    ready: list[float]  #: by node
    due: list[float]  #: by node
    departure: float  #: the latest one with the earliest return: it makes the duration least
    end: float  #: the earliest return


class Times(NamedTuple):
    """The times of a route that leaves at `Span.departure`. Each list has an entry per stop, the depot twice."""

    route: int
    stops: tuple[int, ...]
    arrival: list[float]
    start: list[float]  #: of service
    departure: list[float]
    slack: list[float]  #: by how much the start may be delayed before a stop is late or the route too long


def earliest_starts(visits: Visits, legs: Floats, ready: Floats) -> Floats:
    """Return (legs,) when service at the end of each leg starts, if vehicles leave when the depot opens.

    legs: service at a stop and travel to the next; ready: (N+1,).
    """
    begins, counts = visits.ends[:-1], np.diff(visits.ends)
    by_length = np.argsort(-counts, kind="stable")
    begins, longest_first = begins[by_length], counts[by_length]
    opens, starts = ready[visits.stops[1:]], np.empty(len(legs))
    clock, step = np.full(len(begins), ready[0]), 0
    # Leg by leg over all routes that have another leg; where these are few, route by route.
    while (active := int(np.searchsorted(-longest_first, -step))) > FEW:
        at = begins[:active] + step
        clock = starts[at] = np.maximum(clock[:active] + legs[at], opens[at])
        step += 1
    for begin, count, time in zip(begins[:active].tolist(), longest_first.tolist(), clock.tolist(), strict=False):
        rest = slice(begin + step, begin + count)
        for i, (leg, earliest) in enumerate(zip(legs[rest].tolist(), opens[rest].tolist(), strict=True), rest.start):
            time = max(time + leg, earliest)
            starts[i] = time
    return starts


def spans(problem: Problem, visits: Visits) -> Iterator[Span]:
    """Yield each route with its departure and return."""
    comparable, service = problem.comparable_times, _service(problem)
    if problem.windows is None:
        ready, due = [0.0] * len(problem.demand), [np.inf] * len(problem.demand)
    else:
        ready, due = comparable(problem.windows[:, 0]).tolist(), comparable(problem.windows[:, 1]).tolist()
    legs = service[visits.stops[:-1]] + comparable(problem.travel_time(visits.stops[:-1], visits.stops[1:]))
    for route, customers, times in visits.legs(legs.tolist()):
        stops, start = (0, *customers, 0), [ready[0]]
        for leg, there in zip(times, stops[1:], strict=True):
            start.append(max(start[-1] + leg, ready[there]))
        departure = start[-1]
        for i in range(len(times) - 1, -1, -1):
            departure = min(departure - times[i], max(due[stops[i]], start[i]))  # a late stop may stay late
        departure = 0.0 if problem.windows is None else max(departure, ready[0])  # exact, despite rounding
        yield Span(route, stops, list(times), ready, due, departure, start[-1])


def timetables(problem: Problem, visits: Visits) -> Iterator[Times]:
    """Yield the times of each route, in units of time."""
    scale, service = problem.time_scale, (_service(problem)).tolist()
    longest = np.inf if problem.max_duration is None else problem.max_duration * scale
    for span in spans(problem, visits):
        arrival, start = [span.departure], [span.departure]
        for leg, there in zip(span.legs, span.stops[1:], strict=True):
            arrival.append(start[-1] + leg)
            start.append(max(arrival[-1], span.ready[there]))
        departure = [begin + service[stop] for begin, stop in zip(start, span.stops, strict=True)]
        slack = _slack(span, start, min(span.due[0], span.departure + longest))
        slack[0] = _slack(span, start, span.due[0])[0]  # a later departure makes no route longer
        tolerance = problem.time_tolerance * scale
        slack = [0.0 if abs(value) <= tolerance else value for value in slack]
        columns = [[value / scale for value in column] for column in (arrival, start, departure, slack)]
        yield Times(span.route, span.stops, *columns)


def _slack(span: Span, start: list[float], closing: float) -> list[float]:
    """Return by how much later each stop may start, if vehicles must be back by `closing`."""
    latest = [closing]
    for i in range(len(span.legs) - 1, -1, -1):
        latest.append(min(latest[-1] - span.legs[i], span.due[span.stops[i]]))
    return [late - begin for late, begin in zip(reversed(latest), start, strict=True)]


def _service(problem: Problem) -> Floats:
    """Return (N+1,) service times in comparable units. If times are not limited, they need not be whole."""
    if problem.service is None:
        return np.zeros(len(problem.demand))
    return problem.comparable_times(problem.service) if problem.has_times else problem.service * problem.time_scale
