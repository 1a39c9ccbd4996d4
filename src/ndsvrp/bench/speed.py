"""Measure reconstructions per second on one core, with acceptance and all bookkeeping."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ndsvrp.bench.rows import Row
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.generate import generate
from ndsvrp.generate.config import choose
from ndsvrp.io import read
from ndsvrp.problem import Problem
from ndsvrp.search.start import start
from ndsvrp.variants import VARIANTS

SIZES = (100, 500, 1000, 2000, 10000)
KINDS = tuple(v.name for v in VARIANTS.values() if len(v.constraints) <= 2)  # capacity, and one thing more at most
CAPACITY = 100  # at every size, for routes of equal length, so that rates are comparable
STEPS = 5000  # per call of the engine
WARM_UP = 20  # calls before measuring, so that the solution is as good as in a search

RECIPES = {
    "touched": Recipe(rule="string"),
    "all": Recipe(rule="string", all_routes=True, sorted_orders=True, blink=0.01),  # SISRs
}


def problems(file: str | Path | None, index: int, sizes: Sequence[int], variants: Sequence[str]) -> Iterator[Problem]:
    """Yield one instance of a file, or generated ones of every variant and size (seed 1)."""
    if file is not None:
        yield read(file, index=index)
        return
    for variant in variants:
        choose("variant", variant, VARIANTS)
        capacity = CAPACITY if VARIANTS[variant].layout == "uniform" else None
        for n in sizes:
            problem = generate(variant, n, seed=1, capacity=capacity)[0]
            yield problem.replace(name=f"{variant}{n}")


def measure(problem: Problem, seconds: float = 2.0, isa: str = "auto") -> Iterator[Row]:
    """Yield a row per scope: string removal of 10 customers on average, one order, halfway through the cooling."""
    engine = CpuEngine(threads=1, isa=isa)
    state: Any = start(engine, [problem], [0], seed=1, rounds=0)
    middle = np.full((1, STEPS), 0.01 * problem.side())
    warm = np.geomspace(0.1, 0.01, WARM_UP) * problem.side()
    for iteration, temperature in enumerate(warm):
        engine.improve(state, RECIPES["all"], None, np.full((1, STEPS), temperature), 1, iteration)
    for scope, recipe in RECIPES.items():
        iteration, steps = WARM_UP, 0
        began, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            engine.improve(state, recipe, None, middle, 1, iteration)
            steps += state.made
            iteration += 1
        taken, cpu = time.perf_counter() - began, time.process_time() - cpu
        yield {
            "set": "speed", "instance": problem.name, "customers": problem.customers, "scope": scope,
            "isa": state.chains.isa, "per_second": steps / taken, "per_cpu_second": steps / cpu, "steps": steps,
            "seconds": taken,
        }  # fmt: skip


def table(rows: Sequence[Row]) -> Table:
    """Return the rates by instance and scope."""
    out = Table(title="Reconstructions per second on one core")
    out.add_column("instance")
    for scope in RECIPES:
        out.add_column(scope + " routes", justify="right")
    for name in dict.fromkeys(row["instance"] for row in rows):
        rates = {row["scope"]: row["per_second"] for row in rows if row["instance"] == name}
        out.add_row(name, *(f"{rates[scope]:,.0f}" if scope in rates else "" for scope in RECIPES))
    return out
