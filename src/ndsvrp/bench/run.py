"""Run solvers side by side, each (instance, solver) in its own process on one core.

The solvers of this package may also run on a GPU, with several instances per process.
"""

import json
import math
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from itertools import product
from pathlib import Path
from typing import Any

from ndsvrp.bench.instances import Case, find_cases
from ndsvrp.bench.rows import Row, append_row, key, read_rows
from ndsvrp.bench.solvers import DEFAULT, OwnSolver, find_solver
from ndsvrp.engine.device import Device
from ndsvrp.errors import EngineError, InstanceError
from ndsvrp.io.environment import environment
from ndsvrp.search.planning import Request

Progress = Callable[[int, int, Row], None]
"""Called after every run with the number of runs done, of all runs, and the row."""

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")}
IN_A_PROCESS = 16  # instances per process with a GPU: preparing it takes longer than a short search
GRACE = 60.0  # seconds a solver may take beyond twice its budget before it is ended


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
) -> list[Row]:
    """Run every solver on every chosen instance of every set, with every seed and every number of seconds.

    Return a row for each run, those found in `out` included. `instances` selects from each set.
    Solvers take turns on each instance, so that other load of the machine affects all of them. With `out`, rows are
    appended when their process ends (on a GPU after up to 16 instances), and a run that is in the file (`rows.KEY`) is
    not repeated. `request` and `together` are for the solvers of this package; their name in the rows says so.
    For `ignore_fields` see `ndsvrp.read`.
    """
    for time in times:
        if not 0 < time < math.inf:
            raise InstanceError(f"{time:g} is not a number of seconds", field="time")
    if request.device == "cuda" and jobs > 1:
        raise InstanceError("runs on a GPU follow each other", field="jobs")
    cores = _cores(jobs)
    same: Row = {"threads": 1, **environment()}
    runs = [{"seed": seed, "budget": float(time)} for seed in seeds for time in times]
    found = [find_cases(path, instances, ignore_fields) for path in sets]
    tasks = [task for cases in found for task in _tasks(cases, solvers, request, together, same, runs)]
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

    workers = _Workers(cores)
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(workers.run, task) for task in waiting]):
            for row in future.result():
                rows[key(row)] = row
                if out is not None:
                    append_row(out, row)
                if progress:
                    progress(len(rows), total, row)
    finally:  # also after Ctrl-C: finished runs are written, running ones are killed
        pool.shutdown(wait=False, cancel_futures=True)
        workers.end()
        pool.shutdown()
    return [rows[key(row)] for task in tasks for row in task.rows]


@dataclass(frozen=True)
class _Task:
    """The work of one process: a solver on one instance, or on several, so many at once."""

    solver: str
    request: Request  #: of a solver of this package
    together: int
    rows: list[Row]  #: what is known before the search
    cases: list[Case]


def _tasks(
    cases: Sequence[Case], solvers: Sequence[str], request: Request, together: int, same: Row, runs: Sequence[Row]
) -> list[_Task]:
    """Let solvers take turns on every instance, or on every batch, for each seed and time of `runs`."""
    on_gpu = request.device == "cuda"
    here = same | {"hardware": same["hardware"] | {"gpu": Device().name}} if on_gpu else same
    size = together * max(1, IN_A_PROCESS // together) if on_gpu else together
    versions = {name: _version(name) for name in solvers}
    ours = {name: own for name in solvers if isinstance(own := find_solver(name, request), OwnSolver)}
    for own in ours.values():
        own.refuse_settings()
    labels = {name: own.label(together) for name, own in ours.items()}
    tasks = []
    for begin in range(0, len(cases), size):
        some = list(cases[begin : begin + size])
        for run, (name, version) in product(runs, versions.items()):
            if name in labels:
                rows = [_describe(case, labels[name], version) | run | here for case in some]
                tasks.append(_Task(name, request, together, rows, some))
            else:
                ones = [(_describe(case, name, version) | run | same, case) for case in some]
                tasks += [_Task(name, DEFAULT, 1, [row], [case]) for row, case in ones]
    return tasks


def _describe(case: Case, solver: str, version: str) -> Row:
    names: Row = {"set": case.set, "instance": case.name, "data": case.digest()}
    return names | {"solver": solver, "solver_version": version}


def _version(solver: str) -> str:
    try:
        return find_solver(solver).version()
    except PackageNotFoundError as error:
        hint = "pip install 'ndsvrp[bench]'"
        raise InstanceError(f"'{solver}' needs the package {error.name} ({hint})", field="solvers") from None


class _Workers:
    """Worker processes, each on its own core. A process that fails has a row too."""

    def __init__(self, cores: Sequence[int]) -> None:
        self.free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for core in cores:
            self.free.put(core)
        self.children: set[subprocess.Popen[bytes]] = set()
        self.ended = threading.Event()

    def run(self, task: _Task) -> list[Row]:
        core, first = self.free.get(), task.rows[0]
        try:
            message = {
                "cases": [asdict(case) for case in task.cases], "solver": task.solver,
                "request": asdict(task.request), "together": task.together, "core": core, "budget": first["budget"],
                "seed": first["seed"],
            }  # fmt: skip
            date = datetime.now(UTC).isoformat(timespec="seconds")
            outcomes = self.call(message, 2 * first["budget"] * len(task.cases) + GRACE)
            return [row | {"date": date} | outcome for row, outcome in zip(task.rows, outcomes, strict=True)]
        finally:
            self.free.put(core)

    def call(self, task: dict[str, Any], limit: float) -> list[Row]:
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command, pipe = [sys.executable, "-m", "ndsvrp.bench.worker"], subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        self.children.add(child)
        if self.ended.is_set():  # `end` was called before this child existed
            child.kill()
        try:
            answer, messages = child.communicate(json.dumps(task).encode(), timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return [{"error": f"ended after {limit:g} s without an answer"}] * len(task["cases"])
        finally:
            self.children.discard(child)
        if child.returncode != 0 or not answer:
            last = messages.decode(errors="replace").strip().splitlines()[-1:]
            return [{"error": f"exit code {child.returncode}: {' '.join(last)}".rstrip(": ")}] * len(task["cases"])
        outcomes: list[Row] = json.loads(answer)
        return outcomes

    def end(self) -> None:
        self.ended.set()
        for child in list(self.children):
            child.kill()


def _cores(jobs: int) -> list[int]:
    """Return the cores to use, the last ones first: interrupts tend to go to the first."""
    if not hasattr(os, "sched_setaffinity"):
        raise EngineError("benchmarks need a system that can bind a process to a core (Linux)")
    available = sorted(os.sched_getaffinity(0))
    if not 1 <= jobs <= len(available):
        raise InstanceError(f"{jobs} is not within 1-{len(available)}, one core each", field="jobs")
    return available[::-1][:jobs]
