"""Fleets that are refused before a search; none that suffices."""

from typing import Any

import numpy as np
import pytest

from fuzz.oracle import Oracle
from fuzz.random_problems import SMALL, random_problem
from ndsvrp import NdsError, NoSolutionError, Problem, Solution, check, solve
from ndsvrp.constraints.shortage import shortage

STOPS = {"demand": [0.0] * 6, "capacity": 1.0, "coordinates": np.zeros((6, 2)), "service": [0.0] + [50.0] * 5}
SQUARE = [[0, 0], [3, 4], [3, -4], [-3, 4], [-3, -4]]  # 5 from the depot, 6, 8 or 10 from each other


@pytest.mark.parametrize(
    ("fields", "fewest", "reason"),
    [
        ({**STOPS, "max_duration": 100}, 3, "service and travel times take at least"),
        ({**STOPS, "max_duration": 99}, 5, "service and travel times take at least"),  # two exceed it
        ({**STOPS, "windows": [[0, 100]] * 6}, 3, "service and travel times take at least"),
        ({**STOPS, "windows": [[0, 1000], *[[300, 300]] * 5]}, 5, "windows take at least"),
        ({**STOPS, "windows": [[0, 1000], *[[t, t + 15] for t in (0, 30, 60, 90, 120)]]}, 2, "windows take at least"),
        ({**STOPS, "windows": [[0, 1000], *[[t, t + 40] for t in (0, 50, 100, 150, 200)]]}, 1, ""),
        # Each customer is 5 from the depot, and 5 at least from whatever comes before it.
        ({"max_distance": 14}, 4, "distances take at least"),
        ({"max_distance": 15}, 2, "distances take at least"),
        ({"max_distance": 25}, 1, ""),
        ({"max_duration": 25}, 1, ""),
        ({"max_duration": 14, "service": [0, 3, 3, 3, 3]}, 4, "service and travel times take at least"),
        ({"max_distance": 14, "prize": [0, 0, 0, 9, 9]}, 2, "distances take at least"),
        ({"windows": [[0, 99], *[[20, 24]] * 4]}, 4, "windows take at least"),
        ({"windows": [[0, 99], *[[20, 25]] * 4]}, 1, ""),
    ],
)
def test_how_many_vehicles_are_needed(fields: dict[str, Any], fewest: int, reason: str) -> None:
    given = {"demand": [0, 1, 1, 1, 1], "capacity": 4, "coordinates": SQUARE, **fields}
    assert shortage(Problem(**given, vehicles=fewest)) is None
    assert shortage(Problem(**given)) is None
    if fewest > 1:
        with pytest.raises(NoSolutionError, match=f"cannot serve all required customers: their {reason} {fewest}$"):
            solve(Problem(**given, vehicles=fewest - 1), iterations=1)


def test_the_way_by_an_optional_customer_may_be_shorter() -> None:
    """Directly, a vehicle would travel 120: 10 to the first customer, 100 to the second, 10 back."""
    matrix = np.full((4, 4), 100.0)
    matrix[0, 1] = matrix[0, 2] = matrix[1, 0] = matrix[2, 0] = 10
    matrix[1, 3] = matrix[3, 2] = 1
    problem = Problem(
        demand=[0, 1, 1, 1], capacity=3, distance=matrix, prize=[0, 0, 0, 0.1], vehicles=1, max_distance=22
    )
    assert shortage(problem) is None
    assert check(problem, Solution([[1, 3, 2]])).feasible


def test_no_fleet_that_suffices_is_refused() -> None:
    """Of small random problems with all constraints; enumeration knows which are feasible."""
    refused = feasible = 0
    for index in range(1500):
        fields = random_problem(16, index)
        customers = len(fields["demand"]) - 1
        if customers > SMALL - 1 or customers < 2 or not {"windows", "max_distance", "max_duration"} & set(fields):
            continue
        for vehicles in range(1, customers):
            try:
                problem = Problem(**fields | {"vehicles": vehicles})
            except NdsError:
                break
            if shortage(problem) is not None:
                refused += 1
                assert Oracle(fields | {"vehicles": vehicles}).optimum() == np.inf, (index, vehicles)
            else:
                feasible += 1
                break
    assert refused > 30 and feasible > 100
