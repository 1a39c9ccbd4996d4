"""Measure how late searches end and how much memory they take, each in a new process."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.table import Table

from ndsvrp.bench.rows import Row, record
from ndsvrp.constraints import CAPACITY
from ndsvrp.errors import NoSolutionError
from ndsvrp.generate import generate
from ndsvrp.io.environment import peak_mib
from ndsvrp.problem import Problem
from ndsvrp.search.solve import solve
from ndsvrp.variants import VARIANTS

T = TypeVar("T")
SOLVERS = ("hybrid", "nds")
SHARE, SECONDS = 0.02, 0.1  # a search may take this share of the limit longer, or these seconds
SEARCHES = ((0.05, 1), (0.05, 1_000), (1.0, 10_000), (1.0, 100_000), (10.0, 100_000))  # seconds, customers
LARGEST_MATRIX = 4_999  # customers


def _limit_fleet(problem: Problem) -> Problem:
    """Allow a fifth more vehicles than the load needs."""
    return problem.replace(vehicles=ceil(1.2 * float(problem.demand.sum()) / problem.capacity))


def _move_one_away(problem: Problem) -> Problem:
    """Move one customer a thousand times as far away as all others."""
    assert problem.coordinates is not None
    coordinates = problem.coordinates.copy()
    coordinates[-1] = 1000.0
    return problem.replace(coordinates=coordinates)


def _as_matrix(problem: Problem) -> Problem:
    """State the lengths as a matrix."""
    nodes = np.arange(len(problem.demand))
    return problem.replace(coordinates=None, distance=problem.length(nodes[:, None], nodes))


PLAIN = next(variant.name for variant in VARIANTS.values() if variant.constraints == {CAPACITY})
CHANGES: dict[str, Callable[[Problem], Problem]] = {
    "fleet": _limit_fleet, "outlier": _move_one_away, "matrix": _as_matrix,
}  # fmt: skip
KINDS = (*VARIANTS, *CHANGES)


def make(kind: str, customers: int) -> Problem:
    """Generate an instance (seed 1): a variant by name, or a plain one that is changed.

    The changes: a limited fleet, a far outlier, or a matrix, then with at most 4,999 customers.
    """
    if kind == "matrix":
        customers = min(customers, LARGEST_MATRIX)
    if kind in VARIANTS:
        return generate(kind, customers, seed=1)[0]
    return CHANGES[kind](generate(PLAIN, customers, seed=1)[0])


def measure(kind: str, customers: int, solver: str, seconds: float) -> Row:
    """Search in this process. Return the seconds beyond the limit, and the peak memory of the process so far.

    Converting the problem to the form of the engine does not count; `preparation` has its seconds.
    """
    problem = make(kind, customers)
    facts: Row = {"customers": problem.customers}
    began = time.perf_counter()
    try:
        result = solve(problem, time=seconds, seed=1, solver=solver)
        preparation, facts["iterations"], facts["cost"] = result.preparation, result.iterations, result.cost
    except NoSolutionError as error:  # fleet too small for so short a search; its time counts all the same
        preparation, facts["unserved"] = error.preparation, len(error.unserved)
    over = time.perf_counter() - began - preparation - seconds
    within = over <= max(SHARE * seconds, SECONDS)
    return {"over": over, "within": within, "preparation": preparation, "peak_mib": peak_mib()} | facts


def run(
    searches: Iterable[tuple[float, int]] = SEARCHES,
    out: str | Path | None = None,
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure every kind of problem by every solver, for each limit and number of customers; append rows to `out`."""
    return record(_rows(searches), out, progress)


def _rows(searches: Iterable[tuple[float, int]]) -> Iterator[Row]:
    for seconds, n in searches:
        for kind in KINDS:
            for solver in SOLVERS:
                row: Row = {"set": "limits", "instance": f"{kind}{n}", "solver": solver, "budget": seconds}
                try:
                    yield row | in_new_process(measure, kind, n, solver, seconds)
                except BrokenProcessPool:
                    yield row | {"customers": n, "error": "the process ended without an answer"}


def in_new_process(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a new process, and return what it returns."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def outcome(row: Row) -> str:
    """Return `+0.004 s, ok, 0.53 s, 210 MiB`."""
    if "error" in row:
        return f"failed: {row['error']}"
    return ", ".join(_cells(row))


def table(rows: Sequence[Row]) -> Table:
    """Return a line per search."""
    out = Table(title="Time limits and memory")
    for name in ("instance", "solver", "limit", "beyond it", "kept", "preparation", "peak memory"):
        out.add_column(name, justify="left" if name in ("instance", "solver", "kept") else "right")
    for row in rows:
        cells = ["", "failed", "", ""] if "error" in row else _cells(row)
        out.add_row(row["instance"], row["solver"], f"{row['budget']:g} s", *cells)
    return out


def _cells(row: Row) -> list[str]:
    memory = "unknown" if row["peak_mib"] is None else f"{row['peak_mib']:,.0f} MiB"
    return [f"{row['over']:+.3f} s", "ok" if row["within"] else "LATE", f"{row['preparation']:.2f} s", memory]
