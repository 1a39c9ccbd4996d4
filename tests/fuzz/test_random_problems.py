"""A few of the problems that `make fuzz` solves by the thousand, with few iterations; and the oracle itself."""

from collections import Counter

import pytest

from fuzz.oracle import Oracle
from fuzz.random_problems import SMALL, random_problem
from fuzz.solve_random import judge, judge_optimum

LINE = {"coordinates": [[0, 0], [3, 4], [6, 8]], "demand": [0, 1, 1], "capacity": 2}


def test_costs_of_the_oracle() -> None:
    """The depot, and customers at 5 and 10 on a line."""
    assert Oracle(LINE).cost([(1, 2)]) == 20 and Oracle(LINE).cost([(1,), (2,)]) == 30
    assert Oracle(LINE).optimum() == 20
    assert Oracle({**LINE, "capacity": 1}).optimum() == 30
    assert Oracle({**LINE, "prize": [0, 1, 12]}).cost([(1,)]) == 22
    assert Oracle({**LINE, "prize": [0, 1, 12]}).optimum() == 13
    assert Oracle({**LINE, "prize": [0, 9, 12]}).optimum() == 20
    assert (
        Oracle({**LINE, "vehicle_cost": 5}).cost([(1,), (2,)]) == 40
        and Oracle({**LINE, "vehicle_cost": 5}).optimum() == 25
    )
    assert Oracle({**LINE, "prize": [0, 1, 24], "vehicle_cost": 5}).optimum() == 25
    assert Oracle({**LINE, "coordinates": [[0, 0], [1, 1], [0, 3]], "metric": "dimacs"}).cost([(1, 2)]) == 1.4 + 2.2 + 3


@pytest.mark.parametrize(
    ("changes", "routes", "faults"),
    [
        ({}, [(1, 2)], []),
        ({}, [(1,)], ["unserved"]),
        ({}, [(1, 2), (1,)], ["twice"]),
        ({"prize": [0, 0, 1]}, [(1,)], []),
        ({"capacity": 1}, [(1, 2)], ["capacity"]),
        ({"vehicles": 1}, [(1,), (2,)], ["fleet"]),
        ({"max_distance": 19}, [(1, 2)], ["distance"]),
        ({"max_duration": 22, "service": [0, 1, 1]}, [(1, 2)], []),
        ({"max_duration": 22, "service": [0, 1, 1.1]}, [(1, 2)], ["duration"]),
        ({"windows": [[0, 99], [0, 99], [0, 10]]}, [(1, 2)], []),
        ({"windows": [[0, 99], [0, 99], [0, 10]]}, [(2, 1)], []),
        ({"windows": [[0, 99], [0, 14], [0, 10]]}, [(2, 1)], ["window"]),
        ({"windows": [[0, 40], [25, 99], [0, 99]], "max_duration": 22}, [(2, 1)], []),  # departs at 10
        ({"windows": [[0, 40], [25, 99], [0, 11]], "max_duration": 22}, [(2, 1)], ["duration"]),
    ],
)
def test_faults_that_the_oracle_finds(
    changes: dict[str, object], routes: list[tuple[int, ...]], faults: list[str]
) -> None:
    assert Oracle({**LINE, **changes}).faults(routes) == faults


@pytest.mark.parametrize(
    "changes",
    [
        {"windows": [[0, 2e8], *[[1e8, 2e8]] * 4]},  # ready times of 1e8 beside lengths of 1
        {"prize": [0, 1e12, 5, 5, 5]},
        {"prize": [0, 1e12, 5, 5, 5], "coordinates": [[0, 0]] * 5},
        {"prize": [0, 1e9, 2e9, 0, 5], "vehicles": 1, "capacity": 2},
        {"prize": [0, 1e-9, 1e-9, 0, 1e-9]},
        {"vehicle_cost": 1e-9},
        {"vehicle_cost": 4000.0},
        {"vehicle_cost": 1e8, "metric": "round"},
        {"vehicle_cost": 1e12, "prize": [0, 5, 5, 5, 5]},  # serves nobody
        {"vehicle_cost": 5.0, "prize": [0, 1e12, 5, 5, 5]},
        {"vehicle_cost": 4000.0, "prize": [0, 1e12, 5, 5, 5]},
        {"metric": "exact", "coordinates": [[0, 0], [1e8, 0], [2e8, 1], [2e8, 7], [0, 1e8]]},
    ],
)
def test_numbers_of_different_magnitude(changes: dict[str, object]) -> None:
    fields = {"coordinates": [[0, 0], [1, 0], [2, 1], [2, 0], [0, 1]], "demand": [0, 1, 1, 1, 1], "capacity": 4}
    assert judge_optimum({**fields, **changes}, iterations=20)[0] == "optimal"


@pytest.mark.slow
def test_random_problems_are_solved_or_refused() -> None:
    """None is infeasible, none has a wrong cost."""
    found = Counter(judge(random_problem(1, index), iterations=1, rollouts=50)[0] for index in range(300))
    assert set(found) <= {"solved", "unsolved", "refused"}
    assert found["solved"] > 250 and found["refused"] < 15


def test_small_problems_are_solved_to_optimality() -> None:
    small = [p for p in (random_problem(2, index) for index in range(150)) if len(p["demand"]) - 1 <= SMALL]
    found = Counter(judge_optimum(problem, iterations=20)[0] for problem in small)
    assert len(small) > 30 and found["optimal"] + found["refused"] >= len(small) - 1
