"""Steps on linked routes of a GPU: the routes of the CPU engine, without a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu import agree
from gpu.emulated import EmulatedDevice
from ndsvrp.engine import cuda as cuda_engine
from ndsvrp.engine import placement
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.placement import Kind
from ndsvrp.problem import Problem
from ndsvrp.search.start import start
from parity.problems import random_problem

pytestmark = pytest.mark.emulator

RECIPE = Recipe(
    rule="string", string_average=4.0, sorted_orders=True, all_routes=True, blink=0.05, insert_near=6, tails=20,
    tails_share=0.5, open_cheaper=0.3, serve_bonus=0.5,
)  # fmt: skip
STEPS = 25


def after(engine: Any, problem: Problem, recipe: Recipe, temperature: float) -> list[Any]:
    state = start(engine, [problem], [0, 0], 1, rounds=2)
    for iteration in (1, 2):
        engine.improve(state, recipe, None, np.full((2, STEPS), temperature * problem.side()), 1, iteration)
    return [agree.everything(engine, state), state.stats().made]


def made_on_links(problem: Problem, recipe: Recipe, temperature: float = 0.02, **device: Any) -> list[list[int]]:
    """Compare the engines. Returns how many steps each launch on linked routes made, of each part."""
    cuda, made = CudaEngine(device=EmulatedDevice(**device)), []  # type: ignore[arg-type]
    launch = cuda.device.launch

    def watched(kernel: tuple[str, Any], grid: int, threads: int, shared: int, *arguments: Any) -> None:
        launch(kernel, grid, threads, shared, *arguments)
        if kernel[0] == "improve_linked":
            made.append((arguments[-3] & ~(1 << 30)).tolist())

    cuda.device.launch = watched  # type: ignore[method-assign]
    assert after(cuda, problem, recipe, temperature) == after(CpuEngine(), problem, recipe, temperature)
    return made


@pytest.mark.parametrize("regions", [1, 3])
@pytest.mark.parametrize(
    ("variant", "source"),
    [("cvrp", "none"), ("cvrp", "round"), ("vrptw", "dimacs"), ("pcvrp", "none"), ("pcvrptw", "none")],
)
def test_the_routes_of_the_cpu(variant: str, source: str, regions: int) -> None:
    problem = random_problem(3, variant, source, customers=40)
    for temperature in (0.0, 0.02, 1.0):
        made = made_on_links(problem, replace(RECIPE, regions=regions), temperature)
        assert len(made) == 2
        assert {steps for launch in made for steps in launch} <= {0, STEPS}  # 0: an empty part
        assert all(max(launch) == STEPS for launch in made)


def test_many_nearest_customers_and_none_that_fits() -> None:
    problem = random_problem(5, "vrptw", "none", customers=90, layout="uniform")
    for near in (1, 32):
        made = made_on_links(problem, replace(RECIPE, string_average=10.0, insert_near=near))
        assert made == [[STEPS, STEPS]] * 2


def test_vehicles_that_are_too_few() -> None:
    """Required customers stay unserved; every step tries to insert up to 16 of them, more than there are lanes."""
    problem = random_problem(7, "cvrp", "none", customers=60, vehicles=3)
    made = made_on_links(problem, replace(RECIPE, string_average=10.0, weigh_unserved=True))
    assert made == [[STEPS, STEPS]] * 2


def test_steps_that_are_left_to_drafts() -> None:
    """More customers removed than a warp has lanes; an exchange of tails before such a step is not made twice."""
    problem = random_problem(5, "cvrp", "none", customers=90, layout="uniform")
    problem = problem.replace(demand=np.r_[0.0, np.ones(90)], capacity=45.0)
    made = made_on_links(problem, replace(RECIPE, string_average=16.0, string_longest=40, tails_share=1.0), 0.1)
    assert any(steps < STEPS for launch in made for steps in launch)


def test_far_more_removed_customers_than_lanes() -> None:
    """A string of hundreds of customers of a single route."""
    problem = random_problem(5, "cvrp", "none", customers=400, layout="uniform")
    problem = problem.replace(demand=np.r_[0.0, np.ones(400)], capacity=400.0)
    recipe = replace(RECIPE, string_average=10.0, string_longest=390, insert_near=8)
    made = made_on_links(problem, recipe, 1.0, shared_limit=232_448)
    assert any(steps < STEPS for launch in made for steps in launch)


def test_parts_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little shared memory, some parts fit and others do not, or none does."""
    monkeypatch.setattr(cuda_engine, "SIDE_BY_SIDE", 1)
    monkeypatch.setattr(placement, "LARGEST_PART", 1)
    problem = random_problem(5, "pcvrptw", "none", customers=90, layout="uniform")
    recipe, kind = replace(RECIPE, regions=3), Kind(("Capacity", "TimeWindows", "Prizes"), "FloatPoints")
    removed = placement.removed_by_strings(recipe, kind)
    sizes = ((limit, placement.linked_layout(kind, removed, 90, limit).work) for limit in range(20_000, 60_000, 500))
    enough = next(limit for limit, local in sizes if local.customers >= 32)
    some = made_on_links(problem, recipe, shared_limit=enough)
    assert {steps for launch in some for steps in launch} == {0, STEPS}
    assert made_on_links(problem, recipe, shared_limit=enough - 2_000) == []


@pytest.mark.parametrize("change", [{"orders": 2}, {"rule": "related"}, {"insert_near": 33}, {"string_average": 17.0}])
def test_recipes_that_take_drafts(change: dict[str, Any]) -> None:
    assert made_on_links(random_problem(2, "cvrp", "none", customers=20), replace(RECIPE, **change)) == []


def test_matrices_and_limits_take_drafts() -> None:
    assert made_on_links(random_problem(2, "cvrp", "asymmetric", customers=20), RECIPE) == []
    assert made_on_links(random_problem(2, "vrptw", "none", customers=20, limits=True), RECIPE) == []
