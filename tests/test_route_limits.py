"""Limits on the distance and the duration of a route: four customers by hand, published instances, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ndsvrp
from ndsvrp import InstanceError, Problem, Solution, check, solve

LIMITS = Path(__file__).parent / "data/lib/limits"

# Depot (0, 0); 1 at (0, 3), 2 at (4, 3), 3 at (4, 0), 4 at (0, -5).
# Lengths: 0-1 3, 1-2 4, 2-3 3, 3-0 4, 0-2 5, 1-3 5, 0-4 5. The tour 0 1 2 3 0 is 14 long, 0 4 0 is 10 long.
POINTS = [[0, 0], [0, 3], [4, 3], [4, 0], [0, -5]]


def four(**fields: object) -> Problem:
    return Problem(**{"demand": [0, 1, 1, 1, 1], "capacity": 10, "coordinates": POINTS, **fields})  # type: ignore[arg-type]


def best(problem: Problem) -> float:
    return solve(problem, iterations=20, seed=1, solver="nds", chains=2, device="cpu").cost


def kinds(problem: Problem, *routes: list[int]) -> list[str]:
    return [violation.kind for violation in check(problem, Solution(routes)).violations]


# --- distance ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "cost"),
    [
        (30, 3 + 4 + 3 + np.hypot(4, 5) + 5),  # one route 1 2 3 4
        (14, 24),  # 1 2 3 and 4: the first route has exactly the limit
        (13.9, 28),  # 1, 2 3 and 4: 6 + 12 + 10
    ],
)
def test_distance_of_four_customers(limit: float, cost: float) -> None:
    assert best(four(max_distance=limit)) == pytest.approx(cost, abs=1e-12)


def test_distance_is_checked() -> None:
    problem = four(max_distance=13)
    assert kinds(problem, [1, 2, 3], [4]) == ["max_distance"]
    assert kinds(problem, [2, 3], [1], [4]) == []
    report = check(problem, Solution([[4], [1, 2, 3]]))
    assert [str(violation) for violation in report.violations] == ["route 2: distance 14 is above the limit 13"]


def test_service_does_not_count_as_distance() -> None:
    assert kinds(four(max_distance=14, service=[0, 9, 9, 9, 9]), [1, 2, 3], [4]) == []


# --- duration ----------------------------------------------------------------------------------


def test_duration_counts_service() -> None:
    service = [0, 1, 1, 1, 0]
    assert kinds(four(max_duration=17, service=service), [1, 2, 3], [4]) == []
    assert kinds(four(max_duration=16, service=service), [1, 2, 3], [4]) == ["max_duration"]
    assert best(four(max_duration=17, service=service)) == pytest.approx(24)
    assert best(four(max_duration=16, service=service)) == pytest.approx(28)  # 2 3 takes 12 + 2


def test_duration_counts_waiting_after_the_latest_departure() -> None:
    # 3 must start by 4, so the vehicle departs at 0; it serves until 5 and is at 1 at 10, where it waits until 12.
    # It is back at 12 + 1 + 3 = 16. In the other order it departs at 9 for 1 at 12, too late for 3.
    windows = [[0, 100], [12, 20], [0, 100], [0, 4], [0, 100]]
    problem = four(windows=windows, service=[0, 1, 1, 1, 1], max_duration=16)
    assert kinds(problem, [3, 1], [2], [4]) == []
    assert kinds(problem.replace(max_duration=15.9), [3, 1], [2], [4]) == ["max_duration"]
    report = check(problem.replace(max_duration=15), Solution([[3, 1], [2], [4]]))
    assert str(report.violations[0]) == "route 1: duration 16 is above the limit 15"


def test_a_late_departure_avoids_waiting() -> None:
    # 1 opens at 50: departing at 47, the route takes 3 + 1 + 3.
    windows = [[0, 100], [50, 60], [0, 100], [0, 100], [0, 100]]
    problem = four(windows=windows, service=[0, 1, 1, 1, 1], max_duration=11)
    assert kinds(problem, [1], [2], [3], [4]) == []
    assert best(problem) == pytest.approx(6 + 10 + 8 + 10)  # 2 3 would take 14


def test_a_whole_metric_is_exact() -> None:
    problem = four(metric="dimacs", max_duration=14.0)
    assert kinds(problem, [1, 2, 3], [4]) == []
    assert kinds(problem.replace(max_duration=13.9), [1, 2, 3], [4]) == ["max_duration"]
    with pytest.raises(InstanceError, match=r"max_duration: 13.95 is not a multiple of 0.1"):
        problem.replace(max_duration=13.95)


# --- optional customers, refusals ----------------------------------------------------------------


def test_an_optional_customer_out_of_reach_stays_unserved() -> None:
    problem = four(max_distance=9.5, prize=[0, 50, 50, 50, 50])
    result = solve(problem, iterations=20, seed=1, device="cpu")
    assert result.report.unserved == (2, 4)  # 10 there and back each
    assert result.cost == pytest.approx(100 + 6 + 8)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_distance": 9.5}, r"max_distance: unreachable: 10 there and back, above the limit 9.5 \(customer 2\)"),
        ({"max_duration": 10, "service": [0, 0, 1, 0, 0]}, r"max_duration: unreachable: 11 there .* \(customer 2\)"),
        ({"max_distance": 0}, r"max_distance: 0 is not a limit"),
        ({"max_duration": float("nan")}, r"max_duration: nan is not a limit"),
        ({"max_duration": float("inf")}, r"max_duration: inf is not a limit"),
        ({"max_distance": "far"}, r"max_distance: not numbers"),
    ],
)  # fmt: skip
def test_refusals(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        four(**fields)


# --- files ---------------------------------------------------------------------------------------


def test_distance_in_a_file_limits_the_duration() -> None:
    problem = ndsvrp.read(LIMITS / "CMT6.vrp")
    assert problem.max_duration == 200.0 and problem.max_distance is None
    assert problem.service is not None and set(problem.service[1:]) == {10.0}
    assert problem.metric == "none"


def test_limits_survive_a_set(tmp_path: Path) -> None:
    problem = four(max_distance=20, max_duration=30, service=[0, 1, 1, 1, 1])
    ndsvrp.write_set(tmp_path / "set.npz", [problem])
    (again,) = ndsvrp.read_set(tmp_path / "set.npz")
    assert (again.max_distance, again.max_duration) == (20.0, 30.0)


def test_cmt6_is_solved_to_its_published_cost() -> None:
    result = solve(ndsvrp.read(LIMITS / "CMT6.vrp"), iterations=200, target=555.44, seed=1, device="cpu")
    assert result.cost == pytest.approx(555.43, abs=0.005)


@pytest.mark.parametrize("limit", [7.0, 8.0])
def test_a_route_may_be_as_long_as_the_limit(limit: float) -> None:
    """Also where the limit is a power of two, and so the largest number of the ticks."""
    points = [[0, 0], [1, 0], [2, 0], [limit / 2, 0]]
    problem = Problem(demand=[0, 1, 1, 1], capacity=3, coordinates=points, max_distance=limit)
    assert solve(problem, iterations=5, device="cpu").cost == limit
