"""`check` on four customers whose costs and times are worked out by hand.

      2 (6,8)                 lengths      0    1    2     3     4
  3     1                        0         -    5   10     5    12
(-3,4) (3,4)                     1         5    -    5     6  √265
      0                          2        10    5    -   √97  √436
      4 (0,-12)                  3         5    6  √97     -  √265
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndsvrp.check import Report, Violation, check
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

SERVICE = [0, 2, 3, 1, 0]
WINDOWS = [[0, 40], [10, 20], [0, 17], [0, 9], [12, 28]]
PRIZE = [0, 0, 4, 12, 24]  # customer 1 is required


def four(**changes: Any) -> Problem:
    fields: dict[str, Any] = {
        "coordinates": [[0, 0], [3, 4], [6, 8], [-3, 4], [0, -12]],
        "demand": [0, 2, 3, 4, 5],
        "capacity": 7,
    }
    return Problem(**(fields | changes))


def checked(problem: Problem, *routes: tuple[int, ...]) -> Report:
    return check(problem, Solution(routes))


# --- capacity ----------------------------------------------------------------------------------


def test_capacity() -> None:
    # 0-1-2-0: 5 + 5 + 10 = 20, load 5;  0-3-0: 10, load 4;  0-4-0: 24, load 5
    report = checked(four(), (1, 2), (3,), (4,))
    assert report == Report(cost=54.0, distance=54.0, lost_prizes=0.0, violations=(), unserved=())
    assert report.feasible


def test_a_full_vehicle_is_allowed() -> None:
    # 0-2-3-0: 10 + √97 + 5, load exactly 7;  0-1-4-0: 5 + √265 + 12, load exactly 7
    report = checked(four(), (2, 3), (1, 4))
    assert report.feasible
    assert report.cost == pytest.approx(32 + sqrt(97) + sqrt(265), rel=1e-15)


def test_too_much_load() -> None:
    # 0-1-2-3-0: 5 + 5 + √97 + 5, load 2 + 3 + 4 = 9
    report = checked(four(), (4,), (1, 2, 3))
    assert report.violations == (Violation("capacity", "load 9 is above the capacity 7", 2),)
    assert str(report.violations[0]) == "route 2: load 9 is above the capacity 7"
    assert report.cost == pytest.approx(24 + 15 + sqrt(97))
    assert not report.feasible


def test_float_loads_have_a_millionth_of_slack() -> None:
    tenths = four(demand=[0, 0.1, 0.2, 0.3, 0.6], capacity=0.6)  # 0.1 + 0.2 + 0.3 is 0.6000000000000001
    assert checked(tenths, (1, 2, 3), (4,)).feasible
    more = four(demand=[0, 0.1, 0.2, 0.30001, 0.6], capacity=0.6)
    assert [v.kind for v in checked(more, (1, 2, 3), (4,)).violations] == ["capacity"]


def test_customers_are_whole_numbers() -> None:
    assert Solution([np.array([1, 2]), [np.int16(3)], (4,)]).routes == ((1, 2), (3,), (4,))
    assert all(type(c) is int for route in Solution(np.array([[1, 2]])).routes for c in route)
    with pytest.raises(NdsError, match="a route a list of customer numbers"):
        Solution([[1.5]])  # type: ignore[list-item]


# --- windows -----------------------------------------------------------------------------------


def test_windows_with_waiting_and_service() -> None:
    # Route 1: at 1 at 5, waits until 10, served until 12; at 2 at 17, its last moment; until 20; home at 30 ≤ 40.
    # Route 2: at 3 at 5, served until 6; home at 11.
    # Route 3: at 4 at 12; home at 24.
    report = checked(four(windows=WINDOWS, service=SERVICE), (1, 2), (3,), (4,))
    assert report.feasible
    assert report.cost == 54.0  # waiting and service cost nothing


def test_late_because_of_service() -> None:
    # At 1 from 10 to 12.5 now; at 2 at 17.5, after 17.
    report = checked(four(windows=WINDOWS, service=[0, 2.5, 3, 1, 0]), (1, 2), (3,), (4,))
    assert report.violations == (Violation("windows", "customer 2 is reached at 17.5, after 17", 1),)


def test_late_because_of_the_order() -> None:
    # 2 at 10, served until 13; 1 at 18 ≤ 20, until 20; home at 25. Then 3 after 1: at 5 → 10 … 12, at 3 at 18 > 9.
    problem = four(windows=WINDOWS, service=SERVICE)
    assert checked(problem, (2, 1), (3,), (4,)).feasible
    late = checked(problem, (1, 3), (2,), (4,))
    assert late.violations == (Violation("windows", "customer 3 is reached at 18, after 9", 1),)


def test_late_at_the_depot() -> None:
    # 0-1-2-0 is home at 30.
    problem = four(windows=[[0, 30], *WINDOWS[1:]], service=SERVICE)
    assert checked(problem, (1, 2), (3,), (4,)).feasible
    # 3 until 6, 2 at 6 + √97 = 15.85 until 18.85, 0 at 28.85: still fine. 2 at 10 … 13, 1 at 18 … 20, 4 at
    # 20 + √265 = 36.28: late at 4, and only that is reported.
    assert checked(problem, (3, 2), (1,), (4,)).feasible
    assert [str(v) for v in checked(problem, (2, 1, 4), (3,)).violations] == [
        "route 1: load 10 is above the capacity 7",
        "route 1: customer 4 is reached at 36.2788, after 28",
    ]
    # Open at 4 only from 12; with the depot closing at 30 a service of 7 there means home at 31.
    slow = four(windows=[[0, 31], [10, 20], [0, 17], [0, 9], [0, 28]], service=[0, 2, 3, 1, 7])
    assert checked(slow, (1, 2), (3,), (4,)).feasible  # 12, 19, home at 31
    late = checked(slow, (1, 2), (3, 4))  # 3 until 6, 4 at 6 + √265 = 22.28 until 29.28, home at 41.28
    assert [str(v) for v in late.violations] == [
        "route 2: load 9 is above the capacity 7",
        "route 2: the depot is reached at 41.2788, after 31",
    ]


def test_vehicles_leave_when_the_depot_opens() -> None:
    # Leaves at 6: at 1 at 11 until 13, at 2 at 18 > 17.
    late = four(windows=[[6, 60], [10, 20], [0, 17], [0, 20], [12, 28]], service=SERVICE)
    assert [str(v) for v in checked(late, (1, 2), (3,), (4,)).violations] == [
        "route 1: customer 2 is reached at 18, after 17"
    ]


def test_float_times_have_a_millionth_of_the_horizon_of_slack() -> None:
    def due(latest: float) -> Problem:
        return four(windows=[[0, 100], [0, 90], [0, latest], [0, 90], [0, 90]])

    assert checked(due(10 - 0.9e-4), (1, 2), (3,), (4,)).feasible  # reached at 10, slack 1e-4
    with pytest.raises(Exception, match="unreachable in time"):
        due(10 - 1.1e-4)


# --- prizes ------------------------------------------------------------------------------------


def test_prizes() -> None:
    # Customer 2 is unserved: 0-1-0 10 + 0-3-0 10 + 0-4-0 24 = 44, and its prize of 4 is lost.
    report = checked(four(prize=PRIZE), (1,), (3,), (4,))
    assert report == Report(cost=48.0, distance=44.0, lost_prizes=4.0, violations=(), unserved=(2,))
    # Serving it on the way costs 20 - 10 = 10 more than it brings in.
    assert checked(four(prize=PRIZE), (1, 2), (3,), (4,)).cost == 54.0
    # Only what must be: 10 + (4 + 12 + 24)
    assert checked(four(prize=PRIZE), (1,)).cost == 50.0


def test_a_required_customer_is_missing() -> None:
    # 0-3-0 and 0-4-0: 34; the prize of 2 is lost, that of 1 is 0.
    report = checked(four(prize=PRIZE), (3,), (4,))
    assert report.violations == (Violation("unserved", "1 required customer is not served: 1"),)
    assert (report.cost, report.unserved) == (38.0, (1, 2))


def test_all_customers_are_required_without_prizes() -> None:
    report = checked(four(), (1, 2))
    assert [str(v) for v in report.violations] == ["2 required customers are not served: 3, 4"]
    assert (report.cost, report.lost_prizes, report.unserved) == (20.0, 0.0, (3, 4))


def test_many_missing_customers_are_cut_short() -> None:
    problem = Problem(coordinates=np.zeros((31, 2)), demand=[0] + [1] * 30, capacity=1)
    (violation,) = checked(problem).violations
    assert violation.message == f"30 required customers are not served: {', '.join(map(str, range(1, 21)))}, …"


# --- everything together -----------------------------------------------------------------------


def test_the_combination() -> None:
    # 0-1-2-0: 20, times as above; 3 and 4 are unserved: 12 + 24 lost.
    problem = four(windows=WINDOWS, service=SERVICE, prize=PRIZE, vehicles=1)
    report = checked(problem, (1, 2))
    assert report == Report(cost=56.0, distance=20.0, lost_prizes=36.0, violations=(), unserved=(3, 4))


def test_every_rule_broken_at_once() -> None:
    problem = four(windows=WINDOWS, service=SERVICE, prize=PRIZE, vehicles=2)
    report = checked(problem, (4, 3), (), (2, 2, 9))
    # 0-4-3-0: 12 + √265 + 5; load 9; at 3 at 12 + √265. 0-0: nothing. 0-2-2-0: 20; the second time at 13.
    assert [(v.kind, str(v)) for v in report.violations] == [
        ("empty", "route 2: serves nobody"),
        ("twice", "route 3: customer 2 is served twice"),
        ("unknown", "route 3: there is no customer 9"),
        ("capacity", "route 1: load 9 is above the capacity 7"),
        ("windows", "route 1: customer 3 is reached at 28.2788, after 9"),
        ("fleet", "3 routes for 2 vehicles"),
        ("unserved", "1 required customer is not served: 1"),
    ]
    assert report.cost == pytest.approx(37 + sqrt(265))  # the prize of 1 is 0


def test_violations_state_names() -> None:
    names = ["hub", "Ann", "Bob", "Cyd\n", "Dan"]
    report = checked(four(windows=WINDOWS, service=SERVICE, names=names), (4, 3), (2, 2))
    assert [str(v) for v in report.violations if v.kind != "capacity"] == [
        "route 2: customer 2 ('Bob') is served twice",
        "route 1: customer 3 ('Cyd\\n') is reached at 28.2788, after 9",
        "1 required customer is not served: Ann",
    ]


def test_the_depot_is_no_customer() -> None:
    assert [str(v) for v in checked(four(), (1, 0, 2), (3,), (4,), (-1,)).violations] == [
        "route 1: there is no customer 0",
        "route 4: there is no customer -1",
    ]


def test_fleet_limit() -> None:
    assert checked(four(vehicles=3), (1, 2), (3,), (4,)).feasible
    report = checked(four(vehicles=2), (1, 2), (3,), (4,))
    assert report.violations == (Violation("fleet", "3 routes for 2 vehicles"),)
    report = checked(four(vehicles=1), (1, 2), (3,), (4,))
    assert report.violations == (Violation("fleet", "3 routes for 1 vehicle"),)
    assert report.violations[0].route is None


# --- matrices ----------------------------------------------------------------------------------

ONE_WAY = [
    [0, 1, 2, 3, 4],
    [10, 0, 20, 30, 40],
    [11, 21, 0, 31, 41],
    [12, 22, 32, 0, 42],
    [13, 23, 33, 43, 0],
]


def test_asymmetric_matrix() -> None:
    problem = four(coordinates=None, distance=ONE_WAY, capacity=14)
    assert checked(problem, (1, 2, 3, 4)).cost == 1 + 20 + 31 + 42 + 13
    assert checked(problem, (4, 3, 2, 1)).cost == 4 + 43 + 32 + 21 + 10
    assert checked(problem, (1,), (2,), (3,), (4,)).cost == (1 + 10) + (2 + 11) + (3 + 12) + (4 + 13)


def test_a_matrix_goes_before_coordinates() -> None:
    assert checked(four(distance=ONE_WAY), (1,), (2,), (3,), (4,)).cost == 56


def test_asymmetric_times() -> None:
    # At 1 at 1, at 2 at 21; the other way round at 2 at 2, at 1 at 23.
    windows = [[0, 99], [0, 22], [0, 21], [0, 99], [0, 99]]
    problem = four(coordinates=None, distance=ONE_WAY, windows=windows)
    assert checked(problem, (1, 2), (3,), (4,)).feasible
    assert [str(v) for v in checked(problem, (2, 1), (3,), (4,)).violations] == [
        "route 1: customer 1 is reached at 23, after 22"
    ]


def test_an_empty_route_counts_nothing() -> None:
    problem = four(coordinates=None, distance=np.array(ONE_WAY) + 100 * np.eye(5), capacity=14)  # 100 from 0 to 0
    assert checked(problem, (1, 2, 3, 4)).cost == 107
    for empty in ((), (9,)):
        report = checked(problem, empty, (1, 2, 3, 4), empty)
        assert report.cost == 107
        assert [v.route for v in report.violations] == [1, 3]
    assert checked(problem).distance == 0.0


def test_violations_are_in_the_order_of_routes() -> None:
    # Load 7 and 7 for a capacity of 6. 0-1-2: 21 > 20; 0-3-4: 45 > 40.
    windows = [[0, 99], [0, 99], [0, 20], [0, 99], [0, 40]]
    problem = four(coordinates=None, distance=ONE_WAY, windows=windows, demand=[0, 3, 4, 4, 3], capacity=6)
    assert [str(v) for v in checked(problem, (1, 2), (3, 4)).violations] == [
        "route 1: load 7 is above the capacity 6",
        "route 1: customer 2 is reached at 21, after 20",
        "route 2: load 7 is above the capacity 6",
        "route 2: customer 4 is reached at 45, after 40",
    ]


def test_duration_matrix() -> None:
    # Lengths decide the cost, durations the times: all legs last 6, but 12 from 1 to 2.
    duration = np.full((5, 5), 6.0)
    duration[1, 2] = 12
    windows = [[0, 24], [0, 6], [0, 18], [0, 6], [0, 6]]
    distance = np.rint(four().length(np.arange(5)[:, None], np.arange(5)[None, :]))
    problem = four(distance=distance, duration=duration, windows=windows)
    assert checked(problem, (1, 2), (3,), (4,)).feasible  # 6, 18, home at 24
    assert checked(problem, (1, 2), (3,), (4,)).cost == 54.0
    tight = problem.replace(windows=[[0, 23], *windows[1:]])
    assert [str(v) for v in checked(tight, (1, 2), (3,), (4,)).violations] == [
        "route 1: the depot is reached at 24, after 23"
    ]


# --- rounding ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "cost"),
    [
        # 0-2-3-0: 10 + 9.8488… + 5;  0-1-4-0: 5 + 16.2788… + 12
        ("none", 32 + sqrt(97) + sqrt(265)),
        ("round", 10 + 10 + 5 + 5 + 16 + 12),
        ("trunc", 10 + 9 + 5 + 5 + 16 + 12),
        ("dimacs", 58.0),  # 10 + 9.8 + 5 + 5 + 16.2 + 12
        ("exact", 58.128),  # 10 + 9.849 + 5 + 5 + 16.279 + 12 = 58.128
    ],
)
def test_each_leg_is_rounded(metric: str, cost: float) -> None:
    report = checked(four(metric=metric), (2, 3), (1, 4))
    assert report.cost == cost if metric != "none" else report.cost == pytest.approx(cost, rel=1e-15)


def test_dimacs_costs_are_exact_tenths() -> None:
    # Every leg is √2 = 1.41 → 1.4. Added up in float64, three times 2.8 is 8.399999999999999.
    problem = Problem(coordinates=[[0, 0], [1, 1], [-1, 1], [1, -1]], demand=[0, 1, 1, 1], capacity=1, metric="dimacs")
    assert 2.8 + 2.8 + 2.8 != 8.4
    assert checked(problem, (1,), (2,), (3,)).cost == 8.4


def test_dimacs_prizes_are_exact_tenths() -> None:
    problem = four(metric="dimacs", prize=[0, 0.1, 0.1, 0.1, 5])
    report = checked(problem, (4,))
    assert (report.distance, report.lost_prizes, report.cost) == (24.0, 0.3, 24.3)  # 0.1 + 0.1 + 0.1 > 0.3


def test_dimacs_times_are_exact_tenths() -> None:
    # 0.1 to customer 1 and 0.2 on to 2, due at 0.3; in float64 0.1 + 0.2 is after 0.3.
    distance = [[0, 0.1, 0.3], [0.1, 0, 0.2], [0.3, 0.2, 0]]
    fields: dict[str, Any] = {"demand": [0, 1, 1], "capacity": 2, "distance": distance, "metric": "dimacs"}
    on_time = Problem(windows=[[0, 0.6], [0, 0.1], [0, 0.3]], **fields)
    assert checked(on_time, (1, 2)).feasible
    assert checked(on_time, (1, 2)).cost == 0.6
    early = on_time.replace(windows=[[0, 0.6], [0, 0.1], [0, 0.3]], service=[0, 0.1, 0])
    assert [str(v) for v in checked(early, (1, 2)).violations] == ["route 1: customer 2 is reached at 0.4, after 0.3"]


def test_a_due_date_a_rounding_error_short_of_a_tick_is_that_tick() -> None:
    # 0-1-2: at 2 at 2.
    windows = [[0, 9], [0, 9], [0, np.nextafter(2.0, 0)]]
    fields: dict[str, Any] = {"coordinates": [[0, 0], [1, 0], [1, 1]], "windows": windows, "metric": "exact"}
    problem = Problem(demand=np.array([0, 1.0, 1.0]), capacity=2, **fields)
    assert checked(problem, (1, 2)).feasible
    early = problem.replace(windows=[[0, 9], [0, 9], [0, 1.999]])
    assert [str(v) for v in checked(early, (1, 2)).violations] == ["route 1: customer 2 is reached at 2, after 1.999"]


@given(st.permutations([1, 2, 3, 4]), st.sampled_from(["none", "round", "trunc", "dimacs", "exact"]))
def test_cost_does_not_depend_on_direction_or_order_of_routes(order: list[int], metric: str) -> None:
    problem = four(metric=metric, capacity=14)
    first, second = tuple(order[:2]), tuple(order[2:])
    cost = checked(problem, first, second).cost
    assert checked(problem, second, first).cost == pytest.approx(cost, rel=1e-15)
    assert checked(problem, first[::-1], second[::-1]).cost == pytest.approx(cost, rel=1e-15)


def test_large_numbers_are_told_apart() -> None:
    """The day begins at 1.7e9 seconds; loads are in grams."""
    begin = 1_700_000_000
    problem = Problem(
        coordinates=[[0, 0], [3, 4], [6, 8]], demand=[0, 600_000, 400_001], capacity=1_000_000,
        windows=[(begin, begin + 100), (begin, begin + 100), (begin, begin + 12)],
    )  # fmt: skip
    heavy = check(problem, Solution([[1, 2]]))
    assert [str(violation) for violation in heavy.violations] == [
        "route 1: load 1,000,001 is above the capacity 1,000,000"
    ]
    # Customer 1 is served from 5 to 8, customer 2 is reached at 13.
    late = check(problem.replace(service=[0, 3, 0], capacity=2_000_000), Solution([[1, 2]]))
    assert [str(violation) for violation in late.violations] == [
        "route 1: customer 2 is reached at 1,700,000,013, after 1,700,000,012"
    ]


@pytest.mark.parametrize("routes", [1, 31, 90])
def test_windows_of_many_routes(routes: int) -> None:
    """Route by route, in plain Python; with many routes, all of them are looked at at once."""
    problem = generate("vrptw", 180, seed=4)[0]
    rng = np.random.default_rng(routes)
    cuts = np.sort(rng.choice(np.arange(1, 180), routes - 1, replace=False))
    solution = Solution(np.split(1 + rng.permutation(180), cuts))
    assert problem.windows is not None and problem.service is not None
    expected = {}
    for number, route in enumerate(solution.routes, start=1):
        clock, here = float(problem.windows[0, 0]), 0
        for there in (*route, 0):
            clock = max(clock + problem.service[here] + problem.length(here, there), problem.windows[there, 0])
            if clock > problem.windows[there, 1] + problem.time_tolerance:
                who = f"customer {there}" if there else "the depot"
                expected[number] = f"{who} is reached at {clock:g}, after {problem.windows[there, 1]:g}"
                break
            here = there
    found = {v.route: v.message for v in check(problem, solution).violations if v.kind == "windows"}
    assert found == expected and len(found) > routes // 4


def test_loads_of_many_routes() -> None:
    """Sums of tenths: one route is full, one holds a thousandth more, a third has the same customer twice."""
    demand = np.r_[0.0, np.full(60, 0.1)]
    demand[20] += 0.001
    problem = Problem(coordinates=np.zeros((61, 2)), demand=demand, capacity=1.0)
    routes = [list(range(first, first + 10)) for first in range(1, 61, 10)]
    assert [str(v) for v in check(problem, Solution(routes)).violations] == [
        "route 2: load 1.001 is above the capacity 1"
    ]
    routes[2].append(21)
    assert [str(v) for v in check(problem, Solution(routes)).violations] == [
        "route 3: customer 21 is served twice", "route 2: load 1.001 is above the capacity 1",
        "route 3: load 1.1 is above the capacity 1",
    ]  # fmt: skip
