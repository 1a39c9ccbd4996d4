"""The search on an engine that only notes what it is told: exchange, temperatures, trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem, Settings, generate, solve
from ndsvrp.search.asa import Search
from ndsvrp.search.stopping import Budget


class FakeState:
    def __init__(self, costs: list[float], missing: int = 0) -> None:
        self.all = np.array(costs)
        self.left_out = missing

    def costs(self) -> np.ndarray:
        return self.all

    best_costs = costs

    def missing(self) -> np.ndarray:
        return np.full(len(self.all), self.left_out, np.int32)


class FakeEngine:
    name = "fake"
    threads = 1

    def __init__(self, costs: list[float]) -> None:
        self.state = FakeState(costs)
        self.moves: list[tuple[int, int]] = []
        self.temperatures: list[float] = []

    def start(self, problems: Any, which: Any, init: Any) -> FakeState:
        assert which.tolist() == [0] * len(self.state.all)
        assert init is None
        self.state.problems, self.state.which = problems, which
        return self.state

    def rebuild(self, state: Any, recipe: Any, removed: Any, temperature: np.ndarray, *_: Any, **__: Any) -> int:
        assert np.ptp(temperature) == 0
        self.temperatures.append(float(temperature[0, 0]))
        return int(temperature.shape[1])

    def replace(self, state: Any, source: np.ndarray, target: np.ndarray) -> None:
        self.moves += zip(source.tolist(), target.tolist(), strict=True)


def run_on(engine: FakeEngine, iterations: int = 1, **settings: Any) -> Search:
    problem = Problem(coordinates=[[0, 0], [40, 10], [10, 100]], demand=[0, 1, 1], capacity=2)
    chosen = Settings(chains=len(engine.state.all), rollouts=3, **settings)
    budget = Budget(iterations=iterations)
    search = Search(problem, engine, chosen, budget, seed=1, start_rounds=0)  # type: ignore[arg-type]
    search.run()
    return search


def test_exchange() -> None:
    """T = 0.1 · 100, δ = 15: the threshold is 1000 + 150. Only what is above goes, and only to what is not."""
    costs = [1000.0, 1150.0, 1150.1, 1300.0, 1100.0, 9999.0]
    for seed in range(20):
        engine = FakeEngine(costs)
        search = run_on(engine)
        search.seed = seed
        engine.moves.clear()
        search._exchange(engine.state, 10.0)  # type: ignore[arg-type]
        assert [target for _, target in engine.moves] == [2, 3, 5]
        assert {source for source, _ in engine.moves} <= {0, 1, 4}


def test_exchange_draws_all_good_chains() -> None:
    engine = FakeEngine([1.0, 2.0, 1e9])
    run_on(engine, iterations=40)
    assert {source for source, _ in engine.moves} == {0, 1}
    assert {target for _, target in engine.moves} == {2}
    assert len(engine.moves) == 40


def test_no_exchange_below_the_threshold() -> None:
    engine = FakeEngine([1000.0, 1150.0, 1100.0])
    run_on(engine)
    assert engine.moves == []


def test_temperatures_follow_the_box() -> None:
    """The larger side of the bounding box is 100: T from 10 to 0.1, by a tenth of the way each iteration."""
    engine = FakeEngine([1.0])
    search = run_on(engine, iterations=10, hot=0.1, cold=0.001)
    assert engine.temperatures == pytest.approx([10 * 0.01 ** (i / 10) for i in range(10)], rel=1e-12)
    assert search.iteration == 10
    assert search.reconstructions == 10 * 3 * 1 * 5


def test_trace_has_better_solutions_only() -> None:
    engine = FakeEngine([5.0])
    costs = iter([5.0, 5.0, 4.0, 4.0, 3.0])

    def rebuild(*_: Any, **__: Any) -> int:
        engine.state.all = np.array([next(costs)])
        return 3

    engine.rebuild = rebuild  # type: ignore[method-assign]
    search = run_on(engine, iterations=5)
    assert [(point.iteration, point.cost) for point in search.trace] == [(0, 5.0), (3, 4.0), (5, 3.0)]


def test_trace_waits_until_all_are_served() -> None:
    engine = FakeEngine([5.0])
    engine.state.left_out = 1
    assert run_on(engine, iterations=3).trace == []


def test_trace_has_what_an_interrupted_iteration_found() -> None:
    engine = FakeEngine([5.0])
    search = run_on(engine, iterations=3)
    engine.state.all = np.array([4.0])
    search.note_best()
    search.note_best()  # nothing better since
    assert [(point.iteration, point.cost) for point in search.trace] == [(0, 5.0), (3, 4.0)]


def test_improving_the_start_takes_a_tenth_of_the_time_at_most() -> None:
    # 100 rounds of 8 chains with 4,000 customers take longer than 0.05 s, and the search must still get its share.
    problem = generate("cvrp", 4000, seed=1)[0]
    result = solve(problem, time=0.5, seed=1, solver="nds", threads=1)
    assert result.iterations >= 1
