"""Measure how late searches end and how much memory they take, each in a new process."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rich.table import Table

from ndsvrp.bench.rows import Row, record
from ndsvrp.constraints import CAPACITY
from ndsvrp.errors import NoSolutionError
from ndsvrp.generate import generate
from ndsvrp.problem import Problem
from ndsvrp.search.solve import solve
from ndsvrp.variants import VARIANTS

T = TypeVar("T")
SOLVERS = ("sisr", "nds")
SHARE, SECONDS = 0.02, 0.1  # a search may take this share of the limit longer, or these seconds


def _limit_fleet(problem: Problem) -> Problem:
    """Allow a fifth more vehicles than the load needs."""
    return problem.replace(vehicles=ceil(1.2 * float(problem.demand.sum()) / problem.capacity))


def _move_one_away(problem: Problem) -> Problem:
    """Move one customer a thousand times as far away as all others."""
    assert problem.coordinates is not None
    coordinates = problem.coordinates.copy()
    coordinates[-1] = 1000.0
    return problem.replace(coordinates=coordinates)


PLAIN = next(variant.name for variant in VARIANTS.values() if variant.constraints == {CAPACITY})
CHANGES: dict[str, Callable[[Problem], Problem]] = {"fleet": _limit_fleet, "outlier": _move_one_away}
KINDS = (*VARIANTS, *CHANGES)


def make(kind: str, customers: int) -> Problem:
    """Generate an instance (seed 1): a variant by name, or a plain one with a limited fleet or a far outlier."""
    if kind in VARIANTS:
        return generate(kind, customers, seed=1)[0]
    return CHANGES[kind](generate(PLAIN, customers, seed=1)[0])


def measure(kind: str, customers: int, solver: str, seconds: float) -> Row:
    """Search in this process. Return the seconds beyond the limit, and the peak memory of the process so far."""
    problem = make(kind, customers)
    facts: Row = {}
    began = time.perf_counter()
    try:
        facts["iterations"] = solve(problem, time=seconds, seed=1, solver=solver).iterations
    except NoSolutionError as error:  # fleet too small for so short a search; its time counts all the same
        facts["unserved"] = len(error.unserved)
    over = time.perf_counter() - began - seconds
    return {"over": over, "within": over <= max(SHARE * seconds, SECONDS), "peak_mib": peak_mib()} | facts


def peak_mib() -> float | None:
    """Return the peak memory of this process; None if unknown (not Linux).

    `ru_maxrss` is no alternative: a process inherits it from its parent.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def run(
    seconds: float = 2.0,
    customers: int = 10_000,
    out: str | Path | None = None,
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure every kind of problem with 1 and with so many customers, by every solver; append rows to `out`."""
    return record(_rows(seconds, customers), out, progress)


def _rows(seconds: float, customers: int) -> Iterator[Row]:
    for n in dict.fromkeys((1, customers)):
        for kind in KINDS:
            for solver in SOLVERS:
                row: Row = {
                    "set": "limits", "instance": f"{kind}{n}", "customers": n, "solver": solver, "budget": seconds,
                }  # fmt: skip
                try:
                    yield row | in_new_process(measure, kind, n, solver, seconds)
                except BrokenProcessPool:
                    yield row | {"error": "the process ended without an answer"}


def in_new_process(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a new process, and return what it returns."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def outcome(row: Row) -> str:
    """Return `+0.004 s, ok, 210 MiB`."""
    if "error" in row:
        return f"failed: {row['error']}"
    return ", ".join(_cells(row))


def table(rows: Sequence[Row]) -> Table:
    """Return a line per search."""
    out = Table(title="Time limits and memory")
    for name in ("instance", "solver", "beyond the limit", "kept", "peak memory"):
        out.add_column(name, justify="right" if name in ("beyond the limit", "peak memory") else "left")
    for row in rows:
        cells = ["", "failed", ""] if "error" in row else _cells(row)
        out.add_row(row["instance"], row["solver"], *cells)
    return out


def _cells(row: Row) -> list[str]:
    memory = "unknown" if row["peak_mib"] is None else f"{row['peak_mib']:,.0f} MiB"
    return [f"{row['over']:+.3f} s", "ok" if row["within"] else "LATE", memory]
