"""Worker processes, each on its own core or cores. A run may have several of them, each with another seed."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from ndsvrp.bench.cores import usable
from ndsvrp.bench.rows import Row
from ndsvrp.bench.solvers import last_line
from ndsvrp.errors import InstanceError

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")}
GRACE = 60.0  # seconds a solver may take beyond twice its budget before it is ended
COMPILING = 300.0  # more of them on a GPU: no kernel may have been compiled yet
CLOCKS = {"seconds": max, "cpu_seconds": min}  # of a row for several runs: the longest, and the fewest of any core


class Pool:
    """Groups of cores, each for one task at a time. `groups`: their number, or the groups. A failure has a row, too."""

    def __init__(self, groups: int | Sequence[list[int]], cores: int = 1) -> None:
        self.free: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        for group in _groups(groups, cores) if isinstance(groups, int) else groups:
            self.free.put(group)
        self.children: set[subprocess.Popen[bytes]] = set()
        self.ended = threading.Event()

    def run(self, message: dict[str, Any]) -> list[Row]:
        """Run a task on a group of cores and return an outcome per instance, the best of all its seeds."""
        group = self.free.get()
        limit = 2 * message["budget"] * len(message["cases"]) + GRACE
        if message["request"]["device"] == "cuda":
            limit += COMPILING
        try:
            seeds = seeds_of(message["seed"], message["seeds"])
            if len(seeds) == 1:
                return self.call(message | {"cores": group}, limit)
            messages = [message | {"cores": [core], "seed": seed} for core, seed in zip(group, seeds, strict=True)]
            with ThreadPoolExecutor(len(seeds)) as threads:
                found = list(threads.map(lambda each: self.call(each, limit), messages))
            return [best_of(seeds, outcomes) for outcomes in zip(*found, strict=True)]
        finally:
            self.free.put(group)

    def call(self, task: dict[str, Any], limit: float) -> list[Row]:
        """Run a worker process and return its outcomes."""
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command, pipe = [sys.executable, "-m", "ndsvrp.bench.worker"], subprocess.PIPE
        lifeline, held = os.pipe()  # closed by the system if this process is killed: the child then ends, too
        child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, process_group=0, pass_fds=[lifeline]
        )
        os.close(lifeline)
        self.children.add(child)
        if self.ended.is_set():  # `end` was called before this child existed
            _kill(child)
        try:
            answer, messages = child.communicate(json.dumps(task | {"lifeline": lifeline}).encode(), timeout=limit)
        except subprocess.TimeoutExpired:
            _kill(child)
            child.communicate()
            return [{"error": f"ended after {limit:g} s without an answer"}] * len(task["cases"])
        finally:
            self.children.discard(child)
            os.close(held)
        if child.returncode != 0 or not answer:
            error = f"exit code {child.returncode}: {last_line(messages)}".rstrip(": ")
            return [{"error": error}] * len(task["cases"])
        outcomes: list[Row] = json.loads(answer)
        return outcomes

    def end(self) -> None:
        """Kill all worker processes."""
        self.ended.set()
        for child in list(self.children):
            _kill(child)


def seeds_of(seed: int, count: int) -> list[int]:
    """Return `count` seeds for a run. Runs with different seeds share none, and a single one is the seed itself."""
    return [count * seed + i for i in range(count)]


def best_of(seeds: Sequence[int], outcomes: Sequence[Row]) -> Row:
    """Return the best outcome of several seeds, with the outcomes of all in short; an error only if all failed."""
    able = [outcome for outcome in outcomes if "cost" in outcome]
    if not able:
        return dict(outcomes[0])
    best = min(able, key=lambda outcome: (not outcome["feasible"], outcome["cost"]))
    names = ("cost", "feasible", "error")
    runs = [
        {"seed": seed} | {name: outcome[name] for name in names if name in outcome}
        for seed, outcome in zip(seeds, outcomes, strict=True)
    ]
    clocks = {name: choose(outcome[name] for outcome in able) for name, choose in CLOCKS.items()}
    traces = [outcome["trace"] for outcome in able if outcome["feasible"] and outcome.get("trace")]
    joined = {"trace": _lowest(traces)} if traces else {}
    return best | clocks | joined | {"runs": runs}


def _lowest(traces: Sequence[Sequence[Sequence[float]]]) -> list[Sequence[float]]:
    """Return the trace of the best solution of any run, over time."""
    lowest: list[Sequence[float]] = []
    for point in sorted((point for trace in traces for point in trace), key=lambda point: (point[0], point[1])):
        if not lowest or point[1] < lowest[-1][1]:
            lowest.append(point)
    return lowest


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """Kill a worker and the programs that it runs: they are its process group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _groups(groups: int, cores: int) -> list[list[int]]:
    """Return groups of cores of this machine."""
    available = usable()
    if not 1 <= cores <= len(available):
        raise InstanceError(f"{cores} is not within 1-{len(available)}, the cores of this machine", field="cores")
    if not 1 <= groups <= len(available) // cores:
        each = "one core each" if cores == 1 else f"{cores} cores each"
        raise InstanceError(f"{groups} is not within 1-{len(available) // cores}, {each}", field="jobs")
    return [available[i * cores : (i + 1) * cores] for i in range(groups)]
