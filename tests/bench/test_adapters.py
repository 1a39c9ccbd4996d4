"""Other solvers on tiny instances: their solutions, checked."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from ndsvrp.bench.hgs_adapter import HGS
from ndsvrp.bench.lkh_adapter import LKH
from ndsvrp.bench.ortools_adapter import ORTOOLS
from ndsvrp.bench.pyvrp_adapter import PYVRP
from ndsvrp.bench.solvers import BenchmarkSolver
from ndsvrp.bench.ticks import FLOAT_SCALE, LOAD_TICKS, NEVER, fleet, to_ticks
from ndsvrp.bench.vroom_adapter import VROOM
from ndsvrp.check import Report, check
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


def where_installed(package: str, solver: BenchmarkSolver) -> object:
    missing = pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")
    return pytest.param(solver, marks=missing, id=package)


_PYVRP, _HGS, _ORTOOLS, _VROOM = (
    where_installed(*each) for each in (("pyvrp", PYVRP), ("hygese", HGS), ("ortools", ORTOOLS), ("vroom", VROOM))
)
ALL = [_PYVRP, _HGS, _ORTOOLS, _VROOM]

# Two pairs of customers, left and right of the depot; a vehicle takes two. Best: one route per pair.
CROSS = Problem(
    coordinates=np.array([[0.5, 0.5], [0.0, 0.5], [-0.0, 1.0], [1.0, 0.5], [1.0, 0.0]]),
    demand=[0, 1, 1, 1, 1],
    capacity=2,
)
PAIR = 0.5 + 0.5 + np.sqrt(0.5)


def solve(solver: BenchmarkSolver, problem: Problem) -> Report:
    assert solver.refuses(problem) is None
    answer = solver(problem, 0.1, 1)
    report = check(problem, answer.solution)
    assert report.feasible, report.violations
    return report


@pytest.mark.parametrize("solver", ALL)
def test_cvrp(solver: BenchmarkSolver) -> None:
    assert solve(solver, CROSS).cost == pytest.approx(2 * PAIR, abs=1e-12)


@pytest.mark.parametrize("solver", [_PYVRP])
def test_distance_limit(solver: BenchmarkSolver) -> None:
    """A pair takes 1.7071; below that, every customer has a route of its own. Whole lengths are kept exactly."""
    assert solve(solver, CROSS.replace(max_distance=PAIR + 1e-5)).cost == pytest.approx(2 * PAIR, abs=1e-12)
    alone = 2 * (0.5 + np.sqrt(0.5)) * 2
    assert solve(solver, CROSS.replace(max_distance=PAIR - 1e-5)).cost == pytest.approx(alone, abs=1e-12)
    xy = np.array(CROSS.coordinates) * 10
    tenths = CROSS.replace(coordinates=xy, metric=Metric.DIMACS, max_distance=17.0)  # 5 + 5 + 7.0
    assert solve(solver, tenths).cost == 34.0
    assert solve(solver, tenths.replace(max_distance=16.9)).cost == pytest.approx(2 * (10 + 14.0))


@pytest.mark.parametrize("solver", ALL)
def test_integer_metric(solver: BenchmarkSolver) -> None:
    xy = CROSS.coordinates
    assert xy is not None
    problem = CROSS.replace(coordinates=xy * 10 - 5, metric=Metric.DIMACS)  # with negative coordinates
    assert solve(solver, problem).cost == 34.0  # 5 + 5 + 7.0 (truncated from 7.07), twice


@pytest.mark.parametrize("solver", ALL)
def test_large_numbers(solver: BenchmarkSolver) -> None:
    xy = CROSS.coordinates
    assert xy is not None
    problem = CROSS.replace(coordinates=xy * 1e6, demand=np.array([0, 1, 1, 1, 1]) * 1e6, capacity=2e6, metric="round")
    assert solve(solver, problem).cost == 2 * (500_000 + 500_000 + 707_107)


@pytest.mark.slow
@pytest.mark.parametrize(("vehicles", "cost"), [(None, 6), (3, 6), (2, 13), (1, 20)])
@pytest.mark.parametrize("solver", ALL)
def test_fleet_limit(solver: BenchmarkSolver, vehicles: int | None, cost: float) -> None:
    """Three customers, 1 from the depot and 9 from each other: each vehicle saved costs 9 - 2 = 7."""
    distance = 9.0 * (1 - np.eye(4))
    distance[0, 1:] = distance[1:, 0] = 1
    problem = Problem(distance=distance, demand=[0, 1, 1, 1], capacity=3, vehicles=vehicles)
    assert solve(solver, problem).cost == cost


@pytest.mark.parametrize(("vehicle_cost", "cost"), [(6, 6 + 18), (8, 20 + 8), (8.25, 20 + 8.25)])
@pytest.mark.parametrize("solver", [_PYVRP, _ORTOOLS, _VROOM])
def test_vehicle_cost(solver: BenchmarkSolver, vehicle_cost: float, cost: float) -> None:
    """Three customers, 1 from the depot and 9 from each other: each vehicle saved costs 9 - 2 = 7 and saves its own."""
    distance = 9.0 * (1 - np.eye(4))
    distance[0, 1:] = distance[1:, 0] = 1
    problem = Problem(distance=distance, demand=[0, 1, 1, 1], capacity=3, vehicle_cost=vehicle_cost)
    assert solve(solver, problem).cost == cost
    assert solve(solver, problem.replace(windows=[[0, 40]] * 4)).cost == cost


@pytest.mark.parametrize("solver", ALL)
def test_float_demands_fill_a_vehicle(solver: BenchmarkSolver) -> None:
    """0.07 + 0.28 is 0.35000000000000003 in floats: full, and within the tolerance."""
    problem = CROSS.replace(demand=[0, 0.07, 0.28, 0.07, 0.28], capacity=0.35)
    assert solve(solver, problem).cost == pytest.approx(2 * PAIR, abs=1e-12)


@pytest.mark.parametrize("solver", ALL)
def test_matrix_without_coordinates(solver: BenchmarkSolver) -> None:
    nodes = np.arange(5)
    problem = CROSS.replace(coordinates=None, distance=CROSS.length(nodes[:, None], nodes[None, :]))
    assert solve(solver, problem).cost == pytest.approx(2 * PAIR, abs=1e-12)


@pytest.mark.parametrize("solver", [_PYVRP, _ORTOOLS, _VROOM])
def test_windows_and_service(solver: BenchmarkSolver) -> None:
    """Customer 2 must come before 1, which costs nothing; 4 closes before 3 opens, and service takes 0.2."""
    windows = [[0, 3], [1, 2], [0, 0.75], [1, 2], [0, 0.75]]
    problem = CROSS.replace(windows=windows, service=[0, 0.2, 0.2, 0.2, 0.2])
    assert solve(solver, problem).cost == pytest.approx(2 * PAIR, abs=1e-12)


@pytest.mark.parametrize("solver", [_PYVRP, _ORTOOLS])
def test_prizes(solver: BenchmarkSolver) -> None:
    """3 and 4 are worth less than the way there; 1 is required, 2 worth the detour of sqrt(0.5)."""
    problem = CROSS.replace(prize=[0, 0, 0.75, 0.6, 0.6])
    report = solve(solver, problem)
    assert report.unserved == (3, 4)
    assert report.cost == pytest.approx(PAIR + 1.2, abs=1e-12)


@pytest.mark.parametrize("solver", [_PYVRP, _ORTOOLS, _VROOM])
def test_asymmetric_matrix_with_durations(solver: BenchmarkSolver) -> None:
    """Clockwise only: 0 → 1 → 2 → 0 costs 3, any other leg 10; each leg takes half a unit."""
    distance = np.array([[0.0, 1, 10], [10, 0, 1], [1, 10, 0]])
    problem = Problem(
        distance=distance, duration=np.where(distance > 0, 0.5, 0), windows=[[-1, 0.5], [-1, 0.5], [-1, 0.5]],
        demand=[0, 1, 1], capacity=2,
    )  # fmt: skip
    assert solve(solver, problem).cost == 3
    assert HGS.refuses(problem) == "HGS-CVRP does not support time windows"
    assert HGS.refuses(problem.replace(windows=None)) == "HGS-CVRP takes distances to be symmetric"


def test_times_are_rounded_against_the_solver() -> None:
    third = 1 / 3
    problem = Problem(
        coordinates=[[0, 0], [third, 0]], demand=[0, 1], capacity=1,
        windows=[[0, 2 * third], [third / 2, 2 * third]], service=[0, third / 3], prize=[0, third],
    )  # fmt: skip
    ticks = to_ticks(problem)
    assert (ticks.cost_scale, ticks.time_scale) == (FLOAT_SCALE, FLOAT_SCALE)
    assert ticks.distance[0, 1] == ticks.prize[1] == 333_333
    assert ticks.duration[0, 1] == 333_334
    assert ticks.service[1] == 111_112
    assert ticks.ready[1] == 166_667
    assert ticks.due.tolist() == [666_666, 666_666]


def test_what_is_on_time_in_ticks_is_on_time_in_floats() -> None:
    """Along random routes the clock in ticks is never behind the one in floats, and ahead by rounding alone."""
    rng = np.random.default_rng(1)
    service = np.r_[0, rng.random(29)]
    problem = Problem(
        coordinates=rng.random((30, 2)), demand=[0] + [1] * 29, capacity=29, service=service, windows=[[0, 99]] * 30
    )
    ticks = to_ticks(problem)
    for _ in range(20):
        clock, here, now = 0, 0, 0.0
        for there in (*rng.permutation(np.arange(1, 30)), 0):
            clock += int(ticks.service[here] + ticks.duration[here, there])
            now += float(service[here] + problem.travel_time(here, there))
            assert 0 <= clock - now * FLOAT_SCALE < 60  # two roundings per leg
            here = int(there)


def test_integer_metrics_are_exact() -> None:
    problem = Problem(
        coordinates=[[0, 0], [1, 1]], demand=[0, 1], capacity=1, metric=Metric.DIMACS,
        windows=[[0, 100.3], [0.7, 50.1]], service=[0, 0.3], prize=[0, 5.9],
    )  # fmt: skip
    ticks = to_ticks(problem)
    assert (ticks.distance[0, 1], ticks.duration[0, 1], ticks.service[1], ticks.prize[1]) == (14, 14, 3, 59)
    assert (ticks.ready.tolist(), ticks.due.tolist()) == ([0, 7], [1003, 501])


def test_neutral_without_windows_and_scaled_down_where_large() -> None:
    ticks = to_ticks(CROSS.replace(coordinates=np.array(CROSS.coordinates) * 1e9))
    assert ticks.cost_scale == 10_000
    scales = [to_ticks(CROSS.replace(vehicle_cost=cost), largest_length=5e5).cost_scale for cost in (1e3, 1e9)]
    assert scales == [100_000, 10_000]  # the longest way is 2; 1e9 by the limit of all numbers
    assert not ticks.duration.any() and (ticks.due == NEVER).all()
    assert to_ticks(CROSS).capacity == 2
    assert to_ticks(CROSS.replace(capacity=2.5)).capacity == LOAD_TICKS + 500


def test_refusals_name_the_solver_and_the_constraint() -> None:
    prizes, far = CROSS.replace(prize=[0, 1, 1, 1, 1]), CROSS.replace(max_distance=9.0)
    assert VROOM.refuses(prizes) == "VROOM does not support prizes"
    assert [solver.refuses(far) for solver in (ORTOOLS, VROOM)] == [
        f"{name} does not support distance limit" for name in ("OR-Tools", "VROOM")
    ]
    assert [solver.refuses(CROSS.replace(vehicle_cost=1)) for solver in (HGS, LKH)] == [
        f"{name} does not support vehicle cost" for name in ("HGS-CVRP", "LKH-3")
    ]
    assert PYVRP.refuses(CROSS.replace(max_duration=9.0)) == "PyVRP does not support duration limit"
    wide = CROSS.replace(coordinates=np.array(CROSS.coordinates) * 1e9, metric="round")
    assert VROOM.refuses(wide) == "VROOM takes costs and times below 2^31"


def test_the_fleet_of_solvers_that_need_a_number() -> None:
    assert fleet(CROSS, to_ticks(CROSS)) == 4  # 1.3 times two loads and three more are above the customers
    for vehicles in (3, 9):
        limited = CROSS.replace(vehicles=vehicles)
        assert fleet(limited, to_ticks(limited)) == min(vehicles, 4)
    many = Problem(coordinates=np.zeros((101, 2)), demand=[0] + [1] * 100, capacity=10)
    assert fleet(many, to_ticks(many)) == 16
    # From one customer to the next takes no time, but each is served for 1 between 0 and 4: five on a route.
    timed = many.replace(windows=[[0, 9]] + [[0, 4]] * 100, service=[0] + [1] * 100)
    assert fleet(timed, to_ticks(timed)) == 29  # 1.3 times 20, and three more
    closed = replace(to_ticks(timed), capacity=0)  # no vehicle can take anybody, as after rounding
    assert fleet(timed, closed) == 100
