"""Teams of 5 and of 32 lanes, three teams to a crew, make the routes that one lane makes: what a GPU runs, without one.

Lanes are fibers (tests/native/fibers.hpp) that go on in random order after each collective, and abort if they
do not agree where they are.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem, Solution
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.start import start
from parity.problems import SOURCES, VARIANTS, random_problem

pytestmark = pytest.mark.slow
TEAMS = ("team5", "team32")
COMBINATIONS = list(itertools.product(VARIANTS, SOURCES))
RECIPES = [
    Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.05),
    Recipe(rule="related", removals=12, orders=5),
    Recipe(
        rule="random",
        removals=9,
        orders=2,
        all_routes=True,
        blink=0.3,
        open_route=0.2,
        serve_bonus=0.4,
        weigh_unserved=True,
    ),
    Recipe(rule="string", orders=3, sorted_orders=True, string_depth=0.6, tails=20),
    Recipe(rule="related", removals=12, orders=3, tails=7, open_cheaper=0.5),
    Recipe(rule="string", orders=2, sorted_orders=True, all_routes=True, insert_near=40, blink=0.2, tails=20),
]


def run(isa: str, problem: Problem, seed: int, recipes: list[Recipe], steps: int) -> list[Any]:
    """What two chains come to."""
    engine = CpuEngine(isa=isa)
    state = start(engine, [problem], [0, 0], seed, rounds=1)
    assert state.chains.isa == f"isa_{isa}"
    seen: list[Any] = []
    for iteration, recipe in enumerate(recipes):
        engine.improve(state, recipe, None, np.full((2, steps), problem.side() * 0.05), seed, iteration)
        kept, always = iteration % 2 == 0, iteration % 4 == 0
        seen.append(engine.evaluate(state, recipe, None, 2, seed, iteration, keep_best=kept, always=always).tolist())
        seen += [engine.export(state, chain, best=best) for chain in (0, 1) for best in (True, False)]
    return [*seen, state.chains.costs().tolist(), state.chains.missing().tolist()]


@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
def test_teams_of_five(variant: str, source: str) -> None:
    for seed in range(4):
        problem = random_problem(500 + seed, variant, source, vehicles=seed % 2 == 1)
        assert run("team5", problem, seed, RECIPES, 4) == run("base", problem, seed, RECIPES, 4)


@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
def test_teams_of_thirty_two(variant: str, source: str) -> None:
    problem = random_problem(600, variant, source, customers=50, layout="uniform", vehicles=source in SOURCES[::3])
    problem = problem.replace(capacity=problem.capacity if variant == "vrptw" else float(problem.demand.sum() / 3))
    recipes = [RECIPES[(VARIANTS.index(variant) + SOURCES.index(source)) % len(RECIPES)]]
    assert run("team32", problem, 1, recipes, 2) == run("base", problem, 1, recipes, 2)


@pytest.mark.parametrize("isa", TEAMS)
@pytest.mark.parametrize("customers", [1, 2, 5, 40])
def test_given_removals_and_full_vehicles(isa: str, customers: int) -> None:
    problem = random_problem(7, "cvrp", "none", customers=customers)
    problem = problem.replace(demand=np.r_[0.0, np.full(customers, 5.0)], capacity=5.0 if customers < 40 else 120.0)
    rng = np.random.default_rng(customers)
    removals = max(1, customers * 9 // 10)
    removed = np.array([[1 + rng.permutation(customers)[:removals] for _ in range(3)]], np.int32)
    recipe, temperatures = Recipe(removals=removals, orders=4), np.full((1, 3), problem.side() * 10.0)
    ends = []
    for kind in (isa, "base"):
        engine = CpuEngine(isa=kind)
        state = start(engine, [problem], [0], 1, rounds=0)
        engine.improve(state, recipe, removed, temperatures, 1, 0)
        ends.append((engine.export(state, 0, best=False), engine.export(state, 0), state.stats().costs.tolist()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("isa", TEAMS)
def test_long_routes(isa: str) -> None:
    """Longer than a team is wide, again and again."""
    problem = random_problem(3, "cvrp", "round", customers=150, layout="grid")
    problem = problem.replace(demand=np.r_[0.0, np.ones(150)], capacity=140.0)
    routes = Solution([list(range(1, 138)), list(range(138, 151))])
    ends = []
    for kind in (isa, "base"):
        engine = CpuEngine(isa=kind)
        state = start(engine, [problem], [0], 0, init=routes)
        recipe = Recipe(rule="related", removals=8, orders=2, all_routes=True, blink=0.5)
        engine.improve(state, recipe, None, np.full((1, 2), problem.side()), 0, 1)
        ends.append(engine.export(state, 0, best=False))
    assert ends[0] == ends[1]
