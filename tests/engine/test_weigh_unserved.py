"""Where vehicles are too few, customers of small demand are left unserved."""

import numpy as np
import pytest

from ndsvrp import NoSolutionError, Problem, Solution, solve
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.generate import generate
from ndsvrp.search.presets import hybrid, sisr


@pytest.mark.parametrize(("weigh", "served"), [(False, 1), (True, 2)])
def test_the_larger_customer_is_served(weigh: bool, served: int) -> None:
    """The vehicle has room for one of two customers. The larger one is farther away: 4 there and back, not 2."""
    problem = Problem(
        demand=np.array([0.0, 1.0, 2.0]), capacity=2.0, vehicles=1,
        coordinates=np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]),
    )  # fmt: skip
    recipe = Recipe(rule="random", removals=2, all_routes=True, weigh_unserved=weigh)
    engine = CpuEngine()
    state = engine.start([problem], [0], Solution([[1]]))
    engine.improve(state, recipe, None, np.zeros((1, 20)), 1, 1)
    assert engine.export(state, 0, best=False).routes == ((served,),)
    # Costs are without the weight: both leave one customer unserved, so the shorter solution stays the best one.
    assert engine.export(state, 0).routes == ((1,),)
    stats = state.stats()
    assert stats.costs[0] - stats.best_costs[0] == pytest.approx(2.0 * (served - 1))
    assert stats.missing.tolist() == [1]


def full_vehicles(vehicles: int = 20) -> Problem:
    """Return customers that fill so many vehicles of capacity 100 to the last unit, four to eight in each."""
    random = np.random.default_rng(3)
    demand = [0]
    for _ in range(vehicles):
        cuts = np.sort(random.choice(np.arange(1, 100), random.integers(3, 8), replace=False))
        demand += np.diff([0, *cuts, 100]).tolist()
    places = random.integers(0, 1000, (len(demand), 2))
    return Problem(demand=demand, capacity=100, vehicles=vehicles, coordinates=places, metric="round")


def test_full_vehicles_are_filled() -> None:
    """By the weights alone, without a packing to start from."""
    problem = full_vehicles()
    how = {"iterations": 20, "seed": 1, "solver": "hybrid", "device": "cpu", "threads": 1}
    how |= {"start_packed": False, "count_absences": False}
    with pytest.raises(NoSolutionError, match="20 vehicles leave"):
        solve(problem, weigh_unserved=False, **how)
    result = solve(problem, **how)
    assert [route.load for route in result.schedule] == [100] * 20


def test_hybrid_does_so_within_a_limited_fleet() -> None:
    problem = generate("cvrp", 100, seed=1)[0]
    assert hybrid(problem.replace(vehicles=20)).weigh_unserved
    assert not hybrid(problem).weigh_unserved
    assert not sisr().weigh_unserved
