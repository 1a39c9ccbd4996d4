"""Benchmark runs on a cluster: each in a process of its own, on its own core or cores of a node."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

from ndsvrp.bench.cores import leased
from ndsvrp.bench.pool import Pool
from ndsvrp.bench.rows import Row
from ndsvrp.bench.solvers import find_solver, version_of
from ndsvrp.bench.tasks import BenchTask, Entry, run_message
from ndsvrp.cluster.model_files import ModelFiles, model_files
from ndsvrp.cluster.ray_cluster import Cluster
from ndsvrp.cluster.tasks import Lost, Needs, Task
from ndsvrp.cluster.worker import describe_node
from ndsvrp.errors import ClusterError, InstanceError


class ClusterRuns:
    """Runs benchmark tasks on a cluster, as many at once as it has cores or GPUs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._places: dict[Needs, list[Row]] = {}

    def places(self, entry: Entry) -> list[Row]:
        """Return where runs of a solver may be: what their rows say about it."""
        needs = _needs(entry)
        if needs not in self._places:
            self._places[needs] = self._cluster.survey(needs)
        return self._places[needs]

    def run(self, tasks: Sequence[BenchTask]) -> Generator[tuple[int, list[Row]], None, None]:
        """Yield the position of each task and what its run adds to its rows, as they end."""
        entries = {id(task.entry): task.entry for task in tasks}
        files = {which: model_files(entry.request) for which, entry in entries.items()}  # each read once
        sent = [Task(_name(task), _content(task, files[id(task.entry)]), _needs(task.entry)) for task in tasks]
        for i, found in self._cluster.run(run_on_node, None, sent, grace=0.0):
            yield i, [{"error": found.reason}] * len(tasks[i].cases) if isinstance(found, Lost) else found


class Order(NamedTuple):
    """A run that a node shall make."""

    message: dict[str, Any]
    version: str  #: of the solver
    cores: int
    on_gpu: bool
    files: ModelFiles | None


def run_on_node(shared: None, order: Order) -> list[Row]:
    """Make a run on this node, on cores that no other run has, and return what it adds to its rows."""
    _require_version(order.message["solver"], order.version)
    place = _place(order.on_gpu)
    with ExitStack() as used:
        message = order.message
        if order.files is not None:
            weights = used.enter_context(order.files.written())
            message = message | {"request": message["request"] | {"model": str(weights)}}
        pool = Pool([used.enter_context(leased(order.cores))])
        used.callback(pool.end)  # also after an interrupt
        return [place | outcome for outcome in run_message(pool, message)]


_place = cache(describe_node)


def _require_version(solver: str, version: str) -> None:
    node = _place(False)["hardware"]["node"]
    try:
        found = version_of(solver, find_solver(solver))
    except InstanceError as error:
        raise ClusterError(f"node {node}: {error}") from None
    if found != version:
        raise ClusterError(f"node {node}: the solver {solver} is {found} there and {version} here")


def _needs(entry: Entry) -> Needs:
    return Needs(1, 1) if entry.on_gpu else Needs(entry.cores)


def _name(task: BenchTask) -> str:
    more = f" and {len(task.cases) - 1} more" if len(task.cases) > 1 else ""
    return f"{task.entry.row['solver']} on {task.cases[0].set} {task.cases[0].name}{more}"


def _content(task: BenchTask, files: ModelFiles | None) -> Callable[[], Order]:
    """Return what makes the order: with the problems, because a node need not have their files."""

    def make() -> Order:
        entry, problems = task.entry, [case.load() for case in task.cases]
        message = task.message() | {"pickled": base64.b64encode(pickle.dumps(problems)).decode()}
        return Order(message, entry.row["solver_version"], entry.cores, entry.on_gpu, files)

    return make
