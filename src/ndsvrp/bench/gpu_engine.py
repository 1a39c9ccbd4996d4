"""Measure the GPU engine alone: rollouts evaluated in parallel, steps in sequence, and the time to compile."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ndsvrp.bench.rows import Row
from ndsvrp.engine.base import Ints, Recipe
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.shared import make_instance
from ndsvrp.engine.ticks import Ticks
from ndsvrp.problem import Problem
from ndsvrp.search.start import improve_start

REMOVALS, ORDERS = 15, 5  # the paper's
ROLLOUTS = 200
CHAINS = 128
WARM_UP = 10  # calls before measuring, so that solutions are as good as in a search
REPEATS = 5  # measurements; the median counts

GIVEN = Recipe(removals=REMOVALS, orders=ORDERS)
RELATED = Recipe(rule="related", removals=REMOVALS, orders=ORDERS)


def measure(problem: Problem, engine: CudaEngine, chains: int = CHAINS, repeats: int = REPEATS) -> Iterator[Row]:
    """Yield a row per call and kind of removal: customers near each other, or scattered."""
    torch = engine.device.torch
    began = time.perf_counter()
    state = engine.start([problem], np.zeros(chains, np.int32))
    temperatures = torch.full((chains, ROLLOUTS), 0.01 * problem.side(), dtype=torch.float64, device="cuda")
    engine.improve(state, RELATED, None, temperatures[:, :1], 1, 0)
    state.stats()  # waits
    ready = time.perf_counter() - began
    improve_start(engine, state, 1, 30)
    for iteration in range(WARM_UP):
        engine.improve(state, RELATED, None, temperatures, 1, iteration)
    yield {"what": "start", "value": ready, "unit": "s to the first step", "cost": float(np.mean(state.stats().costs))}
    order = np.argsort(np.random.default_rng(2).random((chains, ROLLOUTS, problem.customers)), axis=-1)
    lists = {"related": _related(problem, chains), "scattered": order[..., :REMOVALS].astype(np.int32) + 1}
    for name, customers in lists.items():
        removed = torch.as_tensor(customers, device="cuda")
        calls = {
            "evaluate": lambda i, removed=removed: engine.evaluate(state, GIVEN, removed, ROLLOUTS, 1, i, False),
            "improve": lambda i, removed=removed: engine.improve(state, GIVEN, removed, temperatures, 1, i),
        }
        for what, call in calls.items():
            yield _row(what, name, seconds_of(call, repeats, "cuda"), chains)
    by_rule = seconds_of(lambda i: engine.improve(state, RELATED, None, temperatures, 1, i), repeats, "cuda")
    yield _row("improve", "rule", by_rule, chains)
    state.look()


def _row(what: str, removal: str, seconds: float, chains: int) -> Row:
    rate, step = chains * ROLLOUTS * ORDERS / seconds, seconds / ROLLOUTS * 1e6
    value, unit = (rate / 1e6, "M solutions/s") if what == "evaluate" else (step, "us per step")
    return {
        "what": what, "removal": removal, "value": value, "unit": unit, "seconds": seconds, "chains": chains,
        "rollouts": ROLLOUTS, "solutions_per_second": rate, "us_per_step": step,
    }  # fmt: skip


def _related(problem: Problem, chains: int) -> Ints:
    """Return random customers and their neighbours, as many as there are."""
    near = make_instance(Ticks(problem)).near
    seeds = np.random.default_rng(1).integers(1, problem.customers + 1, (chains, ROLLOUTS))
    return np.concatenate([seeds[..., None], near[seeds][..., : REMOVALS - 1]], axis=-1).astype(np.int32)


def seconds_of(call: Callable[[int], Any], repeats: int, device: str) -> float:
    """Return the median seconds of a call, by the clock of the GPU, after two calls that do not count."""
    taken = [_once(call, 100 + i, device) for i in range(repeats + 2)]
    return float(np.median(taken[2:]))


def _once(call: Callable[[int], Any], number: int, device: str) -> float:
    if device == "cpu":
        began = time.perf_counter()
        call(number)
        return time.perf_counter() - began
    from ndsvrp.policy.graphs import timing_event  # imports torch

    began = timing_event()
    call(number)
    ended = timing_event()
    ended.synchronize()
    return float(began.elapsed_time(ended)) / 1e3
