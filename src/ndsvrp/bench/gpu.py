"""How fast the GPU engine is: rollouts weighed in parallel, steps in sequence, and the compiling before them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ndsvrp.bench.rows import Row, record
from ndsvrp.bench.speed import KINDS
from ndsvrp.engine.base import Ints, Recipe
from ndsvrp.engine.cpu import make_instance
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.placement import Placement
from ndsvrp.engine.ticks import Ticks
from ndsvrp.generate import generate
from ndsvrp.problem import Problem
from ndsvrp.search.start import improve_start

REMOVALS, ORDERS = 15, 5  # the paper's
ROLLOUTS = 200
CHAINS = 128
WARM_UP = 10  # calls that bring solutions to what a search works on
REPEATS = 5  # measurements; the median counts

GIVEN = Recipe(removals=REMOVALS, orders=ORDERS)
RELATED = Recipe(rule="related", removals=REMOVALS, orders=ORDERS)


def measure(problem: Problem, engine: CudaEngine, chains: int = CHAINS, repeats: int = REPEATS) -> Iterator[Row]:
    """A row per way of working: rollouts in parallel, steps in sequence; customers near each other, or scattered."""
    torch = engine.device.torch
    began = time.perf_counter()
    state = engine.start([problem], np.zeros(chains, np.int32))
    heat = torch.full((chains, ROLLOUTS), 0.01 * problem.side(), dtype=torch.float64, device="cuda")
    engine.rebuild(state, RELATED, None, heat[:, :1], 1, 0)
    state.costs()
    ready = time.perf_counter() - began
    improve_start(engine, state, 1, 30)
    for iteration in range(WARM_UP):
        engine.rebuild(state, RELATED, None, heat, 1, iteration)
    yield {"what": "start", "seconds": ready, "cost": float(np.mean(state.costs()))}
    lists = {
        "related": _related(problem, chains),
        "scattered": np.argsort(np.random.default_rng(2).random((chains, ROLLOUTS, problem.customers)), axis=-1)[
            ..., :REMOVALS
        ].astype(np.int32)
        + 1,
    }
    for name, customers in lists.items():
        removed = torch.as_tensor(customers, device="cuda")
        calls = {
            "evaluate": lambda i, removed=removed: engine.evaluate(state, GIVEN, removed, ROLLOUTS, 1, i, False),
            "improve": lambda i, removed=removed: engine.rebuild(state, GIVEN, removed, heat, 1, i),
        }
        for what, call in calls.items():
            yield _row(what, name, _time(torch, call, repeats), chains)
    by_rule = _time(torch, lambda i: engine.rebuild(state, RELATED, None, heat, 1, i), repeats)
    yield _row("improve", "rule", by_rule, chains)
    state.check()


def _row(what: str, removal: str, seconds: float, chains: int) -> Row:
    return {
        "what": what, "removal": removal, "seconds": seconds, "chains": chains, "rollouts": ROLLOUTS,
        "solutions_per_second": chains * ROLLOUTS * ORDERS / seconds, "us_per_step": seconds / ROLLOUTS * 1e6,
    }  # fmt: skip


def _related(problem: Problem, chains: int) -> Ints:
    """Random customers and their neighbours, as far as there are that many."""
    near = make_instance(Ticks(problem)).near
    seeds = np.random.default_rng(1).integers(1, problem.customers + 1, (chains, ROLLOUTS))
    return np.concatenate([seeds[..., None], near[seeds][..., : REMOVALS - 1]], axis=-1).astype(np.int32)


def _time(torch: Any, call: Callable[[int], Any], repeats: int) -> float:
    """Seconds of a call, by the clock of the GPU: the median, after two that do not count."""
    taken: list[float] = []
    for i in range(repeats + 2):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        call(100 + i)
        events[1].record()
        torch.cuda.synchronize()
        taken.append(events[0].elapsed_time(events[1]) / 1e3)
    return float(np.median(taken[2:]))


def run(
    sizes: Sequence[int] = (500,),
    variants: Sequence[str] = KINDS,
    chains: int = CHAINS,
    placement: Placement = "auto",
    out: str | Path | None = None,
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure generated instances (seed 1) of every kind and size; rows are appended to `out` as they come."""
    engine = CudaEngine(placement=placement)
    common = {"set": "gpu", "gpu": engine.device.name, "cuda": engine.device.versions, "placement": placement}
    found = (
        {"instance": f"{variant}{n}", **common, **row}
        for variant in variants
        for n in sizes
        for row in measure(generate(variant, n, seed=1)[0], engine, chains)
    )
    return record(found, out, progress)


def line(row: Row) -> str:
    """A measurement in words."""
    if row["what"] == "start":
        return f"{row['instance']:10} first step after {row['seconds']:.2f} s, mean cost {row['cost']:.4g}"
    rate = f"{row['solutions_per_second'] / 1e6:7.2f} M solutions/s"
    return f"{row['instance']:10} {row['what']:9} {row['removal']:10} {rate} {row['us_per_step']:9.2f} us per step"
