"""Fleets that are too small, where arithmetic shows it.

A route enters each of its customers once, from anywhere, and then returns to the depot. So it takes at least the
shortest leg into each of them, and the shortest leg into the depot. This holds by any matrix, and with optional
customers between required ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints.fleet import fewest, fewest_vehicles
from ndsvrp.constraints.route_limits import MAX_DISTANCE, MAX_DURATION
from ndsvrp.metric import Floats
from ndsvrp.text import amount

if TYPE_CHECKING:
    from ndsvrp.problem import Problem

MOST_NODES = 3000  # all legs between more of them take longer than a refusal is worth
ROWS = 256  # of legs at a time

Legs = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Floats]


def shortage(problem: Problem) -> str | None:
    """Return why the fleet is too small for the required customers, where arithmetic shows it."""
    if problem.vehicles is None:
        return None
    for least, reason in _bounds(problem):
        if least > problem.vehicles:
            fleet = amount(problem.vehicles, "vehicle")
            return f"{fleet} cannot serve all required customers: their {reason} {least}"
    return None


def least_vehicles(problem: Problem) -> int:
    """Return how many vehicles the required customers need at least, as far as arithmetic shows it."""
    return max(least for least, _ in _bounds(problem))


def _bounds(problem: Problem) -> Iterator[tuple[int, str]]:
    """Yield numbers of vehicles that are needed at least, with the reason; those that take little time first."""
    yield fewest_vehicles(problem), "demand takes"
    if MAX_DISTANCE.present(problem):
        most = MAX_DISTANCE.limit(problem) + MAX_DISTANCE.tolerance(problem)
        yield _by_legs(problem, _shortest(problem, problem.length), 0.0, most), "distances take at least"
    if not problem.has_times:
        return
    times = _shortest(problem, lambda a, b: problem.comparable_times(problem.travel_time(a, b)))
    service = np.zeros(len(problem.demand)) if problem.service is None else problem.comparable_times(problem.service)
    yield _by_legs(problem, times, service, _longest_route(problem)), "service and travel times take at least"
    if problem.has_windows:
        yield _at_one_time(problem, times[0], service), "windows take at least"


def _shortest(problem: Problem, legs: Legs) -> tuple[Floats, Floats]:
    """Return (N+1,) the shortest leg into each node, and out of it; zeros if there are too many nodes."""
    nodes = np.arange(len(problem.demand))
    into, out_of = np.zeros(len(nodes)), np.zeros(len(nodes))
    if len(nodes) > MOST_NODES:
        return into, out_of
    into[:] = np.inf
    for begin in range(0, len(nodes), ROWS):
        rows = nodes[begin : begin + ROWS]
        part = legs(rows[:, None], nodes[None, :])
        part[rows - begin, rows] = np.inf
        into, out_of[rows] = np.minimum(into, part.min(axis=0)), part.min(axis=1)
    return into, out_of


def _by_legs(problem: Problem, shortest: tuple[Floats, Floats], service: Floats | float, most: float) -> int:
    """Return the vehicles that customers need by the shortest leg into each, or out of each, on routes up to `most`."""
    needs = ((legs + service, legs[0]) for legs in shortest)
    return max(fewest(each[problem.required], most - depot) for each, depot in needs)


def _longest_route(problem: Problem) -> float:
    """Return the time from departure to return that limits and opening hours allow, as `check` compares it."""
    most = np.inf
    if MAX_DURATION.present(problem):
        limit = MAX_DURATION.limit(problem) + MAX_DURATION.tolerance(problem)
        most = limit * problem.time_scale
    if problem.windows is not None:
        opens, closes = problem.comparable_times(problem.windows[0]).tolist()
        most = min(most, closes - opens + problem.time_tolerance)
    return float(most)


def _at_one_time(problem: Problem, into: Floats, service: Floats) -> int:
    """Return how many required customers keep a vehicle each busy at the same time.

    The vehicle of a customer is on its way there, or there, from the latest time at which it can leave the stop before
    until the earliest end of service.
    """
    assert problem.windows is not None
    ready, due = problem.comparable_times(problem.windows).T
    end = np.maximum(ready, ready[0] + into) + service
    begin = due - into + 2 * problem.time_tolerance  # twice: one is for the rounding of float64
    busy = problem.required & (begin < end)
    begins, ends = np.sort(begin[busy]), np.sort(end[busy])
    return int(np.max(np.searchsorted(begins, ends) - np.searchsorted(ends, ends), initial=0))
