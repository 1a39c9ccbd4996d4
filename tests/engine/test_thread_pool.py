"""Threads of the core that wait for work (native/cpu/pool.hpp)."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ndsvrp import generate
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine

RECIPE = Recipe(rule="related")


def improve(engine: CpuEngine, state: Any, iteration: int, steps: int = 100) -> list[float]:
    chains = len(state.problem_of)
    engine.improve(state, RECIPE, None, np.full((chains, steps), 0.01), 1, iteration)
    costs: list[float] = state.stats().costs.tolist()
    return costs


def begin(engine: CpuEngine, chains: int = 3) -> Any:
    return engine.start(generate("cvrp", 50, seed=1), np.zeros(chains, np.int32))


FORKED = """
import os, threading
from engine.test_thread_pool import CpuEngine, begin, improve

engine = CpuEngine(threads=2)
state = begin(engine)
improve(engine, state, 1)
child = os.fork()
if child == 0:  # handles of threads of the parent are those of new threads here
    other = begin(engine)
    improve(engine, other, 1)
    thread = threading.Thread(target=improve, args=(engine, begin(engine), 1))
    thread.start()
    thread.join()
print(improve(engine, state, 2), flush=True)
del state
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    del other
"""


def test_a_forked_process_has_threads_of_its_own(pytestconfig: Any) -> None:
    """The child has none of the threads that wait for work in the parent, and waits for none."""
    call = [sys.executable, "-W", "ignore", "-c", FORKED]
    tests = str(pytestconfig.rootpath / "tests")
    ran = subprocess.run(call, capture_output=True, text=True, timeout=60, cwd=tests)
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()
    assert first == second


def test_calls_from_several_threads_come_one_after_another() -> None:
    engine = CpuEngine(threads=3)
    state = begin(engine)
    with ThreadPoolExecutor(2) as callers:
        list(callers.map(lambda iteration: improve(engine, state, iteration, steps=4), range(200)))
    for chain, cost in enumerate(state.stats().costs):
        tour = engine.tour(state, chain, best=False)
        stops = np.concatenate([[0], tour])
        lengths = state.problems[0].length(stops[:-1], stops[1:])
        assert sorted(tour[tour > 0]) == list(range(1, 51))
        assert abs(cost - lengths.sum()) < 1e-4


def test_no_chains() -> None:
    engine = CpuEngine(threads=2)
    assert improve(engine, begin(engine, chains=0), 1) == []
