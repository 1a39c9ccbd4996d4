"""A bonus for served customers while a search is hot."""

import numpy as np
import pytest

from ndsvrp import Problem, Solution
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.generate import generate
from ndsvrp.search.presets import hybrid


@pytest.mark.parametrize(("bonus", "served"), [(0.0, False), (0.4, False), (0.6, True)])
def test_a_customer_that_pays_only_with_the_bonus(bonus: float, served: bool) -> None:
    """The way there and back costs 2, the prize is 1.5, and the temperature 1. Costs are without the bonus."""
    problem = Problem(
        demand=np.array([0.0, 1.0]), capacity=1.0, coordinates=np.array([(0.0, 0.0), (1.0, 0.0)]),
        prize=np.array([0.0, 1.5]),
    )  # fmt: skip
    recipe = Recipe(rule="random", removals=1, all_routes=True, open_route=0.0, serve_bonus=bonus)
    engine = CpuEngine()
    state = engine.start([problem], [0], Solution([]))
    engine.improve(state, recipe, None, np.full((1, 1), 1.0), 1, 1)
    stats = state.stats()
    assert engine.export(state, 0, best=False).routes == (((1,),) if served else ())
    assert engine.export(state, 0).routes == ()
    assert stats.costs[0] == pytest.approx(2.0 if served else 1.5)
    assert stats.best_costs[0] == pytest.approx(1.5)


def test_hybrid_gives_it_with_prizes_and_long_routes() -> None:
    def bonus(variant: str, capacity: float) -> float:
        return hybrid(generate(variant, 100, seed=1, capacity=capacity)[0]).serve_bonus

    assert bonus("pcvrptw", 500) == 0.3
    assert [bonus("pcvrptw", 50), bonus("vrptw", 500), bonus("pcvrp", 500)] == [0.0, 0.0, 0.0]
