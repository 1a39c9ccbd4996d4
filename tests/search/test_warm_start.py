"""First solutions that lack customers."""

import logging
from typing import Any

import numpy as np
import pytest

from ndsvrp import InstanceError, NdsError, NoSolutionError, Problem, Solution, check, generate, solve
from ndsvrp.search.warm_start import missing_customers, with_missing

LINE: dict[str, Any] = {"demand": [0, 1, 1, 1, 1], "capacity": 4, "coordinates": [[i, 0] for i in range(5)]}


@pytest.mark.parametrize(
    ("changes", "init", "expected"),
    [
        ({}, [(1, 4)], [(1, 2, 3, 4)]),
        ({"capacity": 2}, [(2, 3)], [(2, 3), (1, 4)]),
        ({"vehicles": 1}, [(1, 4)], [(1, 2, 3, 4)]),
        ({"prize": [0, 0, 0, 5, 0]}, [(1, 4)], [(1, 2, 4)]),  # 3 may stay unserved
        ({"windows": [[0, 20], [0, 20], [7, 20], [0, 20], [0, 20]]}, [(1, 3, 4)], [(1, 3, 4, 2)]),  # 2 opens at 7
        ({"max_distance": 9}, [(4,)], [(1, 2, 3, 4)]),
        ({}, [], [(1, 2, 3, 4)]),
    ],
)
def test_missing_customers_go_where_they_are_cheapest(
    changes: dict[str, Any], init: list[Any], expected: list[Any]
) -> None:
    problem, start = Problem(**LINE | changes), Solution(init)
    found = with_missing(problem, start, missing_customers(problem, start), seed=1)
    cost = check(problem, Solution(expected)).cost
    assert check(problem, found).feasible and check(problem, found).cost == cost
    assert {frozenset(route) for route in found.routes} == {frozenset(route) for route in expected}


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp"])
def test_new_orders_are_added_to_a_plan(variant: str, caplog: pytest.LogCaptureFixture) -> None:
    problem = generate(variant, 60, seed=3)[0]
    if problem.prize is not None:
        problem = problem.replace(prize=np.where(np.arange(61) % 3, problem.prize, 0.0))
    plan = solve(problem, iterations=20, seed=1, device="cpu")
    new = [c for c in (9, 24, 33) if c not in plan.report.unserved]
    old = Solution(filter(None, ([c for c in route if c not in new] for route in plan.solution.routes)))
    with caplog.at_level(logging.INFO, "ndsvrp"):
        again = solve(problem, iterations=1, rollouts=1, seed=1, init=old, device="cpu")
    assert again.report.feasible
    assert again.cost < 1.05 * plan.cost
    assert f"init lacks 3 required customers, {len(new)} inserted" in caplog.text


def test_customers_without_a_position_stay_for_the_search() -> None:
    """Each vehicle has room for one customer more, and 3 fits only if another one moves."""
    problem = Problem(demand=[0, 3, 1, 2], capacity=3, coordinates=[[0, 0], [1, 0], [0, 1], [5, 5]], vehicles=2)
    assert solve(problem, iterations=5, init=Solution([(2,)])).report.feasible
    tight = Problem(demand=[0, 2, 2, 2, 3], capacity=5, coordinates=np.zeros((5, 2)), vehicles=2)
    start = Solution([(4,), (1, 2)])  # 3 fits neither, but with 4 the other two fit: 3 + 2, 2 + 2
    assert solve(tight, iterations=5, init=start).report.feasible
    never = Problem(demand=[0, 3, 3, 4], capacity=5, coordinates=np.zeros((4, 2)), vehicles=2)
    with pytest.raises(NoSolutionError, match="takes 3"):
        solve(never, iterations=5, init=Solution([(1,)]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed must be between 0 and 2^63 - 1, got -1"),
        ({"seed": 2**64}, f"seed must be between 0 and 2^63 - 1, got {2**64}"),
        ({"seed": "x"}, "seed must be a whole number, got 'x'"),
        ({"iterations": 0}, "iterations must be above 0, got 0"),
        ({"patience": 1.5}, "patience must be a whole number, got 1.5"),
    ],
)
def test_seed_and_limits_are_checked_before_customers_are_inserted(
    arguments: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "ndsvrp"), pytest.raises(NdsError) as caught:
        solve(Problem(**LINE), init=Solution([(1, 2)]), **{"iterations": 1} | arguments)
    assert str(caught.value) == message
    assert "inserted" not in caplog.text


def test_what_is_violated_is_refused() -> None:
    with pytest.raises(InstanceError, match="init: the initial solution is infeasible: route 1: load 4 is above"):
        solve(Problem(**LINE | {"capacity": 3}), iterations=1, init=Solution([(1, 2, 3, 4)]))
    with pytest.raises(InstanceError, match="the initial solution is infeasible: route 1: there is no customer 9"):
        solve(Problem(**LINE), iterations=1, init=Solution([(1, 9)]))
