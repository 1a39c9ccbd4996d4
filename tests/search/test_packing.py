"""Packing: subsets with the largest sum, fleets that must be full, and what a search does with them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ndsvrp import NoSolutionError, Problem, Settings, Solver, check, solve
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.asa import Search
from ndsvrp.search.packing import _fill, _whole, packed
from ndsvrp.search.stopping import Budget
from search.both_engines import assert_same_feasible_solutions


def fleet(demand: Any, capacity: float, vehicles: int, seed: int = 1, **more: Any) -> Problem:
    """Customers at random places."""
    places = np.random.default_rng(seed).random((len(demand) + 1, 2))
    return Problem(coordinates=places, demand=np.r_[0, demand], capacity=capacity, vehicles=vehicles, **more)


def loads(problem: Problem, tour: np.ndarray) -> list[float]:
    """Demand of each route."""
    routes = np.split(tour, np.flatnonzero(tour == 0) + 1)[:-1]
    return [float(problem.demand[route].sum()) for route in routes]


def test_the_largest_sum_that_fits() -> None:
    """Against all subsets of six customers; of equal sums that with the first customers."""
    random = np.random.default_rng(3)
    for _ in range(200):
        demand, room = [0, *random.integers(0, 12, 6).tolist()], int(random.integers(0, 30))
        sums = [sum(demand[i] for i in some) for k in range(7) for some in combinations(range(1, 7), k)]
        chosen = _fill([1, 2, 3, 4, 5, 6], demand, room)
        assert sum(demand[i] for i in chosen) == max(total for total in sums if total <= room)
    assert _fill([1, 2, 3], [0, 4, 3, 1], 4) == [1]
    assert _fill([2, 3, 1], [0, 4, 3, 1], 4) == [2, 3]


def test_a_packing_that_greedy_filling_misses() -> None:
    """Largest first into the first vehicle with room: 5 and 4, three times 3, and 2 is left over."""
    problem = fleet([5, 4, 3, 3, 3, 2], 10, 2)
    tour = packed(problem, 1)
    assert tour is not None
    assert loads(problem, tour) == [10, 10]
    assert sorted(tour[tour > 0].tolist()) == [1, 2, 3, 4, 5, 6]


def test_neighbours_share_a_vehicle() -> None:
    """Two towns far apart, of customers that fill two vehicles each; by a matrix as by places."""
    places = np.array([[0, 0], *([100 + i, 0] for i in range(4)), *([0, 50 + i] for i in range(4))], float)
    demand = np.array([0, 6, 4, 5, 5, 7, 3, 8, 2], float)
    matrix = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    by_places = Problem(coordinates=places, demand=demand, capacity=10, vehicles=4)
    by_matrix = Problem(distance=matrix, demand=demand, capacity=10, vehicles=4)
    for problem in (by_places, by_matrix):
        tour = packed(problem, 1)
        assert tour is not None
        assert tour.tolist() == [4, 3, 0, 2, 1, 0, 8, 7, 0, 6, 5, 0]


@pytest.mark.parametrize("scale", [1, 1000, 1e-3])
def test_vehicles_that_must_be_full(scale: float) -> None:
    """Forty loads of 100, cut into four: every vehicle must be exactly full. Also in other units."""
    random = np.random.default_rng(5)
    pieces = [np.diff(np.r_[0, np.sort(random.choice(np.arange(1, 100), 3, replace=False)), 100]) for _ in range(40)]
    problem = fleet(np.concatenate(pieces) * scale, 100 * scale, 40)
    tour = packed(problem, 2)
    assert tour is not None
    assert loads(problem, tour) == pytest.approx([100 * scale] * 40)


def test_no_packing_is_said_to_be_none() -> None:
    """Three customers of 6 need three vehicles of 10, although their sum fits two."""
    assert packed(fleet([6, 6, 6], 10, 2), 1) is None


def test_seeds_fix_the_packing() -> None:
    first, again, other = (packed(tight(), seed) for seed in (1, 1, 2))
    assert first is not None and again is not None and other is not None
    assert first.tolist() == again.tolist() != other.tolist()


def test_units_of_demands() -> None:
    """Multiples of 8 and decimals are exact. In the coarser units of a capacity of 100,001 demands are rounded up."""
    for demand, capacity in (([0, 16, 24], 80), ([0, 0.2, 0.3], 1), ([0, 2e5, 3e5], 1e6)):
        units, most = _whole(np.array(demand, float), capacity)
        assert (units.tolist(), most) == ([0, 2, 3], 10)
    units, most = _whole(np.array([0, 1, 50_001.0]), 100_001)
    assert (units.tolist(), most) == ([0, 1, 8193], 16384)
    units, most = _whole(np.array([0, 1 / 3]), 2 / 3)
    assert (units.tolist(), most) == ([0, 8192], 16384)


def tight(vehicles: int = 16) -> Problem:
    """Vehicles of 310, each exactly full of five customers of 50 to 100."""
    random, pieces = np.random.default_rng(5), []
    while len(pieces) < vehicles:
        four = random.integers(50, 101, 4)
        if 50 <= 310 - four.sum() <= 100:
            pieces.append(np.append(four, 310 - four.sum()))
    return fleet(np.concatenate(pieces), 310, vehicles)


def test_a_search_starts_from_the_packing() -> None:
    """Every vehicle must be exactly full: without the packing no solution is found, with it from the start."""
    problem = tight()
    with pytest.raises(NoSolutionError):
        solve(problem, iterations=5, seed=1, device="cpu", start_packed=False)
    result = solve(problem, iterations=5, seed=1, device="cpu")
    assert result.trace[0].iteration == 0
    assert check(problem, result.solution).feasible
    assert [route for route in result.solution.routes if not route] == []


def test_optional_customers_are_not_packed() -> None:
    """One vehicle of 10: the required customers of 6 and 4 fill it."""
    problem = fleet([6, 4, 5, 5], 10, 1, prize=[0, 0, 0, 9, 9])
    tour = packed(problem, 1)
    assert tour is not None
    assert sorted(tour[tour > 0].tolist()) == [1, 2]


def test_packings_are_for_capacities_alone() -> None:
    """With windows or limits on routes a packing may be infeasible: the start stays what it is."""
    problem = tight().replace(max_distance=100.0)
    settings = Solver(device="cpu", solver="hybrid").plan(problem).settings
    assert settings.start_packed
    search = Search([problem], CpuEngine(), settings, Budget(iterations=1), 1)
    search.run()
    assert search.state is not None
    assert (search.state.stats().missing > 0).all()


@pytest.mark.emulator
def test_a_gpu_starts_from_the_same_packing() -> None:
    """Beside a problem that needs none."""
    random = np.random.default_rng(1)
    pieces = [np.diff(np.r_[0, np.sort(random.choice(np.arange(1, 30), 2, replace=False)), 30]) for _ in range(4)]
    problems = [fleet(np.concatenate(pieces), 30, 4), fleet(np.full(12, 5), 30, 4)]
    settings = Settings(chains=2, rollouts=2, orders=1, scope="all", start_rounds=0, start_packed=True)
    assert_same_feasible_solutions(problems, settings)


def test_long_routes_are_filled() -> None:
    """Four vehicles, which must be full, carry 150 customers each."""
    random = np.random.default_rng(1)
    demand = random.integers(20, 100, 600)
    problem = fleet(demand, float(np.ceil(demand.sum() / 4)), 4)
    tour = packed(problem, 1)
    assert tour is not None
    assert max(loads(problem, tour)) <= problem.capacity


def test_other_problems_of_a_batch_are_packed_in_time() -> None:
    """The first of two has no packing: eight vehicles carry two customers of 4 each, and twenty have to be served."""
    hopeless = fleet(np.full(20, 4), 10, 8)
    problem = tight(6)
    hopeless, problem = (each.replace(name=name) for each, name in ((hopeless, "a"), (problem, "b")))
    settings = Settings(chains=2, orders=1, scope="all", start_rounds=0, start_packed=True, rollouts=1)
    search = Search([hopeless, problem], CpuEngine(), settings, Budget(seconds=2.0), 1)
    state, _ = search._begin()
    assert state.stats().missing.tolist()[2:] == [0, 0]
    assert search.budget.elapsed() < 1.0


@pytest.mark.parametrize("scale", [1e-7, 1e18])
def test_demands_of_any_magnitude(scale: float) -> None:
    problem = fleet(np.array([5, 4, 3, 3, 3, 2]) * scale, 10.1 * scale, 2)
    tour = packed(problem, 1)
    assert tour is not None
    assert loads(problem, tour) == pytest.approx([10 * scale] * 2)
