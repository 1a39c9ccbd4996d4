"""Run solvers side by side: each (instance, solver) in a process of its own, on one core; our own on a GPU as well, and
several instances in a process as a batch."""

from __future__ import annotations

import json
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
from pathlib import Path
from typing import Any

from ndsvrp.bench.instances import Case, find_cases
from ndsvrp.bench.rows import Row, append_row, key, latest, read_rows
from ndsvrp.bench.solvers import Own, find_solver
from ndsvrp.engine.device import Device
from ndsvrp.errors import EngineError, InstanceError
from ndsvrp.io.environment import environment

Progress = Callable[[int, int, Row], None]
"""Told after every run: how many are done, of how many, and the row."""

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")}
IN_A_PROCESS = 16  # instances that a process with a GPU takes: making one ready takes longer than many a search
GRACE = 60.0  # seconds a solver may take beyond twice its budget before it is ended


def run(
    set_path: str | Path,
    solvers: Sequence[str],
    time: float,
    instances: str | None = None,
    seed: int = 1,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    how: dict[str, Any] | None = None,
    together: int = 1,
) -> list[Row]:
    """Every solver on every chosen instance; returns a row for each, those found in `out` included.

    Solvers take turns on each instance, so that whatever else the machine does hits them alike. With `out`, rows are
    appended as soon as the process that makes them has ended (on a GPU it takes up to 16 instances), and a run that is
    there already (`rows.KEY`) is not run again.
    Our own solvers go by `how`, arguments of `ndsvrp.solve`, and search so many instances `together`; their name in
    the rows says so.
    """
    if time <= 0:
        raise InstanceError(f"{time:g} is not a number of seconds", field="time")
    how = how or {}
    if how.get("device") == "cuda" and jobs > 1:
        raise InstanceError("runs on a GPU follow each other", field="jobs")
    cores = _cores(jobs)
    same: Row = {"seed": seed, "budget": float(time), "threads": 1, **environment()}
    tasks = _tasks(find_cases(set_path, instances), solvers, how, together, same)
    present = latest(read_rows(out)) if out is not None else {}
    rows: dict[tuple[Any, ...], Row] = {}
    waiting = []
    for task in tasks:
        old = [present.get(key(row), {"error": "not there"}) for row in task.rows]
        if any("error" in row for row in old):  # what is searched together is run again together
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
    finally:  # also on Ctrl-C: what is done is written, what runs is ended
        pool.shutdown(wait=False, cancel_futures=True)
        workers.end()
        pool.shutdown()
    return [rows[key(row)] for task in tasks for row in task.rows]


@dataclass(frozen=True)
class _Task:
    """What one process does: a solver on one instance, or on several, so many at once."""

    solver: str
    how: dict[str, Any]
    together: int
    rows: list[Row]  #: what is known of the outcomes before the search
    cases: list[Case]


def _tasks(cases: Sequence[Case], solvers: Sequence[str], how: dict[str, Any], together: int, same: Row) -> list[_Task]:
    """Solvers take turns on every instance, or on every so many."""
    on_gpu = how.get("device") == "cuda"
    here = same | {"hardware": same["hardware"] | {"gpu": Device().name}} if on_gpu else same
    size = together * max(1, IN_A_PROCESS // together) if on_gpu else together
    versions = {name: _version(name) for name in solvers}
    ours = {name: own for name in solvers if isinstance(own := find_solver(name, how), Own)}
    for own in ours.values():
        own.refuse_settings()
    labels = {name: own.label(together) for name, own in ours.items()}
    tasks = []
    for begin in range(0, len(cases), size):
        some = list(cases[begin : begin + size])
        for name, version in versions.items():
            if name in labels:
                rows = [_describe(case, labels[name], version) | here for case in some]
                tasks.append(_Task(name, how, together, rows, some))
            else:
                tasks += [_Task(name, {}, 1, [_describe(case, name, version) | same], [case]) for case in some]
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
    """Worker processes, each on a core that no other has. Whatever happens to one of them, there is a row."""

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
                "cases": [asdict(case) for case in task.cases], "solver": task.solver, "how": task.how,
                "together": task.together, "core": core, "budget": first["budget"], "seed": first["seed"],
            }  # fmt: skip
            date = datetime.now(UTC).isoformat(timespec="seconds")
            outcomes = self.call(message, 2 * first["budget"] * len(task.cases) + GRACE)
            return [row | {"date": date} | outcome for row, outcome in zip(task.rows, outcomes, strict=True)]
        finally:
            self.free.put(core)

    def call(self, task: dict[str, Any], limit: float) -> list[Row]:
        child = subprocess.Popen(
            [sys.executable, "-m", "ndsvrp.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.children.add(child)
        if self.ended.is_set():  # since before there was this child to end
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
    """The cores to use, the last ones first: the first is where interrupts tend to go."""
    if not hasattr(os, "sched_setaffinity"):
        raise EngineError("benchmarks need a system that can bind a process to a core (Linux)")
    available = sorted(os.sched_getaffinity(0))
    if not 1 <= jobs <= len(available):
        raise InstanceError(f"{jobs} is not within 1-{len(available)}, one core each", field="jobs")
    return available[::-1][:jobs]
