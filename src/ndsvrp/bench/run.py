"""Run solvers side by side, each (instance, solver) in its own process on one core, or on several.

The solvers of this package may also run on a GPU, with several instances per process.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from ndsvrp.bench.instances import Case, find_cases
from ndsvrp.bench.pool import Pool
from ndsvrp.bench.rows import Row, append_row, key, read_rows
from ndsvrp.bench.solvers import DEFAULT, OwnSolver, find_solver, label_of, version_of
from ndsvrp.engine.device import Device
from ndsvrp.errors import InstanceError
from ndsvrp.io.environment import environment
from ndsvrp.search.planning import Request

Progress = Callable[[int, int, Row], None]
"""Called after every run with the number of runs done, of all runs, and the row."""

IN_A_PROCESS = 16  # instances per process with a GPU: preparing it takes longer than a short search


def run(
    sets: Sequence[str | Path],
    solvers: Sequence[str],
    times: Sequence[float],
    instances: str | None = None,
    seeds: Sequence[int] = (1,),
    out: str | Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    request: Request = DEFAULT,
    together: int = 1,
    ignore_fields: Sequence[str] = (),
    presets: Sequence[str] = (),
    iterations: Sequence[int] = (),
    cores: int = 1,
) -> list[Row]:
    """Run every solver on every chosen instance of every set, with every seed and every number of seconds.

    Return a row for each run, those found in `out` included. `instances` selects from each set.
    Solvers take turns on each instance, so that other load of the machine affects all of them. With `out`, rows are
    appended when their process ends (on a GPU after up to 16 instances), and a run that is in the file (`rows.KEY`) is
    not repeated. `request`, `together` and `iterations` are for the solvers of this package, `presets` for the solver
    nds; their name in the rows says so. A solver on several cores runs on each with another seed, and its best solution
    counts. For `ignore_fields` see `ndsvrp.read`.
    """
    for time in times:
        if not 0 < time < math.inf:
            raise InstanceError(f"{time:g} is not a number of seconds", field="time")
    if request.device == "cuda" and jobs > 1:
        raise InstanceError("runs on a GPU follow each other", field="jobs")
    pool = Pool(jobs, cores)
    entries = _entries(solvers, request, together, presets, iterations, cores)
    runs = [{"seed": seed, "budget": float(time)} for seed in seeds for time in times]
    tasks = [task for path in sets for task in _tasks(find_cases(path, instances, ignore_fields), entries, runs)]
    present = {key(row): row for row in read_rows(out)} if out is not None else {}  # the last row of every run
    rows: dict[tuple[Any, ...], Row] = {}
    waiting = []
    for task in tasks:
        old = [present.get(key(row), {"error": "not there"}) for row in task.rows]
        if any("error" in row for row in old):  # a batch is repeated as a whole
            waiting.append(task)
        else:
            rows |= {key(row): row for row in old}
    total = sum(len(task.rows) for task in tasks)
    for done, row in enumerate(rows.values(), start=1):
        if progress:
            progress(done, total, row)

    threads = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([threads.submit(task.run, pool) for task in waiting]):
            for row in future.result():
                rows[key(row)] = row
                if out is not None:
                    append_row(out, row)
                if progress:
                    progress(len(rows), total, row)
    finally:  # also after Ctrl-C: finished runs are written, running ones are killed
        threads.shutdown(wait=False, cancel_futures=True)
        pool.end()
        threads.shutdown()
    return [rows[key(row)] for task in tasks for row in task.rows]


@dataclass(frozen=True)
class _Entry:
    """A solver as it takes part, with what all its rows say."""

    solver: str
    row: Row
    request: Request = DEFAULT  #: of a solver of this package
    iterations: int | None = None
    together: int = 1
    size: int = 1  #: instances per process
    cores: int = 1


@dataclass(frozen=True)
class _Task:
    """The work of one process: a solver on one instance, or on several, so many at once."""

    entry: _Entry
    rows: list[Row]  #: what is known before the search
    cases: list[Case]

    def run(self, pool: Pool) -> list[Row]:
        """Return the rows, complete."""
        entry, first = self.entry, self.rows[0]
        message = {
            "cases": [asdict(case) for case in self.cases], "solver": entry.solver, "request": asdict(entry.request),
            "iterations": entry.iterations, "together": entry.together, "budget": first["budget"],
            "seed": first["seed"],
        }  # fmt: skip
        date = datetime.now(UTC).isoformat(timespec="seconds")
        outcomes = pool.run(message, entry.cores)
        return [row | {"date": date} | outcome for row, outcome in zip(self.rows, outcomes, strict=True)]


def _entries(
    solvers: Sequence[str],
    request: Request,
    together: int,
    presets: Sequence[str],
    iterations: Sequence[int],
    cores: int,
) -> list[_Entry]:
    """Return all solvers in all their configurations. Versions and the GPU are asked for here, once."""
    same: Row = environment()
    on_gpu = request.device == "cuda"
    of_gpu: Row = {"hardware": same["hardware"] | {"gpu": Device().name}} if on_gpu else {}
    size = together * max(1, IN_A_PROCESS // together) if on_gpu else together
    entries: list[_Entry] = []
    for name in solvers:
        solver = find_solver(name)
        facts: Row = {"solver_version": version_of(name, solver), "threads": cores, **same}
        if not isinstance(solver, OwnSolver):
            entries.append(_Entry(name, {"solver": label_of(name, solver)} | facts, cores=cores))
            continue
        if on_gpu:
            facts |= {"threads": 1, **of_gpu}
        chosen = presets if solver.request.solver == "nds" else ()
        for preset, limit in product(chosen or (request.preset,), iterations or (None,)):
            asked = replace(request, preset=preset)
            own = find_solver(name, asked, limit)
            assert isinstance(own, OwnSolver)
            own.refuse_settings()
            row: Row = {"solver": own.label(together)} | facts
            entries.append(_Entry(name, row, asked, limit, together, size, 1 if on_gpu else cores))
    if presets and not any(entry.request.preset in presets for entry in entries):
        raise InstanceError("presets are those of the solver nds, which does not take part", field="preset")
    return entries


def _tasks(cases: Sequence[Case], entries: Sequence[_Entry], runs: Sequence[Row]) -> Iterator[_Task]:
    """Let solvers take turns on every instance, or on every batch, for each seed and time of `runs`."""
    size = max(entry.size for entry in entries)
    for begin in range(0, len(cases), size):
        batch = list(cases[begin : begin + size])
        for run, entry in product(runs, entries):
            for first in range(0, len(batch), entry.size):
                some = batch[first : first + entry.size]
                yield _Task(entry, [_describe(case) | entry.row | run for case in some], some)


def _describe(case: Case) -> Row:
    return {"set": case.set, "instance": case.name, "data": case.digest()}
