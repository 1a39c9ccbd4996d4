"""Prices of required customers that stay unserved: they adapt, and a search within a fleet gets past what is rigid."""

from typing import Any

import numpy as np
import pytest

from ndsvrp import NdsError, Problem, Settings, check, generate, solve, solve_set
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.planning import Request, plan
from ndsvrp.search.prices import FALL, HIGHEST, LATE, LOWEST, RISE, Prices


def test_prices_follow_what_solutions_lack() -> None:
    prices = Prices(np.array([10.0, 20.0]), 0.5)
    assert prices.in_units.tolist() == [5.0, 10.0]
    assert not prices.adapt(np.array([[0, 2, 1, 0], [0, 0, 3, 0]]), 0.1).any()
    assert prices.now.tolist() == [0.5 * RISE, 0.5 * FALL], "half of the solutions lack customers, a quarter does"
    prices.now[:] = HIGHEST
    back = prices.adapt(np.array([[0, 2, 1, 0], [0, 0, 3, 0]]), 0.2)
    assert back.tolist() == [[False, True, True, False], [False] * 4], "the price does not go beyond the highest"
    assert prices.now.tolist() == [HIGHEST, HIGHEST * FALL]


def test_prices_stay_above_the_lowest() -> None:
    prices = Prices(np.ones(1), 0.5)
    for _ in range(500):
        prices.adapt(np.array([[0, 0]]), 0.1)
    assert prices.now.tolist() == [LOWEST]


def test_late_prices_do_not_fall() -> None:
    prices = Prices(np.ones(1), 0.5)
    assert prices.adapt(np.array([[1, 0, 0]]), LATE).tolist() == [[True, False, False]], "once, all go back"
    assert prices.now.tolist() == [0.5]
    assert not prices.adapt(np.array([[1, 0, 0]]), 0.9).any()
    prices.adapt(np.array([[1, 1, 0]]), 0.95)
    assert prices.now.tolist() == [0.5 * RISE]


def rigid(n: int = 24) -> Problem:
    """Return customers on a circle, of whom pairs fill a vehicle: two large ones never go together."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    points = np.vstack([[0.0, 0.0], np.stack([np.cos(angle), np.sin(angle)], 1)])
    return Problem(coordinates=points, demand=np.r_[0, np.tile([6.0, 4.0], n // 2)], capacity=10.0, vehicles=n // 2)


def test_costs_do_not_depend_on_prices() -> None:
    """Steps are accepted by the price, but unserved customers cost what they did."""
    problem, engine = rigid(), CpuEngine()
    state: Any = engine.start([problem], [0, 0])
    stats = state.stats()
    each = stats.costs[0] / 24
    engine.set_prices(state, np.array([0.01]))
    recipe = Recipe(rule="string", sorted_orders=True, all_routes=True)
    engine.improve(state, recipe, None, np.full((2, 300), 1.0), 1, 1)
    stats = state.stats()
    assert (stats.missing_now > 0).all(), "serving them does not pay"
    assert stats.costs == pytest.approx(each * stats.missing_now, rel=1e-6)
    engine.set_prices(state, np.array([np.inf]))
    engine.improve(state, recipe, None, np.full((2, 300), 0.01), 1, 2)
    stats = state.stats()
    assert stats.missing.tolist() == stats.missing_now.tolist() == [0, 0]


def test_solutions_cost_the_same_at_any_price() -> None:
    """Also those that are put in place while there is a price."""
    problem, engine = rigid(), CpuEngine()
    state: Any = engine.start([problem], [0, 0, 0])
    tours = [np.array(tour, np.int32) for tour in ([], [1, 2, 0], [1, 0, 3, 4, 0])]
    engine.restart(state, tours)
    costs = state.stats().costs
    engine.set_prices(state, np.array([0.3]))
    engine.restart(state, tours)
    assert state.stats().costs.tolist() == costs.tolist()
    engine.improve(state, Recipe(rule="random", removals=3, regions=3), None, np.zeros((3, 0)), 1, 1)
    assert state.stats().costs.tolist() == costs.tolist(), "split and merged"


def test_some_chains_go_back() -> None:
    problem, engine = rigid(), CpuEngine()
    state: Any = engine.start([problem], [0, 0])
    tour = np.array([1, 2, 0, 3, 4, 0], np.int32)
    engine.restart(state, [None, tour])
    assert [engine.export(state, chain).routes for chain in (0, 1)] == [(), ((1, 2), (3, 4))]


@pytest.mark.parametrize("price", [0.0, 0.5])
def test_a_search_with_prices_serves_everybody(price: float) -> None:
    problem = rigid()
    result = solve(
        problem, iterations=12, seed=1, solver="hybrid", device="cpu", threads=1, unserved_price=price, rollouts=300
    )
    report = check(problem, result.solution)
    assert report.feasible and len(result.solution.routes) == 12
    best = 12 * (2 + 2 * np.sin(np.pi / 24))  # neighbours together
    assert report.cost == pytest.approx(best)


@pytest.mark.parametrize("others", [{"chains": 4}, {"chains": 6, "regions": 3}, {"chains": 4, "islands": 2}])
def test_traces_have_the_costs_of_solutions(others: dict[str, int]) -> None:
    problem = generate("vrptw", 60, seed=2)[0].replace(capacity=60.0)
    result = solve(
        problem, iterations=60, seed=2, solver="hybrid", device="cpu", threads=1, fewest_vehicles=True,
        unserved_price=0.5, rollouts=60, **others,
    )  # fmt: skip
    costs = [point.cost for point in result.trace]
    assert costs == sorted(costs, reverse=True) and costs[-1] == pytest.approx(check(problem, result.solution).cost)


def test_one_search_and_a_batch_agree() -> None:
    problems = [rigid(12), rigid(12).replace(capacity=10.5)]
    options: dict[str, Any] = {"iterations": 5, "seed": 2, "device": "cpu", "unserved_price": 0.5, "rollouts": 50}
    together = solve_set(problems, solver="hybrid", **options)
    alone = [solve(problem, solver="hybrid", **options) for problem in problems]
    assert [result.solution for result in together] == [result.solution for result in alone]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("variant", "capacity", "price"), [("vrptw", 50.0, 0.5), ("vrptw", 900.0, 0.0), ("cvrp", 50.0, 0.0)]
)
def test_when_fewest_vehicles_have_a_price(variant: str, capacity: float, price: float) -> None:
    """With windows and short routes, on a CPU."""
    problem = generate(variant, 100, seed=1)[0].replace(capacity=capacity)

    def planned(**options: Any) -> float:
        return plan(problem, Request.of(solver="hybrid", **options)).settings.unserved_price

    assert planned(device="cpu", fewest_vehicles=True) == price
    assert planned(device="cpu") == planned(device="cuda", fewest_vehicles=True) == 0
    assert planned(device="cpu", fewest_vehicles=True, unserved_price=0.0) == 0
    assert planned(device="cpu", fewest_vehicles=True, population=8) == 0
    assert planned(device="cpu", fewest_vehicles=True, chains=4) == price
    with pytest.raises(NdsError, match="unserved_price is for required customers and limited vehicles"):
        planned(device="cpu", unserved_price=0.7)
    limited = plan(problem.replace(vehicles=80), Request.of(device="cpu", unserved_price=0.7)).settings
    assert (limited.unserved_price, limited.population) == (0.7, 0)
    with pytest.raises(NdsError, match=r"unserved_price must be between 0 and 2, got -1\.0"):
        Settings(unserved_price=-1.0)
    with pytest.raises(NdsError, match="give either population or unserved_price"):
        plan(problem, Request.of(solver="hybrid", device="cpu", population=8, unserved_price=0.5))
