"""Run solvers side by side: each (instance, solver) in a process of its own, on one core."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

from ndsvrp.bench.instances import Case, find_cases
from ndsvrp.bench.rows import Row, append_row, key, latest, read_rows
from ndsvrp.bench.solvers import find_solver
from ndsvrp.errors import EngineError, InstanceError
from ndsvrp.io.environment import environment

Progress = Callable[[int, int, Row], None]
"""Told after every run: how many are done, of how many, and the row."""

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")}
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
) -> list[Row]:
    """Every solver on every chosen instance; returns a row for each, those found in `out` included.

    Solvers take turns on each instance, so that whatever else the machine does hits them alike. With `out`, a row is
    appended as soon as it is known, and a run that is there already (`rows.KEY`) is not run again.
    """
    if time <= 0:
        raise InstanceError(f"{time:g} is not a number of seconds", field="time")
    cores = _cores(jobs)
    versions = {solver: _version(solver) for solver in solvers}
    same: Row = {"seed": seed, "budget": float(time), "threads": 1, **environment()}
    runs = [
        (_describe(case, solver, version) | same, case)
        for case in find_cases(set_path, instances)
        for solver, version in versions.items()
    ]
    present = latest(read_rows(out)) if out is not None else {}
    rows: dict[tuple[Any, ...], Row] = {}
    waiting = []
    for row, case in runs:
        old = present.get(key(row))
        if old is not None and "error" not in old:
            rows[key(row)] = old
        else:
            waiting.append((row, case))
    for done, row in enumerate(rows.values(), start=1):
        if progress:
            progress(done, len(runs), row)

    workers = _Workers(cores)
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(workers.run, row, case) for row, case in waiting]):
            row = future.result()
            rows[key(row)] = row
            if out is not None:
                append_row(out, row)
            if progress:
                progress(len(rows), len(runs), row)
    finally:  # also on Ctrl-C: what is done is written, what runs is ended
        pool.shutdown(wait=False, cancel_futures=True)
        workers.end()
        pool.shutdown()
    return [rows[key(row)] for row, _ in runs]


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

    def run(self, row: Row, case: Case) -> Row:
        core = self.free.get()
        try:
            task = {"case": asdict(case), "core": core} | {name: row[name] for name in ("solver", "budget", "seed")}
            date = datetime.now(UTC).isoformat(timespec="seconds")
            return row | {"date": date} | self.call(task, 2 * row["budget"] + GRACE)
        finally:
            self.free.put(core)

    def call(self, task: dict[str, Any], limit: float) -> Row:
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
            return {"error": f"ended after {limit:g} s without an answer"}
        finally:
            self.children.discard(child)
        if child.returncode != 0 or not answer:
            last = messages.decode(errors="replace").strip().splitlines()[-1:]
            return {"error": f"exit code {child.returncode}: {' '.join(last)}".rstrip(": ")}
        outcome: Row = json.loads(answer)
        return outcome

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
