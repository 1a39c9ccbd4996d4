"""The cost of vehicles: four customers by hand, integer metrics, limits, files, scales."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndsvrp
from ndsvrp import EngineError, InstanceError, Problem, Result, Solution, check, generate, solve
from ndsvrp.best_known import best_known
from ndsvrp.engine.own_scales import DEAREST, MOST_WITH_COST
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.search.planning import Request, plan
from ndsvrp.variants import description

# Depot (0, 0); 1 at 10 and 2 at 11 with a demand of 4 each, 3 at -10 and 4 at -11 with a demand of 2 each; capacity 6.
# Three routes, 1 and 2 and 3 4, take 20 + 22 + 22 = 64. Two routes must take 1 or 2 with 3 or 4: 1 3 and 2 4 take
# 40 + 44 = 84, 1 4 and 2 3 take 42 + 42 = 84. So the third vehicle pays up to a cost of 20.
POINTS = [[0, 0], [10, 0], [11, 0], [-10, 0], [-11, 0]]


def four(**fields: Any) -> Problem:
    return Problem(**{"demand": [0, 4, 4, 2, 2], "capacity": 6, "coordinates": POINTS, **fields})


def found(problem: Problem, **options: Any) -> Result:
    return solve(problem, iterations=20, seed=1, device="cpu", **{"solver": "nds", "chains": 2, **options})


@pytest.mark.parametrize("options", [{}, {"solver": "hybrid"}, {"solver": "sisr", "chains": 1}])
@pytest.mark.parametrize(
    ("cost", "routes", "total"),
    [(None, 3, 64), (0, 3, 64), (19, 3, 64 + 57), (21, 2, 84 + 42), (500, 2, 84 + 1000)],
)
def test_four_customers(cost: float | None, routes: int, total: float, options: dict[str, Any]) -> None:
    result = found(four(vehicle_cost=cost), **options)
    assert (result.cost, len(result.solution.routes)) == (total, routes)
    assert result.report.vehicle_costs == (cost or 0) * routes
    assert result.report.distance == (64 if routes == 3 else 84)
    assert result.trace[-1].cost == pytest.approx(total)


@pytest.mark.parametrize(
    ("metric", "cost", "total"),
    [("dimacs", 19.9, 123.7), ("dimacs", 20.1, 124.2), ("exact", 19.999, 123.997), ("exact", 20.001, 124.002),
     ("round", 2e8, 4e8 + 84), ("trunc", 21, 126)],
)  # fmt: skip
def test_whole_metrics_are_exact(metric: str, cost: float, total: float) -> None:
    problem = four(metric=metric, vehicle_cost=cost)
    ticks = ticks_of(problem)
    assert ticks.has_whole_lengths and ticks.vehicle_cost == round(cost * problem.metric.scale)
    assert found(problem).cost == total
    with pytest.raises(InstanceError, match=r"vehicle_cost: .* is not a (whole number|multiple)"):
        problem.replace(vehicle_cost=cost + 0.0301)


def test_check_counts_routes_that_serve_somebody() -> None:
    report = check(four(vehicle_cost=7), Solution([[1], [2], [3, 4], []]))
    assert (report.distance, report.vehicle_costs, report.cost) == (64, 21, 85)
    assert [violation.kind for violation in report.violations] == ["empty"]


def test_limits_are_without_the_cost() -> None:
    dear = {"vehicle_cost": 30, "metric": "dimacs"}
    assert found(four(max_distance=42, **dear)).cost == 84 + 60  # 1 4 and 2 3
    assert found(four(max_distance=41.9, **dear)).cost == 64 + 90
    assert found(four(max_duration=42, **dear)).cost == 84 + 60
    assert found(four(max_duration=41.9, **dear)).cost == 64 + 90
    assert found(four(windows=[[0, 42]] * 5, **dear)).cost == 84 + 60
    assert found(four(windows=[[0, 41.9]] * 5, **dear)).cost == 64 + 90
    assert found(four(max_distance=22, vehicle_cost=30)).cost == 64 + 90  # floats, a route as long as the limit
    assert found(four(vehicles=2, vehicle_cost=1)).cost == 84 + 2


def test_prizes_must_pay_for_the_vehicle() -> None:
    prize = [0, 12, 12, 12, 12]
    assert found(four(vehicle_cost=1, prize=prize)).cost == 22 + 1 + 24  # the route 3 4 saves 24
    nobody = found(four(vehicle_cost=3, prize=prize))
    assert (nobody.cost, nobody.solution.routes, nobody.report.vehicle_costs) == (48, (), 0)
    dear = found(four(vehicle_cost=1000, prize=[0, 1, 1e9, 1, 1]))  # 2 4 and 2 3 cost more than 2 alone
    assert dear.cost == 22 + 1000 + 3


def test_a_matrix_is_asymmetric_and_has_durations() -> None:
    distance = np.abs(np.subtract.outer([0, 10, 11, -10, -11], [0, 10, 11, -10, -11])).astype(float)
    distance[:, 0] += 5  # 64 becomes 79, 84 becomes 94: the third vehicle pays up to 15
    matrix = {"coordinates": None, "distance": distance, "duration": distance * 0.01, "max_duration": 1.0}
    assert found(four(vehicle_cost=14, **matrix)).cost == 79 + 42
    assert found(four(vehicle_cost=16, **matrix)).cost == 94 + 32


def test_a_cost_of_zero_changes_nothing() -> None:
    problem = generate("cvrp", 30, seed=3)[0]
    free = problem.replace(vehicle_cost=0)
    assert description(free) == description(problem)
    assert found(free).solution == found(problem).solution
    assert free.vehicle_cost == 0.0


# --- scales ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp", "pcvrptw"])
def test_ticks_are_fine_up_to_two_thousand_legs(variant: str) -> None:
    problem = generate(variant, 40, seed=1)[0]
    longest = ticks_of(problem.replace(vehicle_cost=1)).longest
    dear = found(problem.replace(vehicle_cost=DEAREST * longest))
    assert dear.report.feasible
    with pytest.raises(EngineError, match=r"a vehicle cost of .* beside lengths up to 1.*; up to 2.* is possible"):
        found(problem.replace(vehicle_cost=1e9, prize=None))


def test_the_depot_itself_costs_nothing_and_times_do_not_either() -> None:
    ticks = ticks_of(generate("vrptw", 20, seed=1)[0].replace(vehicle_cost=3.0))
    lengths, times = ticks.length_matrix, ticks.time_matrix
    assert lengths is not None and times is not None
    assert lengths[0, 0] == 0 and lengths[1:, 0].max() < ticks.vehicle_cost == 3 * ticks.per_unit
    assert np.abs((lengths[0, 1:] - ticks.vehicle_cost) - lengths[1:, 0]).max() == 0
    assert np.abs(times / ticks.per_time - lengths.T / ticks.per_unit)[:, 1:].max() < 3.0 + 1e-6
    assert np.abs(times[0] / ticks.per_time - lengths[:, 0] / ticks.per_unit).max() < 1e-6


def test_a_matrix_takes_memory() -> None:
    many = np.random.default_rng(1).random((MOST_WITH_COST + 1, 2))
    problem = Problem(coordinates=many, demand=np.r_[0, np.ones(len(many) - 1)], capacity=9, vehicle_cost=1)
    with pytest.raises(EngineError, match=r"^a vehicle cost takes a matrix: that is done for up to 10,000 customers$"):
        ticks_of(problem)


# --- what else knows it ----------------------------------------------------------------------------


def test_auto_chooses_rules() -> None:
    problem = generate("cvrp", 200, seed=1)[0]
    assert plan(problem, Request(), has_gpu=lambda: True).settings.ruin == "policy"
    chosen = plan(problem.replace(vehicle_cost=1), Request(), has_gpu=lambda: True)
    assert (chosen.solver, chosen.device, chosen.settings.ruin) == ("hybrid", "cuda", "string")


def test_words() -> None:
    problem = four(vehicle_cost=21, prize=[0, 0, 0, 0, 100])
    result = found(problem)
    assert description(problem) == ("PCVRP with vehicle cost, 4 customers, capacity 6, vehicle cost 21, metric none")
    assert str(result).splitlines()[1] == "cost 126, distance 84, lost prizes 0, vehicle costs 42, 2 routes, 0 unserved"
    assert result.to_dict()["vehicle_costs"] == 42
    assert "<dt>vehicle costs</dt><dd>42</dd>" in result.to_html()


def test_best_known_costs_are_without_it() -> None:
    problem = ndsvrp.read(Path(__file__).parents[1] / "examples/data/X-n106-k14.vrp")
    assert best_known(problem) is not None and best_known(problem.replace(vehicle_cost=1)) is None


# --- input, files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "message"),
    [(-1, "vehicle_cost: -1 is not a cost"), (float("nan"), "vehicle_cost: nan is not a cost"),
     (float("inf"), "vehicle_cost: inf is not a cost"), ("dear", "vehicle_cost: not numbers"),
     ([1, 2], r"vehicle_cost: has shape \(2,\), expected \(\)"), (True, "vehicle_cost: not numbers"),
     (1e200, "vehicle_cost: 1e\\+200 is too large")],
)  # fmt: skip
def test_refusals(cost: Any, message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        four(vehicle_cost=cost)


@pytest.mark.parametrize("ending", ["vrp", "json", "npz"])
@pytest.mark.parametrize("cost", [12.5, 0.1, 0.0, 20.0])
def test_files_keep_it(tmp_path: Path, ending: str, cost: float) -> None:
    problem = four(vehicle_cost=cost)
    ndsvrp.write(tmp_path / f"a.{ending}", problem)
    again = ndsvrp.read(tmp_path / f"a.{ending}")
    assert again.replace(names=None) == problem and again.vehicle_cost == cost


def test_a_vrplib_file_states_it_as_pyvrp_reads_it(tmp_path: Path) -> None:
    ndsvrp.write(tmp_path / "a.vrp", four(vehicle_cost=12, metric="round"))
    text = (tmp_path / "a.vrp").read_text()
    assert "\nVEHICLES_FIXED_COST : 12\n" in text and "METRIC" not in text
    (tmp_path / "a.vrp").write_text(text.replace(": 12", ": -3"))
    with pytest.raises(InstanceError, match=r"a.vrp:\d+: vehicle_cost: -3 is not a cost"):
        ndsvrp.read(tmp_path / "a.vrp")


def test_solomon_text_has_no_place_for_it(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"vehicle_cost: has no place in Solomon text"):
        ndsvrp.write(tmp_path / "a.txt", four(vehicle_cost=12, windows=[[0, 99]] * 5))


def test_it_is_stated_beside_a_file(tmp_path: Path) -> None:
    ndsvrp.write(tmp_path / "a.vrp", four(vehicle_cost=12))
    assert ndsvrp.read(tmp_path / "a.vrp", vehicle_cost=3).vehicle_cost == 3
    assert ndsvrp.read(tmp_path / "a.vrp").vehicle_cost == 12
