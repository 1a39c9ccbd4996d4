"""Exchange between chains: the slow reference, the core, and the emulated kernels of the GPU agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.emulated import EmulatedDevice
from ndsvrp.engine.base import Engine, Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.ticks import MISSING
from ndsvrp.errors import EngineError
from ndsvrp.problem import Problem
from ndsvrp.search.start import start
from parity.problems import random_problem
from parity.reference import chain_key, exchange

pytestmark = pytest.mark.emulator
RANDOM = Recipe(rule="random", removals=4, all_routes=True)
KINDS = ("cvrp", "pcvrp", "cvrp", "pcvrptw")
WHICH = [2, 0, 1, 1, 2, 0, 3, 0, 2, 0, 1, 0]  # of the last problem there is one
FIRST = [0, 0, 0, 1, 1, 1, 0, 2, 2, 3, 2, 4]


def engines() -> list[Engine]:
    gpu: Any = EmulatedDevice()
    return [CpuEngine(), CudaEngine(placement="global", device=gpu)]


def routes(engine: Engine, state: Any, best: bool = False) -> list[Any]:
    return [engine.export(state, i, best=best).routes for i in range(len(state.problem_of))]


def reaches(costs: np.ndarray, which: np.ndarray) -> list[np.ndarray]:
    """Nothing, everything, up to the second of each problem exactly, and just not so far."""
    sets = [np.unique(costs[which == i]) for i in range(which.max() + 1)]
    exactly = np.array([values[min(1, len(values) - 1)] - values[0] for values in sets])
    return [np.zeros(len(exactly)), np.full(len(exactly), 1e9), exactly, np.nextafter(exactly, 0.0)]


def several_kinds() -> tuple[list[Problem], list[int], list[int]]:
    """Whole ticks, so that a reach can be exact."""
    problems = [
        random_problem(i, kind, "round", customers=12 + i, layout="uniform", scale=1000.0)
        for i, kind in enumerate(KINDS)
    ]
    return problems, WHICH, FIRST


def many_chains() -> tuple[list[Problem], list[int], list[int]]:
    """More than a warp looks at at once, and one problem whose only vehicle leaves customers unserved."""
    whole = [random_problem(i, "cvrp", "round", customers=9, layout="uniform", scale=1000.0) for i in range(2)]
    tight = whole[0].replace(vehicles=1, capacity=float(whole[0].demand.max()))
    which = [0, 1] * 48
    return [tight, whole[1]], which, [i // 2 for i in range(96)]


@pytest.mark.parametrize(("batch", "iterations"), [(several_kinds, 16), (many_chains, 4)])
@pytest.mark.parametrize("priced", [False, True])
def test_sources_are_those_of_the_reference(batch: Any, iterations: int, priced: bool) -> None:
    """Also where unserved required customers have a price; then a chain may be replaced by one that costs more."""
    problems, numbers, first = batch()
    which, moves = np.array(numbers), 0
    temperatures = np.array([problems[i].side() for i in numbers])[:, None] * np.full((len(numbers), 3), 0.5)
    cpu, *others = engines()
    states = {engine.name: engine.start(problems, which, first=np.array(first, np.int32)) for engine in (cpu, *others)}
    state: Any = states["cpu"]
    assert (state.per_unit == 1).all()
    prices = np.full(len(problems), 40.0 if priced else np.inf)
    for engine in (cpu, *others):
        engine.set_prices(states[engine.name], prices)
    for iteration in range(iterations):
        for engine in (cpu, *others):
            engine.improve(states[engine.name], RANDOM, None, temperatures, 5, iteration)
        costs, before, best = state.chains.costs().tolist(), routes(cpu, state), state.stats().best_costs
        relief = np.array([MISSING - 40 if priced else 0]) * state.stats().missing_now
        relieved = np.array(costs) - relief
        reach = reaches(relieved / state.per_unit, which)[iteration % 4]
        keys = [chain_key(5, iteration, number) for number in first]
        sources = exchange(relieved.tolist(), numbers, (reach[which] * state.per_unit).tolist(), keys)
        moves += sum(source != i for i, source in enumerate(sources))
        for engine in (cpu, *others):
            engine.exchange(states[engine.name], reach, 5, iteration)
            assert routes(engine, states[engine.name]) == [before[source] for source in sources], engine.name
        expected = np.minimum(best, np.array(costs)[sources] / state.per_unit)
        for engine in (cpu, *others):
            assert np.array_equal(states[engine.name].stats().best_costs, expected)
            assert routes(engine, states[engine.name], best=True) == routes(cpu, state, best=True)
            assert np.array_equal(states[engine.name].stats().missing, state.stats().missing)
    assert moves > 20
    assert batch is several_kinds or (state.stats().missing[::2] > 0).all(), "somebody is left over"


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_equal_costs_are_within_any_reach(engine: Engine) -> None:
    """All customers in one place: every order of theirs costs the same."""
    problem = Problem(coordinates=[[0, 0], *[[1, 0]] * 5], demand=[0, *[1] * 5], capacity=5)
    state: Any = start(engine, [problem], [0] * 5, 1, rounds=0)
    engine.improve(state, RANDOM, None, np.full((5, 4), 1e3), 1, 1)
    before = routes(engine, state)
    assert set(state.stats().costs) == {2.0} and len({str(each) for each in before}) > 2
    engine.exchange(state, np.zeros(1), 1, 1)
    assert routes(engine, state) == before


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_who_goes_where(engine: Engine) -> None:
    """Two of five improve: first both are within reach, then only the better one."""
    problem = random_problem(3, "cvrp", "none", customers=9)
    state: Any = start(engine, [problem], [0] * 5, 1, rounds=0)
    temperatures = np.repeat([[-1e9], [0.0], [-1e9], [0.0], [-1e9]], 2, axis=1) * problem.side()
    engine.improve(state, RANDOM, None, temperatures, 1, 1)
    costs = state.stats().costs
    assert len(set(costs.tolist())) == 3 and costs[[1, 3]].max() < costs[0]
    engine.exchange(state, np.array([abs(costs[1] - costs[3])]), 1, 2)
    assert set(state.stats().costs.tolist()) == {costs[1], costs[3]}
    assert state.stats().costs[[1, 3]].tolist() == costs[[1, 3]].tolist(), "those within reach stay"
    engine.exchange(state, np.zeros(1), 1, 3)
    assert state.stats().costs.tolist() == [min(costs)] * 5


def test_everybody_within_reach_is_drawn() -> None:
    """Three are within reach: each is drawn by a third of 300 draws, by other draws in other iterations and chains."""
    cpu, problem = CpuEngine(), random_problem(4, "cvrp", "none", customers=14, layout="uniform")
    drawn: dict[str, int] = {}
    pairs = set()
    for iteration in range(150):
        state = cpu.start([problem], [0] * 5)
        cpu.improve(state, RANDOM, None, np.full((5, 3), 10 * problem.side()), 1, 1)  # the same each time
        order, before = np.argsort(state.stats().costs), routes(cpu, state)
        assert len(set(state.stats().costs)) == 5
        cpu.exchange(state, np.array([state.stats().costs[order[2]] - state.stats().costs[order[0]]]), 1, iteration)
        after = [str(each) for each in routes(cpu, state)]
        assert [after[i] for i in order[:3]] == [str(before[i]) for i in order[:3]]
        pairs.add((after[order[3]], after[order[4]]))
        for i in order[3:]:
            drawn[after[i]] = drawn.get(after[i], 0) + 1
    assert sorted(drawn) == sorted({str(before[i]) for i in order[:3]})
    assert len(drawn) == 3 and min(drawn.values()) > 75 and len(pairs) == 9


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_bad_reach(engine: Engine) -> None:
    problems = [random_problem(i, "cvrp", "none", customers=4) for i in range(2)]
    state = start(engine, problems, [0, 1, 0], 1, rounds=0)
    for reach in (np.zeros(1), np.zeros(3), np.array([0.0, -1.0]), np.array([0.0, np.nan])):
        with pytest.raises(EngineError, match="a reach of at least 0 for each of 2 problems"):
            engine.exchange(state, reach, 1, 1)
