"""Exchange between chains: the slow reference, the core, and the GPU's kernels where they can be emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.emulated import COMPILER, EmulatedDevice
from ndsvrp.engine.base import Engine, Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.errors import EngineError
from ndsvrp.search.start import start
from parity.problems import random_problem
from parity.reference import chain_key, exchange

RANDOM = Recipe(rule="random", removals=4, all_routes=True)
KINDS = ("cvrp", "pcvrp", "cvrp", "vrptw")
WHICH = [2, 0, 1, 1, 2, 0, 3, 0, 2, 0, 1, 0]  # of the last problem there is one
FIRST = np.array([0, 0, 0, 1, 1, 1, 0, 2, 2, 3, 2, 4], np.int32)


def engines() -> list[Engine]:
    gpu: Any = EmulatedDevice() if COMPILER else None
    return [CpuEngine(), *([CudaEngine(placement="global", device=gpu)] if gpu else [])]


def routes(engine: Engine, state: Any, best: bool = False) -> list[Any]:
    return [engine.export(state, i, best=best).routes for i in range(len(state.which))]


def reaches(costs: np.ndarray, which: np.ndarray) -> list[np.ndarray]:
    """Nothing, everything, up to the second of each problem exactly, and just not so far."""
    sets = [np.unique(costs[which == i]) for i in range(which.max() + 1)]
    exactly = np.array([values[min(1, len(values) - 1)] - values[0] for values in sets])
    return [np.zeros(len(exactly)), np.full(len(exactly), 1e9), exactly, np.nextafter(exactly, 0.0)]


def test_sources_are_those_of_the_reference() -> None:
    """Several kinds in one batch, whole ticks, so that a reach can be exact."""
    problems = [
        random_problem(i, kind, "round", customers=12 + i, layout="uniform", scale=1000.0)
        for i, kind in enumerate(KINDS)
    ]
    which, moves = np.array(WHICH), 0
    heat = np.array([problems[i].side() for i in WHICH])[:, None] * np.full((len(WHICH), 3), 0.5)
    cpu, *others = engines()
    states = {engine.name: engine.start(problems, WHICH, first=FIRST) for engine in (cpu, *others)}
    state: Any = states["cpu"]
    assert (state.per_unit == 1).all()
    for iteration in range(16):
        for engine in (cpu, *others):
            engine.rebuild(states[engine.name], RANDOM, None, heat, 5, iteration)
        costs, before, best = state.chains.costs().tolist(), routes(cpu, state), state.best_costs()
        reach = reaches(state.costs(), which)[iteration % 4]
        keys = [chain_key(5, iteration, number) for number in FIRST.tolist()]
        sources = exchange(costs, WHICH, (reach[which] * state.per_unit).tolist(), keys)
        moves += sum(source != i for i, source in enumerate(sources))
        for engine in (cpu, *others):
            engine.exchange(states[engine.name], reach, 5, iteration)
            assert routes(engine, states[engine.name]) == [before[source] for source in sources], engine.name
        expected = np.minimum(best, np.array(costs)[sources] / state.per_unit)
        for engine in (cpu, *others):
            assert np.array_equal(states[engine.name].best_costs(), expected)
            assert routes(engine, states[engine.name], best=True) == routes(cpu, state, best=True)
    assert moves > 20


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_who_goes_where(engine: Engine) -> None:
    """Costs by hand: routes of one stop each, but for some that were joined. Equal costs are within any reach."""
    problem = random_problem(3, "cvrp", "none", customers=9)
    state: Any = start(engine, [problem], [0] * 5, 1, rounds=0)
    before = routes(engine, state)
    engine.exchange(state, np.zeros(1), 1, 1)
    assert routes(engine, state) == before, "all cost the same"
    alone = start(engine, [problem], [0], 1, rounds=0)
    engine.exchange(alone, np.zeros(1), 1, 1)
    assert engine.export(alone, 0, best=False).routes == before[0], "there is nobody else"

    heat = np.repeat([[-1e9], [0.0], [-1e9], [0.0], [-1e9]], 20, axis=1) * problem.side()
    engine.rebuild(state, RANDOM, None, heat, 1, 1)  # the second and the fourth improve
    costs = state.costs()
    lowest = min(costs)
    behind = sorted({1, 3} - {int(np.argmin(costs))})
    engine.exchange(state, np.array([max(costs[1], costs[3]) - lowest]), 1, 2)
    assert set(state.costs().tolist()) == {costs[1], costs[3]}
    assert state.costs()[[1, 3]].tolist() == costs[[1, 3]].tolist(), "those within reach stay"
    engine.exchange(state, np.zeros(1), 1, 3)
    assert state.costs().tolist() == [lowest] * 5, f"only one was within reach; {behind} went too"


def test_everybody_within_reach_is_drawn() -> None:
    """Three are within reach: each is drawn by a third of 300 draws, by other draws in other iterations and chains."""
    drawn = np.zeros(3, int)
    pairs = set()
    for iteration in range(150):
        keys = [chain_key(1, iteration, chain) for chain in range(5)]
        sources = exchange([10, 99, 12, 99, 11], [0] * 5, [2.0] * 5, keys)
        assert (sources[0], sources[2], sources[4]) == (0, 2, 4)
        pairs.add((sources[1], sources[3]))
        for source in (sources[1], sources[3]):
            drawn[source // 2] += 1
    assert drawn.min() > 75 and len(pairs) == 9


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_bad_reach(engine: Engine) -> None:
    problems = [random_problem(i, "cvrp", "none", customers=4) for i in range(2)]
    state = start(engine, problems, [0, 1, 0], 1, rounds=0)
    for reach in (np.zeros(1), np.zeros(3), np.array([0.0, -1.0]), np.array([0.0, np.nan])):
        with pytest.raises(EngineError, match="a reach of at least 0 for each of 2 problems"):
            engine.exchange(state, reach, 1, 1)
