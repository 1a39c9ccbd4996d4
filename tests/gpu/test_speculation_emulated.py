"""Steps made several at once on a GPU: the routes of steps in sequence, without a GPU."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu import agree
from gpu.emulated import EmulatedDevice
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.placement import SPECULATED
from ndsvrp.search.start import start
from parity.problems import random_problem

pytestmark = pytest.mark.emulator

RECIPE = Recipe(
    rule="string", string_average=4.0, sorted_orders=True, all_routes=True, blink=0.01, tails=20, tails_share=0.5,
    serve_bonus=0.5, weigh_unserved=True,
)  # fmt: skip


def after(engine: Any, steps: int, temperature: float) -> list[Any]:
    problem = random_problem(3, "pcvrptw", "none", customers=25)
    state = start(engine, [problem], [0, 0], 1, rounds=2)
    for iteration in (1, 2):
        engine.improve(state, RECIPE, None, np.full((2, steps), temperature * problem.side()), 1, iteration)
    return [agree.everything(engine, state), state.stats().made]


def test_no_step_is_made_when_time_is_up() -> None:
    problem = random_problem(3, "pcvrptw", "none", customers=25)
    cuda = CudaEngine(device=EmulatedDevice())  # type: ignore[arg-type]
    state = start(cuda, [problem], [0], 1, rounds=2)
    before = agree.everything(cuda, state)
    temperatures = np.full((1, 20), problem.side())
    cuda.improve(state, RECIPE, None, temperatures, 1, 1, deadline=time.perf_counter() - 1)
    assert agree.everything(cuda, state) == before
    assert state.stats().made == 0
    cuda.improve(state, RECIPE, None, temperatures, 1, 1)
    assert state.stats().made == 20


@pytest.mark.parametrize("temperature", [0.0, 0.02, 10.0])  # no step, some and nearly all change the solution
def test_the_routes_of_steps_in_sequence(temperature: float) -> None:
    cuda = CudaEngine(device=EmulatedDevice())  # type: ignore[arg-type]
    for steps in (1, SPECULATED, SPECULATED + 1, 3 * SPECULATED - 1):
        assert after(cuda, steps, temperature) == after(CpuEngine(), steps, temperature)
    macros = {dict(m)["NDS_SPECULATES"] for name, m, _ in cuda.device.launched if name == "improve_chains"}  # type: ignore[attr-defined]
    assert "1" in macros


def test_the_routes_where_vehicles_are_too_few() -> None:
    """Required customers stay unserved. Their weights decide which."""
    problem = random_problem(7, "cvrp", "none", customers=25, vehicles=3)
    temperatures = np.full((2, 3 * SPECULATED - 1), 0.02 * problem.side())

    def found(engine: Any, recipe: Recipe) -> list[Any]:
        state = start(engine, [problem], [0, 0], 1, rounds=2)
        engine.improve(state, recipe, None, temperatures, 1, 1)
        assert np.all(state.stats().missing > 0)
        return agree.everything(engine, state)

    cuda = CudaEngine(device=EmulatedDevice())  # type: ignore[arg-type]
    assert found(cuda, RECIPE) == found(CpuEngine(), RECIPE)
    assert found(CpuEngine(), RECIPE) != found(CpuEngine(), replace(RECIPE, weigh_unserved=False))
