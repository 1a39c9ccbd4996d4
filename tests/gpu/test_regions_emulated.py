"""Searches in regions by the GPU engine without a GPU (see test_emulated.py)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from gpu import agree
from gpu.emulated import EmulatedDevice
from ndsvrp import EngineError, Settings, check
from ndsvrp.engine import cuda as cuda_engine
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.search.asa import Search
from ndsvrp.search.start import start
from ndsvrp.search.stopping import Budget
from parity.problems import random_problem

pytestmark = pytest.mark.emulator
SPLIT, MERGE = ["split_chains"], ["merge_parts"]


def emulated() -> CudaEngine:
    return CudaEngine(placement="global", device=EmulatedDevice())  # type: ignore[arg-type]


def search(engine: Any, problems: list[Any]) -> list[Any]:
    """Best solution, trace and costs of every problem."""
    settings = Settings(
        ruin="related", chains=6, regions=3, rollouts=3, removals=4, orders=2, threshold=1.0, start_rounds=2
    )
    it = Search(problems, engine, settings, Budget(iterations=3), 1)
    assert it.run() == "iterations" and it.state is not None
    courses = [[(point.iteration, point.cost) for point in trace] for trace in it.traces]
    costs = it.state.stats().costs.reshape(len(problems), -1).tolist()
    return list(zip(it.best(), courses, costs, strict=True))


@pytest.mark.parametrize("kinds", [("cvrp", "cvrp"), ("cvrp", "pcvrp", "cvrp")])
def test_a_batch_is_searched_as_on_the_cpu_alone(kinds: tuple[str, ...]) -> None:
    problems = [random_problem(i, kind, "none", customers=12).replace(capacity=20.0) for i, kind in enumerate(kinds)]
    cuda = emulated()
    assert search(cuda, problems) == [one for problem in problems for one in search(CpuEngine(), [problem])]
    device: Any = cuda.device
    log = [name for name in device.log if name not in ("read", "wait")]
    groups = len(set(kinds))
    iteration = [*SPLIT * groups, *["improve_chains"] * groups, *MERGE * groups]
    iteration += ["choose_sources", "replace_chains"] * groups
    begin = log.index("split_chains")
    assert log[begin : begin + 3 * len(iteration)] == 3 * iteration
    assert {file for file, _ in device.precompiled} == {"improve", "regions"}


def test_a_deadline_and_an_interruption_leave_whole_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(2, "cvrp", "none", customers=20, layout="uniform").replace(capacity=20.0)
    recipe = Recipe(rule="related", removals=5, orders=2, regions=3)
    temperatures = np.full((2, 7), 0.1 * problem.side())
    monkeypatch.setattr(cuda_engine, "LAUNCH", 10)
    ends = []
    for engine in (emulated(), CpuEngine()):
        state: Any = start(engine, [problem], [0, 0], 1, rounds=0)
        engine.improve(state, recipe, None, temperatures, 1, 1, deadline=time.perf_counter() + 600)
        ends.append([agree.everything(engine, state), state.stats().made])
        engine.improve(state, recipe, None, temperatures, 1, 2, deadline=time.perf_counter())
        assert check(problem, engine.export(state, 0, best=False)).feasible
        assert state.stats().made <= (2 * 3 if engine.name == "cuda" else 0), "none; a GPU may begin one per part"
    assert ends[0] == ends[1]
    cuda = emulated()
    state = start(cuda, [problem], [0, 0], 1, rounds=0)
    device: Any = cuda.device
    device.log.clear()

    def interrupt() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(device, "mark", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cuda.improve(state, recipe, None, temperatures, 1, 1, deadline=time.perf_counter() + 600)
    assert device.log[-3:] == [*SPLIT, "improve_chains", *MERGE]
    monkeypatch.undo()
    assert check(problem, cuda.export(state, 0, best=False)).feasible


def test_given_removals_are_a_function_of_the_parts() -> None:
    problem, cuda = random_problem(1, "cvrp", "none", customers=9), emulated()
    state = start(cuda, [problem], [0], 1, rounds=0)
    with pytest.raises(EngineError, match="a function of the parts in regions, else an array"):
        cuda.improve(state, Recipe(removals=2, regions=2), np.array([[[1, 2]]], np.int32), np.zeros((1, 1)), 1, 1)
