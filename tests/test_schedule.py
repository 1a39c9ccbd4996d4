"""Schedules of routes, worked out by hand."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import ndsvrp
from ndsvrp.schedule import StopTimes, schedule


def line(**changes: Any) -> ndsvrp.Problem:
    """A depot at 0 and customers at 3, 6 and 10 of a line."""
    fields: dict[str, Any] = {"coordinates": [[0, 0], [3, 0], [6, 0], [10, 0]], "demand": [0, 2, 3, 4], "capacity": 9}
    return ndsvrp.Problem(**(fields | changes))


def test_without_times() -> None:
    (route,) = schedule(line(service=[0, 1, 1, 1]), ndsvrp.Solution([[1, 2, 3]]))
    assert (route.number, route.customers, route.names) == (1, (1, 2, 3), ("1", "2", "3"))
    assert (route.load, route.distance, route.duration) == (9.0, 20.0, 23.0)
    assert route.stops == (
        StopTimes(0, "depot", 0.0, 0.0, 0.0, 0.0, inf),
        StopTimes(1, "1", 3.0, 0.0, 3.0, 4.0, inf),
        StopTimes(2, "2", 7.0, 0.0, 7.0, 8.0, inf),
        StopTimes(3, "3", 12.0, 0.0, 12.0, 13.0, inf),
        StopTimes(0, "depot", 23.0, 0.0, 23.0, 23.0, inf),
    )


@pytest.mark.parametrize("windows", [None, [[2, 30], [2, 30], [2, 30]]])
def test_no_vehicle_leaves_before_the_depot_opens(windows: Any) -> None:
    """The departure is the return less all legs, which rounding must not make earlier."""
    problem = ndsvrp.Problem(coordinates=[[0, 0], [1, 1], [9, 9]], demand=[0, 1, 1], capacity=2, windows=windows)
    (route,) = schedule(problem, ndsvrp.Solution([[1, 2]]))
    assert route.stops[0].departure == (0.0 if windows is None else 2.0)


WINDOWS = [[0, 60], [0, 9], [20, 22], [10, 30]]


@pytest.mark.parametrize("metric", ["none", "round", "dimacs"])
def test_windows(metric: str) -> None:
    """Service takes 2 everywhere. Earliest: 3-5, wait at 8 until 20, 20-22, 26-28, home at 38.

    The vehicle leaves customer 1 by 11, so it must not leave the depot after 6 (due 9): it leaves at 6, is at 1 at 9,
    at 2 at 14, waits 6. Latest starts: home 60, at 3 by 30, at 2 by 22 (30 - 6 = 24, due 22), at 1 by 9 (due).
    """
    problem = line(windows=WINDOWS, service=[0, 2, 2, 2], names=["hub", "a", "b", "c"], metric=metric)
    (route,) = schedule(problem, ndsvrp.Solution([[1, 2, 3]]))
    assert route.stops == (
        StopTimes(0, "hub", 6.0, 0.0, 6.0, 6.0, 0.0),
        StopTimes(1, "a", 9.0, 0.0, 9.0, 11.0, 0.0),
        StopTimes(2, "b", 14.0, 6.0, 20.0, 22.0, 2.0),
        StopTimes(3, "c", 26.0, 0.0, 26.0, 28.0, 4.0),
        StopTimes(0, "hub", 38.0, 0.0, 38.0, 38.0, 22.0),
    )
    assert route.duration == 32.0


def test_a_limit_on_the_duration_limits_the_slack() -> None:
    problem = line(windows=WINDOWS, service=[0, 2, 2, 2], max_duration=33)
    (route,) = schedule(problem, ndsvrp.Solution([[1, 2, 3]]))
    assert [stop.slack for stop in route.stops] == [0.0, 0.0, 1.0, 1.0, 1.0]
    (route,) = schedule(line(max_duration=25), ndsvrp.Solution([[3, 2, 1]]))
    assert [stop.slack for stop in route.stops] == [inf, 5.0, 5.0, 5.0, 5.0]  # 20 long: a later departure is free


def test_late_stops_have_negative_slack() -> None:
    problem = line(windows=[[0, 60], [0, 9], [8, 12], [10, 30]], service=[0, 2, 2, 2])
    (route,) = schedule(problem, ndsvrp.Solution([[3, 2, 1]]))
    # 10-12, 16-18 (due 12), 21-23 (due 9): all must be 12 earlier for customer 1
    assert [(stop.start, stop.slack) for stop in route.stops[1:4]] == [(10.0, -12.0), (16.0, -12.0), (21.0, -12.0)]


def test_several_routes_and_strange_ones() -> None:
    routes = schedule(line(), ndsvrp.Solution([[3], [], [2, 99, 1]]))
    assert [(route.number, route.customers, route.distance) for route in routes] == [(1, (3,), 20.0), (3, (2, 1), 12.0)]


def test_tenths_stay_tenths() -> None:
    problem = line(coordinates=[[0, 0], [0.3, 0], [0.3, 0.4], [0.3, 0.4]], metric="dimacs", service=[0, 0.05, 0, 0])
    (route,) = schedule(problem, ndsvrp.Solution([[1, 2, 3]]))
    assert [stop.arrival for stop in route.stops] == [0.0, 0.3, 0.75, 0.75, 1.25]
    assert route.distance == 1.2


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrptw"])
def test_schedules_agree_with_check(variant: str) -> None:
    problem = ndsvrp.generate(variant, 40, seed=2)[0]
    result = ndsvrp.solve(problem, iterations=3, seed=1, chains=2, rollouts=50)
    assert sum(route.distance for route in result.schedule) == pytest.approx(result.report.distance)
    assert max(route.load for route in result.schedule) <= problem.capacity
    served = [stop for route in result.schedule for stop in route.stops[1:-1]]
    assert [stop.node for stop in served] == [c for route in result.solution.routes for c in route]
    if problem.windows is not None:
        starts, due = np.array([stop.start for stop in served]), problem.windows[[stop.node for stop in served], 1]
        assert np.all(starts <= due + problem.time_tolerance)
        assert min(stop.slack for stop in served) >= -problem.time_tolerance
        assert all(stop.wait >= 0 for stop in served)


def test_rounding_is_no_waiting() -> None:
    """A vehicle leaves so that it arrives when a window opens; by float64 at 0.3069999999999999 for 0.307."""
    problem = ndsvrp.generate("vrptw", 50, seed=0)[0]
    routes = ndsvrp.solve(problem, iterations=3, device="cpu").schedule
    early = [stop for route in routes for stop in route.stops if 0 < stop.start - stop.arrival < 1e-9]
    assert early and {stop.wait for stop in early} == {0.0}
